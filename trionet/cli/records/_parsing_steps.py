"""The parsing steps of a format: functions that read at a position and return the next one.

A step raises :class:`IncompleteError` if it needs more input. At the end of the input, this makes
the record invalid. Only a delimiter may be missing there.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Final, NoReturn

import attrs

from trionet.errors import ConfigError

from ._layout import Verb
from ._numbers import size_and_reader, unknown_number
from ._packing import PackError, compact
from ._splitting import InputError

_DIGITS: Final = re.compile(rb"-?\d+")
_BOOLEANS: Final = ((b"true", 1), (b"false", 0))
#: The maximum number of digits of a number, including the sign.
_DIGITS_MAX: Final = 20
_INT64: Final = 1 << 63


class IncompleteError(Exception):
    """Raised when a record needs more input."""


@attrs.define
class Fields:
    """The parsed fields of one record.

    Attributes:
        texts: the topic, key and value, keyed by letter.
        sizes: the lengths of the texts and the number of headers, where -1 is null.
        numbers: the partition and the timestamp, keyed by letter.
        headers: the names and values of the headers.
    """

    texts: dict[str, bytes | None] = attrs.field(factory=dict)
    sizes: dict[str, int] = attrs.field(factory=dict)
    numbers: dict[str, int] = attrs.field(factory=dict)
    headers: list[tuple[str, bytes | None]] = attrs.field(factory=list)


#: Takes bytes, a position, the fields, and whether the input has ended. Returns the next position.
Step = Callable[[bytes, int, Fields, bool], int]


def literal_step(text: bytes, *, is_last: bool) -> Step:
    """Return a step that skips a literal.

    If it is the last literal of the format, it may be missing at the end of the input.
    """

    def read(data: bytes, position: int, _fields: Fields, is_end: bool) -> int:
        end = position + len(text)
        found = data[position:end]
        if found == text:
            return end
        if is_last and is_end and not found:
            return len(data)
        if text.startswith(found):
            raise IncompleteError
        raise InputError(f"expected {text!r}, found {data[position : position + 20]!r}")

    return read


def sized_text_step(verb: Verb, letter: str) -> Step:
    """Return a step that parses a text whose length precedes it."""
    change = text_change(verb)

    def read(data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
        size = fields.sizes[letter]
        if size < 0:
            fields.texts[letter] = None
            return position
        if len(data) < position + size:
            raise IncompleteError
        fields.texts[letter] = change(data[position : position + size])
        return position + size

    return read


def text_step(verb: Verb, letter: str, end: bytes) -> Step:
    """Return a step that parses a text up to a literal or, failing that, the end of the input.

    The step consumes the literal.
    """
    change = text_change(verb)

    def read(data: bytes, position: int, fields: Fields, is_end: bool) -> int:
        found = data.find(end, position) if end else -1
        if found < 0:
            if not is_end:
                raise IncompleteError
            found = len(data)
        fields.texts[letter] = change(data[position:found])
        return found + len(end)

    return read


def number_step(verb: Verb, keep: Callable[[Fields, int], object]) -> Step:
    """Return a step that parses a number in the modifier's form, decimal by default."""
    modifier = verb.modifier or "ascii"
    if modifier.isdecimal():
        if verb.letter not in "KSVH":
            raise ConfigError(f"{verb}: only lengths and counts can be fixed in the format")
        fixed = int(modifier)

        def use_fixed(_data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
            keep(fields, fixed)
            return position

        return use_fixed
    if modifier == "ascii":
        return _decimal_step(verb, keep)
    if modifier == "bool":
        return _bool_step(verb, keep)
    return _fixed_step(verb, modifier, keep)


def _decimal_step(verb: Verb, keep: Callable[[Fields, int], object]) -> Step:
    def read(data: bytes, position: int, fields: Fields, is_end: bool) -> int:
        found = _DIGITS.match(data, position, position + _DIGITS_MAX + 1)
        if found is None:
            rest = data[position : position + _DIGITS_MAX]
            if rest in {b"", b"-"}:
                raise IncompleteError
            _invalid_number(verb, rest)
        if found.end() == len(data) and not is_end:
            raise IncompleteError
        number = int(found[0])
        if not -_INT64 <= number < _INT64:
            _invalid_number(verb, found[0])
        keep(fields, number)
        return found.end()

    return read


def _bool_step(verb: Verb, keep: Callable[[Fields, int], object]) -> Step:
    def read(data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
        for text, number in _BOOLEANS:
            found = data[position : position + len(text)]
            if found == text:
                keep(fields, number)
                return position + len(text)
            if text.startswith(found):
                raise IncompleteError
        return _invalid_number(verb, data[position : position + 5])

    return read


def _fixed_step(verb: Verb, modifier: str, keep: Callable[[Fields, int], object]) -> Step:
    found = size_and_reader(modifier)
    if found is None:
        raise unknown_number(modifier)
    size, convert = found

    def read(data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
        piece = data[position : position + size]
        if len(piece) < size:
            raise IncompleteError
        try:
            keep(fields, convert(piece))
        except ValueError:
            _invalid_number(verb, piece)
        return position + size

    return read


def _invalid_number(verb: Verb, data: bytes) -> NoReturn:
    raise InputError(f"invalid number {data!r} for {verb}")


def text_change(verb: Verb) -> Callable[[bytes], bytes]:
    """Return the function that decodes a text according to the modifier."""
    modifier = verb.modifier
    if modifier is None:
        return bytes
    changes = {"hex": _of_hex, "base64": _of_base64, "base64raw": _of_base64, "json": _compact}
    if modifier not in changes:
        raise ConfigError(f"{verb}: unknown modifier; allowed: {', '.join(changes)}")
    return changes[modifier]


def _of_hex(data: bytes) -> bytes:
    try:
        return binascii.unhexlify(data)
    except ValueError as error:
        raise InputError(f"invalid hexadecimal {data[:40]!r}: {error}") from error


def _of_base64(data: bytes) -> bytes:
    try:
        padded = data.rstrip(b"=")
        return binascii.a2b_base64(padded + b"=" * (-len(padded) % 4), strict_mode=True)
    except ValueError as error:
        raise InputError(f"invalid base64 {data[:40]!r}: {error}") from error


def _compact(data: bytes) -> bytes:
    try:
        return compact(data)
    except PackError as error:
        raise InputError(f"{data[:40]!r}: {error}") from error
