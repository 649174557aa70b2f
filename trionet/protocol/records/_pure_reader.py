"""The record reader, optimized for the CPython interpreter.

Function calls dominate the cost of interpreted code, so varints of one or two bytes are decoded
inline. Slices are not checked. Since positions only increase, a truncated slice is detected by the
next access, which raises IndexError, or by the length of the record.

:mod:`._typed_reader` is the equivalent for mypyc. The two modules are separate because the
optimizations conflict: calls are cheap in compiled code but expensive in interpreted code, and the
declarations of native integers slow down the interpreter. A difference in behaviour is a bug. The
tests compare both modules on random and mutated batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol.records._types import Columns, Headers, Record

#: A base up to this limit plus a delta of two bytes cannot overflow 64 bits.
_FAR: Final = 2**63 - 2**14


def read_rows(
    buf: bytes, pos: int, count: int, base_offset: int, base_timestamp: int
) -> tuple[list[Record], int]:
    """Decode all records as tuples, and return them and the position after the last record."""
    columns, pos = read_columns(buf, pos, count, base_offset, base_timestamp)
    return list(zip(*columns, strict=True)), pos


def read_columns(
    buf: bytes, pos: int, count: int, base_offset: int, base_timestamp: int, passed: int = 0
) -> tuple[Columns, int]:
    """Decode records as columns, and return them and the position after the last record.

    ``passed`` is the number of records of the batch that precede ``pos``.
    """
    offsets: list[int] | range = range(base_offset + passed, base_offset + passed + count)
    timestamps = [base_timestamp] * count
    keys: list[bytes | None] = [None] * count
    values: list[bytes | None] = [None] * count
    headers: list[Headers] = [()] * count
    last, timestamp = 0, base_timestamp  # records of the same millisecond share one int object
    for number in range(count):
        size = buf[pos]
        pos += 1
        if size > 127:
            if (byte := buf[pos]) > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (byte << 7) - 128
                pos += 1
        when = buf[(start := pos) + 1]  # skips the attributes, which are unused
        pos += 2
        if when > 127:
            if (byte := buf[pos]) > 127:
                when, pos = _read_delta(buf, pos, when, base_timestamp)
            else:
                when += (byte << 7) - 128
                pos += 1
        if when != last:
            last = when
            timestamp = base_timestamp + ((when >> 1) ^ -(when & 1))
        timestamps[number] = timestamp
        offset = buf[pos]
        pos += 1
        if offset > 127:
            if (byte := buf[pos]) > 127:
                offset, pos = _read_delta(buf, pos, offset, base_offset)
            else:
                offset += (byte << 7) - 128
                pos += 1
        if offset != number + passed << 1:
            offsets = [*offsets] if type(offsets) is range else offsets
            offsets[number] = base_offset + ((offset >> 1) ^ -(offset & 1))
        length = buf[pos]
        pos += 1
        if length > 127:
            length, pos = _read_more(buf, pos, length)
        if length & 1:
            _check_null(length)
        else:
            keys[number] = buf[pos : (pos := pos + (length >> 1))]
        length = buf[pos]
        pos += 1
        if length > 127:
            if (byte := buf[pos]) > 127:
                length, pos = _read_more(buf, pos, length)
            else:
                length += (byte << 7) - 128
                pos += 1
        if length & 1:
            _check_null(length)
        else:
            values[number] = buf[pos : (pos := pos + (length >> 1))]
        if buf[pos]:
            headers[number], pos = read_headers(buf, pos)
        else:
            pos += 1
        if pos - start << 1 != size:
            raise WireFormatError("the length of a record does not match its fields")
    if abs(base_offset) > _FAR or abs(base_timestamp) > _FAR:
        _check_sums(chain(offsets, timestamps))
    return Columns(offsets, timestamps, keys, values, headers), pos


def read_values(buf: bytes, pos: int, count: int) -> tuple[list[bytes | None], int]:
    """Decode the values of all records, and return them and the position after the last record."""
    values: list[bytes | None] = [None] * count
    for number in range(count):
        size = buf[pos]
        pos += 1
        if size > 127:
            if (byte := buf[pos]) > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (byte << 7) - 128
                pos += 1
        start = pos
        pos += 2  # skips the attributes, and the first byte of the timestamp
        if buf[pos - 1] > 127:
            if buf[pos] > 127:
                _, pos = _read_more(buf, pos, 128)
            else:
                pos += 1
        pos += 1  # skips the first byte of the offset
        if buf[pos - 1] > 127:
            if buf[pos] > 127:
                _, pos = _read_more(buf, pos, 128)
            else:
                pos += 1
        length = buf[pos]
        pos += 1
        if length != 1:
            if length > 127:
                length, pos = _read_more(buf, pos, length)
            if length & 1:
                _check_null(length)
            else:
                pos += length >> 1
        length = buf[pos]
        pos += 1
        if length > 127:
            if (byte := buf[pos]) > 127:
                length, pos = _read_more(buf, pos, length)
            else:
                length += (byte << 7) - 128
                pos += 1
        if length & 1:
            _check_null(length)
        else:
            values[number] = buf[pos : (pos := pos + (length >> 1))]
        if buf[pos]:
            _, pos = read_headers(buf, pos)
        else:
            pos += 1
        if pos - start << 1 != size:
            raise WireFormatError("the length of a record does not match its fields")
    return values, pos


def read_starts(buf: bytes, pos: int, count: int) -> tuple[list[int], int]:
    """Return the start of each record and the end of the last record.

    Only the length of each record is decoded.
    """
    starts: list[int] = []
    put = starts.append
    for _ in range(count):
        put(pos)
        size = buf[pos]
        pos += 1
        if size > 127:
            if (byte := buf[pos]) > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (byte << 7) - 128
                pos += 1
        if size & 1:
            raise WireFormatError("the length of a record does not match its fields")
        pos += size >> 1
    if pos > len(buf):
        raise IndexError
    return starts, pos


def read_timestamps(buf: bytes, pos: int, count: int, base_timestamp: int) -> tuple[list[int], int]:
    """Decode only the timestamps, and return them and the position after the last record."""
    timestamps = [base_timestamp] * count
    limit = len(buf)
    for number in range(count):
        size = buf[pos]
        pos += 1
        if size > 127:
            if (byte := buf[pos]) > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (byte << 7) - 128
                pos += 1
        end = pos + (size >> 1)
        if size & 1 or end > limit:
            raise IndexError
        when = buf[pos + 1]  # skips the attributes, which are unused
        pos += 2
        if when > 127:
            when, pos = _read_delta(buf, pos, when, base_timestamp)
        if pos >= end:  # the other fields follow
            raise WireFormatError("the length of a record does not match its fields")
        timestamps[number] = base_timestamp + ((when >> 1) ^ -(when & 1))
        pos = end
    if abs(base_timestamp) > _FAR:
        _check_sums(timestamps)
    return timestamps, pos


def _read_more(buf: bytes, pos: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint of two or more bytes, without zigzag decoding."""
    value = first & 127
    shift = 7
    while first > 127:
        if shift > 63:
            raise WireFormatError("varint longer than ten bytes")
        first = buf[pos]
        pos += 1
        value |= (first & 127) << shift
        shift += 7
    if value >= 2**64:
        raise WireFormatError("varint with more than 64 bits")
    return value, pos


