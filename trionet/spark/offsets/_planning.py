"""From where a query begins and ends to the ranges that it reads, and to what is lost between.

(The connector: KafkaOffsetReader's getOffsetRangesFromUnresolvedOffsets and its sibling for
resolved offsets, KafkaMicroBatchStream.verifyEndOffsetForTriggerAvailableNow.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

from ...client._topic_partition import TopicPartition
from ...protocol._wire import NO_UUID
from ._errors import (
    AddedPartitionError,
    DataLossError,
    InitialOffsetNotFoundError,
    OffsetChangedError,
    OffsetsMismatchError,
    PartitionsDeletedError,
    names_of,
)
from ._partition_offsets import Offsets, to_json
from ._ranges import OffsetRange, split


class Plan(NamedTuple):
    """What a micro-batch reads.

    Attributes:
        ranges: one for each task.
        losses: what is not there any more; with ``failOnDataLoss`` raise the first, else log all.
    """

    ranges: list[OffsetRange]
    losses: list[DataLossError]


def stream_plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    topic_ids: Mapping[str, bytes] | None = None,
) -> Plan:
    """The ranges of a micro-batch.

    Args:
        start: where it begins.
        end: where it ends.
        earliest: where the partitions begin that are only in ``end``; one that is missing here was
            deleted meanwhile.
        min_partitions: see :func:`.split`.
        max_records: see :func:`.split`.
        topic_ids: of the topics, as far as they are known.
    """
    begins = {each: earliest[each] for each in end.keys() - start.keys() & earliest.keys()}
    losses = _losses(start, end, begins)
    begins.update((each, offset) for each, offset in start.items() if each in end)
    ids = topic_ids or {}
    ranges: list[OffsetRange] = []
    for each, begin in sorted(begins.items()):
        if end[each] < begin:
            losses.append(
                OffsetChangedError(
                    f"the end of {each} went back from {begin} to {end[each]}: its topic was made"
                    " anew, or the query was told to begin behind its end"
                )
            )
        ranges.append(
            OffsetRange(*each, start=begin, until=end[each], topic_id=ids.get(each.topic, NO_UUID))
        )
    return Plan(split(ranges, min_partitions, max_records), losses)


def _losses(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    begins_of_new: Mapping[TopicPartition, int],
) -> list[DataLossError]:
    losses: list[DataLossError] = []
    if missing := end.keys() - start.keys() - begins_of_new.keys():
        losses.append(
            InitialOffsetNotFoundError(
                f"where {names_of(missing)} begins could not be found: deleted meanwhile"
            )
        )
    losses.extend(
        AddedPartitionError(f"the new partition {each} begins at {begin} instead of 0")
        for each, begin in sorted(begins_of_new.items())
        if begin != 0
    )
    if deleted := start.keys() - end.keys():
        losses.append(PartitionsDeletedError(f"{names_of(deleted)} are gone"))
    return losses


def batch_plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    topic_ids: Mapping[str, bytes] | None = None,
) -> list[OffsetRange]:
    """One range for each partition, its ends as they are given: -2 and -1 stay.

    A table that is read again then has what came meanwhile.

    Raises:
        OffsetsMismatchError: the partitions are not the same, or one ends before it begins.
    """
    check_same_partitions(start, end)
    ids = topic_ids or {}
    ranges: list[OffsetRange] = []
    for each, begin in sorted(start.items()):
        check_order(each, begin, end[each])
        ranges.append(
            OffsetRange(*each, start=begin, until=end[each], topic_id=ids.get(each.topic, NO_UUID))
        )
    return ranges


def split_plan(
    ranges: list[OffsetRange],
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    min_partitions: int | None,
    max_records: int | None,
) -> list[OffsetRange]:
    """The ranges of a batch cut by their ends as they are now; outermost, -2 and -1 stay.

    Args:
        ranges: from :func:`batch_plan`.
        start: the same as these, resolved.
        end: the same as these, resolved.
        min_partitions: see :func:`.split`.
        max_records: see :func:`.split`.

    Raises:
        OffsetsMismatchError: one ends before it begins.
    """
    planned = {each.topic_partition: each for each in ranges}
    resolved: list[OffsetRange] = []
    for name, each in planned.items():
        check_order(name, start[name], end[name], is_resolved=True)
        resolved.append(attrs.evolve(each, start=start[name], until=end[name]))
    pieces = split(resolved, min_partitions, max_records)
    firsts = {each.topic_partition: index for index, each in reversed(list(enumerate(pieces)))}
    lasts = {each.topic_partition: index for index, each in enumerate(pieces)}
    for name, first in firsts.items():
        pieces[first] = attrs.evolve(pieces[first], start=planned[name].start)
        last = lasts[name]
        pieces[last] = attrs.evolve(pieces[last], until=planned[name].until)
    return pieces


def check_same_partitions(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> None:
    """Where a query begins and where it ends must be given for the same partitions.

    Raises:
        OffsetsMismatchError: they are not.
    """
    if start.keys() != end.keys():
        raise OffsetsMismatchError(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
            "start and end must be given for the same topic-partitions: the start is given for"
            f" {names_of(start)}; the end for {names_of(end)}",
        )


def check_order(
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    is_resolved: bool = False,
    what: str = "offset",
) -> None:
    """A partition must not end before it begins; what is negative is not known yet.

    Raises:
        OffsetsMismatchError: it does.
    """
    if start > end >= 0:
        known = "resolved" if is_resolved else "specified"
        prefix = "RESOLVED" if is_resolved else "UNRESOLVED"
        raise OffsetsMismatchError(
            f"{prefix}_START_{what.upper()}_GREATER_THAN_END_{what.upper()}",
            f"the {known} start {what} {start} is greater than the end {what} {end} of"
            f" {partition}; begin earlier or end later",
        )


def verify_available_now(
    end: Mapping[TopicPartition, int],
    prefetched: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> None:
    """A run of ``Trigger.AvailableNow`` ends where its start has fixed it.

    Args:
        end: of a micro-batch.
        prefetched: where the run is to end.
        latest: what the cluster has now.

    Raises:
        OffsetsMismatchError: partitions came or went, or an end is beyond what was fixed or what
            there is.
    """
    of_run, of_batch = _text(prefetched), _text(end)
    again = "it may be transient: start the query again"
    if prefetched.keys() != end.keys():
        raise OffsetsMismatchError(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "a micro-batch of Trigger.AvailableNow must have the partitions that the run has begun"
            f" with; {again}; of the run: {of_run}; of the micro-batch: {of_batch}",
        )
    if any(offset > prefetched[each] for each, offset in end.items()):
        raise OffsetsMismatchError(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
            "a micro-batch of Trigger.AvailableNow must not go beyond the end of the run;"
            f" {again}; of the run: {of_run}; of the micro-batch: {of_batch}",
        )
    if end.keys() - latest.keys():
        raise OffsetsMismatchError(
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            f"partitions were lost during a run of Trigger.AvailableNow; {again}; the cluster has:"
            f" {_text(latest)}; of the micro-batch: {of_batch}",
        )
    if any(offset > latest[each] for each, offset in end.items()):
        raise OffsetsMismatchError(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_"
            "AVAILABLENOW",
            "a partition has fewer records than a run of Trigger.AvailableNow has found;"
            f" {again}; the cluster has: {_text(latest)}; of the micro-batch: {of_batch}",
        )


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    return to_json(Offsets(offsets))
