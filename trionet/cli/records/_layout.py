"""Formats of records: text with escapes, and verbs of a percent sign and a letter.

The letters are kcat's, and beside them those of rpk that mean nothing else to kcat.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trionet.errors import ConfigError

#: What a backslash and a letter stand for; a number in hex follows ``\\x``.
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", "%": b"%"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{1,2}")
_CLOSING: Final = {"{": "}", "[": "]", "(": ")"}


class Verb(NamedTuple):
    """One thing of a record, and how it is written.

    Attributes:
        letter: what.
        modifier: what stood in braces behind it; None without.
    """

    letter: str
    modifier: str | None = None

    def __str__(self) -> str:
        return f"%{self.letter}" if self.modifier is None else f"%{self.letter}{{{self.modifier}}}"


Part = bytes | Verb


def layout(text: str) -> list[Part]:
    """The parts of a format, in order; texts that follow one another are one.

    Raises:
        ConfigError: an escape is unknown, or a brace is not closed.
    """
    parts: list[Part] = []
    literal = b""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            piece, position = _escape(text, position)
            literal += piece
        elif character == "%":
            part, position = _percent(text, position)
            if isinstance(part, bytes):
                literal += part
                continue
            if literal:
                parts.append(literal)
                literal = b""
            parts.append(part)
        else:
            literal += as_bytes(character)
            position += 1
    return [*parts, literal] if literal else parts


def delimiter(text: str) -> bytes:
    """What an option names as the end of something: text with the same escapes.

    Raises:
        ConfigError: an escape is unknown, or there is nothing.
    """
    found = b""
    position = 0
    while position < len(text):
        if text[position] == "\\":
            piece, position = _escape(text, position)
        else:
            piece, position = as_bytes(text[position]), position + 1
        found += piece
    if not found:
        raise ConfigError("a delimiter is at least one character")
    return found


def as_bytes(text: str) -> bytes:
    """The bytes that somebody has typed, whatever the system took them for."""
    return text.encode("utf-8", "surrogateescape")


def printed(data: bytes) -> str:
    """Bytes as a message shows them."""
    return repr(data)[1:]


def inside(text: str, of: str) -> str:
    """What is between brackets, or whatever else a text begins and ends with.

    As in rpk, any character may be repeated to begin with, and as many end it: ``[%F]``,
    ``##%F##``.

    Args:
        text: all of it.
        of: whose it is, for the error.

    Raises:
        ConfigError: it does not end as it begins.
    """
    if text:
        begin = text[0]
        count = len(text) - len(text.lstrip(begin))
        end = _CLOSING.get(begin, begin) * count
        if len(text) >= 2 * count and text.endswith(end):
            return text[count:-count]
    raise ConfigError(f"{of}: {text!r} must be in brackets, as in {of}[...]")


def _escape(text: str, position: int) -> tuple[bytes, int]:
    letter = text[position + 1 : position + 2]
    if letter == "x" and (digits := _HEX.match(text, position + 2)):
        return bytes([int(digits[0], 16)]), digits.end()
    if letter not in _ESCAPES:
        raise ConfigError(f"\\{letter} is no escape; there are \\n, \\r, \\t, \\0, \\\\ and \\xNN")
    return _ESCAPES[letter], position + 2


def _percent(text: str, position: int) -> tuple[Part, int]:
    letter = text[position + 1 : position + 2]
    if not letter:
        raise ConfigError("a format ends with %; a percent sign itself is %%")
    position += 2
    if letter in "%{}":
        return letter.encode(), position
    if text[position : position + 1] != "{":
        return Verb(letter), position
    end = _closing(text, position)
    return Verb(letter, text[position + 1 : end]), end + 1


def _closing(text: str, start: int) -> int:
    """Where the brace that opens at ``start`` is closed; pairs inside and escapes are not it."""
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character in "%\\":
            position += 1  # whatever comes next is escaped, or a letter
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return position
        position += 1
    raise ConfigError(
        f"{text[start - 2 : start + 10]}: the brace is not closed; a brace itself is %{{ or %}}"
    )
