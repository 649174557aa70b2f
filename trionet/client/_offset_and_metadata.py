"""An offset that a group commits (Kafka: OffsetAndMetadata)."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """Where a group reads on in a partition.

    Attributes:
        offset: of the next record to read.
        metadata: a note of the user's, kept beside it.
        leader_epoch: of the record before it, with which a truncation is noticed (KIP-320); None if
            it is not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None
