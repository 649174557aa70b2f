"""The records of one call as columns: values, keys, timestamps and headers."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...._util._raising import raise_from
from ....protocol.records._batch import Bytes
from ....protocol.records._types import Headers
from ._record_checks import check_header_column, check_timestamp, not_bytes

T = TypeVar("T")


class RecordColumns:
    """Many records, with one sequence per field.

    Args:
        values: the values; None for null.
        keys: the keys, with None for null; None if no record has a key.
        timestamps: the timestamp of each record, in milliseconds; a single number applies to all
            records.
        headers: the header names and values; None if no record has headers.

    Raises:
        ValueError: the columns differ in length.
        TypeError: a column is not a sequence.
    """

    __slots__ = ("headers", "keys", "timestamps", "values")

    def __init__(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None,
        timestamps: int | Sequence[int],
        headers: Sequence[Headers] | None,
    ) -> None:
        self.values: list[Bytes | None] = _listed("values", values)
        self.keys: list[Bytes | None] | None = None if keys is None else _listed("keys", keys)
        self.timestamps: int | list[int] = (
            timestamps if isinstance(timestamps, int) else _listed("timestamps", timestamps)
        )
        self.headers: list[Headers] | None = (
            None if headers is None else _listed("headers", headers)
        )
        for name, column in (
            ("keys", self.keys),
            ("timestamps", self.timestamps),
            ("headers", self.headers),
        ):
            if isinstance(column, list) and len(column) != len(self.values):
                raise ValueError(
                    f"{name} has {len(column)} entries, but values has {len(self.values)};"
                    " all columns must have the same length"
                )

    def __len__(self) -> int:
        return len(self.values)

    def row(self, number: int) -> tuple[int, Bytes | None, Bytes | None, Headers]:
        """Return the timestamp, key, value and headers of one record."""
        timestamps = self.timestamps
        return (
            timestamps if isinstance(timestamps, int) else timestamps[number],
            None if self.keys is None else self.keys[number],
            self.values[number],
            () if self.headers is None else self.headers[number],
        )

    def check(self, start: int, stop: int) -> int:
        """Check a range of records before any record is sent.

        Returns:
            The length of the longest key plus the length of the longest value, in bytes.

        Raises:
            TypeError: a key or a value is neither bytes nor None, a timestamp is not an int, or
                headers are not names and values; the message names the record.
            ValueError: a timestamp is negative, or a header name cannot be encoded as UTF-8; the
                message names the record.
        """
        if isinstance(self.timestamps, int):
            check_timestamp("timestamps", self.timestamps)
        else:
            _check_timestamps(self.timestamps, start, stop)
        if self.headers is not None:
            check_header_column(self.headers, start, stop)
        longest = _longest("value", self.values, start, stop)
        if self.keys is not None:
            longest += _longest("key", self.keys, start, stop)
        return longest


def _listed(name: str, column: Sequence[T]) -> list[T]:
    if isinstance(column, list):
        return column
    try:
        return list(column)
    except TypeError as cause:
        kind = type(column).__name__
        error = TypeError(f"{name} must be a sequence with one entry per record, not {kind}")
        raise_from(error, cause)


def _check_timestamps(column: Sequence[object], start: int, stop: int) -> None:
    number = start
    while number < stop:
        each = column[number]
        if not isinstance(each, int) or each < 0:
            check_timestamp(f"timestamp {number}", each)
        number += 1


def _longest(what: str, column: list[Bytes | None], start: int, stop: int) -> int:
    longest = 0
    number = start
    while number < stop:
        each: object = column[number]
        if each is not None:
            if isinstance(each, (bytes, bytearray)):
                length = len(each)
            elif isinstance(each, memoryview):
                length = each.nbytes
            else:
                raise not_bytes(f"{what} {number}", each)
            if length > longest:  # noqa: PLR1730  # a call of max() for each takes longer
                longest = length
        number += 1
    return longest
