"""What each task reads: ranges of offsets, cut where that was asked for.

The arithmetic is the connector's (KafkaOffsetRangeCalculator), so that a query has the same tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import attrs

from ...client._topic_partition import TopicPartition
from ...protocol._wire import NO_UUID


@attrs.frozen
class OffsetRange:
    """The offsets from ``start`` until before ``until`` of one partition.

    Attributes:
        topic: the topic's name.
        partition: its number.
        start: the first offset; -2 is the earliest when it is read.
        until: the offset behind the last one; -1 is the latest when it is read.
        topic_id: the topic's id when the range was planned, zeros where it is not known: a topic
            that was made anew has another one.
    """

    topic: str
    partition: int
    start: int
    until: int
    topic_id: bytes = NO_UUID

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """How many offsets are in it; compaction and markers leave fewer records."""
        return self.until - self.start


def split(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Ranges for at least about so many tasks, none longer than it may be; empty ones are dropped.

    Args:
        ranges: one for each partition; their ends must be known.
        min_partitions: how many tasks there should be at least, or None. Small ranges stay whole,
            large ones are cut in proportion: rounding may give some more or fewer.
        max_records: the most offsets in one task, or None. Both: first by this, then further.
    """
    pieces = [each for each in ranges if each.size > 0]
    if max_records is not None:
        pieces = [
            piece for each in pieces for piece in _cut(each, math.ceil(each.size / max_records))
        ]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    return list(_cut_in_proportion(pieces, min_partitions))


def needs_split(count: int, min_partitions: int | None, max_records: int | None) -> bool:
    """Whether the ends of ranges must be known when they are planned.

    Args:
        count: of partitions.
        min_partitions: see :func:`split`.
        max_records: see :func:`split`.
    """
    return max_records is not None or (min_partitions is not None and min_partitions > count)


def _cut_in_proportion(ranges: list[OffsetRange], min_partitions: int) -> Iterator[OffsetRange]:
    total = sum(each.size for each in ranges)
    # What stays whole does not count in the proportions of the others (SPARK-36576).
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
    # Half is rounded up, as Java does.
    return max(math.floor(size / total * min_parts + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """As many parts as there are offsets for; the last ones take what does not go evenly."""
    start = whole.start
    for part in range(parts):
        until = start + (whole.until - start) // (parts - part)
        if until > start:
            yield attrs.evolve(whole, start=start, until=until)
        start = until
