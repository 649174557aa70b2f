"""Records to send, as columns, and parsed from lines: a value, or a key, a delimiter and a value.

Input arrives in chunks of any size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

import attrs

from trionet.errors import TrionetError

from ._layout import printed
from ._packing import PackError, Packing, each_or_null


class InputError(TrionetError):
    """Raised when input cannot be read or is not a valid record."""


class Splitter:
    """Splits input at a delimiter, buffering an incomplete part.

    A part that exceeds ``size_max`` is skipped up to the next delimiter.

    Args:
        delimiter: the delimiter, at least one byte.
        size_max: the maximum number of bytes to buffer.

    Attributes:
        is_skipping: whether the input is inside a part that is too long.
        skipped: the number of parts skipped.
    """

    def __init__(self, delimiter: bytes, size_max: int) -> None:
        self._delimiter = delimiter
        self._size_max = size_max
        self._kept = bytearray()
        self._searched = 0
        self.is_skipping = False
        self.skipped = 0

    @property
    def kept(self) -> int:
        """The number of buffered bytes."""
        return len(self._kept)

    def feed(self, data: bytes) -> list[bytes]:
        """Add a chunk, and return the completed parts without delimiters."""
        parts = self._cut(data)
        if parts and self.is_skipping:
            self.is_skipping = False
            del parts[0]
        if len(self._kept) > self._size_max:
            self.skipped += not self.is_skipping
            # The delimiter may be split between this chunk and the next.
            del self._kept[: len(self._kept) - len(self._delimiter) + 1]
            self._searched = len(self._kept)
            self.is_skipping = True
        return parts

    def _cut(self, data: bytes) -> list[bytes]:
        if not self._kept:
            parts = data.split(self._delimiter)
        elif len(self._delimiter) == 1:
            # A one-byte delimiter cannot be split, so only the first line is copied.
            parts = data.split(self._delimiter)
            self._kept += parts[0]
            if len(parts) == 1:
                self._searched = len(self._kept)
                return []
            parts[0] = bytes(self._kept)
        else:
            self._kept += data
            # The delimiter may have started in an earlier chunk.
            start = max(0, self._searched - len(self._delimiter) + 1)
            if self._kept.find(self._delimiter, start) < 0:
                self._searched = len(self._kept)
                return []
            parts = bytes(self._kept).split(self._delimiter)
        self._kept = bytearray(parts.pop())
        self._searched = len(self._kept)
        return parts

    def end(self) -> list[bytes]:
        """Return the last part, or an empty list if the input ends with a delimiter."""
        rest = b"" if self.is_skipping else bytes(self._kept)
        self._kept.clear()
        self._searched = 0
        self.is_skipping = False
        return [rest] if rest else []


#: Stands for a missing timestamp (Kafka: RecordBatch.NO_TIMESTAMP).
NO_TIMESTAMP: Final = -1

Headers = Sequence[tuple[str, bytes | None]]


@attrs.frozen(kw_only=True)
class RecordColumns:
    """Records for one topic, in order.

    Attributes:
        numbers: the numbers of the records in the input, from 1.
        topic: the topic; None for the topic given on the command line.
        partition: the partition; None for the partition given on the command line.
        values: the values, where a None element is null.
        keys: the keys, where a None element is null; None if no record has a key.
        headers: the headers of each record; None if no record has headers.
        timestamps: the timestamps in milliseconds since the epoch, where -1 means the current time;
            None if all are the current time.
    """

    numbers: Sequence[int]
    topic: str | None = None
    partition: int | None = None
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: list[Headers] | None = None
    timestamps: list[int] | None = None

    def some(self, start: int, end: int) -> RecordColumns:
        """Return the records from index ``start`` to index ``end`` (exclusive)."""
        if start == 0 and end >= len(self.values):
            return self
        return attrs.evolve(
            self,
            numbers=self.numbers[start:end],
            values=self.values[start:end],
            keys=self.keys and self.keys[start:end],
            headers=self.headers and self.headers[start:end],
            timestamps=self.timestamps and self.timestamps[start:end],
        )


class Input(Protocol):
    """Parses records from input that arrives in chunks of any size.

    Attributes:
        can_go_on: whether parsing can continue after an invalid record.
    """

    can_go_on: bool

    def feed(self, data: bytes) -> list[RecordColumns]:
        """Add a chunk, and return the completed records up to the first invalid record."""

    def end(self) -> list[RecordColumns]:
        """Return the records completed by the end of the input."""

    def take_error(self) -> InputError | None:
        """Remove and return the next error. ``feed(b"")`` continues after the error if possible."""

    @property
    def kept(self) -> int:
        """The number of buffered bytes of an incomplete record."""


@attrs.frozen(kw_only=True)
class Shape:
    """The properties common to all records of the input.

    Attributes:
        key: the key for records without a key.
        headers: the headers of all records.
        is_empty_null: whether an empty key or value is sent as null.
        key_packing: the type of keys; None for raw bytes.
        value_packing: the type of values.
    """

    key: bytes | None = None
    headers: Headers = ()
    is_empty_null: bool = False
    key_packing: Packing | None = None
    value_packing: Packing | None = None

    def columns(
        self,
        numbers: Sequence[int],
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
    ) -> RecordColumns:
        """Return records with these values and keys.

        Raises:
            PackError: a key or a value cannot be encoded as its type.
        """
        count = len(values)
        if keys is None and self.key is not None:
            keys = [self.key] * count
        if self.is_empty_null:
            values = [each or None for each in values]
            keys = keys and [each or None for each in keys]
        if self.value_packing is not None:
            values = each_or_null(self.value_packing.packed, values)
        if self.key_packing is not None and keys is not None:
            keys = each_or_null(self.key_packing.packed, keys)
        return RecordColumns(
            numbers=numbers,
            values=_listed(values),
            keys=None if keys is None else _listed(keys),
            headers=[self.headers] * count if self.headers else None,
        )


def _listed(column: Sequence[bytes | None]) -> list[bytes | None]:
    return column if isinstance(column, list) else list(column)


class LineInput:
    """Parses records from lines.

    Args:
        delimiter: the delimiter after each record.
        key_delimiter: the delimiter between key and value, which a line without a key lacks; None
            if no line has a key.
        shape: the properties common to all records.
        size_max: the maximum size of a line in bytes.
    """

    can_go_on = True

    def __init__(
        self, delimiter: bytes, key_delimiter: bytes | None, shape: Shape, size_max: int
    ) -> None:
        self._splitter = Splitter(delimiter, size_max)
        self._delimiter = delimiter
        self._size_max = size_max
        self._key_delimiter = key_delimiter
        self._shape = shape
        self._number = 1
        # Records and errors that were read but not returned yet, in order.
        self._found: deque[RecordColumns | InputError] = deque()

    @property
    def kept(self) -> int:
        """The number of buffered bytes of an incomplete line."""
        return self._splitter.kept

    def take_error(self) -> InputError | None:
        """Remove and return the next error, or return None if a record precedes it."""
        first = self._found[0] if self._found else None
        if not isinstance(first, InputError):
            return None
        self._found.popleft()
        return first

    def feed(self, data: bytes) -> list[RecordColumns]:
        """Add a chunk, and return the completed records up to the first error."""
        skipped = self._splitter.skipped
        self._find(self._splitter.feed(data))
        if self._splitter.skipped > skipped:
            self._found.append(
                InputError(
                    f"record {self._number}: more than {self._size_max} bytes (max.request.size) "
                    f"without {printed(self._delimiter)}"
                )
            )
            self._number += 1
        return self._up_to_error()

    def end(self) -> list[RecordColumns]:
        """Return the last record, if the input does not end with a delimiter."""
        self._find(self._splitter.end())
        return self._up_to_error()

    def _up_to_error(self) -> list[RecordColumns]:
        records = []
        while self._found and isinstance(first := self._found[0], RecordColumns):
            records.append(first)
            self._found.popleft()
        return records

    def _find(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self._found.append(self._columns(self._number, lines))
        except PackError:
            self._find_errors(lines)
        self._number += len(lines)

    def _columns(self, number: int, lines: list[bytes]) -> RecordColumns:
        numbers = range(number, number + len(lines))
        if self._key_delimiter is None:
            return self._shape.columns(numbers, lines)
        keys, values = _halves(lines, self._key_delimiter, self._shape.key)
        return self._shape.columns(numbers, values, keys)

    def _find_errors(self, lines: list[bytes]) -> None:
        """Parse lines of which at least one is invalid, keeping runs of valid lines together."""
        start = 0
        for place, line in enumerate(lines):
            try:
                self._columns(0, [line])
            except PackError as error:
                self._add(lines, start, place)
                start = place + 1
                self._found.append(InputError(f"record {self._number + place}: {error}"))
        self._add(lines, start, len(lines))

    def _add(self, lines: list[bytes], start: int, end: int) -> None:
        if start < end:
            self._found.append(self._columns(self._number + start, lines[start:end]))


def _halves(
    lines: list[bytes], delimiter: bytes, otherwise: bytes | None
) -> tuple[list[bytes | None], list[bytes]]:
    keys: list[bytes | None] = []
    values: list[bytes] = []
    for line in lines:
        key, found, value = line.partition(delimiter)
        if found:
            keys.append(key)
            values.append(value)
        else:
            keys.append(otherwise)
            values.append(line)
    return keys, values
