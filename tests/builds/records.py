"""What the functions of records return or raise, for ordinary, extreme and wrong arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from builds.outcomes import Calls
from trionet.protocol.records import (
    BatchBuilder,
    check_crc,
    decode_batch,
    decode_columns,
    decode_values,
    encode_batch,
    encode_columns,
    iter_batches,
    read_header,
)
from trionet.protocol.records._batch import BatchHeader

FIRST, LAST = -(2**63), 2**63 - 1


class Number(int):
    """A subclass of int."""


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Data(bytes):
    """A subclass of bytes."""


class Pair(list[Any]):
    """A subclass of list."""


#: A field of a record may be any of these, and more than what is right.
NUMBERS: Mapping[str, Any] = MappingProxyType(
    {
        **{str(each): each for each in (0, -1, 1, 1_700_000_000_000)},
        **{str(each): each for each in (2**61, -(2**61), 2**62, -(2**62))},
        **{f"first{each:+d}": FIRST + each for each in (-1, 0, 1)},
        **{f"last{each:+d}": LAST + each for each in (-1, 0, 1)},
        "2^64": 2**64,
        "-2^64": -(2**64),
        "true": True,
        "a subclass": Number(5),
        "a float": 1.5,
        "a text": "1",
        "none": None,
    }
)
BYTES: Mapping[str, Any] = MappingProxyType(
    {
        "none": None,
        "empty": b"",
        "bytes": b"abc",
        "a subclass": Data(b"abc"),
        "bytearray": bytearray(b"abc"),
        "memoryview": memoryview(b"abc"),
        "every second byte": memoryview(b"abcdef")[::2],
        "numbers": memoryview(b"abcdefgh").cast("i"),
        "long": bytes(70_000),
        "a text": "abc",
        "a number": 3,
        "a list": [97, 98],
    }
)
NAMES: Mapping[str, Any] = MappingProxyType(
    {
        "empty": "",
        "a subclass": Text("name"),
        "unicode": "naïve",
        "a lone surrogate": "\ud800",
        "bytes": b"name",
        "none": None,
        "a number": 1,
    }
)


def header_table() -> Iterator[tuple[str, Any]]:
    """Headers of one record."""
    for what, value in BYTES.items():
        yield f"value {what}", [("name", value)]
    for what, name in NAMES.items():
        yield f"name {what}", [(name, b"value")]
    pair: Any
    for what, pair in {
        "a list": ["name", b"value"],
        "a list with none": ["name", None],
        "a list with a bytearray": ["name", bytearray(b"value")],
        "a subclass of list": Pair(("name", b"value")),
        "one item": ("name",),
        "three items": ("name", b"value", 1),
        "a list of three": ["name", b"value", 1],
        "a set": {"name", b"value"},
        "a mapping": {"name": b"value", "other": b"value"},
        "a text": "ab",
        "bytes": b"ab",
        "an iterator": iter(("name", b"value")),
        "none": None,
        "a number": 1,
    }.items():
        yield f"pair {what}", [("first", b"1"), pair]
    headers: Any
    for what, headers in {
        "none": None,
        "a tuple": (("name", b"value"),),
        "a subclass of list": Pair([("name", b"value")]),
        "a mapping": {"name": b"value"},
        "a mapping of pairs": {("name", b"value"): 1},
        "a set": {("name", b"value")},
        "a dict view": {("name", b"value"): 1}.keys(),
        "an iterator": iter([("name", b"value")]),
        "a text": "ab",
        "bytes": b"ab",
        "an empty mapping": {},
        "an empty text": "",
        "a number": 1,
        "zero": 0,
        "an object": object(),
        "many": [(f"name {each}", b"value") for each in range(200)],
    }.items():
        yield what, headers


HEADERS: Mapping[str, Any] = MappingProxyType(dict(header_table()))
ROW = (1_000, b"key", b"value", ())


#: Compiled code takes sizes as native integers, which are never longer.
SIZES = {
    what: value
    for what, value in NUMBERS.items()
    if isinstance(value, int) and FIRST <= value <= LAST
}


def row_with(field: int, value: Any) -> Any:
    return (*ROW[:field], value, *ROW[field + 1 :])


def add_rows(calls: Calls) -> None:
    """One record with one odd field, alone and behind another record."""
    for field, (name, table) in enumerate(
        (("timestamp", NUMBERS), ("key", BYTES), ("value", BYTES), ("headers", HEADERS))
    ):
        for what, value in table.items():
            row = row_with(field, value)
            calls.add(f"a batch of one, {name} {what}", read_back, [row])
            calls.add(f"a second record, {name} {what}", read_back, [ROW, row])
    for (first, base), (second, timestamp) in product(NUMBERS.items(), repeat=2):
        rows = [row_with(0, base), row_with(0, timestamp)]
        calls.add(f"timestamps {first} and {second}", read_back, rows)
    for what, row in {
        "a list": [*ROW],
        "three fields": ROW[:3],
        "five fields": (*ROW, 1),
        "a number": 1,
        "none": None,
    }.items():
        calls.add(f"a record that is {what}", read_back, [row])
    for what, value in {
        "none": None,
        "a number": 1,
        "empty": [],
        "an iterator": iter([ROW]),
    }.items():
        calls.add(f"records that are {what}", read_back, value)


def read_back(rows: Any) -> object:
    batch = encode_batch(rows)
    return batch, decode_batch(batch), decode_columns(batch)


def add_columns(calls: Calls) -> None:
    """Columns with one odd value, and columns of odd types."""
    good: dict[str, Any] = {"timestamps": 7, "values": [b"a", b"b"]}
    odd: dict[str, Mapping[str, Any]] = {
        "timestamps": NUMBERS,
        "values": BYTES,
        "keys": BYTES,
        "headers": HEADERS,
    }
    for column, table in odd.items():
        for what, value in table.items():
            first = {"timestamps": 7, "values": b"a", "keys": None, "headers": ()}[column]
            columns = {**good, column: [first, value]}
            calls.add(f"column {column}, {what}", lambda each: encode_columns(**each), columns)
    for what, value in NUMBERS.items():
        columns = {**good, "timestamps": value}
        calls.add(f"all timestamps {what}", lambda each: encode_columns(**each), columns)
    for column, what in product(odd, ("a tuple", "a range", "an iterator", "a number", "a text")):
        value = {
            "a tuple": (b"a", b"b"),
            "a range": range(2),
            "an iterator": iter((b"a", b"b")),
            "a number": 3,
            "a text": "ab",
        }[what]
        columns = {**good, column: value}
        calls.add(f"{column} that are {what}", lambda each: encode_columns(**each), columns)


def add_fields(calls: Calls) -> None:
    """The fields of a batch's header."""
    fields = (
        "base_offset",
        "codec",
        "timestamp_type",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "leader_epoch",
        "last_offset_delta",
        "transactional",
        "control",
    )
    for field, (what, value) in product(fields, NUMBERS.items()):
        fields_of_batch: Any = {field: value}
        calls.add(
            f"a batch with {field} {what}",
            lambda each: read_header(encode_batch([ROW], **each)),
            fields_of_batch,
        )


