"""Validates batches from producers, and assigns their offsets (Kafka: LogValidator).

This module performs no I/O. Records are neither decompressed, decoded nor copied: the header
contains their count, greatest timestamp and producer, and the CRC proves that they arrived
unchanged. A record count that is too high for the length of the batch is rejected, because each
claimed record uses up an offset.

The CRC does not cover the base offset (bytes 0-7) and the leader epoch (bytes 12-15). Therefore a
new 16-byte header is written, followed by the unchanged rest of the batch. Only LogAppendTime also
changes the attributes and the greatest timestamp; the CRC is then recomputed over the new header
and the unchanged rest.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from ...._util._raising import raise_from
from ...._util.files._log_file import Buffer
from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_FOR_MESSAGE_FORMAT,
)
from ....protocol.records._batch import (
    CONTROL,
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    check_crc,
    read_header,
)
from ....protocol.records._crc32c import crc32c
from ....protocol.records._records import RECORD_BYTES_MIN
from ....protocol.records.compression._codecs import (
    DECOMPRESSION_RATIO_MAX,
    LZ4,
    NAMES,
    NONE,
    ZSTD,
)
from ....protocol.records.compression._frames import LZ4_HEADER_SIZE_MAX, check_frame_header
from ..segments._log_config import LogConfig
from ..segments._segment_indexes import ENTRY_MAX
from ..state._producer_state import ProducerEntry, accept

LOG_APPEND_TIME: Final = 0x08
_CODEC_MASK: Final = 0x07
_OF_TRANSACTIONS: Final = TRANSACTIONAL | CONTROL
_MAGIC_AT: Final = 16
# Relative to the start of what the length counts.
_BODY_AT: Final = HEADER_SIZE - PREFIX_SIZE
NO_TIMESTAMP: Final = -1

#: Creates a named tuple without the keyword handling of its class, which takes most of the time.
_tuple: Final = tuple.__new__
_HEAD = struct.Struct(">qii")
# Attributes, last offset delta, base and greatest timestamp: the start of what the CRC covers.
_STAMPED = struct.Struct(">hiqq")
_HEAD_WITH_CRC = struct.Struct(">qiibI")
# The offset after the last record has to be valid too.
_END_OFFSET_MAX: Final = 2**63 - 1
_STAMPED_END = _HEAD_WITH_CRC.size + _STAMPED.size


def check_batches(
    records: Buffer,
    config: LogConfig,
    now_ms: int,
    transaction_version: int = -1,
    *,
    checks_timestamps: bool = True,
) -> list[BatchHeader]:
    """Validate all batches in the records field of a produce request, and return their headers.

    Args:
        records: one or more batches, without other bytes before, between or after them.
        config: the settings of the topic.
        now_ms: the current time, with which timestamps are compared.
        transaction_version: see :meth:`.Log.append`.
        checks_timestamps: False leaves timestamps to a check of each record.

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
        _check_content(header, transaction_version)
        if checks_timestamps:
            _check_timestamps(header, config, now_ms)
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
    if header.attributes & _CODEC_MASK == LZ4:
        _check_lz4(records, position + HEADER_SIZE)
    return header


def _check_lz4(records: Buffer, start: int) -> None:
    """Check the header of an lz4 frame, whose checksum takes a microsecond to verify.

    Kafka decompresses every batch. Whatever is wrong after the header is left to consumers.
    """
    try:
        check_frame_header(records[start : start + LZ4_HEADER_SIZE_MAX])
    except WireFormatError as error:
        raise_from(ApiError(INVALID_RECORD, str(error)), error)


def _check_content(header: BatchHeader, transaction_version: int) -> None:
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
    if attributes & _OF_TRANSACTIONS:
        _check_transactional(header, transaction_version)
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise ApiError(
            INVALID_RECORD,
            f"producer {header.producer_id} sent epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}; neither may be negative",
        )


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if header.attributes & LOG_APPEND_TIME:
        raise ApiError(INVALID_TIMESTAMP, "only the broker may mark a batch as LogAppendTime")
    timestamp = header.max_timestamp
    if timestamp == NO_TIMESTAMP or config.stamps_append_time:
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


def _check_transactional(header: BatchHeader, transaction_version: int) -> None:
    if header.is_control:
        raise ApiError(INVALID_RECORD, "clients must not write control batches")
    if transaction_version < 0:
        raise ApiError(
            TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a batch belongs to a transaction; the request must name the transactional.id",
        )
    if header.producer_id < 0:
        raise ApiError(INVALID_RECORD, "a batch belongs to a transaction, but has no producer id")


class Appended(NamedTuple):
    """The result of an append (Kafka: LogAppendInfo)."""

    first_offset: int
    """The offset of the first record; for a duplicate, the offset of the stored record."""
    last_offset: int
    log_append_time_ms: int
    """The timestamp of all records; -1 with CreateTime."""
    log_start_offset: int
    size: int
    """The number of bytes written; 0 if all batches had already been stored."""


class Assigned(NamedTuple):
    """A batch to write, with its assigned offsets."""

    header: BatchHeader
    """The header as the producer sent it."""
    at: int
    """The position of the batch in the records field."""
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int


