"""What can go wrong between a query's offsets and what the cluster has.

Each says what was found, between which offsets, and what to do about it. The names of the
connector's own conditions stand in ``condition``, for whoever looks for them in logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from ...client._topic_partition import TopicPartition
from ...errors import TrionetError

_CURE: Final = (
    "either the records were deleted by the topic's retention, or the topic was deleted before all"
    " of it was processed; to go on without them, set the source option failOnDataLoss to false"
)


class DataLossError(TrionetError):
    """Records that a query was to read are not there any more (the connector: KAFKA_DATA_LOSS).

    With ``failOnDataLoss`` it fails the query, without it is logged.

    Args:
        what: what was found.
    """

    condition: ClassVar[str] = "KAFKA_DATA_LOSS"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] some data may have been lost: {self.what}; {_CURE}"


class PartitionsDeletedError(DataLossError):
    """Partitions that the query has read are gone."""

    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"


class AddedPartitionError(DataLossError):
    """A new partition does not begin at 0: its first records are gone already."""

    condition = "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"


class InitialOffsetNotFoundError(DataLossError):
    """A new partition was gone before anyone could ask where it begins."""

    condition = "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"


class OffsetChangedError(DataLossError):
    """A partition ends before the offset that was read already: its topic was made anew."""

    condition = "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"


class UnreadRangeError(DataLossError):
    """Records were planned to be read, and are not there any more when they are."""

    condition = "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"


class OffsetsMismatchError(TrionetError):
    """Offsets that were given, planned or promised do not fit each other or the cluster.

    Args:
        condition: the connector's name of it.
        what: what does not fit, and what to do.
    """

    def __init__(self, condition: str, what: str) -> None:
        super().__init__(condition, what)
        self.condition = condition
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] {self.what}"


class SinkColumnsError(TrionetError):
    """The columns of what is to be written are not those of a sink."""


class NullTopicError(TrionetError):
    """A row says no topic, and neither does an option (the connector: KAFKA_NULL_TOPIC_IN_DATA)."""

    condition: ClassVar[str] = "KAFKA_NULL_TOPIC_IN_DATA"

    def __str__(self) -> str:
        return (
            f"[{self.condition}] null topic present in the data; use the option topic for setting a"
            " topic, or leave such rows out"
        )


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in order, for a message."""
    return ", ".join(str(each) for each in sorted(partitions)) or "none"
