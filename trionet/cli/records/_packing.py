"""Bytes as numbers and texts, and back: pack-strings as kcat and rpk have them, and names."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from trionet._util._counted import counted
from trionet.errors import ConfigError, TrionetError

#: Kafka's own serializers, by the names that Kafka and kaskade give their types.
NAMED: Final = {
    "string": "s",
    "boolean": "?$",
    "short": ">h$",
    "integer": ">i$",
    "long": ">q$",
    "float": ">f$",
    "double": ">d$",
}
JSON: Final = "json"
_NUMBERS: Final = "bBhHiIqQfd?"
_LETTERS: Final = f"< > {' '.join(_NUMBERS)} c . s $"


class PackError(TrionetError):
    """Bytes are not what a pack-string says, or a text is not; says which."""


Value = int | float | str


class Packing:
    """What bytes are made of.

    Args:
        text: a pack-string, such as ``>iq$``, or a name of :data:`NAMED`, or ``json``.

    Raises:
        ConfigError: it is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_json = text == JSON
        self._steps = [] if self._is_json else list(_steps(text, NAMED.get(text, text)))
        self._is_exact = bool(self._steps) and self._steps[-1] == "$"
        if self._is_exact:
            self._steps.pop()

    def values(self, data: bytes) -> list[Value]:
        """What is in bytes.

        Raises:
            PackError: they are too short, or too long.
        """
        found: list[Value] = []
        position = 0
        for step in self._steps:
            if step == "s":
                found.append(data[position:].decode("utf-8", "replace"))
                return found
            size = struct.calcsize(step)
            if len(data) - position < size:
                there = counted(len(data), "byte")
                raise PackError(
                    f"{there}, too few for {self.text!r}: {step[-1]!r} needs {size} from byte "
                    f"{position} on"
                )
            found.append(_shown(struct.unpack_from(step, data, position)[0]))
            position += size
        if self._is_exact and position < len(data):
            rest = counted(len(data) - position, "byte")
            raise PackError(f"{rest} left over after {self.text!r}")
        return found

    def as_text(self, data: bytes) -> bytes:
        """What is in bytes, as text with spaces between."""
        if self._is_json:
            return compact(data)
        return " ".join(map(_text, self.values(data))).encode()

    def document(self, data: bytes) -> str:
        """What is in bytes, as JSON in ASCII: one value by itself, or a list.

        Raises:
            PackError: see :meth:`values`; or it is no JSON.
        """
        if self._is_json:
            return _NO_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], compact(data).decode())
        values = [_finite(each) for each in self.values(data)]
        return json.dumps(values[0] if len(values) == 1 else values)

    def packed(self, data: bytes) -> bytes:
        """The bytes for a text: the values with spaces between, as :meth:`as_text` writes them.

        Raises:
            PackError: a value is missing, or is not what it has to be.
        """
        if self._is_json:
            return compact(data)
        words = data.split(b" ", len(self._steps) - 1) if self._steps else []
        if len(words) < len(self._steps):
            raise PackError(
                f"{self.text!r} needs {counted(len(self._steps), 'value')}, not {len(words)}"
            )
        try:
            return b"".join(map(_packed, self._steps, words))
        except (ValueError, struct.error, OverflowError) as error:
            raise PackError(f"{data[:80]!r} is not {self.text!r}: {error}") from error


def _steps(whole: str, text: str) -> Sequence[str]:
    order = "<"
    steps = []
    for place, letter in enumerate(text):
        if letter in "<>":
            order = letter
        elif letter in _NUMBERS:
            steps.append(order + letter)
        elif letter in "c.":
            steps.append("c")
        elif letter in "s$" and place == len(text) - 1:
            steps.append(letter)
        elif letter not in " x":
            raise ConfigError(
                f"{whole!r} is none of {', '.join((*NAMED, JSON))}, and no pack-string: these have "
                f"{_LETTERS}, of which s and $ may only be the last"
            )
    return steps


def _shown(value: Any) -> Value:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value  # type: ignore[no-any-return]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _packed(step: str, word: bytes) -> bytes:
    letter = step[-1]
    if letter == "s":
        return word
    if letter == "c":
        return struct.pack("c", word)
    value: Any
    if letter == "?":
        value = _BOOLEANS.get(word.strip().lower())
        if value is None:
            raise ValueError("true or false")
    else:
        value = float(word) if letter in "fd" else int(word)
    return struct.pack(step, value)


_BOOLEANS: Final = {b"true": True, b"false": False, b"1": True, b"0": False}


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    return value


def compact(data: bytes) -> bytes:
    """A JSON document without the blanks between its parts, and otherwise as it was written.

    Numbers keep their digits, and objects their fields, also where Python's would lose some.

    Raises:
        PackError: it is no JSON.
    """
    try:
        json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PackError(f"not JSON: {error}") from error
    return _BLANKS.sub(rb"\1", data)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


#: A string, which is kept, or blanks.
_BLANKS: Final = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+', re.DOTALL)
_NO_ASCII: Final = re.compile(r"[^ -~]")


def packings(texts: Sequence[str]) -> tuple[Packing | None, Packing | None]:
    """What ``-s`` says of keys and of values: ``key=...``, ``value=...``, or one for both.

    Raises:
        ConfigError: a pack-string is malformed.
    """
    key = value = None
    for text in texts:
        what, equals, pack = text.partition("=")
        if not equals:
            key = value = Packing(text)
        elif what == "key":
            key = Packing(pack)
        elif what == "value":
            value = Packing(pack)
        else:
            raise ConfigError(f"-s {text}: must be key=..., value=..., or what holds for both")
    return key, value


def each_or_null(
    function: Callable[[bytes], bytes], column: Sequence[bytes | None]
) -> list[bytes | None]:
    """A function of each that is not null."""
    return [None if each is None else function(each) for each in column]
