"""Looks up offsets by timestamp, for ListOffsets.

No other module of the log decodes stored records. The functions may wait for the disk, read large
parts of the log and decode batches, so they are called in a thread. They are thread-safe.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ....errors import WireFormatError
from ....protocol.records._batch import BatchHeader
from ....protocol.records._records import decode_batch
from ._log_batches import BatchPlace, header_at
from ._segment import Segment


class OffsetAndTimestamp(NamedTuple):
    """The offset and the timestamp (in milliseconds) of a record."""

    offset: int
    timestamp: int


def first_at_or_after(
    segments: list[Segment], timestamp: int, start_offset: int, up_to: int
) -> OffsetAndTimestamp | None:
    """Return the first record in a range with a timestamp of at least ``timestamp``.

    It is the record with the lowest offset, regardless of the order of timestamps (KIP-79). The
    range extends from ``start_offset`` to ``up_to``, exclusive.

    Raises:
        ApiError: CORRUPT_MESSAGE if the bytes on disk are not a batch.
    """
    for segment in segments:
        if segment.newest[0] < timestamp:
            continue
        start = segment.base_offset + segment.time_index.floor(timestamp)
        for place in segment.places_from(start):
            if place.base_offset >= up_to:
                return None
            if place.last_offset < start_offset:
                continue
            header = header_at(segment.file, place.position)
            if header.max_timestamp < timestamp:
                continue
            for record in _times(segment, place, header):
                if record.timestamp >= timestamp and start_offset <= record.offset < up_to:
                    return record
    return None


def newest(segments: list[Segment], start_offset: int) -> OffsetAndTimestamp | None:
    """Return the first record with the greatest timestamp (KIP-734); None if there is none.

    Raises:
        ApiError: CORRUPT_MESSAGE if the bytes on disk are not a batch.
    """
    best: OffsetAndTimestamp | None = None
    for segment in segments:
        timestamp, offset = segment.newest
        if best is not None and timestamp <= best.timestamp:
            continue
        if offset < start_offset:
            # Its newest record was deleted: find the newest that remains.
            offset = _newest_left(segment, start_offset)
        place = segment.locate(offset) if timestamp >= 0 and offset >= start_offset else None
        if place is None:
            continue
        header = header_at(segment.file, place.position)
        records = [
            record for record in _times(segment, place, header) if record.offset >= start_offset
        ]
        # max() keeps the first of equals.
        best = max([*([best] if best else []), *records], key=lambda record: record.timestamp)
    return best


def beginnings_before(
    segments: list[Segment], start_offset: int, end_offset: int, timestamp: float, now_ms: int
) -> list[int]:
    """Return the base offsets of segments last written at or before ``timestamp``, descending.

    This is how ListOffsets version 0 interprets a timestamp (Kafka:
    UnifiedLog.legacyFetchOffsetsBefore). If ``timestamp`` is not in the past, the result also
    contains the log end offset, unless the last segment is empty.

    Args:
        segments: all segments, ascending.
        start_offset: the log start offset; lower base offsets are raised to it.
        end_offset: the log end offset.
        timestamp: the timestamp, in milliseconds; infinity selects all segments without reading
            any file.
        now_ms: the current time.
    """
    offsets = [end_offset] if segments[-1].size and now_ms <= timestamp else []
    for segment in reversed(segments):
        # Once a segment is old enough, those before it are too, whatever their files say.
        if offsets or timestamp == inf or segment.modified_ms <= timestamp:
            offsets.append(max(segment.base_offset, start_offset))
    return offsets


def _newest_left(segment: Segment, start_offset: int) -> int:
    """Return the last offset of the batch with the greatest timestamp, or -1.

    Only batches that end at or after ``start_offset`` count.
    """
    offset, timestamp = -1, -1
    for place in segment.places_from(start_offset):
        if place.last_offset >= start_offset:
            header = header_at(segment.file, place.position)
            if header.max_timestamp > timestamp:
                offset, timestamp = place.last_offset, header.max_timestamp
    return offset


def _times(segment: Segment, place: BatchPlace, header: BatchHeader) -> list[OffsetAndTimestamp]:
    """Return the offset and timestamp of each record in a batch.

    If the records cannot be decoded, returns a single pair, from the batch header.
    """
    data = segment.file.read_at(place.position, place.size)
    try:
        return [OffsetAndTimestamp(record[0], record[1]) for record in decode_batch(data)]
    except WireFormatError:
        # The broker does not decode what producers send. Only the header is left to go by; a
        # consumer that starts at this batch reports what is wrong with it.
        return [OffsetAndTimestamp(place.base_offset, header.max_timestamp)]
