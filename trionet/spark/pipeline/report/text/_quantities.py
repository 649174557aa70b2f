"""Numbers as a report writes them, short and with their unit. Pure."""

from __future__ import annotations

import math
import re
from typing import Final

_SIZES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_COUNTS: Final = ("", "k", "M", "G", "T")
# The unit of a time, its microseconds, and how many of it are told in the next one.
_TIMES: Final = (
    ("µs", 1.0, 999.5),
    ("ms", 1e3, 999.5),
    ("s", 1e6, 119.5),
    ("min", 60e6, 119.5),
    ("h", 3600e6, 47.95),
    ("d", 86400e6, math.inf),
)
_ZEROS: Final = re.compile(r"\.0+(?!\d)")
#: Nothing was there to be measured.
NOTHING: Final = "-"


def count(value: float) -> str:
    """How many: all digits up to a million, ``1.23 M`` beyond."""
    return f"{value:,.0f}" if value < 1_000_000 else _scaled(value, _COUNTS)


def rate(value: float) -> str:
    """How many a second."""
    if value >= 1_000_000:
        return f"{_scaled(value, _COUNTS)}/s"
    digits = 0 if value >= 100 else 1 if value >= 1 or not value else 3
    return f"{value:,.{digits}f}/s"


def size(value: float) -> str:
    """Bytes: ``381 kB``."""
    return _scaled(value, _SIZES)


def share(value: float) -> str:
    """A share of 1 in percent; one that is not nothing does not look like nothing."""
    if 0 < value < 0.0001:
        return "<0.01%"
    return f"{value:.2%}" if value < 0.1 else f"{value:.1%}"


def duration(microseconds: float | None) -> str:
    """A time in the unit that keeps it short, with three digits: ``1.23 ms``."""
    if microseconds is None:
        return NOTHING
    unit, factor = next(
        (unit, factor) for unit, factor, below in _TIMES if microseconds < below * factor
    )
    return f"{_three_digits(microseconds / factor)} {unit}"


def rounded(text: str) -> str:
    """The same, without the zeros of a round number: ``10 ms``."""
    return _ZEROS.sub("", text)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            # What is not scaled is a whole number.
            digits = f"{value:.0f}" if unit == units[0] else _three_digits(value)
            return f"{digits} {unit}".rstrip()
        value /= 1000
    return f"{value:,.0f} {units[-1]}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 or not value else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"
