"""A range of the logs of partitions: where reading starts and where it stops.

The offsets are looked up once, before reading starts, so that a topic that is being written to has
an end as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from operator import index
from typing import Final, NamedTuple

import trio

from ..._util._text import counted
from ...errors import ApiError
from ...protocol import error_codes
from .._topic_partition import TopicPartition
from ._consumer import Consumer


class From(Enum):
    """The reference point of a place in a log."""

    BEGINNING = auto()
    END = auto()
    OFFSET = auto()
    TIME = auto()
    STORED = auto()


class Place(NamedTuple):
    """A place in the log of each partition.

    Attributes:
        base: the reference point; ``STORED`` is the committed offset of the consumer's group.
        number: the distance from the beginning or back from the end, an offset, or a time in
            milliseconds since the epoch, depending on ``base``.
    """

    base: From
    number: int = 0


BEGINNING: Final = Place(From.BEGINNING)
END: Final = Place(From.END)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def place(given: int | datetime | None, default: Place, name: str) -> Place:
    """Return the place that an argument of the user's stands for.

    Args:
        given: an offset; a negative number to count back from the end; a time; or None.
        default: the place that None stands for.
        name: the name of the argument, for error messages.

    Raises:
        TypeError: the argument is of another type.
        ValueError: the time has no timezone.
    """
    if given is None:
        return default
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ValueError(
                f"{name} = {given!r} has no timezone: pass datetime(..., tzinfo=UTC), or"
                " .astimezone() for local time"
            )
        # Rounded up: a record of the millisecond before is earlier than the time.
        return Place(From.TIME, max(0, -((_EPOCH - given) // _MILLISECOND)))
    try:
        number = index(given)
    except TypeError:
        raise TypeError(
            f"{name} = {given!r} must be an offset, a negative number of offsets back from the"
            " end, or a datetime"
        ) from None
    return Place(From.OFFSET, number) if number >= 0 else Place(From.END, -number)


def offset_at(place: Place, first: int, last: int, at_time: int | None) -> int:
    """Return the offset of a place in one partition, clamped to its log.

    Args:
        place: the place, whose base must not be ``STORED``.
        first: the log start offset.
        last: the end offset.
        at_time: for a time, the first offset at or after the time; None if there is none.
    """
    if place.base is From.TIME:
        return last if at_time is None else min(at_time, last)
    if place.base is From.BEGINNING:
        offset = first + place.number
    elif place.base is From.END:
        offset = last - place.number
    else:
        offset = place.number
    return min(max(offset, first), last)


class Bounds(NamedTuple):
    """The range to read in one partition.

    Attributes:
        start: the first offset to read; None to start at the committed offset of the group.
        stop: the end of the range, exclusive; None if unbounded.
        first: the log start offset.
        last: the end offset of the log.
    """

    start: int | None
    stop: int | None
    first: int
    last: int

    @property
    def size(self) -> int | None:
        """The number of offsets in the range; None if an end of it is unknown."""
        if self.start is None or self.stop is None:
            return None
        return max(0, self.stop - self.start)


async def existing_partitions(
    consumer: Consumer, topics: Iterable[str], numbers: Collection[int] = ()
) -> list[TopicPartition]:
    """Return the partitions of topics.

    Args:
        consumer: the client to use.
        topics: the topics to read.
        numbers: the partition numbers in each topic; empty for all.

    Raises:
        ApiError: a topic or partition does not exist.
    """
    await trio.lowlevel.checkpoint()
    found = []
    for topic in topics:
        existing = await consumer.partitions_of(topic)
        if not existing:
            raise unknown_topic(f"topic {topic} does not exist")
        if missing := set(numbers) - set(existing):
            raise unknown_topic(
                f"partition {min(missing)} does not exist; topic {topic} has"
                f" {counted(len(existing), 'partition')}"
            )
        selected = [each for each in existing if not numbers or each in numbers]
        found += [TopicPartition(topic, each) for each in selected]
    return found


def unknown_topic(message: str) -> ApiError:
    """Return the error for a topic or a partition that does not exist."""
    return ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, message)


async def assign_range(
    consumer: Consumer, partitions: Sequence[TopicPartition], start: Place, stop: Place | None
) -> dict[TopicPartition, Bounds]:
    """Assign partitions to a consumer, which then reads a range of each.

    Args:
        consumer: the consumer.
        partitions: the partitions to read, which must exist.
        start: where to start.
        stop: where to stop, at the latest at the present end; None to read on.

    Returns:
        The offsets that were found.

    Raises:
        TrionetError: the offsets could not be looked up.

    Cancellation: nothing is assigned.
    """
    firsts = await consumer.beginning_offsets(partitions)
    lasts = await consumer.end_offsets(partitions)
    starts = await _offsets(consumer, start, firsts, lasts)
    stops = await _offsets(consumer, stop, firsts, lasts)
    consumer.assign(partitions)
    for each, offset in starts.items():
        consumer.seek(each, offset)
    consumer.stop_at(stops)
    return {
        each: Bounds(starts.get(each), stops.get(each), firsts[each], lasts[each])
        for each in partitions
    }


async def _offsets(
    consumer: Consumer,
    place: Place | None,
    firsts: Mapping[TopicPartition, int],
    lasts: Mapping[TopicPartition, int],
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
