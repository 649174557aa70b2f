"""Errors of a query: lost data, and offsets that do not match.

Each message contains the problem, the offsets and the remedy. ``condition`` holds the name of the
connector's own error condition, so that existing log searches keep working.
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
    """Records that a query must read are no longer available (the connector: KAFKA_DATA_LOSS).

    If ``failOnDataLoss`` is set, the query fails; otherwise the error is logged.

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
    """Partitions that the query was reading have been deleted."""

    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"


class AddedPartitionError(DataLossError):
    """A new partition does not start at offset 0: its first records are already deleted."""

    condition = "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"


class InitialOffsetNotFoundError(DataLossError):
    """A new partition was deleted before its first offset could be determined."""

    condition = "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"


class OffsetChangedError(DataLossError):
    """A partition ends before an offset that was already read: its topic was recreated."""

    condition = "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"


class UnreadRangeError(DataLossError):
    """Records of a planned range were deleted before they could be read."""

    condition = "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"


class OffsetsMismatchError(TrionetError):
    """Given or planned offsets do not match each other, the query or the cluster.

    Args:
        condition: the connector's name for the error condition.
        what: what does not match, and what to do.
    """

    def __init__(self, condition: str, what: str) -> None:
        super().__init__(condition, what)
        self.condition = condition
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] {self.what}"


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions for an error message, sorted."""
    return ", ".join(str(each) for each in sorted(partitions)) or "none"
