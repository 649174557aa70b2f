"""How each part of a format reads: a function from bytes and a position to the next position.

A step that has not enough raises :class:`NotYet`; at the end of the input that is an error, but for
what ends with the input itself.
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
#: A number is not longer; what is, is none.
_DIGITS_MAX: Final = 20
_INT64: Final = 1 << 63


class NotYet(Exception):
    """The rest of a record is still to come."""


@attrs.define
class Fields:
    """What was read of one record.

    Attributes:
        texts: topic, key and value by their letters.
        sizes: of those, and the number of headers; -1 is null.
        numbers: what numbers were read, by their letters.
        headers: names and values.
    """

    texts: dict[str, bytes | None] = attrs.field(factory=dict)
    sizes: dict[str, int] = attrs.field(factory=dict)
    numbers: dict[str, int] = attrs.field(factory=dict)
    headers: list[tuple[str, bytes | None]] = attrs.field(factory=list)


#: Reads at a position, whether nothing follows the bytes; returns where the next step reads.
Step = Callable[[bytes, int, Fields, bool], int]


def literal_step(text: bytes, *, is_last: bool) -> Step:
    """Pass over text that has to be there; the last one, as a line's end, not at the very end."""

    def read(data: bytes, position: int, _fields: Fields, is_end: bool) -> int:
        end = position + len(text)
        found = data[position:end]
        if found == text:
            return end
        if is_last and is_end and not found:
            return len(data)
        if text.startswith(found):
            raise NotYet
        raise InputError(f"{text!r} should follow, not {data[position : position + 20]!r}")

    return read


def sized_text_step(verb: Verb, letter: str) -> Step:
    """Read text whose length was read before."""
    change = text_change(verb)

    def read(data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
        size = fields.sizes[letter]
        if size < 0:
            fields.texts[letter] = None
            return position
        if len(data) < position + size:
            raise NotYet
        fields.texts[letter] = change(data[position : position + size])
        return position + size

    return read


def text_step(verb: Verb, letter: str, end: bytes) -> Step:
    """Read text up to what ends it, and that; without an end, all the input."""
    change = text_change(verb)

    def read(data: bytes, position: int, fields: Fields, is_end: bool) -> int:
        found = data.find(end, position) if end else -1
        if found < 0:
            if not is_end:
                raise NotYet
            found = len(data)
        fields.texts[letter] = change(data[position:found])
        return found + len(end)

    return read


def number_step(verb: Verb, keep: Callable[[Fields, int], object]) -> Step:
    """Read a number: decimal, unless a modifier says otherwise."""
    modifier = verb.modifier or "ascii"
    if modifier.isdecimal():
        if verb.letter not in "KSVH":
            raise ConfigError(f"{verb}: only a length or a count may be given in the format")
        given = int(modifier)

        def give(_data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
            keep(fields, given)
            return position

        return give
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
                raise NotYet
            _no_number(verb, rest)
        if found.end() == len(data) and not is_end:
            raise NotYet
        number = int(found[0])
        if not -_INT64 <= number < _INT64:
            _no_number(verb, found[0])
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
                raise NotYet
        return _no_number(verb, data[position : position + 5])

    return read


def _fixed_step(verb: Verb, modifier: str, keep: Callable[[Fields, int], object]) -> Step:
    found = size_and_reader(modifier)
    if found is None:
        raise unknown_number(modifier)
    size, convert = found

    def read(data: bytes, position: int, fields: Fields, _is_end: bool) -> int:
        piece = data[position : position + size]
        if len(piece) < size:
            raise NotYet
        try:
            keep(fields, convert(piece))
        except ValueError:
            _no_number(verb, piece)
        return position + size

    return read


def _no_number(verb: Verb, data: bytes) -> NoReturn:
    raise InputError(f"{data!r} is no number for {verb}")


def text_change(verb: Verb) -> Callable[[bytes], bytes]:
    """What becomes of text that was read."""
    modifier = verb.modifier
    if modifier is None:
        return bytes
    changes = {"hex": _of_hex, "base64": _of_base64, "base64raw": _of_base64, "json": _compact}
    if modifier not in changes:
        raise ConfigError(f"{verb}: text is read as one of {', '.join(changes)}")
    return changes[modifier]


def _of_hex(data: bytes) -> bytes:
    try:
        return binascii.unhexlify(data)
    except ValueError as error:
        raise InputError(f"{data[:40]!r} is not hexadecimal: {error}") from error


def _of_base64(data: bytes) -> bytes:
    try:
        padded = data.rstrip(b"=")
        return binascii.a2b_base64(padded + b"=" * (-len(padded) % 4), strict_mode=True)
    except ValueError as error:
        raise InputError(f"{data[:40]!r} is not base64: {error}") from error


def _compact(data: bytes) -> bytes:
    try:
        return compact(data)
    except PackError as error:
        raise InputError(f"{data[:40]!r} is {error}") from error
