"""Validates batches from producers without decoding records (Kafka: LogValidator).

This module performs no I/O. Records are neither decompressed nor decoded: the header contains their
count, greatest timestamp and producer, and the CRC proves that they arrived unchanged. A record
count that is too high for the length of the batch is rejected, because each claimed record uses up
an offset.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ...._util._raising import raise_from
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    INVALID_TXN_STATE,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from ....protocol.records._batch import (
    CONTROL,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    check_crc,
    read_header,
)
from ....protocol.records._records import RECORD_BYTES_MIN
from ....protocol.records.compression._codecs import DECOMPRESSION_RATIO_MAX, NAMES, NONE, ZSTD
from ..files._directory import Buffer
from ..segments._index import ENTRY_MAX
from ..segments._log_config import LogConfig

LOG_APPEND_TIME: Final = 0x08
_CODEC_MASK: Final = 0x07
_MAGIC_AT: Final = 16
# Relative to the start of what the length counts.
_BODY_AT: Final = HEADER_SIZE - PREFIX_SIZE
_NO_TIMESTAMP: Final = -1


def check_batches(records: Buffer, config: LogConfig, now_ms: int) -> list[BatchHeader]:
    """Validate all batches in the records field of a produce request, and return their headers.

    Args:
        records: one or more batches, without other bytes before, between or after them.
        config: the settings of the topic.
        now_ms: the current time, with which timestamps are compared.

    Raises:
        ApiError: a batch is invalid. The error code is the one that Kafka returns.
    """
    total = len(records)
    if not total:
        raise ApiError(INVALID_RECORD, "the records field contains no batch")
    headers = []
    position = offsets = 0
    while position < total:
        header = _check_frame(records, position, total, config)
        _check_content(header, config, now_ms)
        headers.append(header)
        position += header.length + PREFIX_SIZE
        offsets += header.count
    if total > config.segment_bytes:
        raise ApiError(
            RECORD_LIST_TOO_LARGE,
            f"batches with a total of {total} bytes do not fit in a segment"
            f" (segment.bytes={config.segment_bytes})",
        )
    if offsets > ENTRY_MAX + 1:
        raise ApiError(
            RECORD_LIST_TOO_LARGE,
            f"{offsets} records do not fit in a segment, which has at most {ENTRY_MAX + 1} offsets;"
            " send fewer in one request",
        )
    return headers


def records_max(header: BatchHeader) -> int:
    """Return the maximum number of records that fit in a batch of this length and codec."""
    body = header.length - _BODY_AT
    return (
        body * DECOMPRESSION_RATIO_MAX.get(header.attributes & _CODEC_MASK, 1) // RECORD_BYTES_MIN
    )


def _check_frame(records: Buffer, position: int, total: int, config: LogConfig) -> BatchHeader:
    if total - position > _MAGIC_AT:
        magic = records[position + _MAGIC_AT]
        if magic in (0, 1):
            raise ApiError(
                UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"message format {magic} is not supported; send record batches (format 2)",
            )
        if magic != 2:
            raise ApiError(CORRUPT_MESSAGE, f"unknown message format (magic {magic})")
    try:
        header = read_header(records, position)
    except WireFormatError as error:
        raise_from(ApiError(CORRUPT_MESSAGE, str(error)), error)
    size = header.length + PREFIX_SIZE
    if size > total - position:
        raise ApiError(
            CORRUPT_MESSAGE, f"a batch claims {size} bytes, but only {total - position} are present"
        )
    if size > config.max_message_bytes:
        raise ApiError(
            MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes exceeds max.message.bytes={config.max_message_bytes}",
        )
    if not check_crc(records, position, header):
        raise ApiError(CORRUPT_MESSAGE, "the CRC of a batch does not match its content")
    return header


def _check_content(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    count, attributes = header.count, header.attributes
    if count < 1 or header.last_offset_delta != count - 1:
        raise ApiError(
            INVALID_RECORD,
            f"a batch of {count} records has a last offset delta of {header.last_offset_delta}",
        )
    codec = attributes & _CODEC_MASK
    if codec > ZSTD:
        raise ApiError(INVALID_RECORD, f"unknown compression codec {codec}")
    # Uncompressed batches, which are the most, pass the first test and need no lookup.
    if count * RECORD_BYTES_MIN > header.length - _BODY_AT and count > records_max(header):
        compressed = "" if codec == NONE else f" of {NAMES[codec]}"
        raise ApiError(
            INVALID_RECORD,
            f"a batch claims {count} records, but its {header.length - _BODY_AT} bytes{compressed}"
            f" can hold at most {records_max(header)}",
        )
    if attributes & CONTROL:
        raise ApiError(INVALID_RECORD, "clients must not write control batches")
    if attributes & TRANSACTIONAL:
        raise ApiError(INVALID_TXN_STATE, "transactions are not supported by this broker")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise ApiError(
            INVALID_RECORD,
            f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}; neither may be negative",
        )
    if attributes & LOG_APPEND_TIME:
        raise ApiError(INVALID_TIMESTAMP, "only the broker may mark a batch as LogAppendTime")
    timestamp = header.max_timestamp
    if timestamp == _NO_TIMESTAMP or config.stamps_append_time:
        return
    if now_ms - timestamp > config.message_timestamp_before_max_ms:
        raise ApiError(
            INVALID_TIMESTAMP,
            f"timestamp {timestamp} is more than message.timestamp.before.max.ms="
            f"{config.message_timestamp_before_max_ms} before the broker's time, {now_ms}",
        )
    if timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise ApiError(
            INVALID_TIMESTAMP,
            f"timestamp {timestamp} is more than message.timestamp.after.max.ms="
            f"{config.message_timestamp_after_max_ms} after the broker's time, {now_ms}",
        )
