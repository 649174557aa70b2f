"""Parses records written in a format, the inverse of ``trionet consume -f``.

A field of variable length ends at the next literal of the format or is preceded by its length.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import attrs

from trionet.errors import ConfigError

from ._layout import Part, Verb, layout, size_and_reader, unknown_number
from ._lines import NO_TIMESTAMP, Headers, InputError, RecordColumns, Shape
from ._packing import PackError, compact

#: The letters of lengths, each with the letter of the field that it measures.
_SIZES: Final = {"K": "k", "S": "v", "V": "v", "R": "v", "H": "h"}
_TEXTS: Final = {"t": "t", "k": "k", "v": "v", "s": "v"}
_NUMBERS: Final = {"p": "p", "T": "d", "d": "d"}
#: The fields assigned by the broker or the consumer, which are parsed and ignored.
_IGNORED: Final = "oei"
_VERBS: Final = "%t %p %k %K %v %V %s %S %R %T %d %h %H %o %e %i"
#: The maximum number of headers of a record.
_HEADERS_MAX: Final = 100_000


def parsing_steps(parts: Sequence[Part]) -> list[Step]:
    """Return the steps that parse a format.

    Raises:
        ConfigError: the end of a field is undefined, or a verb is unknown or occurs twice.
    """
    steps: list[Step] = []
    seen: set[str] = set()
    sized: set[str] = set()
    place = 0
    while place < len(parts):
        part = parts[place]
        place += 1
        if isinstance(part, bytes):
            steps.append(literal_step(part, is_last=place == len(parts)))
            continue
        letter = part.letter
        following = parts[place] if place < len(parts) else b""
        if letter in _TEXTS or letter == "h":
            field = _TEXTS.get(letter, "h")
            _once(part, field, seen)
            step, consumes_end = _text(part, field, field in sized, following)
            steps.append(step)
            place += consumes_end
        elif letter in _SIZES:
            field = _SIZES[letter]
            if field in seen:
                raise ConfigError(f"{part}: a length must precede the field it measures")
            _once(part, f"size of {field}", seen)
            sized.add(field)
            steps.append(_size(part, field))
        else:
            steps.append(_number(part, seen))
    return steps


def _once(verb: Verb, field: str, seen: set[str]) -> None:
    if field in seen:
        raise ConfigError(f"{verb} occurs twice in the format")
    seen.add(field)


def _text(verb: Verb, field: str, is_sized: bool, following: Part) -> tuple[Step, bool]:
    """Return the step for a text field, and whether the step consumes the next literal."""
    if field == "h" and verb.modifier is not None:
        if not is_sized:
            raise ConfigError(f"{verb} must be preceded by %H, the number of headers")
        return _nested_headers(verb), False
    if is_sized and field != "h":
        return sized_text_step(verb, field), False
    if isinstance(following, Verb):
        raise ConfigError(
            f"{verb}: the format does not define where it ends; add text after it or its length "
            "before it"
        )
    return text_step(verb, field, following), bool(following)


def _size(verb: Verb, field: str) -> Step:
    if verb.letter == "R":
        verb = Verb("S", "big32")

    def keep(fields: Fields, number: int) -> None:
        if number < -1 or (field == "h" and not 0 <= number <= _HEADERS_MAX):
            raise InputError(f"invalid length {number} for {verb}")
        fields.sizes[field] = number

    return number_step(verb, keep)


def _number(verb: Verb, seen: set[str]) -> Step:
    if verb.letter in _IGNORED:
        return number_step(verb, lambda _fields, _number: None)
    if verb.letter not in _NUMBERS:
        raise ConfigError(f"{verb}: unknown verb; allowed for input: {_VERBS}")
    field = _NUMBERS[verb.letter]
    if verb.modifier and verb.modifier.startswith("strftime"):
        raise ConfigError(
            f"{verb}: strftime is not supported for input; use milliseconds since the epoch"
        )
    _once(verb, field, seen)

    smallest = NO_TIMESTAMP if field == "d" else 0

    def keep(fields: Fields, number: int) -> None:
        if number < smallest:
            raise InputError(f"{number} is too small for {verb}")
        fields.numbers[field] = number

    return number_step(verb, keep)


def _nested_headers(verb: Verb) -> Step:
    inner = layout(verb.modifier or "")
    for part in inner:
        if isinstance(part, Verb) and part.letter not in "kKvVsS":
            raise ConfigError(f"{part}: unknown verb; allowed in headers: %k, %K, %v and %V")
    steps = parsing_steps(inner)

    def read(data: bytes, position: int, fields: Fields, is_end: bool) -> int:
        for _ in range(fields.sizes["h"]):
            header = Fields()
            for step in steps:
                position = step(data, position, header, is_end)
            fields.headers.append((_name(header.texts.get("k")), header.texts.get("v")))
        return position

    return read


def _name(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise InputError(f"header name {data!r} is not valid UTF-8") from None


def listed_headers(data: bytes | None) -> list[tuple[str, bytes | None]]:
    """Parse kcat's list of headers, ``name=value,name=value``, where NULL is null."""
    headers: list[tuple[str, bytes | None]] = []
    for each in data.split(b",") if data else ():
        name, equals, value = each.partition(b"=")
        headers.append((_name(name), value if equals and value != b"NULL" else None))
    return headers