def _read_delta(buf: bytes, pos: int, first: int, base: int) -> tuple[int, int]:
    """Read the rest of a varint that will be added to ``base``."""
    delta, pos = _read_more(buf, pos, first)
    _check_sums([base + ((delta >> 1) ^ -(delta & 1))])
    return delta, pos


def _check_sums(numbers: Iterable[int]) -> None:
    if not all(-(2**63) <= number < 2**63 for number in numbers):
        raise WireFormatError("the offset or timestamp of a record does not fit into 64 bits")


def _check_null(length: int) -> None:
    if length != 1:
        raise WireFormatError(f"a record field has a negative length: {-(length >> 1) - 1}")


def read_headers(buf: bytes, pos: int) -> tuple[Headers, int]:
    """Decode the header count and headers of a record, and return the headers and their end.

    Producers may write any bytes as keys. Those that are not UTF-8 are replaced, as in Kafka's
    consumer, so that one record does not end all consumers of its partition.
    """
    count, pos = _read_length(buf, pos)
    if not 0 <= count <= len(buf) - pos:
        raise WireFormatError(f"{count} record headers cannot fit into the batch")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = _read_length(buf, pos)
        if length < 0:
            raise WireFormatError("the key of a record header is null")
        if length > len(buf) - pos:
            raise IndexError
        key = buf[pos : (pos := pos + length)].decode("utf-8", "replace")
        length, pos = _read_length(buf, pos)
        if length < -1:
            raise WireFormatError(f"a record header value has a negative length: {length}")
        if length > len(buf) - pos:
            raise IndexError
        value = None if length < 0 else buf[pos : (pos := pos + length)]
        headers.append((key, value))
    return headers, pos


def _read_length(buf: bytes, pos: int) -> tuple[int, int]:
    value = buf[pos]
    pos += 1
    if value > 127:
        value, pos = _read_more(buf, pos, value)
    return (value >> 1) ^ -(value & 1), pos
