"""The record writer, optimized for the CPython interpreter.

Encoded varints are cached, and the parts of a record are joined in one call. :mod:`._typed_writer`
is the equivalent for mypyc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trionet.errors import LocalProtocolError
from trionet.protocol.records._batch import HEADER_SIZE, Bytes
from trionet.protocol.records._types import (
    Headers,
    NewRecord,
    as_bytes,
    as_header,
    as_headers,
    as_timestamp,
)

#: The maximum size of a batch, since its length is an int32.
BATCH_BYTES_MAX: Final = 2**31 - 1

#: A size limit that no batch reaches.
NO_LIMIT: Final = 2**62

#: The largest timestamp of an empty batch.
NO_TIMESTAMP: Final = -(2**63)

#: The size at which parts are joined to a chunk. The allocator would map new memory for each larger
#: chunk, whose page faults cost more than the copy.
CHUNK_BYTES: Final = 64 * 1024


class _Zigzag(dict[int, bytes]):
    """The zigzag varints of numbers, with a cache for small numbers."""

    def __missing__(self, number: int) -> bytes:
        if not -(2**63) <= number < 2**63:
            raise LocalProtocolError(f"{number} does not fit into a varlong")
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        out = bytearray()
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        out.append(rest)
        encoded = bytes(out)
        if -64 <= number < 8192:
            self[number] = encoded
        return encoded


_zigzag: Final = _Zigzag()
_NULL: Final = _zigzag[-1]
_NO_HEADERS: Final = _zigzag[0]
_NO_ATTRIBUTES: Final = b"\0"
_join: Final = b"".join


class BatchBuilder:
    """Builds a batch, encoding records as they are appended.

    Args:
        size_max: the maximum size of the batch in bytes, before compression; up to 2^63 - 1.
        base_timestamp: the timestamp, in milliseconds, to which record timestamps are relative;
            None for the timestamp of the first record. A batch with a delete horizon stores the
            horizon in this field (KIP-534).

    Attributes:
        count: the number of records.
        size: the exact size of the batch in bytes, before compression.
        last_offset_delta: the offset of the last record minus the base offset; -1 if empty.
        base_timestamp: the base timestamp, in milliseconds.
        max_timestamp: the largest timestamp, in milliseconds.
    """

    __slots__ = (
        "_base",
        "_chunks",
        "_join_at",
        "_parts",
        "_size_max",
        "count",
        "last_offset_delta",
        "max_timestamp",
        "size",
    )

    def __init__(
        self, size_max: int = BATCH_BYTES_MAX, *, base_timestamp: int | None = None
    ) -> None:
        self.count: int = 0
        self.size: int = HEADER_SIZE
        self.last_offset_delta: int = -1
        self.max_timestamp: int = NO_TIMESTAMP
        self._base = None if base_timestamp is None else as_timestamp(base_timestamp)
        self._size_max = size_max
        self._chunks: list[bytes] = []
        self._parts: list[bytes] = []
        self._join_at = CHUNK_BYTES

    def append(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers = (),
        size_max: int = NO_LIMIT,
    ) -> bool:
        """Append a record with the next offset.

        An error leaves the builder unchanged.

        Args:
            timestamp: the timestamp, in milliseconds.
            key: the key, or None.
            value: the value, or None.
            headers: the header names and values.
            size_max: the record is not appended if the batch would exceed this size in bytes,
                before compression; an empty batch accepts any record.

        Returns:
            Whether the record was appended.

        Raises:
            LocalProtocolError: the timestamp, or its difference from the base timestamp, does not
                fit into 64 bits.
            TypeError: a field has the wrong type: the timestamp must be an int, keys and values
                bytes-like or None, and headers a sequence of tuples or lists of a str and a value.
        """
        if type(timestamp) is not int or not 0 <= timestamp < 2**63:
            timestamp = as_timestamp(timestamp)
        zigzag = _zigzag
        base = self._base
        when = zigzag[0 if base is None else timestamp - base]
        offset_delta = self.last_offset_delta + 1
        if key is None:
            key = b""
            key_length = _NULL
        else:
            if type(key) is not bytes:
                key = as_bytes(key)
            key_length = zigzag[len(key)]
        if value is None:
            value = b""
            value_length = _NULL
        else:
            if type(value) is not bytes:
                value = as_bytes(value)
            value_length = zigzag[len(value)]
        tail = _encode_headers(headers) if headers else _NO_HEADERS
        record = _join(
            (_NO_ATTRIBUTES, when, zigzag[offset_delta], key_length, key, value_length, value, tail)
        )
        length = zigzag[len(record)]
        size = self.size + len(length) + len(record)
        if size > size_max and self.count:
            return False
        self.max_timestamp = max(self.max_timestamp, timestamp)
        if base is None:
            self._base = timestamp
        self.count += 1
        self.last_offset_delta = offset_delta
        self._parts += length, record
        self.size = size
        if size >= self._join_at:
            self._chunks.append(_join(self._parts))
            self._parts.clear()
            self._join_at = size + CHUNK_BYTES
        return True

    def append_columns(
        self,
        start: int,
        stop: int,
        timestamps: int | list[int],
        keys: list[Bytes | None] | None,
        values: list[Bytes | None],
        headers: list[Headers] | None,
        size_max: int,
    ) -> int:
        """Append records from columns until the batch is full.

        Args:
            start: the index of the first record.
            stop: the index after the last record.
            timestamps: the timestamps, in milliseconds; a single number applies to all records.
            keys: the keys, with None for null; None if all keys are null.
            values: the values, with None for null.
            headers: the headers; None if no record has headers.
            size_max: see :meth:`append`.

        Returns:
            The index of the first record that was not appended.

        Raises:
            LocalProtocolError: see :meth:`append`; the records before the invalid one are appended.
            TypeError: see :meth:`append`; the records before the invalid one are appended.
        """
        append = self.append
        # By index: slices would copy the rest of long columns for each batch.
        for number in range(start, stop):
            timestamp = timestamps if isinstance(timestamps, int) else timestamps[number]
            key = None if keys is None else keys[number]
            header = () if headers is None else headers[number]
            if not append(timestamp, key, values[number], header, size_max):
                return number
        return stop

    def begin_with(self, records: bytes, count: int, timestamp: int) -> None:
        """Begin an empty batch with encoded records, which are not checked.

        Args:
            records: the records; their offsets are relative to the first, their timestamps equal.
            count: the number of records.
            timestamp: the timestamp of each record, in milliseconds.
        """
        self._base = self.max_timestamp = as_timestamp(timestamp)
        self.count = count
        self.last_offset_delta = count - 1
        self.size += len(records)
        self._join_at = self.size + CHUNK_BYTES
        self._chunks.append(records)

    def append_at(
        self,
        offset_delta: int,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers = (),
    ) -> None:
        """Append a record with a given offset, for batches with gaps after compaction.

        Args:
            offset_delta: the offset minus the base offset; greater than all earlier offset deltas.
            timestamp: see :meth:`append`.
            key: see :meth:`append`.
            value: see :meth:`append`.
            headers: see :meth:`append`.

        Raises:
            ValueError: the offset delta is not greater than the last one.
            LocalProtocolError: see :meth:`append`.
            TypeError: see :meth:`append`.
        """
        last = self.last_offset_delta
        if offset_delta <= last:
            raise ValueError(f"offset delta {offset_delta} does not come after {last}")
        self.last_offset_delta = offset_delta - 1
        try:
            self.append(timestamp, key, value, headers)
        finally:
            if self.last_offset_delta != offset_delta:
                self.last_offset_delta = last

    def has_room_for(
        self, timestamp: int, key: Bytes | None, value: Bytes | None, headers: Headers = ()
    ) -> bool:
        """Return whether the batch would stay within its maximum size with this record.

        An empty batch accepts any record. Unlike that of Kafka's
        MemoryRecordsBuilder.hasRoomFor, the result is exact, because the effect of compression is
        not estimated.
        """
        if not self.count:
            return True
        size = (
            1
            + len(_zigzag[as_timestamp(timestamp) - self.base_timestamp])
            + len(_zigzag[self.last_offset_delta + 1])
        )
        for field in (key, value):
            length = -1 if field is None else len(as_bytes(field))
            size += len(_zigzag[length]) + max(length, 0)
        size += len(_encode_headers(headers) if headers else _NO_HEADERS)
        return self.size + len(_zigzag[size]) + size <= self._size_max

    def chunks(self) -> list[bytes]:
        """Return the chunks of the encoded records."""
        return [*self._chunks, b"".join(self._parts)] if self._parts else [*self._chunks]

    @property
    def base_timestamp(self) -> int:
        """The base timestamp in milliseconds; 0 if it is not set yet."""
        return self._base or 0


def build_rows(rows: Iterable[NewRecord]) -> BatchBuilder:
    """Return a builder that contains these records.

    Raises:
        LocalProtocolError: see :meth:`BatchBuilder.append`.
        TypeError: see :meth:`BatchBuilder.append`.
    """
    builder = BatchBuilder()
    append = builder.append
    for timestamp, key, value, headers in rows:
        append(timestamp, key, value, headers)
    return builder


def _encode_headers(headers: object) -> bytes:
    # The usual types are accepted without a call.
    found = headers if type(headers) is list or type(headers) is tuple else as_headers(headers)
    parts = [_zigzag[len(found)]]
    for header in found:
        name = value = None
        if type(header) is tuple and len(header) == 2:
            name, value = header
        if type(name) is not str or (value is not None and type(value) is not bytes):
            name, value = as_header(header)
        key = name.encode()
        parts += _zigzag[len(key)], key
        if value is None:
            parts.append(_NULL)
        else:
            parts += _zigzag[len(value)], value
    return b"".join(parts)
