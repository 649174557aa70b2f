"""The record reader: typed Python, compiled by mypyc.

It behaves exactly like :mod:`._pure_reader`, which is faster when interpreted. The code differs
from ordinary Python in three ways:

* Native 64-bit integers wrap around silently. Lengths from a peer are therefore compared with the
  size of the remaining buffer before they are added to a position.
* mypyc checks the bounds of every ``buf[pos]``, and the caller converts its IndexError to
  WireFormatError. mypyc does not check slices, so this module checks their ends.
* Tuples of native integers are returned without allocation, so small functions are cheap. The
  fields of the current record are attributes of a cursor, which is reused for all records.

``struct`` cannot decode varints, and anything that goes through Python objects would box every
integer. If mypyc ever optimizes memoryview, bodies need no longer be copied to ``bytes`` first.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from trionet.errors import WireFormatError
from trionet.protocol.records._types import Columns, Headers, Record

if TYPE_CHECKING:
    from mypy_extensions import i64

_NO_HEADERS: Final[Headers] = ()
# Constants above 62 bits are unboxed at each use; keep them out of loops.
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


class _Cursor:
    """The fields of the current record, with the positions of its key and value.

    The end position of a null key or value is -1.
    """

    def __init__(self) -> None:
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key_start: i64 = 0
        self.key_end: i64 = 0
        self.value_start: i64 = 0
        self.value_end: i64 = 0
        self.has_headers = False
        self.headers: Headers = _NO_HEADERS

    def read(self, buf: bytes, pos: i64) -> i64:
        """Decode the record at ``pos``, and return its end."""
        more: i64
        size: i64 = buf[pos]
        pos += 1
        if size > 127:
            more = buf[pos]
            if more > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (more << 7) - 128
                pos += 1
        start: i64 = pos
        delta: i64 = buf[pos + 1]  # skips the attributes, which are unused
        pos += 2
        if delta > 127:
            delta, pos = _read_more(buf, pos, delta)
        self.timestamp_delta = (delta >> 1) ^ -(delta & 1) if delta >= 0 else _unsigned(delta)
        delta = buf[pos]
        pos += 1
        if delta > 127:
            more = buf[pos]
            if more > 127:
                delta, pos = _read_more(buf, pos, delta)
            else:
                delta += (more << 7) - 128
                pos += 1
        self.offset_delta = (delta >> 1) ^ -(delta & 1) if delta >= 0 else _unsigned(delta)
        limit: i64 = len(buf)
        length: i64 = buf[pos]
        pos += 1
        if length > 127:
            length, pos = _read_more(buf, pos, length)
        if length & 1:
            self.key_end = _null(length)
        else:
            length >>= 1
            if not 0 <= length < limit - pos:
                raise IndexError
            self.key_start = pos
            pos += length
            self.key_end = pos
        length = buf[pos]
        pos += 1
        if length > 127:
            more = buf[pos]
            if more > 127:
                length, pos = _read_more(buf, pos, length)
            else:
                length += (more << 7) - 128
                pos += 1
        if length & 1:
            self.value_end = _null(length)
        else:
            length >>= 1
            if not 0 <= length < limit - pos:
                raise IndexError
            self.value_start = pos
            pos += length
            self.value_end = pos
        if buf[pos] == 0:
            pos += 1
            self.has_headers = False
        else:
            self.headers, pos = read_headers(buf, pos)
            self.has_headers = True
        if pos - start != size >> 1 or size & 1:
            raise WireFormatError("the length of a record does not match its fields")
        return pos


def read_rows(
    buf: bytes, pos: i64, count: i64, base_offset: i64, base_timestamp: i64
) -> tuple[list[Record], int]:
    """Decode all records as tuples, and return them and the position after the last record."""
    cursor = _Cursor()
    none: object = _NO_HEADERS
    rows = [none] * count
    delta: i64 = 0
    timestamp: object = base_timestamp
    earliest: i64
    latest: i64
    first: i64
    last: i64
    earliest, latest = _delta_limits(base_timestamp)
    first, last = _delta_limits(base_offset)
    done: i64 = 0
    while done < count:
        pos = cursor.read(buf, pos)
        if cursor.timestamp_delta != delta:  # records of the same millisecond share one int object
            delta = cursor.timestamp_delta
            if not earliest <= delta <= latest:
                raise _overflow()
            timestamp = base_timestamp + delta
        start = cursor.key_start
        end = cursor.key_end
        key = None if end < 0 else buf[start:end]
        start = cursor.value_start
        end = cursor.value_end
        value = None if end < 0 else buf[start:end]
        headers = cursor.headers if cursor.has_headers else none
        offset = cursor.offset_delta
        if not first <= offset <= last:
            raise _overflow()
        rows[done] = (base_offset + offset, timestamp, key, value, headers)
        done += 1
    return cast(list[Record], rows), pos


def read_columns(
    buf: bytes, pos: i64, count: i64, base_offset: i64, base_timestamp: i64, passed: i64 = 0
) -> tuple[Columns, int]:
    """Decode records as columns, and return them and the position after the last record.

    ``passed`` is the number of records of the batch that precede ``pos``.
    """
    cursor = _Cursor()
    offsets: list[int] | None = None
    delta: i64 = 0
    timestamp: object = base_timestamp
    timestamps = [timestamp] * count
    keys: list[bytes | None] = [None] * count
    values: list[bytes | None] = [None] * count
    headers: list[Headers] = [_NO_HEADERS] * count
    earliest: i64
    latest: i64
    first: i64
    last: i64
    earliest, latest = _delta_limits(base_timestamp)
    first, last = _delta_limits(base_offset)
    done: i64 = 0
    while done < count:
        pos = cursor.read(buf, pos)
        if cursor.timestamp_delta != delta:
            delta = cursor.timestamp_delta
            if not earliest <= delta <= latest:
                raise _overflow()
            timestamp = base_timestamp + delta
        timestamps[done] = timestamp
        offset = cursor.offset_delta
        if not first <= offset <= last:
            raise _overflow()
        if offsets is not None:
            offsets.append(base_offset + offset)
        elif offset != passed + done:
            offsets = [*_consecutive(base_offset, passed, done), base_offset + offset]
        start = cursor.key_start
        end = cursor.key_end
        if end >= 0:
            keys[done] = buf[start:end]
        start = cursor.value_start
        end = cursor.value_end
        if end >= 0:
            values[done] = buf[start:end]
        if cursor.has_headers:
            headers[done] = cursor.headers
        done += 1
    if offsets is None:
        consecutive = _consecutive(base_offset, passed, count)
        return Columns(consecutive, cast(list[int], timestamps), keys, values, headers), pos
    return Columns(offsets, cast(list[int], timestamps), keys, values, headers), pos


def _consecutive(base_offset: int, passed: int, count: int) -> range:
    """Return offsets; the arguments are no native integers, since the end may be 2^63."""
    return range(base_offset + passed, base_offset + passed + count)


def read_values(buf: bytes, pos: i64, count: i64) -> tuple[list[bytes | None], int]:
    """Decode the values of all records, and return them and the position after the last record."""
    cursor = _Cursor()
    values: list[bytes | None] = [None] * count
    done: i64 = 0
    while done < count:
        pos = cursor.read(buf, pos)
        start = cursor.value_start
        end = cursor.value_end
        if end >= 0:
            values[done] = buf[start:end]
        done += 1
    return values, pos


def read_starts(buf: bytes, pos: i64, count: i64) -> tuple[list[int], int]:
    """Return the start of each record and the end of the last record.

    Only the length of each record is decoded.
    """
    starts: list[int] = []
    limit: i64 = len(buf)
    done: i64 = 0
    while done < count:
        done += 1
        starts.append(pos)
        size: i64 = buf[pos]
        pos += 1
        if size > 127:
            size, pos = _read_more(buf, pos, size)
        if size & 1:
            raise WireFormatError("the length of a record does not match its fields")
        size >>= 1
        if not 0 <= size <= limit - pos:
            raise IndexError
        pos += size
    return starts, pos


def read_timestamps(buf: bytes, pos: i64, count: i64, base_timestamp: i64) -> tuple[list[int], int]:
    """Decode only the timestamps, and return them and the position after the last record."""
    timestamps: list[int] = []
    limit: i64 = len(buf)
    size: i64
    delta: i64
    earliest: i64
    latest: i64
    earliest, latest = _delta_limits(base_timestamp)
    done: i64 = 0
    while done < count:
        size, pos = _read_length(buf, pos)
        if not 0 <= size <= limit - pos:
            raise IndexError
        end: i64 = pos + size
        delta, pos = _read_length(buf, pos + 1)  # skips the attributes, which are unused
        if not earliest <= delta <= latest:
            raise _overflow()
        if pos >= end:  # the other fields follow
            raise _too_short()
        timestamps.append(base_timestamp + delta)
        pos = end
        done += 1
    return timestamps, pos


def _delta_limits(base: i64) -> tuple[i64, i64]:
    """Return the smallest and the largest delta that can be added without overflow."""
    return (
        _INT64_MIN - base if base < 0 else _INT64_MIN,
        _INT64_MAX - base if base > 0 else _INT64_MAX,
    )


def _overflow() -> WireFormatError:
    return WireFormatError("the offset or timestamp of a record does not fit into 64 bits")


def _unsigned(number: i64) -> i64:
    """Zigzag-decode an i64 that represents an unsigned 64-bit number."""
    return ((number >> 1) & _INT64_MAX) ^ -(number & 1)


def _null(length: i64) -> i64:
    if length != 1:
        negative = -((length >> 1) & _INT64_MAX) - 1
        raise WireFormatError(f"a record field has a negative length: {negative}")
    return -1


def _too_short() -> WireFormatError:
    return WireFormatError("the length of a record does not match its fields")


def _read_more(buf: bytes, pos: i64, first: i64) -> tuple[i64, i64]:
    """Read the rest of a varint of two or more bytes, without zigzag decoding."""
    value = first & 127
    shift: i64 = 7
    while first > 127:
        if shift > 63:
            raise WireFormatError("varint longer than ten bytes")
        first = buf[pos]
        pos += 1
        if shift == 63 and 1 < first < 128:
            raise WireFormatError("varint with more than 64 bits")
        value |= (first & 127) << shift
        shift += 7
    return value, pos


def read_headers(buf: bytes, pos: i64) -> tuple[Headers, i64]:
    """Decode the header count and headers of a record, and return the headers and their end."""
    limit: i64 = len(buf)
    count: i64
    length: i64
    count, pos = _read_length(buf, pos)
    if not 0 <= count <= limit - pos:
        raise WireFormatError(f"{count} record headers cannot fit into the batch")
    headers: list[tuple[str, bytes | None]] = []
    while count > 0:
        count -= 1
        length, pos = _read_length(buf, pos)
        if length < 0:
            raise WireFormatError("the key of a record header is null")
        if length > limit - pos:
            raise IndexError
        end: i64 = pos + length
        key = buf[pos:end].decode("utf-8", "replace")  # see _pure_reader
        length, pos = _read_length(buf, end)
        if length < -1:
            raise WireFormatError(f"a record header value has a negative length: {length}")
        value: bytes | None = None
        if length >= 0:
            if length > limit - pos:
                raise IndexError
            end = pos + length
            value = buf[pos:end]
            pos = end
        headers.append((key, value))
    return headers, pos


def _read_length(buf: bytes, pos: i64) -> tuple[i64, i64]:
    value: i64 = buf[pos]
    pos += 1
    if value > 127:
        value, pos = _read_more(buf, pos, value)
    return (value >> 1) ^ -(value & 1) if value >= 0 else _unsigned(value), pos
