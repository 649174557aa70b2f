"""Frames that cost the most memory for each of their bytes: those of a peer that means no good.

An element of an array costs most when its own arrays are there but empty, and its numbers too large
for the interpreter to share; a struct's tag section, when its tags are as many as their numbers
allow, and hold nothing that is shared either. So there is one frame for each array, and one for
each tag section, with nothing but that in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from protocol.generator.schema import CODES, Field, Struct
from trionet.protocol.wire import varint

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

#: Nothing, and the shortest text that needs an object of its own.
TEXTS = (b"", "\u0101".encode())

#: For one struct: the tag section of a single byte, or one of this many tags.
_TAGS_OF_A_STRUCT = 127


class Place(NamedTuple):
    """What fills a frame: the array (or, if ``is_tags``, the tag section) that a path leads to."""

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


def dense_frame(top: Struct, place: Place, size: int, text: bytes = b"") -> bytes:
    """A frame of about ``size`` bytes that is filled in one place.

    Args:
        top: the message at one version.
        place: where it is filled.
        size: how long it is, in bytes.
        text: the value of all texts.
    """
    return b"".join(_Writer(text, place, size).struct(top, 0))


class _Writer:
    def __init__(self, text: bytes, place: Place, size: int) -> None:
        self._text = text
        self._place = place
        self._size = size

    def struct(self, owner: Struct, depth: int) -> Iterator[bytes]:
        """A struct on the way to what is filled; ``depth`` is how far that is behind it."""
        path, is_tags = self._place
        wanted = path[depth] if depth < len(path) else None
        for field in owner.untagged:
            yield b"".join(self._field(owner, field, depth, field == wanted))
        if not owner.flexible:
            return
        if wanted is not None and wanted.tag is not None:
            data = b"".join(self._field(owner, wanted, depth, True))
            yield b"\1" + varint(wanted.tag) + varint(len(data)) + data
        elif wanted is None and is_tags and not path:
            yield _tags(self._size, first=1000)
        elif wanted is None and is_tags and depth == len(path):
            yield _tags(_TAGS_OF_A_STRUCT * 2, first=_unknown_after(owner))
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
            yield from self.struct(field.struct, depth + 1 if is_wanted else 99)
        else:
            yield self._sized(owner.flexible, field)

    def _sized(self, flexible: bool, field: Field) -> bytes:
        text = self._text if field.kind == "string" else b""
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
        return self._sized(flexible, field)


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