class FormatInput:
    """Parses records written in a format, from input in chunks of any size.

    Args:
        parts: the format.
        shape: the properties common to all records.
        size_max: the maximum size of a record in bytes.

    Raises:
        ConfigError: the format cannot be used to parse records.
    """

    can_go_on = False  # the start of the next record is unknown

    def __init__(self, parts: Sequence[Part], shape: Shape, size_max: int) -> None:
        self._steps = parsing_steps(parts)
        if not any(isinstance(part, Verb) for part in parts):
            raise ConfigError("an input format must contain at least one verb, such as %v")
        self._packings = {"k": shape.key_packing, "v": shape.value_packing}
        self._shape = attrs.evolve(shape, key_packing=None, value_packing=None)
        self._size_max = size_max
        self._kept = b""
        self._number = 1
        self._error: InputError | None = None

    @property
    def kept(self) -> int:
        """The number of buffered bytes of an incomplete record."""
        return len(self._kept)

    def take_error(self) -> InputError | None:
        """Remove and return the parse error, or return None if there is none."""
        error, self._error = self._error, None
        return error

    def feed(self, data: bytes) -> list[RecordColumns]:
        """Add a chunk, and return the completed records."""
        return self._read(self._kept + data, is_end=False)

    def end(self) -> list[RecordColumns]:
        """Return the last record if the end of the input completes it."""
        return self._read(self._kept, is_end=True)

    def _read(self, data: bytes, *, is_end: bool) -> list[RecordColumns]:
        rows = _Rows(self._shape)
        position = begin = 0
        try:
            while position < len(data):
                begin = position
                fields = Fields()
                for step in self._steps:
                    position = step(data, position, fields, is_end)
                if position <= begin:
                    raise InputError("the format consumes no input")
                self._pack(fields)
                rows.add(self._number, fields)
                self._number += 1
            self._kept = b""
        except IncompleteError:
            self._kept = data[begin:]
            self._check_kept(is_end=is_end)
        except (InputError, PackError) as error:
            self._kept = b""
            self._error = InputError(f"record {self._number}: {error}")
        return rows.columns()

    def _check_kept(self, *, is_end: bool) -> None:
        size = len(self._kept)
        if is_end:
            why = "the input ends before the record does"
        elif size > self._size_max:
            why = f"larger than {self._size_max} bytes (max.request.size)"
        else:
            return
        self._kept = b""
        self._error = InputError(f"record {self._number}: {why}, after {size} bytes")

    def _pack(self, fields: Fields) -> None:
        for letter, packing in self._packings.items():
            data = fields.texts.get(letter)
            if packing is not None and data is not None:
                fields.texts[letter] = packing.packed(data)


class _Rows:
    """Parsed records, grouped by topic and partition."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._by_place: dict[tuple[bytes | None, int | None], dict[int, Fields]] = {}

    def add(self, number: int, fields: Fields) -> None:
        place = fields.texts.get("t"), fields.numbers.get("p")
        self._by_place.setdefault(place, {})[number] = fields

    def columns(self) -> list[RecordColumns]:
        return [
            attrs.evolve(
                self._columns(list(rows), list(rows.values())),
                topic=None if topic is None else topic.decode("utf-8", "replace"),
                partition=partition,
            )
            for (topic, partition), rows in self._by_place.items()
        ]

    def _columns(self, numbers: Sequence[int], rows: Sequence[Fields]) -> RecordColumns:
        """Return the columns. All rows have the same fields, which the format determines."""
        first = rows[0]
        values = [each.texts.get("v") for each in rows]
        keys = [each.texts["k"] for each in rows] if "k" in first.texts else None
        columns = self._shape.columns(numbers, values, keys)
        if "d" in first.numbers:
            columns = attrs.evolve(columns, timestamps=[each.numbers["d"] for each in rows])
        if "h" not in first.sizes and "h" not in first.texts:
            return columns
        headers: list[Headers] = [
            [*self._shape.headers, *each.headers, *listed_headers(each.texts.get("h"))]
            for each in rows
        ]
        return attrs.evolve(columns, headers=headers)


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


#: A parsing step takes bytes, a position, the fields, and whether the input has ended, and returns
#: the next position. It raises :class:`IncompleteError` if it needs more input. At the end of the
#: input, this makes the record invalid. Only a delimiter may be missing there.
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
