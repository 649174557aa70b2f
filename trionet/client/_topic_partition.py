"""The names of a partition and of a position in it: TopicPartition and OffsetAndMetadata."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition. A tuple, so that comparing, hashing and unpacking are fast.

    Attributes:
        topic: the topic's name.
        partition: the partition's number, from 0.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """A committed offset with its metadata.

    Attributes:
        offset: the offset of the next record to read.
        metadata: any text, stored with the offset.
        leader_epoch: the leader epoch of the preceding record, by which a log truncation is
            detected (KIP-320); None if it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None
