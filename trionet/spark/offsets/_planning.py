"""Plans the ranges between the start and the end of a query, and detects data loss.

(The connector: KafkaOffsetReader.getOffsetRangesFromUnresolvedOffsets and
getOffsetRangesFromResolvedOffsets, KafkaMicroBatchStream.verifyEndOffsetForTriggerAvailableNow.)
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
    """The ranges of a micro-batch.

    Attributes:
        ranges: the ranges, one per task.
        losses: the data losses; if ``failOnDataLoss`` is true, the caller raises the first, or else
            logs all of them.
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
    """Plan the ranges of a micro-batch.

    Args:
        start: the start offsets of the micro-batch.
        end: the end offsets of the micro-batch.
        earliest: the first offsets of the partitions that are only in ``end``, excluding deleted
            partitions.
        min_partitions: see :func:`.split`.
        max_records: see :func:`.split`.
        topic_ids: the known topic ids, keyed by topic.
    """
    starts = {each: earliest[each] for each in end.keys() - start.keys() & earliest.keys()}
    losses = _losses(start, end, starts)
    starts.update((each, offset) for each, offset in start.items() if each in end)
    ids = topic_ids or {}
    ranges: list[OffsetRange] = []
    for each, begin in sorted(starts.items()):
        if end[each] < begin:
            losses.append(
                OffsetChangedError(
                    f"the end of {each} decreased from {begin} to {end[each]}: its topic was"
                    " recreated, or the query started past the end of the partition"
                )
            )
        ranges.append(
            OffsetRange(*each, start=begin, until=end[each], topic_id=ids.get(each.topic, NO_UUID))
        )
    return Plan(split(ranges, min_partitions, max_records), losses)


def _losses(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    starts_of_new: Mapping[TopicPartition, int],
) -> list[DataLossError]:
    losses: list[DataLossError] = []
    if missing := end.keys() - start.keys() - starts_of_new.keys():
        losses.append(
            InitialOffsetNotFoundError(
                f"no initial offset found for {names_of(missing)}, which may have been deleted"
            )
        )
    losses.extend(
        AddedPartitionError(f"the new partition {each} starts at offset {begin} rather than 0")
        for each, begin in sorted(starts_of_new.items())
        if begin != 0
    )
    if deleted := start.keys() - end.keys():
        losses.append(PartitionsDeletedError(f"partitions have been deleted: {names_of(deleted)}"))
    return losses


def batch_plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    topic_ids: Mapping[str, bytes] | None = None,
) -> list[OffsetRange]:
    """Plan one range per partition, keeping -2 and -1 unresolved.

    Reading a table again then includes the records that have arrived in the meantime.

    Raises:
        OffsetsMismatchError: the partitions differ, or a partition ends before it starts.
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
    """Split the ranges of a batch by their resolved offsets.

    The start of a partition's first split and the end of its last split remain unresolved if they
    are -2 or -1 in ``ranges``.

    Args:
        ranges: the result of :func:`batch_plan`.
        start: the resolved starts of the ranges.
        end: the resolved ends of the ranges.
        min_partitions: see :func:`.split`.
        max_records: see :func:`.split`.

    Raises:
        OffsetsMismatchError: a partition ends before it starts.
    """
    planned = {each.topic_partition: each for each in ranges}
    resolved: list[OffsetRange] = []
    for name, each in planned.items():
        check_order(name, start[name], end[name], is_resolved=True)
        resolved.append(attrs.evolve(each, start=start[name], until=end[name]))
    splits = split(resolved, min_partitions, max_records)
    firsts = {each.topic_partition: index for index, each in reversed(list(enumerate(splits)))}
    lasts = {each.topic_partition: index for index, each in enumerate(splits)}
    for name, first in firsts.items():
        splits[first] = attrs.evolve(splits[first], start=planned[name].start)
        last = lasts[name]
        splits[last] = attrs.evolve(splits[last], until=planned[name].until)
    return splits


def check_same_partitions(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> None:
    """Check that the start and end of a query cover the same partitions.

    Raises:
        OffsetsMismatchError: the partitions differ.
    """
    if start.keys() != end.keys():
        raise OffsetsMismatchError(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
            "start and end must be given for the same topic-partitions: start is given for"
            f" {names_of(start)}; end for {names_of(end)}",
        )


def check_order(
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    is_resolved: bool = False,
    what: str = "offset",
) -> None:
    """Check that a partition does not end before it starts; a negative end is still unresolved.

    Raises:
        OffsetsMismatchError: the start is greater than the end.
    """
    if start > end >= 0:
        known = "resolved" if is_resolved else "specified"
        prefix = "RESOLVED" if is_resolved else "UNRESOLVED"
        raise OffsetsMismatchError(
            f"{prefix}_START_{what.upper()}_GREATER_THAN_END_{what.upper()}",
            f"the {known} start {what} {start} is greater than the end {what} {end} of"
            f" {partition}; start earlier or end later",
        )


def verify_available_now(
    end: Mapping[TopicPartition, int],
    prefetched: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> None:
    """Check a micro-batch of ``Trigger.AvailableNow`` against the end of its run.

    Args:
        end: the end offsets of the micro-batch.
        prefetched: the end offsets of the run, determined when it started.
        latest: the current ends of the partitions.

    Raises:
        OffsetsMismatchError: partitions were added or deleted, or an end offset exceeds the end of
            the run or of the partition.
    """
    of_run, of_batch = _text(prefetched), _text(end)
    again = "this may be transient, so restart the query"
    if prefetched.keys() != end.keys():
        raise OffsetsMismatchError(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "a micro-batch of Trigger.AvailableNow must have the same partitions as its run;"
            f" {again}; run: {of_run}; micro-batch: {of_batch}",
        )
    if any(offset > prefetched[each] for each, offset in end.items()):
        raise OffsetsMismatchError(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
            "a micro-batch of Trigger.AvailableNow must not end after its run;"
            f" {again}; run: {of_run}; micro-batch: {of_batch}",
        )
    if end.keys() - latest.keys():
        raise OffsetsMismatchError(
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            f"partitions were lost during a run of Trigger.AvailableNow; {again}; latest:"
            f" {_text(latest)}; micro-batch: {of_batch}",
        )
    if any(offset > latest[each] for each, offset in end.items()):
        raise OffsetsMismatchError(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_"
            "AVAILABLENOW",
            "the end of a partition decreased during a run of Trigger.AvailableNow;"
            f" {again}; latest: {_text(latest)}; micro-batch: {of_batch}",
        )


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    return to_json(Offsets(offsets))
