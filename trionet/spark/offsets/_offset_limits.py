"""Where a query begins and where it ends (the connector: KafkaOffsetRangeLimit)."""

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
    """What to do where no record is as late as the time a query is to begin at."""

    ERROR = "error"
    LATEST = "latest"


@attrs.frozen
class Earliest:
    """From the first records that there are."""

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """-2 for each: it is resolved when they are read."""
        return dict.fromkeys(sorted(partitions), EARLIEST)


@attrs.frozen
class Latest:
    """To, or from, the end that there is now."""

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """-1 for each: it is resolved when they are read."""
        return dict.fromkeys(sorted(partitions), LATEST)


@attrs.frozen
class SpecificOffsets:
    """One offset for each partition, or one end for all partitions of a topic.

    Attributes:
        offsets: -1 is the end, -2 the begin.
        topics: the topics given as a whole, with -1 or -2.
    """

    offsets: Offsets
    topics: dict[str, int] = attrs.field(factory=dict)

    def for_partitions(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset of each.

        Args:
            partitions: all that the query reads.

        Raises:
            OffsetsMismatchError: a partition has no offset, or an offset no partition.
        """
        if missing := self.topics.keys() - {each.topic for each in partitions}:
            raise OffsetsMismatchError(
                "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                f"the query reads no partition of {', '.join(sorted(missing))}, for which there is"
                " an offset; leave it out, or subscribe to it",
            )
        found = {each: self.topics[each.topic] for each in partitions if each.topic in self.topics}
        found.update(self.offsets)
        if found.keys() != set(partitions):
            raise OffsetsMismatchError(
                "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                "offsets must be given for all partitions that the query reads, and no others:"
                f" given for {names_of(found)}; read are {names_of(partitions)}; -1 stands for"
                " latest, -2 for earliest",
            )
        return dict(sorted(found.items()))


@attrs.frozen
class SpecificTimestamps:
    """The first record of each partition that is as late as its time.

    Attributes:
        timestamps: in milliseconds since 1970.
        no_match: what to do at the start where there is none.
    """

    timestamps: Offsets
    no_match: NoMatch = NoMatch.ERROR

    def for_partitions(
        self, partitions: Collection[TopicPartition], *, is_start: bool = True
    ) -> dict[TopicPartition, int]:
        """The time of each, in milliseconds.

        Args:
            partitions: all that the query reads.
            is_start: whether this is where it begins, for the message.

        Raises:
            OffsetsMismatchError: a partition has no time, or a time no partition.
        """
        if self.timestamps.keys() != set(partitions):
            position = "starting" if is_start else "ending"
            raise OffsetsMismatchError(
                "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                f"timestamps of {position} offsets must be given for all partitions that the query"
                f" reads, and no others: given for {names_of(self.timestamps)}; read are"
                f" {names_of(partitions)}",
            )
        return dict(sorted(self.timestamps.items()))


@attrs.frozen
class GlobalTimestamp:
    """The first record of every partition that is as late as one time.

    Attributes:
        timestamp: in milliseconds since 1970.
        no_match: what to do at the start where there is none.
    """

    timestamp: int
    no_match: NoMatch = NoMatch.ERROR

    def for_partitions(
        self, partitions: Collection[TopicPartition], *, is_start: bool = True
    ) -> dict[TopicPartition, int]:
        """The time of each, in milliseconds."""
        del is_start  # no partition can be without a time
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
    """What the cluster answered, and what stands for no answer.

    Args:
        limit: says what to do without a match at the start; the end is then the latest.
        times: what was asked for, in milliseconds.
        found: the offsets; Kafka's -1 where no record is as late as that stands for the latest.
        is_start: whether this is where the query begins.

    Raises:
        OffsetsMismatchError: there is no match, and that is an error.
    """
    offsets: Offsets = {}
    for partition, time in sorted(times.items()):
        offset = found.get(partition, LATEST)
        if offset < 0 and is_start and limit.no_match is NoMatch.ERROR:
            raise OffsetsMismatchError(
                "KAFKA_NO_OFFSET_FOR_TIMESTAMP",
                f"no offset of {partition} matched the timestamp {time}: all its records are"
                " earlier; give an earlier one, or set startingOffsetsByTimestampStrategy to latest"
                " to begin at its end",
            )
        offsets[partition] = offset
    return offsets


def parse_offsets(text: str) -> SpecificOffsets:
    """``{"topicA":{"0":23,"1":-1},"topicB":"earliest"}``.

    Raises:
        ConfigError: it is something else.
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
    """``{"topicA":{"0":1000}}``.

    Raises:
        ConfigError: it is something else.
    """
    wrong = f"expected e.g. {_TIMESTAMPS_EXAMPLE}, got {text}"
    timestamps: Offsets = {}
    for topic, value in parse_object(text, wrong).items():
        timestamps.update(offsets_of_topic(topic, value, wrong, lowest=0))
    return SpecificTimestamps(timestamps, no_match)
