"""What records are made of, as rows and as columns."""

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
    """The records of a batch, one sequence for each field, all of one length.

    Attributes:
        offsets: a range where no offset is missing, else a list.
        timestamps: in milliseconds.
        keys: None for null.
        values: None for null.
        headers: names and values; empty where a record has none.
    """

    offsets: Sequence[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


def as_bytes(field: object) -> bytes:
    """A key or a value as it is written.

    Raises:
        TypeError: it is neither bytes nor like them.
    """
    if isinstance(field, (bytes, bytearray, memoryview)):
        return bytes(field)
    hint = "; encode text, with .encode()" if isinstance(field, str) else ""
    raise TypeError(f"a key or value is bytes or None, not {type(field).__name__}{hint}")
