"""The value of an offset commit (Kafka: OffsetAndMetadata)."""

from __future__ import annotations

from typing import NamedTuple


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
