"""The types of records, as rows and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

#: Header keys are never null; values may be.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

#: Timestamp in milliseconds, key, value, headers.
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]

#: Offset, timestamp in milliseconds, key, value, headers.
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]


class Columns(NamedTuple):
    """The records of a batch as one sequence per field, all of the same length.

    Attributes:
        offsets: a range if the offsets are consecutive, else a list.
        timestamps: milliseconds.
        keys: None for null.
        values: None for null.
        headers: names and values; empty for a record without headers.
    """

    offsets: Sequence[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


def as_bytes(field: object) -> bytes:
    """Convert a key or a value to bytes.

    Raises:
        TypeError: the field is not a bytes-like object.
    """
    if isinstance(field, (bytes, bytearray, memoryview)):
        return bytes(field)
    hint = "; encode text, with .encode()" if isinstance(field, str) else ""
    raise TypeError(f"keys and values must be bytes or None, not {type(field).__name__}{hint}")
