"""Records read by a format: what ``trionet consume -f`` writes, this reads.

What is of no fixed length ends where the text behind it in the format begins, or has its length in
front of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from trionet.errors import ConfigError

from ._columns import NO_TIMESTAMP, Headers, Taken
from ._layout import Part, Verb, layout
from ._lines import Shape
from ._packing import PackError
from ._parsing_steps import (
    Fields,
    NotYet,
    Step,
    literal_step,
    number_step,
    sized_text_step,
    text_step,
)
from ._splitting import InputError

#: Letters of lengths, and of what they are the lengths.
_SIZES: Final = {"K": "k", "S": "v", "V": "v", "R": "v", "H": "h"}
_TEXTS: Final = {"t": "t", "k": "k", "v": "v", "s": "v"}
_NUMBERS: Final = {"p": "p", "T": "d", "d": "d"}
#: What a broker or a consumer decides is read, and of no consequence.
_PASSED_OVER: Final = "oei"
_VERBS: Final = "%t %p %k %K %v %V %s %S %R %T %d %h %H %o %e %i"
#: A record has no more headers than that.
_HEADERS_MAX: Final = 100_000


def reading_steps(parts: Sequence[Part]) -> list[Step]:
    """The steps that read a format.

    Raises:
        ConfigError: nothing says where something ends, or a verb is unknown or there twice.
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
        behind = parts[place] if place < len(parts) else b""
        if letter in _TEXTS or letter == "h":
            field = _TEXTS.get(letter, "h")
            _once(part, field, seen)
            step, takes_end = _text(part, field, field in sized, behind)
            steps.append(step)
            place += takes_end
        elif letter in _SIZES:
            field = _SIZES[letter]
            if field in seen:
                raise ConfigError(f"{part}: a length has to stand in front of what it measures")
            _once(part, f"size of {field}", seen)
            sized.add(field)
            steps.append(_size(part, field))
        else:
            steps.append(_number(part, seen))
    return steps


def _once(verb: Verb, field: str, seen: set[str]) -> None:
    if field in seen:
        raise ConfigError(f"{verb}: it is in the format twice")
    seen.add(field)


def _text(verb: Verb, field: str, is_sized: bool, behind: Part) -> tuple[Step, bool]:
    """The step, and whether it reads the text behind it, too."""
    if field == "h" and verb.modifier is not None:
        if not is_sized:
            raise ConfigError(f"{verb}: %H in front of it has to say how many headers there are")
        return _nested_headers(verb), False
    if is_sized and field != "h":
        return sized_text_step(verb, field), False
    if isinstance(behind, Verb):
        raise ConfigError(f"{verb}: nothing says where it ends; put text or a length around it")
    return text_step(verb, field, behind), bool(behind)


def _size(verb: Verb, field: str) -> Step:
    if verb.letter == "R":
        verb = Verb("S", "big32")

    def keep(fields: Fields, number: int) -> None:
        if number < -1 or (field == "h" and not 0 <= number <= _HEADERS_MAX):
            raise InputError(f"{number} is no length for {verb}")
        fields.sizes[field] = number

    return number_step(verb, keep)


def _number(verb: Verb, seen: set[str]) -> Step:
    if verb.letter in _PASSED_OVER:
        return number_step(verb, lambda _fields, _number: None)
    if verb.letter not in _NUMBERS:
        raise ConfigError(f"{verb}: there is no such verb to read; there are {_VERBS}")
    field = _NUMBERS[verb.letter]
    if verb.modifier and verb.modifier.startswith("strftime"):
        raise ConfigError(f"{verb}: a time is read as milliseconds since 1970")
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
            raise ConfigError(f"{part}: of a header there are %k, %K, %v and %V")
    steps = reading_steps(inner)

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
        raise InputError(f"{data!r}: the name of a header is UTF-8") from None


def listed_headers(data: bytes | None) -> list[tuple[str, bytes | None]]:
    """The headers of kcat's list: ``name=value,name=value``, with NULL for null."""
    headers: list[tuple[str, bytes | None]] = []
    for each in data.split(b",") if data else ():
        name, equals, value = each.partition(b"=")
        headers.append((_name(name), value if equals and value != b"NULL" else None))
    return headers


class FormatInput:
    """Reads records by a format from input in pieces of any size.

    Args:
        parts: the format.
        shape: what all records have in common.
        size_max: of one record, in bytes.

    Raises:
        ConfigError: nothing can be read by it.
    """

    can_go_on = False  # where the next record would begin, nothing says

    def __init__(self, parts: Sequence[Part], shape: Shape, size_max: int) -> None:
        self._steps = reading_steps(parts)
        if not any(isinstance(part, Verb) for part in parts):
            raise ConfigError("a format to read with has at least one verb, such as %v")
        self._packings = {"k": shape.key_packing, "v": shape.value_packing}
        self._shape = attrs.evolve(shape, key_packing=None, value_packing=None)
        self._size_max = size_max
        self._kept = b""
        self._number = 1
        self._error: InputError | None = None

    @property
    def kept(self) -> int:
        """How many bytes wait for the rest of their record."""
        return len(self._kept)

    def take_error(self) -> InputError | None:
        """What is no record, once."""
        error, self._error = self._error, None
        return error

    def feed(self, data: bytes) -> list[Taken]:
        """The records that are complete now."""
        return self._read(self._kept + data, is_end=False)

    def end(self) -> list[Taken]:
        """The last record, if the end of the input ends it."""
        return self._read(self._kept, is_end=True)

    def _read(self, data: bytes, *, is_end: bool) -> list[Taken]:
        rows = _Rows(self._shape)
        position = begin = 0
        try:
            while position < len(data):
                begin = position
                fields = Fields()
                for step in self._steps:
                    position = step(data, position, fields, is_end)
                if position <= begin:
                    raise InputError("the format takes nothing of the input")
                self._pack(fields)
                rows.add(self._number, fields)
                self._number += 1
            self._kept = b""
        except NotYet:
            self._kept = data[begin:]
            self._look_at_kept(is_end=is_end)
        except (InputError, PackError) as error:
            self._kept = b""
            self._error = InputError(f"record {self._number}: {error}")
        return rows.taken()

    def _look_at_kept(self, *, is_end: bool) -> None:
        size = len(self._kept)
        if is_end:
            why = "the input ends in the middle of it"
        elif size > self._size_max:
            why = f"it is more than {self._size_max} bytes (max.request.size)"
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
    """Records that were read, divided by where they go."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._by_place: dict[tuple[bytes | None, int | None], dict[int, Fields]] = {}

    def add(self, number: int, fields: Fields) -> None:
        place = fields.texts.get("t"), fields.numbers.get("p")
        self._by_place.setdefault(place, {})[number] = fields

    def taken(self) -> list[Taken]:
        return [
            attrs.evolve(
                self._columns(list(rows), list(rows.values())),
                topic=None if topic is None else topic.decode("utf-8", "replace"),
                partition=partition,
            )
            for (topic, partition), rows in self._by_place.items()
        ]

    def _columns(self, numbers: Sequence[int], rows: Sequence[Fields]) -> Taken:
        """The columns; all rows have the same fields, those of the format."""
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
