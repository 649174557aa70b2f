"""The offsets of a query: their JSON, its start and end as set by the user, and its errors.

Each offset is that of the next record to read. The JSON has the connector's form:
``{"topic":{"0":23,"1":42}}``. Spark compares offsets by their JSON text, so equal offsets must have
equal texts: topics are sorted by name, and partitions by number. The limits are the connector's
KafkaOffsetRangeLimit.

Each error states the problem, the offsets and the remedy. ``condition`` is the connector's name for
the error condition, so that existing log searches keep working.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import ClassVar, Final, TypeAlias

import attrs

from ..client._topic_partition import TopicPartition
from ..errors import ConfigError, TrionetError
from ..protocol._config_types import INT_MAX, LONG_MAX

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
    cure: ClassVar[str] = _CURE

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"[{self.condition}] some data may have been lost: {self.what}; {self.cure}"


class PartitionsDeletedError(DataLossError):
    """Raised when partitions are deleted while a query is reading them."""

    condition = "KAFKA_DATA_LOSS.PARTITIONS_DELETED"


class PartitionsDroppedError(PartitionsDeletedError):
    """Raised when a checkpoint has offsets of partitions that its query does not subscribe to."""

    cure = (
        "give a query that reads other topics a checkpointLocation of its own; or, to continue with"
        " this one and without those partitions, set the source option failOnDataLoss to false"
    )


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


Offsets: TypeAlias = dict[TopicPartition, int]

#: The form in which Spark passes offsets to a Python source and back.
PlainOffsets: TypeAlias = dict[str, dict[str, int]]

#: Special offsets, resolved when records are read (Kafka: ListOffsetsRequest).
LATEST: Final = -1
EARLIEST: Final = -2

#: The number of a partition as the key of a JSON object; Java's ``Integer.parseInt`` takes a sign.
_PARTITION: Final = re.compile(r"\+?[0-9]{1,20}")

EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


def to_plain(offsets: Mapping[TopicPartition, int]) -> PlainOffsets:
    """Convert offsets to Spark's form, sorted."""
    plain: PlainOffsets = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


#: Begins the key under which the end of a query's first micro-batch names the query's start. It is
#: followed by the start's JSON; the name of a topic has no "=".
_START: Final = "startingOffsets="


def with_start(
    end: Mapping[TopicPartition, int], start: Mapping[TopicPartition, int]
) -> PlainOffsets:
    """Convert the end of a query's first micro-batch to Spark's form, and add its start.

    A checkpoint stores only ends. The start is in the name of a topic without partitions, in which
    everything else that reads the offsets, such as the connector, finds no partition.
    """
    return {**to_plain(end), f"{_START}{to_json(start)}": {}}


def start_in(plain: Mapping[str, object]) -> Offsets | None:
    """Return the start of the query from the end of its first micro-batch; None for other offsets.

    Raises:
        ConfigError: the start is not of the form that :func:`with_start` writes.
    """
    texts = (key.removeprefix(_START) for key in plain if key.startswith(_START))
    return next((from_json(text) for text in texts), None)


def from_plain(plain: object) -> Offsets:
    """Convert offsets from Spark's form, which the connector's checkpoints also contain.

    Raises:
        ConfigError: the value does not have this form.
    """
    return _offsets(
        plain,
        f"expected e.g. {EXAMPLE}, got {plain!r}; offsets of another source in a checkpoint mean"
        " that it is another query's: give each query a checkpointLocation of its own",
    )


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Format offsets as JSON without spaces, as the connector does."""
    return json.dumps(to_plain(offsets), separators=(",", ":"), ensure_ascii=False)


def from_json(text: str, example: str = EXAMPLE) -> Offsets:
    """Parse offsets from JSON.

    Args:
        text: the JSON text, with keys in any order and any whitespace.
        example: an example for the error message.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f"expected e.g. {example}, got {text}"
    return _offsets(parse_object(text, wrong), wrong)


