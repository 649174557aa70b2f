"""Parses lines as records: each is a value, or a key, a delimiter and a value."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs

from ._columns import Headers, RecordColumns
from ._layout import printed
from ._packing import PackError, Packing, each_or_null
from ._splitting import InputError, Splitter


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
