"""The types of records, as rows and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from trionet.errors import LocalProtocolError

#: The headers of a record; keys are never null, but values may be.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

#: A record before it has an offset: timestamp in milliseconds, key, value and headers.
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]

#: A record: offset, timestamp in milliseconds, key, value and headers.
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]


class Columns(NamedTuple):
    """The records of a batch, with one sequence per field.

    Attributes:
        offsets: the offsets; a range if they are consecutive, otherwise a list.
        timestamps: the timestamps, in milliseconds.
        keys: the keys, with None for null.
        values: the values, with None for null.
        headers: the headers of each record; empty for a record without headers.
    """

    offsets: Sequence[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


class EncodedRecords(NamedTuple):
    """The encoded records of one batch, before compression; their timestamps are equal.

    Attributes:
        body: the records, with offsets relative to the first.
        record_count: the number of records.
    """

    body: bytes
    record_count: int


def as_timestamp(timestamp: object) -> int:
    """Convert a timestamp to a plain int.

    Raises:
        TypeError: the timestamp is not an int.
        LocalProtocolError: the timestamp does not fit into 64 bits.
    """
    if not isinstance(timestamp, int):
        raise TypeError(f"timestamps must be int, not {type(timestamp).__name__}")
    if not -(2**63) <= timestamp < 2**63:
        raise LocalProtocolError(f"timestamp {timestamp} does not fit into 64 bits")
    return int(timestamp)


def as_bytes(field: object) -> bytes:
    """Convert a key or a value to bytes.

    Raises:
        TypeError: the field is not a bytes-like object.
    """
    if isinstance(field, (bytes, bytearray, memoryview)):
        return bytes(field)
    hint = "; encode it with .encode()" if isinstance(field, str) else ""
    raise TypeError(f"keys and values must be bytes or None, not {type(field).__name__}{hint}")


def as_headers(headers: object) -> Sequence[object]:
    """Return the headers of a record, which are not checked one by one.

    Raises:
        TypeError: the headers are not a sequence.
    """
    if isinstance(headers, (str, bytes, bytearray)) or not isinstance(headers, Sequence):
        kind = type(headers).__name__
        raise TypeError(f"headers must be a sequence of (name, value) pairs, not {kind}")
    return headers


def as_header(header: object) -> tuple[str, bytes | None]:
    """Convert a header to a tuple.

    Raises:
        TypeError: the header is not a tuple or list of a str and bytes or None.
    """
    if not isinstance(header, (tuple, list)) or len(header) != 2:
        raise TypeError(f"a header must be a (name, value) pair, not {type(header).__name__}")
    name, value = header
    if not isinstance(name, str):
        raise TypeError(f"the name of a header must be str, not {type(name).__name__}")
    return name, None if value is None else as_bytes(value)