def partitions_from_json(text: str) -> tuple[TopicPartition, ...]:
    """Parse partitions from ``{"topicA":[0,1]}``, keeping their order.

    There may be partitions below 0: like others that do not exist, they are left out of a query.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f'expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {text}'
    found: dict[TopicPartition, None] = {}
    for topic, numbers in parse_object(text, wrong).items():
        if not isinstance(numbers, list):
            raise ConfigError(wrong)
        for number in numbers:
            found[TopicPartition(topic, integer(number, -INT_MAX, INT_MAX, wrong))] = None
    return tuple(found)


def parse_object(text: str, wrong: str) -> dict[str, object]:
    """Parse a JSON object without duplicate keys.

    Raises:
        ConfigError: the text is not a JSON object, or has duplicate keys; the message contains
            ``wrong``.
    """
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _unique_keys(pairs, wrong))
    except ConfigError:
        raise
    except (ValueError, RecursionError):  # a number may have too many digits for an int
        raise ConfigError(wrong) from None
    if not isinstance(value, dict):
        raise ConfigError(wrong)
    return value


def offsets_of_topic(topic: str, numbers: object, wrong: str, lowest: int = EARLIEST) -> Offsets:
    """Convert the offsets or timestamps of one topic from ``{"0":23}``.

    Raises:
        ConfigError: the value does not have this form; the message is ``wrong``.
    """
    if not isinstance(numbers, dict):
        raise ConfigError(wrong)
    found: Offsets = {}
    for key, offset in numbers.items():
        partition = TopicPartition(topic, _partition(key, wrong))
        if partition in found:  # as "0" and "+0"
            raise ConfigError(f"duplicate key {key}: {wrong}")
        found[partition] = integer(offset, lowest, LONG_MAX, wrong)
    return found


def integer(value: object, lowest: int, highest: int, wrong: str) -> int:
    """Return a JSON value that must be an integer within the bounds, such as 10, 10.0 or 1e1.

    Raises:
        ConfigError: the value is not such an integer; the message is ``wrong``.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(wrong)
    if not (lowest <= value <= highest and value == int(value)):
        raise ConfigError(wrong)
    return int(value)


def _offsets(topics: object, wrong: str) -> Offsets:
    if not isinstance(topics, dict):
        raise ConfigError(wrong)
    found: Offsets = {}
    for topic, numbers in topics.items():
        found.update(offsets_of_topic(topic, numbers, wrong))
    return found


def _partition(text: object, wrong: str) -> int:
    if not isinstance(text, str) or not _PARTITION.fullmatch(text) or int(text) > INT_MAX:
        raise ConfigError(wrong)
    return int(text)


def _unique_keys(pairs: list[tuple[str, object]], wrong: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"duplicate key {key}: {wrong}")
        found[key] = value
    return found


_TIMESTAMPS_EXAMPLE: Final = '{"topicA":{"0":123456789,"1":123456789},"topicB":{"0":123456789}}'
_OF_A_TOPIC: Final = {"earliest": EARLIEST, "latest": LATEST}


class NoMatch(Enum):
    """What to do for a partition that has no record at or after the starting timestamp."""

    ERROR = "error"
    LATEST = "latest"


@attrs.frozen
class Earliest:
    """The first available record of each partition."""

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return -2 for each partition, to be resolved when the partition is read."""
        return dict.fromkeys(sorted(partitions), EARLIEST)


@attrs.frozen
class Latest:
    """The current end of each partition."""

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return -1 for each partition, to be resolved when the partition is read."""
        return dict.fromkeys(sorted(partitions), LATEST)


@attrs.frozen
class SpecificOffsets:
    """An offset per partition, or earliest or latest for all partitions of a topic.

    Attributes:
        offsets: the offset of each partition; -1 is latest, -2 is earliest.
        topics: the offset (-1 or -2) for all partitions of a topic, keyed by topic.
    """

    offsets: Offsets
    topics: dict[str, int] = attrs.field(factory=dict)

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the offset of each partition.

        Args:
            partitions: all partitions that the query reads.

        Raises:
            OffsetsMismatchError: the offsets are not given for exactly these partitions.
        """
        if missing := self.topics.keys() - {each.topic for each in partitions}:
            raise OffsetsMismatchError(
                "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                f"an offset is given for {', '.join(sorted(missing))}, but the query reads none of"
                " its partitions; remove the offset, or subscribe to the topic",
            )
        found = {each: self.topics[each.topic] for each in partitions if each.topic in self.topics}
        found.update(self.offsets)
        if found.keys() != set(partitions):
            raise OffsetsMismatchError(
                "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                "offsets must be given for exactly the partitions that the query reads: given for"
                f" {names_of(found)}; the query reads {names_of(partitions)}; -1 stands for latest,"
                " -2 for earliest",
            )
        return dict(sorted(found.items()))


@attrs.frozen
class SpecificTimestamps:
    """The first record of each partition at or after the partition's timestamp.

    Attributes:
        timestamps: the timestamp of each partition, in ms since the epoch.
        no_match: for the start of a query: what to do for a partition without such a record.
    """

    timestamps: Offsets
    no_match: NoMatch = NoMatch.ERROR

    def for_partitions(
        self, partitions: Collection[TopicPartition], *, is_start: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the timestamp of each partition, in milliseconds.

        Args:
            partitions: all partitions that the query reads.
            is_start: whether this is the start of the query; only affects the error message.

        Raises:
            OffsetsMismatchError: the timestamps are not given for exactly these partitions.
        """
        if self.timestamps.keys() != set(partitions):
            position = "starting" if is_start else "ending"
            raise OffsetsMismatchError(
                "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                f"timestamps of {position} offsets must be given for exactly the partitions that"
                f" the query reads: given for {names_of(self.timestamps)}; the query reads"
                f" {names_of(partitions)}",
            )
        return dict(sorted(self.timestamps.items()))


