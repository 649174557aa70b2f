"""Frames that cost the most memory for each of their bytes: those of a peer that means no good.

An element of an array costs most when its own arrays are there but empty, and its numbers too large
for the interpreter to share. Texts are empty, unless they fill the frame: a byte of the shortest
text that needs an object costs less than 30. Tags have no data, for the same reason. So there is a
frame for each array and for each tag section, with little but that in it; a mixture of them costs
no more than the dearest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from trionet.protocol._wire import varint
from trionet.protocol.unrolling._layout import CODES, Field, Struct

#: The largest numbers of each kind: no two of them are one object.
_NUMBERS = {
    "bool": b"\1",
    "int8": b"\x80",
    "int16": b"\x7f\xff",
    "uint16": b"\xff\xff",
    "int32": b"\x7f\xff\xff\xff",
    "int64": b"\x7f" + b"\xff" * 7,
    "float64": struct.pack(">d", 0.1),
    "uuid": b"\xa5" * 16,
}

#: The shortest text that needs an object of its own.
_TEXT = "\u0101".encode()

#: How many tags a struct has if those fill the frame: each of them is two bytes.
_TAGS_OF_A_STRUCT = 127


#: The depth of a struct that no part of the path leads to.
_OFF_THE_PATH = 99


class Place(NamedTuple):
    """What fills a frame: the array that a path of fields leads to, or the tag sections there."""

    path: tuple[Field, ...]
    is_tags: bool

    def __str__(self) -> str:
        names = [field.name for field in self.path]
        return ".".join([*names, "tags"] if self.is_tags else names)


def places(top: Struct) -> Iterator[Place]:
    """Everything in a message that can be there many times."""
    if top.flexible:
        yield Place((), True)
    yield from _below(top, ())


def _below(owner: Struct, path: tuple[Field, ...]) -> Iterator[Place]:
    for field in owner.fields:
        here = (*path, field)
        if field.array:
            yield Place(here, False)
            if field.struct is not None and field.struct.flexible:
                yield Place(here, True)
        if field.struct is not None:
            yield from _below(field.struct, here)


def dense_frame(top: Struct, place: Place, size: int) -> bytes:
    """A frame of about ``size`` bytes that is filled in one place.

    Args:
        top: the message at one version.
        place: where it is filled.
        size: how long it is, in bytes.
    """
    return b"".join(_Writer(place, size).struct(top, 0))


class _Writer:
    def __init__(self, place: Place, size: int) -> None:
        self._place = place
        self._size = size

    def struct(self, owner: Struct, depth: int) -> Iterator[bytes]:
        """A struct: ``depth`` fields of the path lead to it."""
        path, is_tags = self._place
        wanted = path[depth] if depth < len(path) else None
        for field in owner.untagged:
            yield b"".join(self._field(owner, field, depth, field == wanted))
        if not owner.flexible:
            return
        if wanted is not None and wanted.tag is not None:
            data = b"".join(self._field(owner, wanted, depth, True))
            yield b"\1" + varint(wanted.tag) + varint(len(data)) + data
        elif is_tags and depth == len(path):
            size = _TAGS_OF_A_STRUCT * 2 if path else self._size
            yield _tags(size, first=_unknown_after(owner))
        else:
            yield b"\0"

    def _field(self, owner: Struct, field: Field, depth: int, is_wanted: bool) -> Iterator[bytes]:
        if field.array:
            yield from self._array(owner.flexible, field, depth, is_wanted)
        elif field.kind in CODES:
            yield _NUMBERS[field.kind]
        elif field.struct is not None:
            if field.nullable and field.tag is None:
                yield b"\1"
            yield from self.struct(field.struct, depth + 1 if is_wanted else _OFF_THE_PATH)
        else:
            yield self._sized(owner.flexible, field, b"")

    def _sized(self, flexible: bool, field: Field, text: bytes) -> bytes:
        if flexible:
            return varint(len(text) + 1) + text
        return struct.pack(">h" if field.kind == "string" else ">i", len(text)) + text

    def _array(self, flexible: bool, field: Field, depth: int, is_wanted: bool) -> Iterator[bytes]:
        if not is_wanted:
            yield b"\1" if flexible else bytes(4)
            return
        is_last = depth + 1 == len(self._place.path)
        element = self._element(flexible, field, depth + 1)
        count = max(1, self._size // len(element)) if is_last else 1
        yield varint(count + 1) if flexible else struct.pack(">i", count)
        yield element * count

    def _element(self, flexible: bool, field: Field, depth: int) -> bytes:
        if field.kind in CODES:
            return _NUMBERS[field.kind]
        if field.struct is not None:
            return b"".join(self.struct(field.struct, depth))
        return self._sized(flexible, field, _TEXT if field.kind == "string" else b"")


def _unknown_after(owner: Struct) -> int:
    return max((field.tag or 0 for field in owner.tagged), default=-1) + 1


def _tags(size: int, first: int) -> bytes:
    """A tag section of about ``size`` bytes, with empty tags."""
    tags: list[bytes] = []
    length = 0
    number = first
    while length < size:
        tags.append(varint(number) + b"\0")
        length += len(tags[-1])
        number += 1
    return varint(len(tags)) + b"".join(tags)
