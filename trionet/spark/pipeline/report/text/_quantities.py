"""Formats numbers for a report, compactly and with units."""

from __future__ import annotations

import math
import re
from typing import Final

_SIZES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_COUNTS: Final = ("", "k", "M", "G", "T")
# Each unit of time: its length in microseconds, and from how many units on the next one is used.
_TIMES: Final = (
    ("µs", 1.0, 999.5),
    ("ms", 1e3, 999.5),
    ("s", 1e6, 119.5),
    ("min", 60e6, 119.5),
    ("h", 3600e6, 47.95),
    ("d", 86400e6, math.inf),
)
_ZEROS: Final = re.compile(r"\.0+(?!\d)")
#: Shown in place of an undefined value.
NOTHING: Final = "-"


def count(value: float) -> str:
    """Format a count: in full below a million, otherwise like ``1.23 M``."""
    return f"{value:,.0f}" if value < 1_000_000 else _scaled(value, _COUNTS)


def rate(value: float) -> str:
    """Format a rate per second."""
    if value >= 1_000_000:
        return f"{_scaled(value, _COUNTS)}/s"
    digits = 0 if value >= 100 else 1 if value >= 1 or not value else 3
    return f"{value:,.{digits}f}/s"


def size(value: float) -> str:
    """Format a number of bytes: ``381 kB``."""
    return _scaled(value, _SIZES)


def share(value: float) -> str:
    """Format a fraction as a percentage; a tiny fraction is shown as ``<0.01%`` instead of 0."""
    if 0 < value < 0.0001:
        return "<0.01%"
    return f"{value:.2%}" if value < 0.1 else f"{value:.1%}"


def duration(microseconds: float | None) -> str:
    """Format a duration to three significant digits in a suitable unit: ``1.23 ms``."""
    if microseconds is None:
        return NOTHING
    unit, factor = next(
        (unit, factor) for unit, factor, below in _TIMES if microseconds < below * factor
    )
    return f"{_three_digits(microseconds / factor)} {unit}"


def rounded(text: str) -> str:
    """Remove trailing zeros from a formatted number: ``10.0 ms`` becomes ``10 ms``."""
    return _ZEROS.sub("", text)


def _scaled(value: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            # Unscaled values are integers.
            digits = f"{value:.0f}" if unit == units[0] else _three_digits(value)
            return f"{digits} {unit}".rstrip()
        value /= 1000
    return f"{value:,.0f} {units[-1]}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 or not value else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"
