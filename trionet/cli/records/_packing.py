"""The types of keys and values: pack-strings of kcat and rpk, and named types."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from trionet._util._text import counted
from trionet.errors import ConfigError, TrionetError

#: The pack-strings of Kafka's built-in serializers, keyed by type name.
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
    """Raised when bytes or text do not match a type. The message describes the mismatch."""


Value = int | float | str


class Packing:
    """Converts values of a type between bytes and text.

    Args:
        text: a pack-string such as ``>iq$``, a name in :data:`NAMED`, or ``json``.

    Raises:
        ConfigError: the type is unknown.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_json = text == JSON
        self._steps = [] if self._is_json else list(_steps(text, NAMED.get(text, text)))
        self._is_exact = bool(self._steps) and self._steps[-1] == "$"
        if self._is_exact:
            self._steps.pop()

    def values(self, data: bytes) -> list[Value]:
        """Decode bytes to a list of values.

        Raises:
            PackError: there are too few or too many bytes.
        """
        found: list[Value] = []
        position = 0
        for step in self._steps:
            if step == "s":
                found.append(data[position:].decode("utf-8", "replace"))
                return found
            size = struct.calcsize(step)
            if len(data) - position < size:
                raise PackError(
                    f"{counted(len(data), 'byte')}, too few for {self.text!r}: {step[-1]!r} needs "
                    f"{size} at byte {position}"
                )
            found.append(_shown(struct.unpack_from(step, data, position)[0]))
            position += size
        if self._is_exact and position < len(data):
            rest = counted(len(data) - position, "byte")
            raise PackError(f"{rest} left over after {self.text!r}")
        return found

    def as_text(self, data: bytes) -> bytes:
        """Decode bytes to text, with values separated by spaces."""
        if self._is_json:
            return compact(data)
        return " ".join(map(_text, self.values(data))).encode()

    def document(self, data: bytes) -> str:
        """Decode bytes to JSON in ASCII: a single value, or a list of several values.

        Raises:
            PackError: there are too few or too many bytes, or the JSON is invalid.
        """
        if self._is_json:
            return _NO_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], compact(data).decode())
        values = [_finite(each) for each in self.values(data)]
        return json.dumps(values[0] if len(values) == 1 else values)

    def packed(self, data: bytes) -> bytes:
        """Encode values separated by spaces, the inverse of :meth:`as_text`.

        Raises:
            PackError: a value is missing or invalid.
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
            raise PackError(f"cannot encode {data[:80]!r} as {self.text!r}: {error}") from error


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
                f"unknown type {whole!r}: expected {', '.join((*NAMED, JSON))}, or a pack-string "
                f"of {_LETTERS}, with s and $ only at the end"
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
            raise ValueError("expected true or false")
    else:
        value = float(word) if letter in "fd" else int(word)
    return struct.pack(step, value)


_BOOLEANS: Final = {b"true": True, b"false": False, b"1": True, b"0": False}


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON cannot represent these
    return value


def compact(data: bytes) -> bytes:
    """Return a JSON document without the whitespace between tokens.

    Parsing and reserializing the document would change numbers with many digits and drop duplicate
    fields.

    Raises:
        PackError: the data is not valid JSON.
    """
    try:
        json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PackError(f"invalid JSON: {error}") from error
    return _BLANKS.sub(rb"\1", data)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


#: A string literal, which is kept, or whitespace.
_BLANKS: Final = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+', re.DOTALL)
_NO_ASCII: Final = re.compile(r"[^ -~]")


def packings(texts: Sequence[str]) -> tuple[Packing | None, Packing | None]:
    """Return the types of keys and values from the values of ``-s``.

    Each value is ``key=TYPE``, ``value=TYPE``, or a type for both.

    Raises:
        ConfigError: a value does not have this form, or a type is unknown.
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
            raise ConfigError(
                f"-s {text}: must have the form key=TYPE, value=TYPE, or TYPE for both"
            )
    return key, value


def each_or_null(
    function: Callable[[bytes], bytes], column: Sequence[bytes | None]
) -> list[bytes | None]:
    """Apply a function to each element that is not None."""
    return [None if each is None else function(each) for each in column]
