"""Records in and out of batches, in Python.

The broker needs this for little but tests and transaction markers; clients need it for every
record, so the common cases (varints of one or two bytes) are written out where they occur.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn, TypeAlias

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records.batch import (
    CONTROL,
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    Bytes,
    read_header,
)
from trionet.protocol.records.compression import NONE, compress, decompress
from trionet.protocol.records.crc32c import crc32c

#: Header keys are never null; values may be.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

#: Timestamp in milliseconds, key, value, headers.
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]

#: Offset, timestamp in milliseconds, key, value, headers.
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]

#: How far the records of one batch may grow when decompressed.
INFLATED_BYTES_MAX: Final = 128 * 1024 * 1024


class _Zigzag(dict[int, bytes]):
    """Numbers to their zigzag varints; the common ones stay."""

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
_NOTHING: Final = _zigzag[0]
_NO_ATTRIBUTES: Final = b"\0"


def encode_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: int = NONE,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Encode records with consecutive offsets as one batch.

    Args:
        records: at least one; their timestamps in milliseconds.
        base_offset: the first record's offset.
        codec: the compression codec's number.
        timestamp_type: 0 if the timestamps are the producer's, 1 if they are the log's: then the
            largest one counts for every record.
        producer_id: -1 for none, as the two after it.
        producer_epoch: the producer's epoch.
        base_sequence: the first record's sequence number.
        leader_epoch: -1 from a producer.
        transactional: whether the batch belongs to a transaction.
        control: whether the batch holds a transaction marker.

    Raises:
        ValueError: there are no records.
        LocalProtocolError: a number does not fit into its field.
    """
    rows = records if isinstance(records, (list, tuple)) else list(records)
    if not rows:
        raise ValueError("a batch has at least one record")
    base_timestamp = rows[0][0]
    attributes = codec | timestamp_type << 3
    attributes |= TRANSACTIONAL * transactional | CONTROL * control
    body = _encode_records(rows, base_timestamp)
    if codec:
        body = compress(codec, body)
    header = BatchHeader(
        base_offset,
        HEADER_SIZE - PREFIX_SIZE + len(body),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        len(rows) - 1,
        base_timestamp,
        max(rows, key=_timestamp)[0],
        producer_id,
        producer_epoch,
        base_sequence,
        len(rows),
    )
    try:
        crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
        return header._replace(crc=crc).pack() + body
    except struct.error as error:
        raise LocalProtocolError(f"the batch header cannot be encoded: {error}") from error


def _timestamp(record: NewRecord) -> int:
    return record[0]


def _encode_records(rows: Sequence[NewRecord], base_timestamp: int) -> bytes:
    """Eight parts a record, joined once; the record's length is arithmetic on them."""
    zigzag = _zigzag
    parts: list[bytes] = []
    put = parts.extend
    for delta, (timestamp, key, value, headers) in enumerate(rows):
        when = zigzag[timestamp - base_timestamp]
        offset = zigzag[delta]
        if key is None:
            key = b""
            key_length = _NULL
        else:
            key_length = zigzag[len(key)]
        if value is None:
            value = b""
            value_length = _NULL
        else:
            value_length = zigzag[len(value)]
        tail = _encode_headers(headers) if headers else _NOTHING
        size = (
            1
            + len(when)
            + len(offset)
            + len(key_length)
            + len(key)
            + len(value_length)
            + len(value)
            + len(tail)
        )
        put(
            (zigzag[size], _NO_ATTRIBUTES, when, offset, key_length, key, value_length, value, tail)
        )
    return b"".join(parts)


def _encode_headers(headers: Headers) -> bytes:
    parts = [_zigzag[len(headers)]]
    for key, value in headers:
        name = key.encode()
        parts += _zigzag[len(name)], name
        if value is None:
            parts.append(_NULL)
        else:
            parts += _zigzag[len(value)], value
    return b"".join(parts)


