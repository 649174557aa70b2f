"""Assigns offsets to batches without copying their records.

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

from ....errors import ApiError
from ....protocol.error_codes import RECORD_LIST_TOO_LARGE
from ....protocol.records._batch import MAGIC, PREFIX_SIZE, BatchHeader
from ....protocol.records._crc32c import crc32c
from ..files._directory import Buffer
from ..state._producer_state import ProducerEntry, accept
from ._validation import LOG_APPEND_TIME

#: Creates a named tuple without the keyword handling of its class, which takes most of the time.
_tuple: Final = tuple.__new__
_HEAD = struct.Struct(">qii")
# Attributes, last offset delta, base and greatest timestamp: the start of what the CRC covers.
_STAMPED = struct.Struct(">hiqq")
_HEAD_WITH_CRC = struct.Struct(">qiibI")
# The offset after the last record has to be valid too.
_END_OFFSET_MAX: Final = 2**63 - 1
_STAMPED_END = _HEAD_WITH_CRC.size + _STAMPED.size


class Appended(NamedTuple):
    """The result of an append (Kafka: LogAppendInfo)."""

    first_offset: int
    """The offset of the first record; for a duplicate, the offset of the stored record."""
    last_offset: int
    log_append_time_ms: int
    """The timestamp of all records; -1 with CreateTime."""
    log_start_offset: int
    size: int
    """The number of bytes written; 0 for a duplicate."""
    is_duplicate: bool
    """Whether all batches had already been stored, so nothing was written."""


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


def assign(
    headers: list[BatchHeader],
    producers: Mapping[int, ProducerEntry],
    end_offset: int,
    append_time_ms: int,
) -> Assignment:
    """Assign offsets to all batches except duplicates, which already have offsets.

    Args:
        headers: the headers of all batches in the records field, in order.
        producers: the state of the producers; not changed.
        end_offset: the first offset to assign.
        append_time_ms: the timestamp for all records; -1 keeps the producer's timestamps.

    Raises:
        ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER; INVALID_PRODUCER_EPOCH; RECORD_LIST_TOO_LARGE if
            the partition has too few offsets left.
    """
    batches: list[Assigned] = []
    pending: dict[int, ProducerEntry] = {}
    at = size = 0
    first_offset = last_offset = duplicate_timestamp = -1
    for header in headers:
        timestamp = header.max_timestamp if append_time_ms < 0 else append_time_ms
        batch_size = header.length + PREFIX_SIZE
        duplicate = None
        if header.producer_id >= 0:
            duplicate = accept(producers, pending, header, end_offset, timestamp)
        if duplicate is None:
            base_offset, last_offset = end_offset, end_offset + header.last_offset_delta
            fields = (header, at, batch_size, base_offset, last_offset, timestamp)
            batches.append(_tuple(Assigned, fields))
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
    whole = (batches, pending, size, first_offset, last_offset, duplicate_timestamp)
    return _tuple(Assignment, whole)


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
