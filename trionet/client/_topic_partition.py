"""Partitions and positions in them: TopicPartition and OffsetAndMetadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic. A tuple, so that comparing, hashing and unpacking are fast.

    Attributes:
        topic: the topic's name.
        partition: the partition's number, from 0.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """An offset that has been or is to be committed, with its metadata.

    Attributes:
        offset: the offset of the next record to read.
        metadata: arbitrary text stored with the offset.
        leader_epoch: the leader epoch of the preceding record, used to detect log
            truncation (KIP-320); None if unknown.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic, in the order given."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
