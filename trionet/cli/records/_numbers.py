"""Numbers in formats: decimal, hexadecimal, and binary in either byte order."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from trionet.errors import ConfigError

_HEX_DIGITS: Final = {"hex64": 16, "hex32": 8, "hex16": 4, "hex8": 2, "hex4": 1}
_BYTES: Final[dict[str, tuple[int, Literal["big", "little"]]]] = {
    "byte": (1, "big"),
    **{f"big{bits}": (bits // 8, "big") for bits in (64, 32, 16, 8)},
    **{f"little{bits}": (bits // 8, "little") for bits in (64, 32, 16, 8)},
}
_IS_HEX: Final = re.compile(rb"[0-9a-fA-F]+").fullmatch
NUMBER_MODIFIERS: Final = ("ascii", "hex", "bool", *_HEX_DIGITS, *_BYTES)


def written(modifier: str) -> Callable[[int], bytes]:
    """Return a function that formats a number, truncating excess bits.

    Raises:
        ConfigError: the modifier is unknown.
    """
    if modifier in _HEX_DIGITS:
        return partial(_hex, _HEX_DIGITS[modifier])
    if modifier in _BYTES:
        return partial(_packed, *_BYTES[modifier])
    if modifier == "ascii":
        return _ascii
    if modifier == "hex":
        return _shortest_hex
    if modifier == "bool":
        return _bool
    raise unknown_number(modifier)


def unknown_number(modifier: str) -> ConfigError:
    """Return the error for an unknown modifier."""
    return ConfigError(
        f"{{{modifier}}}: unknown number format; allowed: {', '.join(NUMBER_MODIFIERS)}"
    )


def size_and_reader(modifier: str) -> tuple[int, Callable[[bytes], int]] | None:
    """Return the size of a fixed-size number and its parser, or None for other formats.

    The parser raises ``ValueError`` on invalid digits.
    """
    if modifier in _HEX_DIGITS:
        return _HEX_DIGITS[modifier], _of_hex
    if modifier in _BYTES:
        size, order = _BYTES[modifier]
        return size, partial(_unpacked, order)
    return None


def _ascii(number: int) -> bytes:
    return b"%d" % number


def _bool(number: int) -> bytes:
    return b"true" if number else b"false"


def _hex(digits: int, number: int) -> bytes:
    return b"%0*x" % (digits, number & (1 << 4 * digits) - 1)


def _of_hex(data: bytes) -> int:
    if not _IS_HEX(data):
        raise ValueError(f"{data!r} is not hexadecimal")
    return _signed(int(data, 16), 4 * len(data))


def _shortest_hex(number: int) -> bytes:
    return b"%x" % (number & (1 << 64) - 1)


def _packed(size: int, order: Literal["big", "little"], number: int) -> bytes:
    return (number & (1 << 8 * size) - 1).to_bytes(size, order)


def _unpacked(order: Literal["big", "little"], data: bytes) -> int:
    return _signed(int.from_bytes(data, order), 8 * len(data))


def _signed(number: int, bits: int) -> int:
    # Signed from two bytes on, because a length of -1 is null; a single byte is unsigned.
    is_negative = bits > 8 and number >> (bits - 1)
    return number - (1 << bits) if is_negative else number
