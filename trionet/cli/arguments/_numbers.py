"""Integer arguments, within the ranges of Kafka's protocol."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

_NUMBER: Final = re.compile(r"-?[0-9]+")
#: The maximum number of characters that are parsed as a number; no limit needs as many.
_DIGITS_MAX: Final = 40


def bounded_int(least: int, most: int, *, default: int | None = None) -> Callable[[str], int]:
    """Return an argparse ``type`` that accepts an integer within limits.

    Args:
        least: the smallest accepted value.
        most: the largest accepted value.
        default: a value outside the limits that is also accepted and selects the broker's default;
            None if there is none.
    """

    def number(text: str) -> int:
        # Longer texts exceed any limit, and converting them takes quadratic time.
        found = int(text) if _NUMBER.fullmatch(text) and len(text) <= _DIGITS_MAX else None
        if found is not None and (found == default or least <= found <= most):
            return found
        other = "" if default is None else f", or {default} for the broker's default"
        raise argparse.ArgumentTypeError(
            f"invalid value {text[:_DIGITS_MAX]!r}: expected {least} to {most}{other}"
        )

    return number


def is_natural(text: str, most: int) -> bool:
    """Return whether the text is an integer from 0 to ``most``."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX and int(text) <= most
