"""The start and the end of a query, as set by the user (the connector: KafkaOffsetRangeLimit)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, TypeAlias

import attrs

from ...client._topic_partition import TopicPartition
from ...errors import ConfigError
from ._errors import OffsetsMismatchError, names_of
from ._partition_offsets import EARLIEST, EXAMPLE, LATEST, Offsets, offsets_of_topic, parse_object

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
