"""A histogram as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from trionet.metrics._histogram import upper_of

ROWS_MAX: Final = 16
BAR_CELLS: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


@attrs.frozen
class Range:
    """How many values there are from one number of microseconds to below another."""

    from_us: int
    to_us: int
    count: int


def ranges(counts: Sequence[int], rows_max: int = ROWS_MAX) -> list[Range]:
    """The values of a histogram in few ranges, from the first to the last that has any.

    Ranges are an eighth of a power of two, or as many times that as it takes.

    Args:
        counts: of the buckets of a :class:`trionet.metrics._histogram.Histogram`.
        rows_max: how many ranges there may be; 8 and more is enough for values up to a minute.
    """
    filled = [number for number, count in enumerate(counts) if count]
    if not filled:
        return []
    step = 1
    while filled[-1] // step - filled[0] // step >= rows_max:
        step *= 2
    first, last = filled[0] // step, filled[-1] // step
    return [
        Range(
            upper_of(number * step - 1) + 1 if number else 0,
            upper_of((number + 1) * step - 1) + 1,
            sum(counts[number * step : (number + 1) * step]),
        )
        for number in range(first, last + 1)
    ]


def plot(found: Sequence[Range], *, is_unicode: bool) -> Iterator[str]:
    """A line for each range: from, to, a bar, how many, and the share up to here."""
    total = sum(each.count for each in found)
    most = max((each.count for each in found), default=0)
    up_to_here = 0
    for each in found:
        up_to_here += each.count
        bar = _bar(each.count / most, is_unicode=is_unicode)
        yield (
            f"{duration(each.from_us, is_unicode=is_unicode):>9}"
            f" to {duration(each.to_us, is_unicode=is_unicode):>9} {bar:<{BAR_CELLS}}"
            f" {each.count:>13,} {100 * up_to_here / total:6.2f} %"
        )


def _bar(share: float, *, is_unicode: bool) -> str:
    if not is_unicode:
        return "#" * (round(share * BAR_CELLS) or (1 if share else 0))
    eighths = round(share * BAR_CELLS * 8) or (1 if share else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def duration(microseconds: float, *, is_unicode: bool) -> str:
    """A time in three digits and the unit that fits: ``12.3 ms``."""
    value = microseconds
    if value < 999.5:
        return f"{value:.0f} {'µs' if is_unicode else 'us'}"
    unit = "ms"
    value /= 1000
    if value >= 999.5:
        unit = "s"
        value /= 1000
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"
