"""The record writer: typed Python, compiled by mypyc.

It behaves exactly like :mod:`._pure_writer`, which is faster when interpreted. It requires the
package librt, whose BytesWriter lets compiled code append single bytes without a Python call.
Joining parts, as the pure writer does, would take twice the time. If librt cannot be imported, the
pure writer is used; see :mod:`._implementation`.

A record starts with its own length. To avoid encoding the rest first and copying it, the writer
adds up the sizes of all parts before it writes. The head of a record (length, attributes and both
deltas) nearly always has at most 8 bytes. It is assembled in a 64-bit integer and written in one
call. All checks precede the first write, so an error leaves the batch unchanged.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, write_i64_le

from trionet.errors import LocalProtocolError
from trionet.protocol.records._batch import HEADER_SIZE, Bytes
from trionet.protocol.records._types import (
    Headers,
    as_bytes,
    as_header,
    as_headers,
    as_timestamp,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The maximum size of a batch, since its length is an int32.
BATCH_BYTES_MAX: Final = 2**31 - 1

#: A size limit that no batch reaches.
NO_LIMIT: Final = 2**62

#: The maximum size of the part of a record before its key: the attributes, and varints of 64, 32
#: and 32 bits.
_HEAD_BYTES_MAX: Final = 1 + 10 + 5 + 5

#: The size at which the output becomes a chunk. The allocator would map new memory for each larger
#: chunk, whose page faults cost more than the copy.
CHUNK_BYTES: Final = 64 * 1024

#: A key or value of at least this size becomes a separate chunk and is not copied.
_SEPARATE_BYTES: Final = 16 * 1024

#: The mask that clears the sign bits after an arithmetic right shift by 7.
_SHIFTED: Final = 0x01FF_FFFF_FFFF_FFFF

# Constants above 62 bits are unboxed at each use; keep them out of loops.
_NEAR: Final = 2**61
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_NONE: Final[object] = ()


class BatchBuilder:
    """Builds a batch; see :class:`._pure_writer.BatchBuilder`."""

    def __init__(
        self, size_max: i64 = BATCH_BYTES_MAX, *, base_timestamp: int | None = None
    ) -> None:
        self.count: i64 = 0
        self.size: i64 = HEADER_SIZE
        self.last_offset_delta: i64 = -1
        self.max_timestamp: i64 = -(2**63)
        self.base_timestamp: i64 = 0
        self._has_base = base_timestamp is not None
        if base_timestamp is not None:
            self.base_timestamp = as_timestamp(base_timestamp)
        self._size_max: i64 = size_max
        self._chunks: list[bytes] = []
        self._out = BytesWriter()

    def append(
        self,
        timestamp: int,
        key: object,
        value: object,
        headers: object = (),
        size_max: i64 = NO_LIMIT,
    ) -> bool:
        """Append a record with the next offset, unless the batch would be too large."""
        if not -_NEAR < timestamp < _NEAR:
            as_timestamp(timestamp)
        now: i64 = timestamp
        delta: i64 = 0
        if self._has_base:
            delta = _delta(now, self.base_timestamp)
        size: i64 = 0
        key_bytes = b""
        key_length: i64 = -1
        if key is not None:
            key_bytes = key if isinstance(key, bytes) else as_bytes(key)
            key_length = len(key_bytes)
            size = key_length
            if key_length >= 64:
                size += _size(key_length) - 1
        value_bytes = b""
        value_length: i64 = -1
        if value is not None:
            value_bytes = value if isinstance(value, bytes) else as_bytes(value)
            value_length = len(value_bytes)
            size += value_length
            if value_length >= 64:
                size += _size(value_length) - 1
        size += 3  # the first bytes of both lengths, and the number of headers
        tail: bytes | None = None
        # Compiled code tests a list for emptiness natively; for an object it calls Python.
        is_usual = headers is _NONE or (isinstance(headers, list) and not headers)
        if not is_usual and headers:
            tail = _encode_headers(headers)
            size += len(tail) - 1
        if size_max < self.size + size + _HEAD_BYTES_MAX and self._lacks_room(
            delta, size, size_max
        ):
            return False
        # Nothing below can fail.
        if not self._has_base:
            self.base_timestamp = now
            self._has_base = True
        if now > self.max_timestamp:  # noqa: PLR1730  # max() would box both numbers
            self.max_timestamp = now
        self.count += 1
        self.last_offset_delta += 1
        out = self._out
        self.size += _put_head(out, delta, self.last_offset_delta, size)
        if key is None:
            out.append(1)
        else:
            _put(out, key_length)
            self._write(out, key_bytes)
        self._write_value(out, value_length, value_bytes)
        if tail is None:
            out.append(0)
        else:
            self._write(out, tail)
        if len(out) >= CHUNK_BYTES:
            self._chunks.append(out.getvalue())
            out.truncate(0)
        return True

    def _write_value(self, out: BytesWriter, length: i64, value: bytes) -> None:
        if 64 <= length < 8192:
            byte: int = length << 1 & 127 | 128
            out.append(byte)
            byte = length >> 6
            out.append(byte)
        else:
            _put(out, length)
        if length >= _SEPARATE_BYTES:
            self._write(out, value)
        elif length > 0:
            out.write(value)

    def _lacks_room(self, delta: i64, rest: i64, size_max: i64) -> bool:
        """Return whether a record would make the batch too large.

        ``rest`` is the size of the part of the record from the key to its end.
        """
        size = 1 + _size(delta) + _size(self.last_offset_delta + 1) + rest
        return self.count > 0 and self.size + size + _size(size) > size_max

    def begin_value(self, now: i64, length: i64) -> BytesWriter:
        """Begin a record that has only a value, and return the writer for the value.

        The caller must write exactly ``length`` bytes, and then call :meth:`end_value` before any
        other method.

        Args:
            now: the timestamp in milliseconds, which is not checked.
            length: the length of the value in bytes.
        """
        if not self._has_base:
            self.base_timestamp = now
            self._has_base = True
        if now > self.max_timestamp:  # noqa: PLR1730  # as in append
            self.max_timestamp = now
        self.count += 1
        self.last_offset_delta += 1
        out = self._out
        size = 2 + _size(length) + length  # 2: the null key and the number of headers
        self.size += _put_head(out, now - self.base_timestamp, self.last_offset_delta, size)
        out.append(1)
        _put(out, length)
        return out

    def end_value(self) -> None:
        """End the record begun by :meth:`begin_value`."""
        out = self._out
        out.append(0)
        if len(out) >= CHUNK_BYTES:
            self._chunks.append(out.getvalue())
            out.truncate(0)

    def append_columns(
        self,
        start: i64,
        stop: i64,
        timestamps: int | list[int],
        keys: list[Bytes | None] | None,
        values: list[Bytes | None],
        headers: list[Headers] | None,
        size_max: i64,
    ) -> i64:
        """Append records from columns until the batch is full, and return the next index."""
        number = start
        header: object = _NONE
        key: object = None
        timestamp = timestamps if isinstance(timestamps, int) else 0
        while number < stop:
            if not isinstance(timestamps, int):
                timestamp = timestamps[number]
            if keys is not None:
                key = keys[number]
            if headers is not None:
                header = headers[number]
            if not self.append(timestamp, key, values[number], header, size_max):
                break
            number += 1
        return number

    def begin_with(self, records: bytes, count: i64, timestamp: int) -> None:
        """Begin an empty batch with encoded records, which are not checked."""
        self.base_timestamp = self.max_timestamp = as_timestamp(timestamp)
        self._has_base = True
        self.count = count
        self.last_offset_delta = count - 1
        self.size += len(records)
        self._chunks.append(records)

    def append_at(
        self, offset_delta: i64, timestamp: int, key: object, value: object, headers: Headers = ()
    ) -> None:
        """Append a record with a given offset, for batches with gaps after compaction."""
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
        self, timestamp: int, key: object, value: object, headers: Headers = ()
    ) -> bool:
        """Return whether the batch would stay within its maximum size with this record."""
        if self.count == 0:
            return True
        size = 1 + _size(_delta(as_timestamp(timestamp), self.base_timestamp))
        size += _size(self.last_offset_delta + 1)
        length: i64 = -1 if key is None else len(key if isinstance(key, bytes) else as_bytes(key))
        size += _size(length) + max(length, 0)
        length = (
            -1 if value is None else len(value if isinstance(value, bytes) else as_bytes(value))
        )
        size += _size(length) + max(length, 0)
        size += len(_encode_headers(headers)) if headers else 1
        return self.size + _size(size) + size <= self._size_max

    def chunks(self) -> list[bytes]:
        """Return the chunks of the encoded records."""
        return [*self._chunks, self._out.getvalue()] if len(self._out) else [*self._chunks]

    def _write(self, out: BytesWriter, data: bytes) -> None:
        if len(data) < _SEPARATE_BYTES:
            out.write(data)
        else:
            self._chunks += out.getvalue(), data
            out.truncate(0)


def build_rows(rows: Iterable[Any]) -> BatchBuilder:
    """Return a builder that contains these records."""
    builder = BatchBuilder()
    for row in rows:  # not unpacked here: compiled code would insist on tuples
        timestamp, key, value, headers = row
        builder.append(timestamp, key, value, headers)
    return builder


def _delta(now: i64, base: i64) -> i64:
    if not (-_NEAR < now < _NEAR and -_NEAR < base < _NEAR) and (
        now > _INT64_MAX + base if base < 0 else now < _INT64_MIN + base
    ):
        raise LocalProtocolError(f"{int(now) - int(base)} does not fit into a varlong")
    return now - base


def _size(number: i64) -> i64:
    """Return the size of the zigzag varint of a number."""
    if -64 <= number < 64:
        return 1
    if -8192 <= number < 8192:
        return 2
    rest = ((number << 1) ^ (number >> 63)) >> 14 & 0x3_FFFF_FFFF_FFFF
    size: i64 = 3
    while rest > 127:
        size += 1
        rest >>= 7
    return size


def _put_head(out: BytesWriter, delta: i64, offset_delta: i64, rest: i64) -> i64:
    """Write the head of a record, the part before its key.

    ``rest`` is the size of the part of the record from the key to its end. Returns the size of the
    whole record, including its length. If all numbers have one or two bytes, as usual, they are
    assembled in a 64-bit integer, from last to first, and written in one call.
    """
    # A varint of two bytes is in memory as (n & 127 | 128), n >> 7.
    word = offset_delta << 1
    width: i64 = 3
    if word > 127:
        word = word & 127 | 128 | word >> 7 << 8
        width = 4
    number = (delta << 1) ^ (delta >> 63)
    if number < 128:
        word = word << 8 | number
    else:
        word = word << 16 | number >> 7 << 8 | number & 127 | 128
        width += 1
    size = width + rest
    if offset_delta >= 8192 or not -8192 <= delta < 8192 or size >= 8192:
        size = 1 + _size(delta) + _size(offset_delta) + rest
        _put(out, size)
        out.append(0)
        _put(out, delta)
        _put(out, offset_delta)
        return size + _size(size)
    word <<= 8  # the attributes
    number = size << 1
    if number < 128:
        word = word << 8 | number
        width += 1
        size += 1
    else:
        word = word << 16 | number >> 7 << 8 | number & 127 | 128
        width += 2
        size += 2
    width += len(out)
    write_i64_le(out, word)
    out.truncate(width)
    return size


def _put(out: BytesWriter, number: i64) -> None:
    """Write the zigzag varint of a number."""
    rest: i64 = (number << 1) ^ (number >> 63)
    byte: int  # mypyc converts an int to the u8 that append() takes, but not an i64
    while rest > 127 or rest < 0:
        byte = rest & 127 | 128
        out.append(byte)
        rest = rest >> 7 & _SHIFTED
    byte = rest
    out.append(byte)


def _encode_headers(headers: object) -> bytes:
    out = BytesWriter()
    checked: Any = headers if isinstance(headers, (list, tuple)) else as_headers(headers)
    _put(out, len(checked))
    for header in checked:
        name: object = None
        value: object = None
        if isinstance(header, tuple) and len(header) == 2:
            name = header[0]
            value = header[1]
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            name, value = as_header(header)
        key = name.encode()
        _put(out, len(key))
        out.write(key)
        if value is None:
            out.append(1)
        else:
            _put(out, len(value))
            out.write(value)
    return out.getvalue()
