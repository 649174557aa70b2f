"""Limits the records shown per entry, since a few kilobytes of gzip can hold millions of them.

Records beyond the limit are not decoded. The limits apply per entry rather than per batch, because
a frame may hold many batches.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, BatchHeader
from trionet.protocol.records._records import INFLATED_BYTES_MAX, decode_batch
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import NONE, decompress
from trionet.protocol.records.message_sets._message_set import (
    CRC_START,
    OVERHEAD,
    decode_message_set,
    read_message_header,
)

#: The maximum number of records shown per entry; each header counts as a record.
RECORDS_SHOWN_MAX: Final = 100_000

#: The maximum size of a decompressed message of format 0 or 1, which is decoded in one call.
MESSAGES_BYTES_MAX: Final = 32 * 1024 * 1024

#: The minimum size of a record, excluding its size field, and of a record's header.
_RECORD_SIZE_MIN: Final = 6
_ITEM_BYTES_MIN: Final = 2
_VARINT_BITS_MAX: Final = 63


class Allowance:
    """How many more records and decompressed bytes to decode for one entry."""

    def __init__(self) -> None:
        self._records = RECORDS_SHOWN_MAX
        self._inflated_bytes = INFLATED_BYTES_MAX

    def records_of_batch(self, data: bytes, header: BatchHeader) -> list[Record]:
        """Decode the records of a complete batch, up to the limit.

        Raises:
            WireFormatError: a record is malformed, or decompression exceeds the limit.
        """
        if self._is_used_up():
            return []
        body: bytes = data[HEADER_SIZE : header.size]
        if header.codec != NONE:
            body = decompress(header.codec, body, INFLATED_BYTES_MAX)
            self._inflated_bytes -= len(body)
        count = header.count
        if len(body) > self._records * _ITEM_BYTES_MIN:
            count, end = _first(body, count, self._records)
            body = body[:end]
        plain = header._replace(
            length=HEADER_SIZE - PREFIX_SIZE + len(body),
            attributes=header.attributes & ~header.codec,
            count=count,
        )
        records = decode_batch(plain.pack() + body)
        self._records -= sum(1 + len(headers) for *_, headers in records)
        return records

    def records_of_message(self, data: bytes) -> tuple[list[Record], int]:
        """Decode a message of format 0 or 1, or its inner messages, up to the limit.

        Returns:
            The records, and the number of omitted records.

        Raises:
            WireFormatError: a message is malformed, or decompression exceeds the limit.
        """
        if self._is_used_up():
            return [], 1
        header = read_message_header(data)
        # Decode even if the checksum is wrong, which the caller reports.
        crc = crc32(memoryview(data)[CRC_START:]).to_bytes(4, "big")
        corrected = b"".join((data[:PREFIX_SIZE], crc, data[CRC_START:]))
        records, _ = decode_message_set(corrected, inflated_bytes_max=MESSAGES_BYTES_MAX)
        if header.codec != NONE:
            self._inflated_bytes -= sum(
                OVERHEAD[header.magic] + len(key or b"") + len(value or b"")
                for _, _, key, value, _ in records
            )
        shown = records[: self._records]
        self._records -= len(shown)
        return shown, len(records) - len(shown)

    def _is_used_up(self) -> bool:
        return self._records <= 0 or self._inflated_bytes <= 0


def _first(body: bytes, count: int, limit: int) -> tuple[int, int]:
    """Return how many records are within the limit, and the position after the last of them.

    A malformed record counts as the last record, so that the decoder reports the error.
    """
    pos = number = 0
    try:
        while number < count:
            size, start = _read_varint(body, pos)
            limit -= 1 + _header_count(body, start)
            if limit < 0:
                return number, pos
            if size < _RECORD_SIZE_MIN:
                return number + 1, len(body)
            number, pos = number + 1, start + size
    except (IndexError, WireFormatError):
        return number + 1, len(body)
    return number, len(body)


def _header_count(body: bytes, pos: int) -> int:
    _, pos = _read_varint(body, pos + 1)  # the timestamp, after the attributes
    _, pos = _read_varint(body, pos)  # the offset
    for _ in ("key", "value"):
        length, pos = _read_varint(body, pos)
        pos += max(length, 0)
    return max(_read_varint(body, pos)[0], 0)


def _read_varint(body: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := body[pos]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        pos += 1
        if shift > _VARINT_BITS_MAX:
            raise WireFormatError("varint longer than ten bytes")
    value |= byte << shift
    return (value >> 1) ^ -(value & 1), pos + 1