@attrs.frozen
class GlobalTimestamp:
    """The first record of each partition at or after a timestamp that applies to all partitions.

    Attributes:
        timestamp: the timestamp, in ms since the epoch.
        no_match: for the start of a query: what to do for a partition without such a record.
    """

    timestamp: int
    no_match: NoMatch = NoMatch.ERROR

    def for_partitions(
        self, partitions: Collection[TopicPartition], *, is_start: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the timestamp for each partition, in milliseconds."""
        del is_start  # only for the message of SpecificTimestamps
        return dict.fromkeys(sorted(partitions), self.timestamp)


ByTimestamp: TypeAlias = SpecificTimestamps | GlobalTimestamp
OffsetLimit: TypeAlias = Earliest | Latest | SpecificOffsets | ByTimestamp


def offsets_of_times(
    limit: ByTimestamp,
    times: Mapping[TopicPartition, int],
    found: Mapping[TopicPartition, int],
    *,
    is_start: bool,
) -> Offsets:
    """Turn the offsets found for timestamps into the start or end of a query.

    Args:
        limit: the limit, which says what to do for a start without a match; an end without a match
            is latest.
        times: the timestamps, in milliseconds.
        found: the offsets; Kafka's -1 (no record at or after the timestamp) means latest.
        is_start: whether this is the start of the query.

    Raises:
        OffsetsMismatchError: a start has no match, and the strategy is ``error``.
    """
    offsets: Offsets = {}
    for partition, time in sorted(times.items()):
        offset = found.get(partition, LATEST)
        if offset < 0 and is_start and limit.no_match is NoMatch.ERROR:
            raise OffsetsMismatchError(
                "KAFKA_NO_OFFSET_FOR_TIMESTAMP",
                f"no offset of {partition} matched the timestamp {time}: all its records are"
                " older; give an earlier timestamp, or set startingOffsetsByTimestampStrategy to"
                " latest to start at the end of the partition",
            )
        offsets[partition] = offset
    return offsets


def parse_offsets(text: str) -> SpecificOffsets:
    """Parse offsets such as ``{"topicA":{"0":23,"1":-1},"topicB":"earliest"}``.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f'expected e.g. {EXAMPLE} or {{"topicA":"earliest","topicB":"latest"}}, got {text}'
    offsets: Offsets = {}
    topics: dict[str, int] = {}
    for topic, value in parse_object(text, wrong).items():
        if not isinstance(value, str):
            offsets.update(offsets_of_topic(topic, value, wrong))
        elif (end := _OF_A_TOPIC.get(value.lower())) is not None:
            topics[topic] = end
        else:
            raise ConfigError(wrong)
    return SpecificOffsets(offsets, topics)


def parse_timestamps(text: str, no_match: NoMatch) -> SpecificTimestamps:
    """Parse timestamps such as ``{"topicA":{"0":1000}}``.

    Raises:
        ConfigError: the text is not of this form.
    """
    wrong = f"expected e.g. {_TIMESTAMPS_EXAMPLE}, got {text}"
    timestamps: Offsets = {}
    for topic, value in parse_object(text, wrong).items():
        timestamps.update(offsets_of_topic(topic, value, wrong, lowest=0))
    return SpecificTimestamps(timestamps, no_match)