class TransactionChanges(NamedTuple):
    """The transactions that begin or end with one append."""

    begun: list[tuple[int, int, int]]
    """The producer id, the first offset, and the position of the first batch among those to
    write."""
    ended: int
    """The id of the producer whose transaction the marker ends; -1 without a marker."""
    is_commit: bool
    """Whether the marker commits."""


class Assignment(NamedTuple):
    """The batches to write in one append, and the resulting state."""

    batches: list[Assigned]
    """The batches to write, in order; empty if all batches are duplicates."""
    producers: dict[int, ProducerEntry]
    """The entries of the producers after the batches are written."""
    size: int
    """The number of bytes to write."""
    first_offset: int
    """The base offset of the first batch, whether it is new or a duplicate."""
    last_offset: int
    duplicate_timestamp: int
    """The greatest timestamp stored for the last duplicate; -1 without duplicates."""
    transactions: TransactionChanges | None
    """The transactions that begin or end; None if none does."""


def assign(
    headers: list[BatchHeader],
    producers: Mapping[int, ProducerEntry],
    end_offset: int,
    append_time_ms: int,
    transaction_version: int = -1,
) -> Assignment:
    """Assign offsets to all batches except duplicates, which already have offsets.

    Args:
        headers: the headers of all batches in the records field, in order.
        producers: the state of the producers; not changed.
        end_offset: the first offset to assign.
        append_time_ms: the timestamp for all records; -1 keeps the producer's timestamps.
        transaction_version: see :meth:`.Log.append`.

    Raises:
        ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER; INVALID_PRODUCER_EPOCH; INVALID_TXN_STATE;
            RECORD_LIST_TOO_LARGE if the partition has too few offsets left.
    """
    batches: list[Assigned] = []
    pending: dict[int, ProducerEntry] = {}
    changes: TransactionChanges | None = None
    at = size = 0
    first_offset = last_offset = duplicate_timestamp = -1
    for header in headers:
        timestamp = header.max_timestamp if append_time_ms < 0 else append_time_ms
        batch_size = header.length + PREFIX_SIZE
        duplicate = None
        if header.producer_id >= 0:
            duplicate = accept(
                producers, pending, header, end_offset, timestamp, transaction_version
            )
        if duplicate is None:
            base_offset, last_offset = end_offset, end_offset + header.last_offset_delta
            fields = (header, at, batch_size, base_offset, last_offset, timestamp)
            batches.append(_tuple(Assigned, fields))
            if transaction_version >= 0 and _begins(pending.get(header.producer_id), base_offset):
                changes = changes or TransactionChanges([], -1, False)
                changes.begun.append((header.producer_id, base_offset, size))
            end_offset = last_offset + 1
            size += batch_size
        else:
            base_offset, last_offset = duplicate.first_offset, duplicate.last_offset
            duplicate_timestamp = duplicate.timestamp
        if not at:
            first_offset = base_offset
        at += batch_size
    if end_offset > _END_OFFSET_MAX:
        raise ApiError(
            RECORD_LIST_TOO_LARGE,
            f"the records would get offsets up to {end_offset - 1}, but offsets must be below"
            f" {_END_OFFSET_MAX}; send the records to another partition",
        )
    whole = (batches, pending, size, first_offset, last_offset, duplicate_timestamp, changes)
    return _tuple(Assignment, whole)


def _begins(entry: ProducerEntry | None, base_offset: int) -> bool:
    return entry is not None and entry.transaction_first_offset == base_offset


def assign_marker(data: bytes, is_commit: bool, entry: ProducerEntry) -> Assignment:
    """Return the assignment of a marker, whose batch already has its offset.

    Args:
        data: the control batch.
        is_commit: whether the marker commits.
        entry: the producer's entry after the marker.
    """
    header = read_header(data)
    offset, size = header.base_offset, len(data)
    batch = Assigned(header, 0, size, offset, offset, header.max_timestamp)
    changes = TransactionChanges([], header.producer_id, is_commit)
    producers = {header.producer_id: entry}
    return Assignment([batch], producers, size, offset, offset, -1, changes)


def buffers_to_write(
    records: memoryview, batches: list[Assigned], leader_epoch: int, append_time_ms: int
) -> list[Buffer]:
    """Return the buffers to write: a new header and the rest of the batch, for each batch.

    Args:
        records: the records field that contains the batches.
        batches: the batches, in the order of their offsets.
        leader_epoch: the current leader epoch.
        append_time_ms: the timestamp for all records; -1 keeps the producer's timestamps.
    """
    buffers: list[Buffer] = []
    for header, at, size, base_offset, _last_offset, _timestamp in batches:
        if append_time_ms < 0:
            buffers.append(_HEAD.pack(base_offset, header.length, leader_epoch))
            buffers.append(records[at + _HEAD.size : at + size])
        else:
            rest = records[at + _STAMPED_END : at + size]
            stamped = _STAMPED.pack(
                header.attributes | LOG_APPEND_TIME,
                header.last_offset_delta,
                header.base_timestamp,
                append_time_ms,
            )
            crc = crc32c(rest, crc32c(stamped))
            head = _HEAD_WITH_CRC.pack(base_offset, header.length, leader_epoch, MAGIC, crc)
            buffers.append(head + stamped)
            buffers.append(rest)
    return buffers
