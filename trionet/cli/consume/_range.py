"""The range to read: kcat's offsets and rpk's ranges of offsets and times, in each partition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from trionet._util._times import TIME, parse_duration
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._range import BEGINNING, END, Bounds, From, Place
from trionet.errors import ConfigError

from ..arguments._values import INT32_MAX, INT64_MAX, is_natural, parse_time

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch


class Span(NamedTuple):
    """A range to read.

    Attributes:
        start: the start of the range.
        end: the end of the range, exclusive; None for no end.
    """

    start: Place
    end: Place | None = None


_NAMES: Final = {
    **dict.fromkeys(("beginning", "earliest", "smallest", "start", "oldest"), BEGINNING),
    **dict.fromkeys(("end", "latest", "largest", "newest"), END),
    "stored": Place(From.STORED),
}
_OFFSETS: Final = re.compile(r"(?P<start>\d+)?(?P<colon>:)?(?P<end>\d+|end)?")
_TIMES: Final = re.compile(rf"@(?P<start>{TIME})?(?:(?P<colon>:)(?P<end>{TIME}|end)?)?")
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
    start: Place = BEGINNING
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
            start = Place(From.OFFSET, int(found["start"])) if found["start"] else BEGINNING
            return Span(start, _offset_end(found["end"]))
    elif (found := _TIMES.fullmatch(text)) and (found["start"] or found["end"]):
        return _between(found["start"], found["end"], now)
    raise ConfigError(f"-o {text}: must look like one of {_FORMS}")


def _offset_end(text: str | None) -> Place | None:
    if text is None:
        return None
    return END if text == "end" else Place(From.OFFSET, int(text))


def _between(first: str | None, second: str | None, now: datetime) -> Span:
    """Parse the start and the end of a range of times.

    A duration counts back from now. As the end of a range with an absolute start, it counts forward
    from the start, unless it is negative.
    """
    start = BEGINNING
    after: int | None = None
    if first is not None:
        start = Place(From.TIME, _time(first, now, None))
        after = None if parse_duration(first) is not None or first == "now" else start.number
    if second is None:
        return Span(start)
    return Span(start, END if second == "end" else Place(From.TIME, _time(second, now, after)))


def _time(text: str, now: datetime, after: int | None) -> int:
    if after is not None and not text.startswith("-"):
        duration = parse_duration(text)
        if duration is not None:
            return min(after + duration, INT64_MAX)
    return parse_time(text, now)


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


def outside(span: Span, partition: TopicPartition, found: Bounds) -> str | None:
    """Return a warning if the requested offset is out of range, otherwise None."""
    requested = span.start.number
    if span.start.base is not From.OFFSET or requested == found.start:
        return None
    return (
        f"{partition.topic} [{partition.partition}]: offset {requested} is out of range "
        f"({found.first} to {found.last}); starting at {found.start}"
    )


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
