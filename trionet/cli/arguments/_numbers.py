"""Whole numbers of a command line, within what Kafka's protocol can carry."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

_NUMBER: Final = re.compile(r"-?[0-9]+")
#: No limit has as many.
_DIGITS_MAX: Final = 40


def whole(least: int, most: int, *, default: int | None = None) -> Callable[[str], int]:
    """A ``type`` for argparse: a number within limits.

    Args:
        least: the smallest.
        most: the largest.
        default: one outside of them that stands for what the broker takes by itself.
    """

    def number(text: str) -> int:
        # Longer than any limit, and quadratic to convert.
        found = int(text) if _NUMBER.fullmatch(text) and len(text) <= _DIGITS_MAX else None
        if found is not None and (found == default or least <= found <= most):
            return found
        other = "" if default is None else f", or {default} for what the broker takes by itself"
        raise argparse.ArgumentTypeError(
            f"{text[:_DIGITS_MAX]!r} is not allowed; allowed: {least} to {most}{other}"
        )

    return number


def is_natural(text: str, most: int) -> bool:
    """Whether it is a number from 0 to ``most``."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX and int(text) <= most