def decode_batch(
    buf: Bytes, pos: int = 0, *, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> list[Record]:
    """Read the records of the batch at ``pos``. Its checksum is not looked at.

    Args:
        buf: what holds the batch, whole.
        pos: where it starts.
        inflated_bytes_max: how far the records may grow when decompressed.

    Raises:
        WireFormatError: the batch is cut short, malformed, of another format than v2, or grows
            too far.
    """
    header = read_header(buf, pos)
    if header.magic != MAGIC:
        raise WireFormatError(f"batches of magic {header.magic} are not read here")
    start, end = pos + HEADER_SIZE, pos + header.size
    if header.count < 0:
        raise WireFormatError(f"a batch has {header.count} records")
    if end > len(buf):
        raise WireFormatError("a batch ends too early")
    if header.codec:
        body = decompress(header.codec, memoryview(buf)[start:end], inflated_bytes_max)
        start, end = 0, len(body)
    elif isinstance(buf, bytes):
        body = buf
    else:  # slices of anything else would not be bytes
        body = bytes(memoryview(buf)[start:end])
        start, end = 0, len(body)
    try:
        records, start = _decode_records(body, start, header)
    except IndexError as error:
        raise WireFormatError("a record ends too early") from error
    except UnicodeDecodeError as error:
        raise WireFormatError("a record header's key is not UTF-8") from error
    if start != end:
        raise WireFormatError("a batch's records do not end where it does")
    if header.timestamp_type:  # the log's: one for all, and the records' own mean nothing
        time = header.max_timestamp
        return [(offset, time, key, value, headers) for offset, _, key, value, headers in records]
    return records


def _decode_records(buf: bytes, pos: int, header: BatchHeader) -> tuple[list[Record], int]:
    """Records and where they end; positions only grow, so cut slices show in a record's length."""
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    records: list[Record] = []
    put = records.append
    for _ in range(header.count):  # varints of two bytes are read in place, longer ones by a call
        size = buf[pos]
        pos += 1
        if size > 127:
            if (byte := buf[pos]) > 127:
                size, pos = _read_more(buf, pos, size)
            else:
                size += (byte << 7) - 128
                pos += 1
        stop = pos + (size >> 1)
        when = buf[pos + 1]  # behind the attributes, which mean nothing yet
        pos += 2
        if when > 127:
            if (byte := buf[pos]) > 127:
                when, pos = _read_more(buf, pos, when)
            else:
                when += (byte << 7) - 128
                pos += 1
        offset = buf[pos]
        pos += 1
        if offset > 127:
            if (byte := buf[pos]) > 127:
                offset, pos = _read_more(buf, pos, offset)
            else:
                offset += (byte << 7) - 128
                pos += 1
        length = buf[pos]
        pos += 1
        if length > 127:
            length, pos = _read_more(buf, pos, length)
        if length & 1:
            key = None if length == 1 else _bad_length(length)
        else:
            key = buf[pos : (pos := pos + (length >> 1))]
        length = buf[pos]
        pos += 1
        if length > 127:
            if (byte := buf[pos]) > 127:
                length, pos = _read_more(buf, pos, length)
            else:
                length += (byte << 7) - 128
                pos += 1
        if length & 1:
            value = None if length == 1 else _bad_length(length)
        else:
            value = buf[pos : (pos := pos + (length >> 1))]
        headers: Headers = ()
        pos += 1
        if buf[pos - 1]:
            headers, pos = _decode_headers(buf, pos - 1)
        if pos != stop or size & 1:
            raise WireFormatError("a record's length is not that of its fields")
        offset = base_offset + ((offset >> 1) ^ -(offset & 1))
        put((offset, base_timestamp + ((when >> 1) ^ -(when & 1)), key, value, headers))
    return records, pos


def _read_more(buf: bytes, pos: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint of two bytes or more; not yet zigzag-decoded."""
    value = first & 127
    shift = 7
    while first > 127:
        if shift > 63:
            raise WireFormatError("a varint is longer than ten bytes")
        first = buf[pos]
        pos += 1
        value |= (first & 127) << shift
        shift += 7
    if value >= 2**64:
        raise WireFormatError("a varint has more than 64 bits")
    return value, pos


def _bad_length(length: int) -> NoReturn:
    raise WireFormatError(f"a record has a field of negative length {-(length >> 1) - 1}")


def _decode_headers(buf: bytes, pos: int) -> tuple[Headers, int]:
    count, pos = _read_length(buf, pos)
    if not 0 <= count <= len(buf) - pos:
        raise WireFormatError(f"{count} record headers cannot fit")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = _read_length(buf, pos)
        if length < 0:
            raise WireFormatError("a record header's key is null")
        key = buf[pos : (pos := pos + length)].decode()
        length, pos = _read_length(buf, pos)
        if length < -1:
            raise WireFormatError(f"a record header has a value of negative length {length}")
        value = None if length < 0 else buf[pos : (pos := pos + length)]
        headers.append((key, value))
    return headers, pos


def _read_length(buf: bytes, pos: int) -> tuple[int, int]:
    value = buf[pos]
    pos += 1
    if value > 127:
        value, pos = _read_more(buf, pos, value)
    return (value >> 1) ^ -(value & 1), pos
