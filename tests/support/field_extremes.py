"""A request again and again, each time with another extreme value in one of its fields."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import attrs

from protocol.samples import api_of
from trionet.protocol.unrolling._layout import CODES, Field, Struct

_BITS: Final = {"b": 8, "h": 16, "H": 16, "i": 32, "q": 64}

TEXTS: Final = ("", "\0", "a\0b", "ä📎", "\ufffe\uffff", "'\"\\\n\r\x1b[0m", "-1", "x" * 5000)
_BYTES: Final = (b"", b"\0", bytes(range(256)), b"\xff" * 100_000)


@attrs.frozen
class Extreme:
    """A request with one extreme value.

    Attributes:
        request: the request.
        field: the name of the field.
        value: its value.
    """

    request: Any
    field: str
    value: object


def integers(bits: int) -> tuple[int, ...]:
    """The extremes of a signed integer, and the numbers that often mean something else."""
    top = 2 ** (bits - 1)
    return (-top, -top + 1, -2, -1, 0, 1, top - 2, top - 1)


def extremes(request: Any, version: int) -> Iterator[Extreme]:
    """Every field of a request, those of its structs included, with each of its extremes."""
    name = type(request).__module__.rpartition(".")[2]
    [message] = [each for each in api_of(name).messages.values() if each.side == "request"]
    for path, field in _fields(message.versions[version], request, ()):
        for value in values_of(field):
            changed = copy.deepcopy(request)
            owner = changed
            for step in path:
                owner = step(owner)
            setattr(owner, field.name, [value] if field.array and value is not None else value)
            yield Extreme(changed, field.name, value)


Step = Callable[[Any], Any]


def _fields(
    struct: Struct, message: Any, path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Field]]:
    for field in struct.fields:
        if field.struct is None:
            yield path, field
            continue
        if getattr(message, field.name):
            yield from _fields(
                field.struct,
                _inner(field, message),
                (*path, partial(_inner, field)),
            )


def _inner(field: Field, owner: Any) -> Any:
    inner = getattr(owner, field.name)
    return inner[0] if field.array else inner


def values_of(field: Field) -> Iterator[object]:
    """The extreme values of a field that is neither a struct nor an array."""
    if field.nullable:
        yield None
    if field.kind == "bool":
        yield from (False, True)
    elif field.kind == "string":
        yield from TEXTS
    elif field.kind in ("bytes", "records"):
        yield from _BYTES
    elif field.kind == "uuid":
        yield from (bytes(16), b"\xff" * 16)
    else:
        yield from integers(_BITS[CODES[field.kind]])