def add_builders(calls: Calls) -> None:
    """A builder's own methods."""
    for what, number in NUMBERS.items():
        calls.add(f"a builder from timestamp {what}", built_from, number)
    for what, number in SIZES.items():
        calls.add(f"a builder of {what} bytes", built_with_size, number)
        calls.add(f"size_max {what}", built_up_to, number)
        calls.add(f"a record at {what}", built_at, number)
    for field, table in enumerate((NUMBERS, BYTES, BYTES, HEADERS)):
        for what, value in table.items():
            calls.add(f"room for field {field}, {what}", has_room, row_with(field, value))
    calls.add("attributes of an empty builder", described, BatchBuilder())


def described(builder: BatchBuilder) -> object:
    return (
        builder.count,
        builder.size,
        builder.last_offset_delta,
        builder.base_timestamp,
        builder.max_timestamp,
        b"".join(builder.chunks()),
    )


def built_with_size(size_max: Any) -> object:
    builder = BatchBuilder(size_max)
    builder.append(*ROW)
    return builder.has_room_for(*ROW), described(builder)


def built_from(base_timestamp: Any) -> object:
    builder = BatchBuilder(base_timestamp=base_timestamp)
    return builder.append(*ROW), described(builder)


def built_up_to(size_max: Any) -> object:
    builder = BatchBuilder()
    return builder.append(*ROW), builder.append(*ROW, size_max), described(builder)


def built_at(offset_delta: Any) -> object:
    builder = BatchBuilder()
    builder.append_at(offset_delta, *ROW)
    return described(builder)


def has_room(row: Any) -> object:
    builder = BatchBuilder(100)
    builder.append(*ROW)
    return builder.has_room_for(*row)


def add_reads(calls: Calls) -> None:
    """Batches at both ends of what offsets and timestamps can be, and buffers of odd types."""
    bodies = {
        count: encode_columns(5, [b"v"] * count, keys=[b"k"] * count)[61:] for count in (1, 2, 3)
    }
    ends = (FIRST, FIRST + 1, FIRST + 2, -1, 0, LAST - 3, LAST - 2, LAST - 1, LAST)
    for (count, body), offset, timestamp in product(bodies.items(), ends, (FIRST, 0, LAST)):
        header = BatchHeader(
            offset, 49 + len(body), -1, 2, 0, 0, count - 1, timestamp, 0, -1, -1, -1, count
        )
        batch = header.pack() + body
        for decode in (decode_batch, decode_columns, decode_values):
            name = f"{decode.__name__}, {count} records from {offset} at {timestamp}"
            calls.add(name, decode, batch)
    batch = encode_batch([ROW, row_with(3, [("a", b"b"), ("c", None)])])
    buffers: dict[str, Any] = {
        "bytes": batch,
        "a subclass": Data(batch),
        "bytearray": bytearray(batch),
        "memoryview": memoryview(batch),
        "a text": "abc",
        "none": None,
        "cut": batch[:-1],
        "a head": batch[:61],
        "empty": b"",
    }
    positions = (*NUMBERS.items(), ("in the middle", 20), ("at the end", len(batch)))
    for read in (decode_batch, decode_columns, decode_values, read_header):
        for what, buffer in buffers.items():
            calls.add(f"{read.__name__} of {what}", read, buffer)
        for what, position in positions:
            calls.add(f"{read.__name__} at {what}", read, batch, position)
    for what, buffer in buffers.items():
        calls.add(f"batches of {what}", lambda each: list(iter_batches(each)), buffer)
        calls.add(
            f"the checksum of {what}", lambda each: check_crc(each, 0, read_header(each)), buffer
        )


def add_record_calls(calls: Calls) -> None:
    """All of the above."""
    for add in (add_rows, add_columns, add_fields, add_builders, add_reads):
        add(calls)
