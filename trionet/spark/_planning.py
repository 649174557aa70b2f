"""Plans a query: its ranges of offsets, one per task, lost data, and limits on a micro-batch.

The arithmetic is the connector's (KafkaOffsetRangeCalculator, KafkaMicroBatchStream.rateLimit), so
a query is split into the same tasks. So are the checks
(KafkaOffsetReader.getOffsetRangesFromUnresolvedOffsets and getOffsetRangesFromResolvedOffsets,
KafkaMicroBatchStream.verifyEndOffsetForTriggerAvailableNow).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import attrs

from ..client._topic_partition import TopicPartition
from ..errors import ConfigError
from ..protocol._wire import NO_UUID
from ._offset_limits import (
    AddedPartitionError,
    DataLossError,
    InitialOffsetNotFoundError,
    OffsetChangedError,
    Offsets,
    OffsetsMismatchError,
    PartitionsDeletedError,
    PartitionsDroppedError,
    names_of,
    to_json,
)

#: The offsets of a log come from its broker. Spark has no use for so many tasks, and a plan of
#: many more would take all memory.
TASKS_MAX: Final = 1_000_000


@attrs.frozen
class OffsetRange:
    """The offsets of one partition from ``start``, inclusive, to ``until``, exclusive.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition.
        start: the first offset; -2 stands for the earliest offset when the range is read.
        until: the end offset, exclusive; -1 stands for the latest offset when the range is read.
        topic_id: the topic id when the range was planned, all zeros if unknown; used to detect that
            the topic has been recreated since.
        may_start_late: whether records that are deleted before any of the range is read are no
            loss, because the query starts with the earliest record that it finds.
    """

    topic: str
    partition: int
    start: int
    until: int
    topic_id: bytes = NO_UUID
    may_start_late: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the range."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """The number of offsets, which may exceed the number of records."""
        return self.until - self.start


def split(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Split ranges into tasks, honouring a minimum number and a maximum size; drop empty ranges.

    Args:
        ranges: the ranges, one per partition, with resolved offsets.
        min_partitions: the desired minimum number of tasks, or None. Small ranges remain
            whole, and large ranges are split in proportion to their sizes. Because of rounding,
            there may be slightly more or fewer tasks.
        max_records: the maximum number of offsets per task, or None. Applied before
            ``min_partitions``.

    Raises:
        ConfigError: ``max_records`` would make more than :data:`TASKS_MAX` tasks.
    """
    splits = [each for each in ranges if each.size > 0]
    if max_records is not None:
        tasks = sum(-(-each.size // max_records) for each in splits)
        if tasks > TASKS_MAX:
            raise ConfigError(
                f"maxRecordsPerPartition = {max_records} would cut {sum(e.size for e in splits)}"
                f" offsets into {tasks} tasks; at most {TASKS_MAX} are possible"
            )
        splits = [
            part for each in splits for part in _cut(each, math.ceil(each.size / max_records))
        ]
    if min_partitions is None or len(splits) >= min_partitions:
        return splits
    return list(_cut_in_proportion(splits, min_partitions))


def needs_split(
    ranges: Collection[OffsetRange], min_partitions: int | None, max_records: int | None
) -> bool:
    """Return whether ranges must be split, which requires resolved offsets.

    As in the connector (KafkaOffsetReaderAdmin.shouldDivvyUpLargePartitions), a range between
    earliest and latest is not too large: its size is not known before it is read.

    Args:
        ranges: the ranges, whose offsets may be unresolved.
        min_partitions: see :func:`split`.
        max_records: see :func:`split`.
    """
    if min_partitions is not None and min_partitions > len(ranges):
        return True
    return max_records is not None and any(each.size > max_records for each in ranges)


def _cut_in_proportion(ranges: list[OffsetRange], min_partitions: int) -> Iterator[OffsetRange]:
    total = sum(each.size for each in ranges)
    # Ranges that stay whole do not count in the proportions of the others (SPARK-36576).
    whole = [each for each in ranges if _parts(each.size, total, min_partitions) == 1]
    stays_whole = {each.topic_partition for each in whole}
    total_of_others = total - sum(each.size for each in whole)
    parts_of_others = max(min_partitions - len(whole), 1)
    for each in ranges:
        if each.topic_partition in stays_whole:
            yield each
        else:
            yield from _cut(each, _parts(each.size, total_of_others, parts_of_others))


def _parts(size: int, total: int, min_parts: int) -> int:
    # Half is rounded up, as Java's Math.round does.
    return max(math.floor(size / total * min_parts + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Cut a range into equal parts, at most one per offset; the last parts get the remainder."""
    start = whole.start
    for part in range(parts):
        until = start + (whole.until - start) // (parts - part)
        if until > start:
            yield attrs.evolve(whole, start=start, until=until)
        start = until


def stream_plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    topic_ids: Mapping[str, bytes] | None = None,
    dropped: Collection[TopicPartition] = (),
) -> tuple[list[OffsetRange], list[DataLossError]]:
    """Plan the ranges of a micro-batch.

    Args:
        start: the start offsets of the micro-batch.
        end: the end offsets of the micro-batch.
        earliest: the first offsets of the partitions that are only in ``end``, excluding deleted
            partitions.
        min_partitions: see :func:`.split`.
        max_records: see :func:`.split`.
        topic_ids: the known topic ids, keyed by topic.
        dropped: the partitions in ``start`` to which the query does not subscribe.

    Returns:
        The ranges, one per task, and the data losses. If ``failOnDataLoss`` is true, the caller
        raises the first loss, or else logs all of them.
    """
    starts = {each: earliest[each] for each in end.keys() - start.keys() & earliest.keys()}
    losses = _losses(start, end, starts, dropped)
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
    return split(ranges, min_partitions, max_records), losses


def _losses(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    starts_of_new: Mapping[TopicPartition, int],
    dropped: Collection[TopicPartition],
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
    gone = start.keys() - end.keys()
    if unread := gone.intersection(dropped):
        losses.append(
            PartitionsDroppedError(
                f"the query does not subscribe to {names_of(unread)}, of which its checkpoint has"
                " offsets"
            )
        )
    if deleted := gone.difference(dropped):
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


def rate_limited(
    limit: int,
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
) -> Offsets:
    """Return the end offsets of a micro-batch limited by ``maxOffsetsPerTrigger``.

    Each partition gets a share proportional to its lag. Shares below one offset are rounded up, so
    that no partition starves; all others are rounded down. (The connector:
    KafkaMicroBatchStream.rateLimit.)

    Args:
        limit: the approximate number of offsets in the micro-batch.
        start: the start offsets of the micro-batch.
        end: the current ends of the partitions.
        earliest: the first offsets of new partitions; a new partition that is not listed here is
            not limited.
    """
    starts = {**earliest, **start}
    sizes = {
        each: last - starts[each]
        for each, last in end.items()
        if each in starts and last > starts[each]
    }
    total = float(sum(sizes.values()))
    return {
        each: min(last, starts[each] + _share(limit, sizes[each], total)) if each in sizes else last
        for each, last in sorted(end.items())
    }


def _share(limit: int, size: int, total: float) -> int:
    share = limit * (size / total)
    return math.ceil(share) if share < 1 else math.floor(share)


class TriggerDelay:
    """Decides whether a micro-batch waits for more records (``minOffsetsPerTrigger``).

    The first micro-batch never waits.

    Args:
        min_offsets: the number of available offsets at which a micro-batch no longer waits.
        max_seconds: the maximum delay since the previous micro-batch (``maxTriggerDelay``).
    """

    def __init__(self, min_offsets: int, max_seconds: float) -> None:
        self._min_offsets = min_offsets
        self._max_seconds = max_seconds
        self._last = -math.inf

    def waits(
        self,
        start: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        earliest: Mapping[TopicPartition, int],
        now: float,
    ) -> bool:
        """Return whether the micro-batch should wait; if not, restart the delay.

        Args:
            start: the start offsets of the micro-batch.
            end: the current ends of the partitions.
            earliest: the first offsets of new partitions.
            now: the current time on a monotonic clock, in seconds.
        """
        starts = {**earliest, **start}
        waiting = sum(last - starts.get(each, 0) for each, last in end.items())
        if now - self._last < self._max_seconds and waiting < self._min_offsets:
            return True
        self._last = now
        return False
