"""Where reading begins and ends in each partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError, TrionetError

from ._ranges import From, Place, Span, offset_at

if TYPE_CHECKING:
    from trionet.client.consumer._consumer import Consumer
    from trionet.client.consumer.records._record import ConsumerBatch


class NoSuchTopicError(TrionetError):
    """There is no such topic, or it has no such partition."""


class Bounds(NamedTuple):
    """Offsets of one partition.

    Attributes:
        start: the first that is read; None for the one that its group has committed.
        end: the first that is not read any more; None for no end.
        last: where the log ends.
    """

    start: int | None
    end: int | None
    last: int


async def chosen_partitions(
    consumer: Consumer, topics: Sequence[str], numbers: Collection[int]
) -> list[TopicPartition]:
    """The partitions to read.

    Args:
        consumer: asks for them.
        topics: whose.
        numbers: which; empty means all.

    Raises:
        NoSuchTopicError: see there.
    """
    await trio.lowlevel.checkpoint()
    found = []
    for topic in topics:
        there = await consumer.partitions_of(topic)
        if not there:
            raise NoSuchTopicError(f"there is no topic {topic}")
        if missing := set(numbers) - set(there):
            raise NoSuchTopicError(
                f"topic {topic} has the partitions 0 to {max(there)}, and no {min(missing)}"
            )
        found += [TopicPartition(topic, each) for each in there if not numbers or each in numbers]
    return found


async def bounds(
    consumer: Consumer, partitions: Sequence[TopicPartition], span: Span, *, stops: bool
) -> dict[TopicPartition, Bounds]:
    """Where reading begins and ends.

    Args:
        consumer: asks for it.
        partitions: of these.
        span: what was asked for.
        stops: whether it ends where the logs end now, if not before.
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
    """The offsets of a place; none for no place, and for a stored one."""
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
    """What to tell where the offset that was asked for is not in the log; None if it is."""
    wanted = span.start.number
    if span.start.base is not From.OFFSET or wanted == found.start:
        return None
    return (
        f"{partition.topic} [{partition.partition}] has the offsets {first} to {found.last}, and "
        f"no {wanted}; reading begins at {found.start}"
    )


@attrs.define
class Ends:
    """Where reading ends, and which partitions have not come there yet.

    Attributes:
        left: the end of each of those.
    """

    left: dict[TopicPartition, int]

    @classmethod
    def of(cls, found: dict[TopicPartition, Bounds]) -> Ends | None:
        """The ends of partitions; None if they have none.

        Those with nothing to read have come there.
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
        """How many records of a batch are before the end; notes where it is reached."""
        partition = batch.topic_partition
        end = self.left.get(partition)
        if end is None:
            return 0
        count = bisect_left(batch.offsets, end)
        if count < len(batch) or batch.offsets[-1] + 1 >= end:
            del self.left[partition]
        return count

    def look(self, position: Callable[[TopicPartition], int | None]) -> None:
        """Note which ends were reached without a record: what is there may be no records."""
        for partition, end in list(self.left.items()):
            at = position(partition)
            if at is not None and at >= end:
                del self.left[partition]


def part(batch: ConsumerBatch, start: int, end: int) -> ConsumerBatch:
    """The records of a batch from one place up to another."""
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


#: What a group can begin with where it has committed nothing.
_RESETS: Final = {From.BEGINNING: "earliest", From.END: "latest"}


def reset_of(span: Span) -> str | None:
    """``auto.offset.reset`` of a group for what was asked for; None for what it is anyway.

    Raises:
        ConfigError: a group cannot begin there.
    """
    start, end = span
    if end is not None or start.number or start.base not in {*_RESETS, From.STORED}:
        raise ConfigError(
            "a group begins where it has committed, and else at the beginning or the end: "
            "-o beginning, -o end, -o stored; others are for reading without -G"
        )
    return _RESETS.get(start.base)
