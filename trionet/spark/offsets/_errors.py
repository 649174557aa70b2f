"""Query errors: data loss and mismatched offsets.

Each message states the problem, the offsets and the remedy. ``condition`` is the connector's name
for the error condition, so that existing log searches keep working.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from ...client._topic_partition import TopicPartition
from ...errors import TrionetError

_CURE: Final = (
    "either the records were deleted by the topic's retention, or the topic was deleted before all"
    " its records were processed; to continue without them, set the source option failOnDataLoss to"
    " false"
)


class DataLossError(TrionetError):
    """Raised when records that a query must read are gone (the connector: KAFKA_DATA_LOSS).

    If ``failOnDataLoss`` is false, the error is logged instead.

    Args:
        what: a description of the loss.
    """

    condition: ClassVar[str] = "KAFKA_DATA_LOSS"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] some data may have been lost: {self.what}; {_CURE}"


class PartitionsDeletedError(DataLossError):
    """Raised when partitions are deleted while a query is reading them."""

    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"


class AddedPartitionError(DataLossError):
    """Raised when a new partition does not start at offset 0, so its first records are lost."""

    condition = "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"


class InitialOffsetNotFoundError(DataLossError):
    """Raised when a new partition is deleted before its first offset is determined."""

    condition = "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"


class OffsetChangedError(DataLossError):
    """Raised when a partition ends before the query's position, or its topic has been recreated."""

    condition = "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"


class UnreadRangeError(DataLossError):
    """Raised when records of a planned range are deleted before they are read."""

    condition = "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"


class OffsetsMismatchError(TrionetError):
    """Raised when offsets are inconsistent with each other, the query or the cluster.

    Args:
        condition: the connector's name for the error condition.
        what: a description of the mismatch and the remedy.
    """

    def __init__(self, condition: str, what: str) -> None:
        super().__init__(condition, what)
        self.condition = condition
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] {self.what}"


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Return the sorted names of partitions, for an error message."""
    return ", ".join(str(each) for each in sorted(partitions)) or "none"
