"""The start and end offsets of the range to read in each partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet._util._text import counted
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError, TrionetError

from ._ranges import From, Place, Span, offset_at

if TYPE_CHECKING:
    from trionet.client.consumer._consumer import Consumer
    from trionet.client.consumer.records._record import ConsumerBatch


class NoSuchTopicError(TrionetError):
    """Raised when a topic or one of its partitions does not exist."""


class Bounds(NamedTuple):
    """The range to read in one partition.

    Attributes:
        start: the first offset to read; None to start at the committed offset of the group.
        end: the end of the range, exclusive; None if unbounded.
        last: the end offset of the log.
    """

    start: int | None
    end: int | None
    last: int


async def selected_partitions(
    consumer: Consumer, topics: Sequence[str], numbers: Collection[int]
) -> list[TopicPartition]:
    """Return the partitions to read.

    Args:
        consumer: the client to use.
        topics: the topics to read.
        numbers: the partition numbers in each topic; empty for all.

    Raises:
        NoSuchTopicError: a topic or partition does not exist.
    """
    await trio.lowlevel.checkpoint()
    found = []
    for topic in topics:
        existing = await consumer.partitions_of(topic)
        if not existing:
            raise NoSuchTopicError(f"topic {topic} does not exist")
        if missing := set(numbers) - set(existing):
            raise NoSuchTopicError(
                f"partition {min(missing)} does not exist; topic {topic} has"
                f" {counted(len(existing), 'partition')}"
            )
        selected = [each for each in existing if not numbers or each in numbers]
        found += [TopicPartition(topic, each) for each in selected]
    return found


async def bounds(
    consumer: Consumer, partitions: Sequence[TopicPartition], span: Span, *, stops: bool
) -> dict[TopicPartition, Bounds]:
    """Return the offsets of the requested range in each partition.

    Args:
        consumer: the client to use.
        partitions: the partitions to read.
        span: the requested range.
        stops: whether to stop at the current end offsets if the range has no end.
    """
    firsts = await consumer.beginning_offsets(partitions)
    lasts = await consumer.end_offsets(partitions)
    end = Place(From.END) if span.end is None and stops else span.end
    starts = await _offsets(consumer, span.start, firsts, lasts)
    ends = await _offsets(consumer, end, firsts, lasts)
    return {each: Bounds(starts.get(each), ends.get(each), lasts[each]) for each in partitions}


async def _offsets(
    consumer: Consumer,
    place: Place | None,
    firsts: dict[TopicPartition, int],
    lasts: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the offsets of a place, or an empty dict for None and for committed offsets."""
    await trio.lowlevel.checkpoint()
    if place is None or place.base is From.STORED:
        return {}
    at_times: dict[TopicPartition, int] = {}
    if place.base is From.TIME:
        found = await consumer.offsets_for_times(dict.fromkeys(firsts, place.number))
        at_times = {each: at.offset for each, at in found.items() if at is not None}
    return {
        each: offset_at(place, first, lasts[each], at_times.get(each))
        for each, first in firsts.items()
    }


def outside(span: Span, partition: TopicPartition, found: Bounds, first: int) -> str | None:
    """Return a warning if the requested offset is out of range, otherwise None."""
    requested = span.start.number
    if span.start.base is not From.OFFSET or requested == found.start:
        return None
    return (
        f"{partition.topic} [{partition.partition}]: offset {requested} is out of range ({first} "
        f"to {found.last}); starting at {found.start}"
    )


@attrs.define
class Ends:
    """The end offsets of the partitions that have not been read up to the end.

    Attributes:
        left: the end offsets, keyed by partition.
    """

    left: dict[TopicPartition, int]

    @classmethod
    def of(cls, found: dict[TopicPartition, Bounds]) -> Ends | None:
        """Return the end offsets of a range, or None if the range is unbounded.

        Partitions without any offset to read are omitted.
        """
        if all(each.end is None for each in found.values()):
            return None
        return cls(
            {
                partition: each.end
                for partition, each in found.items()
                if each.end is not None and (each.start is None or each.start < each.end)
            }
        )

    def count(self, batch: ConsumerBatch) -> int:
        """Return how many records of a batch precede the end, removing a partition at its end."""
        partition = batch.topic_partition
        end = self.left.get(partition)
        if end is None:
            return 0
        count = bisect_left(batch.offsets, end)
        if count < len(batch) or batch.offsets[-1] + 1 >= end:
            del self.left[partition]
        return count

    def look(self, position: Callable[[TopicPartition], int | None]) -> None:
        """Remove the partitions whose position has reached the end.

        This is needed because the last offsets may belong to control records, which are not
        returned.
        """
        for partition, end in list(self.left.items()):
            at = position(partition)
            if at is not None and at >= end:
                del self.left[partition]


def part(batch: ConsumerBatch, start: int, end: int) -> ConsumerBatch:
    """Return the records of a batch from index ``start`` to index ``end`` (exclusive)."""
    if start == 0 and end >= len(batch):
        return batch
    return attrs.evolve(
        batch,
        offsets=batch.offsets[start:end],
        timestamps=batch.timestamps[start:end],
        keys=batch.keys[start:end],
        values=batch.values[start:end],
        headers=batch.headers[start:end],
    )


#: The ``auto.offset.reset`` for each place where a group without committed offsets can start.
_RESETS: Final = {From.BEGINNING: "earliest", From.END: "latest"}


def reset_of(span: Span) -> str | None:
    """Return ``auto.offset.reset`` for the requested range, or None to leave it unchanged.

    Raises:
        ConfigError: a group cannot read this range.
    """
    start, end = span
    if end is not None or start.number or start.base not in {*_RESETS, From.STORED}:
        raise ConfigError(
            "a group starts at its committed offsets or, if it has none, at the beginning or the "
            "end; with -G, use -o beginning, -o end or -o stored"
        )
    return _RESETS.get(start.base)
