"""The types of records, as rows and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

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


def as_bytes(field: object) -> bytes:
    """Convert a key or a value to bytes.

    Raises:
        TypeError: the field is not a bytes-like object.
    """
    if isinstance(field, (bytes, bytearray, memoryview)):
        return bytes(field)
    hint = "; encode it with .encode()" if isinstance(field, str) else ""
    raise TypeError(f"keys and values must be bytes or None, not {type(field).__name__}{hint}")
