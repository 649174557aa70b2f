"""Parses record formats, which consist of text with escapes and verbs such as ``%k``.

The letters are kcat's, plus those of rpk's that do not conflict with them. A verb may name the form
of its number, such as ``%o{hex}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from trionet.errors import ConfigError

#: The escapes, keyed by the character after the backslash, except ``\\x`` and a hex number.
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", "%": b"%"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{1,2}")
_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}


class Verb(NamedTuple):
    """A placeholder for a field of a record, such as ``%k`` or ``%v{hex}``.

    Attributes:
        letter: the letter that names the field.
        modifier: the text in braces after the letter; None if there is none.
    """

    letter: str
    modifier: str | None = None

    def __str__(self) -> str:
        return f"%{self.letter}" if self.modifier is None else f"%{self.letter}{{{self.modifier}}}"


Part = bytes | Verb


def layout(text: str) -> list[Part]:
    """Parse a format into parts, with adjacent literals merged.

    Raises:
        ConfigError: an escape is unknown, a brace is not closed, or the format ends with a ``%``.
    """
    parts: list[Part] = []
    literal = b""
    position = 0
    while position < len(text):
        split = _percent if text[position] == "%" else _literal
        part, position = split(text, position)
        if isinstance(part, bytes):
            literal += part
            continue
        if literal:
            parts.append(literal)
            literal = b""
        parts.append(part)
    return [*parts, literal] if literal else parts


def delimiter(text: str) -> bytes:
    """Parse a delimiter, which may contain the same escapes as a format.

    Raises:
        ConfigError: an escape is unknown, or the delimiter is empty.
    """
    found = b""
    position = 0
    while position < len(text):
        piece, position = _literal(text, position)
        found += piece
    if not found:
        raise ConfigError("a delimiter must not be empty")
    return found


def as_bytes(text: str) -> bytes:
    """Return the original bytes of a command-line argument."""
    return text.encode("utf-8", "surrogateescape")


def printed(data: bytes) -> str:
    """Format bytes for an error message."""
    return repr(data)[1:]


def inside(text: str, of: str) -> str:
    """Return the text between brackets or other delimiters.

    As in rpk, the opening delimiter may be any character, once or repeated, and the matching
    closing character must follow the text as many times: ``[%F]``, ``##%F##``.

    Args:
        text: the text, including the delimiters.
        of: the verb, for the error message.

    Raises:
        ConfigError: the text does not end with the delimiter that matches its start.
    """
    if text:
        begin = text[0]
        count = len(text) - len(text.lstrip(begin))
        end = _CLOSING.get(begin, begin) * count
        if len(text) >= 2 * count and text.endswith(end):
            return text[count:-count]
    raise ConfigError(f"{of}: {text!r} must be in brackets, such as {of}[...]")


def _literal(text: str, position: int) -> tuple[bytes, int]:
    """Return the character or the escaped byte at a position, and the next position."""
    if text[position] != "\\":
        return as_bytes(text[position]), position + 1
    letter = text[position + 1 : position + 2]
    if letter == "x" and (digits := _HEX.match(text, position + 2)):
        return bytes([int(digits[0], 16)]), digits.end()
    if letter not in _ESCAPES:
        raise ConfigError(f"unknown escape \\{letter}; allowed: \\n, \\r, \\t, \\0, \\\\ and \\xNN")
    return _ESCAPES[letter], position + 2


def _percent(text: str, position: int) -> tuple[Part, int]:
    letter = text[position + 1 : position + 2]
    if not letter:
        raise ConfigError("the format ends with a single %; write %% for a percent sign")
    position += 2
    if letter in "%{}":
        return letter.encode(), position
    if text[position : position + 1] != "{":
        return Verb(letter), position
    end = _closing(text, position)
    return Verb(letter, text[position + 1 : end]), end + 1


def _closing(text: str, start: int) -> int:
    """Return the position of the brace that closes the one at ``start``."""
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character in "%\\":
            position += 1  # skip the escaped character or the verb's letter
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return position
        position += 1
    raise ConfigError(
        f"{text[start - 2 : start + 10]}: unclosed brace; write %{{ or %}} for a literal brace"
    )


_HEX_DIGITS: Final = {"hex64": 16, "hex32": 8, "hex16": 4, "hex8": 2, "hex4": 1}
_BYTES: Final[dict[str, tuple[int, Literal["big", "little"]]]] = {
    "byte": (1, "big"),
    **{f"big{bits}": (bits // 8, "big") for bits in (64, 32, 16, 8)},
    **{f"little{bits}": (bits // 8, "little") for bits in (64, 32, 16, 8)},
}
_IS_HEX: Final = re.compile(rb"[0-9a-fA-F]+").fullmatch


def written(modifier: str) -> Callable[[int], bytes]:
    """Return a function that formats a number, truncating excess bits.

    Raises:
        ConfigError: the modifier is unknown.
    """
    if modifier not in _WRITTEN:
        raise unknown_number(modifier)
    return _WRITTEN[modifier]


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


def _hex(digits: int, number: int) -> bytes:
    return b"%0*x" % (digits, number & (1 << 4 * digits) - 1)


def _of_hex(data: bytes) -> int:
    if not _IS_HEX(data):
        raise ValueError(f"{data!r} is not hexadecimal")
    return _signed(int(data, 16), 4 * len(data))


def _packed(size: int, order: Literal["big", "little"], number: int) -> bytes:
    return (number & (1 << 8 * size) - 1).to_bytes(size, order)


def _unpacked(order: Literal["big", "little"], data: bytes) -> int:
    return _signed(int.from_bytes(data, order), 8 * len(data))


def _signed(number: int, bits: int) -> int:
    # Signed from two bytes on, because a length of -1 is null; a single byte is unsigned.
    is_negative = bits > 8 and number >> (bits - 1)
    return number - (1 << bits) if is_negative else number


_WRITTEN: Final[dict[str, Callable[[int], bytes]]] = {
    "ascii": b"%d".__mod__,
    "hex": lambda number: b"%x" % (number & (1 << 64) - 1),
    "bool": lambda number: b"true" if number else b"false",
    **{name: partial(_hex, digits) for name, digits in _HEX_DIGITS.items()},
    **{name: partial(_packed, *form) for name, form in _BYTES.items()},
}
NUMBER_MODIFIERS: Final = tuple(_WRITTEN)
