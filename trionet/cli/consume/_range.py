"""The range to read: kcat's offsets and rpk's ranges of offsets and times, in each partition."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet._util._text import counted
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError, TrionetError

from ..arguments._values import INT32_MAX, INT64_MAX, is_natural, parse_time

if TYPE_CHECKING:
    from trionet.client.consumer._consumer import Consumer
    from trionet.client.consumer.records._record import ConsumerBatch


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
        base: the reference point.
        number: the distance from the beginning or back from the end, an offset, or a time in
            milliseconds since the epoch, depending on ``base``.
    """

    base: From
    number: int = 0


class Span(NamedTuple):
    """A range to read.

    Attributes:
        start: the start of the range.
        end: the end of the range, exclusive; None for no end.
    """

    start: Place
    end: Place | None = None


_UNITS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_PIECE: Final = re.compile(r"(\d+)(ms|[smhdw])")
_DURATION: Final = r"-?(?:\d+(?:ms|[smhdw]))+"
_DATE: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_TIME: Final = rf"now|{_DATE}|\d{{9,}}|{_DURATION}"

_BEGINNING: Final = Place(From.BEGINNING)
_END: Final = Place(From.END)
_NAMES: Final = {
    **dict.fromkeys(("beginning", "earliest", "smallest", "start", "oldest"), _BEGINNING),
    **dict.fromkeys(("end", "latest", "largest", "newest"), _END),
    "stored": Place(From.STORED),
}
_OFFSETS: Final = re.compile(r"(?P<start>\d+)?(?P<colon>:)?(?P<end>\d+|end)?")
_TIMES: Final = re.compile(rf"@(?P<start>{_TIME})?(?:(?P<colon>:)(?P<end>{_TIME}|end)?)?")
#: The maximum number of characters in a range. Python rejects numbers of thousands of digits.
_LENGTH_MAX: Final = 200
_FORMS: Final = (
    "beginning, end, stored, 47, -10 (from the end), +10 (from the beginning), 47:, :47, 47:100, "
    ":end, @2024-05-01, @1h (ago), @1h:now, @2024-05-01T08:00Z:30m, s@1714550400000, "
    "e@1714550400000"
)


def span(texts: Sequence[str], now: datetime) -> Span:
    """Parse the values of ``-o``, where later values override earlier ones.

    Args:
        texts: the values.
        now: the current time, timezone-aware.

    Raises:
        ConfigError: a value is invalid, or the end is before the start.
    """
    start: Place = _BEGINNING
    end: Place | None = None
    for text in texts:
        if text[:2] in {"s@", "e@"} and is_natural(text[2:], INT64_MAX):
            place = Place(From.TIME, int(text[2:]))
            start, end = (place, end) if text[0] == "s" else (start, place)
        else:
            start, end = _span(text, now)
    if _is_backwards(start, end):
        raise ConfigError(f"-o {' -o '.join(texts)}: the end is before the start")
    return Span(start, end)


def _is_backwards(start: Place, end: Place | None) -> bool:
    if end is None or start.base is not end.base:
        return False
    return start.base in {From.OFFSET, From.TIME} and end.number < start.number


def _span(text: str, now: datetime) -> Span:
    if len(text) > _LENGTH_MAX:
        raise ConfigError(f"-o {text[:_LENGTH_MAX]}...: must look like one of {_FORMS}")
    if text in _NAMES:
        return Span(_NAMES[text])
    if re.fullmatch(r"-\d+", text):
        return Span(Place(From.END, int(text[1:])))
    if re.fullmatch(r"\+\d+", text):
        return Span(Place(From.BEGINNING, int(text[1:])))
    if found := _OFFSETS.fullmatch(text):
        if found["start"] or (found["colon"] and found["end"]):
            start = Place(From.OFFSET, int(found["start"])) if found["start"] else _BEGINNING
            return Span(start, _offset_end(found["end"]))
    elif (found := _TIMES.fullmatch(text)) and (found["start"] or found["end"]):
        return _between(found["start"], found["end"], now)
    raise ConfigError(f"-o {text}: must look like one of {_FORMS}")


def _offset_end(text: str | None) -> Place | None:
    if text is None:
        return None
    return _END if text == "end" else Place(From.OFFSET, int(text))


def _between(first: str | None, second: str | None, now: datetime) -> Span:
    """Parse the start and the end of a range of times.

    A duration counts back from now. As the end of a range with an absolute start, it counts forward
    from the start, unless it is negative.
    """
    start = _BEGINNING
    after: int | None = None
    if first is not None:
        start = Place(From.TIME, _time(first, now, None))
        after = None if _duration(first) is not None or first == "now" else start.number
    if second is None:
        return Span(start)
    return Span(start, _END if second == "end" else Place(From.TIME, _time(second, now, after)))


def _time(text: str, now: datetime, after: int | None) -> int:
    milliseconds = _duration(text)
    if milliseconds is None:
        return parse_time(text, now)
    if after is not None and not text.startswith("-"):
        return min(after + milliseconds, INT64_MAX)
    return max(0, parse_time("now", now) - milliseconds)


def _duration(text: str) -> int | None:
    """Return a duration such as ``1h30m`` in milliseconds without the sign, or None if invalid."""
    if re.fullmatch(_DURATION, text) is None:
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))


def offset_at(place: Place, first: int, last: int, at_time: int | None) -> int:
    """Return the offset of a place in one partition, clamped to its log.

    Args:
        place: the place, whose base must not be ``STORED``.
        first: the log start offset.
        last: the end offset.
        at_time: for a time, the first offset at or after the time; None if there is none.
    """
    if place.base is From.TIME:
        return last if at_time is None else at_time
    if place.base is From.BEGINNING:
        offset = first + place.number
    elif place.base is From.END:
        offset = last - place.number
    else:
        offset = place.number
    return min(max(offset, first), last)


def partitions(text: str) -> frozenset[int]:
    """Parse partition numbers and ranges such as ``0,3-5``.

    Raises:
        ConfigError: the text does not have this form, or selects too many partitions.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not is_natural(first, INT32_MAX) or (dash and not is_natural(last, INT32_MAX)):
            raise ConfigError(f"-p {text}: expected partition numbers, such as 0 or 0,3-5")
        end = int(last) if dash else int(first)
        if end - int(first) > _PARTITIONS_MAX:
            raise ConfigError(f"-p {text}: selects more than {_PARTITIONS_MAX:,} partitions")
        found.update(range(int(first), end + 1))
    return frozenset(found)


_PARTITIONS_MAX: Final = 1_000_000


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
