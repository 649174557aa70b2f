"""The worst requests of an API: its arrays filled until a frame has the size that is wanted.

For each array of a request there are frames that fill it with what the broker knows, the same again
and again; with what is different each time; and with as little as an element may be. What the other
fields say is what makes a handler work most.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from protocol.dense_frames import Place, places
from protocol.generator.schema import load_api
from support.calls import batch
from trionet.protocol._wire import REQUEST_ELEMENTS_MAX, varint
from trionet.protocol.messages.registry import APIS
from trionet.protocol.unrolling._layout import CODES, Field, Struct

#: What the broker has: a topic and a group with many partitions, and one of many small topics.
TOPIC, GROUP, SMALL = "big", "g", "small-{}"
#: Its id.
TOPIC_ID = b"\7" * 16

_TOPIC_FIELDS = {"name", "topic", "topic_name", "topic_names", "resource_name", "topics"}
_GROUP_FIELDS = {"group_id", "groups", "groups_names", "coordinator_keys", "key"}
_INDEX_FIELDS = {"partition_index", "partition", "index", "partitions", "partition_indexes"}
#: What numbers say, if not -1.
_NUMBERS = {
    "acks": -1,
    "max_wait_ms": 0,
    "max_wait_time": 0,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "fetch_offset": 0,
    "session_id": 0,
    "timestamp": 0,
    "max_num_offsets": 1 << 20,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "timeout_ms": 10_000,
    "resource_type": 2,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 1 << 14,
    "config_operation": 0,
    "response_partition_limit": 1 << 20,
    "committed_offset": 5,
    "offset": 0,
    "leader_epoch": 0,
    "broker_ids": 1,
    "resource_types": 2,
}
_BATCH = batch(b"v")
_OFF_THE_PATH = 99


class Hostile(NamedTuple):
    """One request: what it is called, and its frame after the header."""

    api_key: int
    version: int
    name: str
    body: bytes


def hostile_frames(
    api_key: int, versions: range, size: int, topic_ids: dict[str, bytes]
) -> Iterator[Hostile]:
    """The worst requests of about ``size`` bytes, of the first and the last of some versions."""
    api = load_api(APIS[api_key][0])
    message = api.messages["request"]
    for version in sorted({versions[0], versions[-1]}):
        top = message.versions[version]
        for place in places(top):
            for mode in ("tags",) if place.is_tags else ("known", "distinct", "empty"):
                body = _Filler(place, size, mode, topic_ids).frame(top)
                yield Hostile(api_key, version, f"{api.name} v{version} {place} {mode}", body)


class _Filler:
    def __init__(self, place: Place, size: int, mode: str, topic_ids: dict[str, bytes]) -> None:
        self._place = place
        self._size = size
        self._mode = mode
        self._topic_ids = topic_ids

    def frame(self, top: Struct) -> bytes:
        return b"".join(self._struct(top, 0, 0))

    def _struct(self, owner: Struct, depth: int, number: int) -> Iterator[bytes]:
        path, is_tags = self._place
        wanted = path[depth] if depth < len(path) else None
        for field in owner.untagged:
            yield b"".join(self._field(owner, field, depth, field == wanted, number))
        if not owner.flexible:
            return
        if wanted is not None and wanted.tag is not None:
            data = b"".join(self._field(owner, wanted, depth, True, number))
            yield b"\1" + varint(wanted.tag) + varint(len(data)) + data
        elif is_tags and depth == len(path):
            first = max((field.tag or 0 for field in owner.tagged), default=-1) + 1
            count = 120 if path else 900
            tags = (varint(first + n) + b"\0" for n in range(count))
            yield varint(count) + b"".join(tags)
        else:
            yield b"\0"

    def _field(
        self, owner: Struct, field: Field, depth: int, is_wanted: bool, number: int
    ) -> Iterator[bytes]:
        if field.array:
            yield self._array(owner, field, depth, is_wanted, number)
        elif field.struct is not None:
            if field.nullable and field.tag is None:
                yield b"\1"
            yield from self._struct(field.struct, depth + 1 if is_wanted else _OFF_THE_PATH, number)
        else:
            yield self._value(owner, field, number)

    def _array(
        self, owner: Struct, field: Field, depth: int, is_wanted: bool, number: int
    ) -> bytes:
        flexible = owner.flexible
        if not is_wanted:
            # After the path: one element each, or null, which asks for all.
            if field.nullable:
                return b"\0" if flexible else b"\xff\xff\xff\xff"
            if depth < _OFF_THE_PATH and depth < len(self._place.path):
                return b"\1" if flexible else bytes(4)
            inner = self._element(owner, field, _OFF_THE_PATH, number)
            return (b"\2" if flexible else struct.pack(">i", 1)) + inner
        is_last = depth + 1 == len(self._place.path)
        elements = (
            self._fill(owner, field, depth + 1)
            if is_last
            else [self._element(owner, field, depth + 1, number)]
        )
        count = len(elements)
        return (varint(count + 1) if flexible else struct.pack(">i", count)) + b"".join(elements)

    def _fill(self, owner: Struct, field: Field, depth: int) -> list[bytes]:
        if self._mode != "distinct":
            one = self._element(owner, field, depth, 0)
            each = 1 + 120 if self._place.is_tags else 1 + _arrays_in(field)
            return [one] * max(1, min(self._size // len(one), (REQUEST_ELEMENTS_MAX - 99) // each))
        elements: list[bytes] = []
        most = (REQUEST_ELEMENTS_MAX - 99) // (1 + _arrays_in(field))
        length = 0
        while length < self._size and len(elements) < most:
            elements.append(self._element(owner, field, depth, len(elements)))
            length += len(elements[-1])
        return elements

    def _element(self, owner: Struct, field: Field, depth: int, number: int) -> bytes:
        if field.struct is not None:
            return b"".join(self._struct(field.struct, depth, number))
        return self._value(owner, field, number)

    def _value(self, owner: Struct, field: Field, number: int) -> bytes:
        name, kind = field.name, field.kind
        if kind in CODES:
            return struct.pack(f">{CODES[kind]}", self._number(field, number))
        if kind == "string":
            return _sized(owner.flexible, ">h", self._text(name, number).encode())
        if kind == "records":
            return _sized(owner.flexible, ">i", b"" if self._mode == "empty" else _BATCH)
        return _sized(owner.flexible, ">i", b"")

    def _number(self, field: Field, number: int) -> object:
        if field.kind == "bool":
            return True
        if field.kind == "uuid":
            if self._mode == "distinct":
                return number.to_bytes(16, "little")
            return self._topic_ids[TOPIC] if self._mode == "known" else bytes(16)
        if field.name in _INDEX_FIELDS:
            return number if self._mode == "distinct" else 0
        if field.kind == "float64":
            return 0.5
        return _NUMBERS.get(field.name, -1)

    def _text(self, name: str, number: int) -> str:
        if self._mode == "distinct":
            # The more bytes there are, the longer are the names: the elements are limited.
            least = min(240, self._size * 2 // REQUEST_ELEMENTS_MAX)
            return f"{number:x}".rjust(least, "n")
        if self._mode == "empty":
            return ""
        if name in _GROUP_FIELDS:
            return GROUP
        return TOPIC if name in _TOPIC_FIELDS else "x"


def _arrays_in(field: Field) -> int:
    """What one element adds to the count of elements, beside itself."""
    if field.struct is None:
        return 0
    return sum(2 + _arrays_in(each) for each in field.struct.fields if each.array)


def _sized(flexible: bool, classic: str, data: bytes) -> bytes:
    return (varint(len(data) + 1) if flexible else struct.pack(classic, len(data))) + data
