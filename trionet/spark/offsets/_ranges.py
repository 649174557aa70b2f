"""Offset ranges, one per task, split by ``minPartitions`` and ``maxRecordsPerPartition``.

The arithmetic is the connector's (KafkaOffsetRangeCalculator), so a query is split into the same
tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import attrs

from ...client._topic_partition import TopicPartition
from ...protocol._wire import NO_UUID


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
    """

    topic: str
    partition: int
    start: int
    until: int
    topic_id: bytes = NO_UUID

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
    """
    splits = [each for each in ranges if each.size > 0]
    if max_records is not None:
        splits = [
            part for each in splits for part in _cut(each, math.ceil(each.size / max_records))
        ]
    if min_partitions is None or len(splits) >= min_partitions:
        return splits
    return list(_cut_in_proportion(splits, min_partitions))


def needs_split(count: int, min_partitions: int | None, max_records: int | None) -> bool:
    """Return whether ranges must be split, which requires resolved offsets.

    Args:
        count: the number of ranges.
        min_partitions: see :func:`split`.
        max_records: see :func:`split`.
    """
    return max_records is not None or (min_partitions is not None and min_partitions > count)


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
