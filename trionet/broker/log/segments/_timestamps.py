"""Offsets by time, for ListOffsets: the only place where the log looks at records.

Everything here may wait for the disk, read much and decode batches: call it in a thread.
Thread-safe.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ....errors import WireFormatError
from ....protocol.records._batch import BatchHeader
from ....protocol.records._records import decode_batch
from ..recovery._clean_start import read_batch_header
from ._segment import Segment
from ._stored_segment import BatchPlace


class OffsetAndTimestamp(NamedTuple):
    """A record's offset and timestamp (milliseconds)."""

    offset: int
    timestamp: int


def first_at_or_after(
    segments: list[Segment], timestamp: int, start_offset: int, up_to: int
) -> OffsetAndTimestamp | None:
    """The first record from ``start_offset`` to before ``up_to`` that is as new as ``timestamp``.

    The record with the lowest offset, whatever order the timestamps are in (KIP-79).

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        start = segment.base_offset + segment.time_index.floor(timestamp)
        for place in segment.places_from(start):
            if place.base_offset >= up_to:
                return None
            if place.last_offset < start_offset:
                continue
            header = read_batch_header(segment, place.position)
            if header.max_timestamp < timestamp:
                continue
            for record in _times(segment, place, header):
                if record.timestamp >= timestamp and start_offset <= record.offset < up_to:
                    return record
    return None


def newest(segments: list[Segment], start_offset: int) -> OffsetAndTimestamp | None:
    """The record with the greatest timestamp, the first of them (KIP-734); None without any.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    best: OffsetAndTimestamp | None = None
    for segment in segments:
        offset, timestamp = segment.max_timestamp_offset, segment.max_timestamp
        if best is not None and timestamp <= best.timestamp:
            continue
        if offset < start_offset:
            # Its newest record was deleted: look for the newest that is left.
            offset = _newest_left(segment, start_offset)
        place = segment.locate(offset) if timestamp >= 0 and offset >= start_offset else None
        if place is None:
            continue
        header = read_batch_header(segment, place.position)
        records = [
            record for record in _times(segment, place, header) if record.offset >= start_offset
        ]
        # max() keeps the first of equals.
        best = max([*([best] if best else []), *records], key=lambda record: record.timestamp)
    return best


def beginnings_before(
    segments: list[Segment], start_offset: int, end_offset: int, timestamp: float, now_ms: int
) -> list[int]:
    """Where the segments begin that were written last at a time or before it, descending.

    What ListOffsets 0 means by a time (Kafka: UnifiedLog.legacyFetchOffsetsBefore). The end of the
    log is among them, as of now, unless its last segment is empty.

    Args:
        segments: all of them, ascending.
        start_offset: no offset is below it.
        end_offset: of the log.
        timestamp: in milliseconds; infinity for all of them, and then no file is asked.
        now_ms: the clock.
    """
    offsets = [end_offset] if segments[-1].size and now_ms <= timestamp else []
    for segment in reversed(segments):
        # Once one is old enough, those before it are, whatever their files say.
        if offsets or timestamp == inf or segment.modified_ms <= timestamp:
            offsets.append(max(segment.base_offset, start_offset))
    return offsets


def _newest_left(segment: Segment, start_offset: int) -> int:
    """The last offset of the batch with the greatest timestamp from ``start_offset`` on; or -1."""
    offset, timestamp = -1, -1
    for place in segment.places_from(start_offset):
        if place.last_offset >= start_offset:
            header = read_batch_header(segment, place.position)
            if header.max_timestamp > timestamp:
                offset, timestamp = place.last_offset, header.max_timestamp
    return offset


def _times(segment: Segment, place: BatchPlace, header: BatchHeader) -> list[OffsetAndTimestamp]:
    """Offset and timestamp of each record of a batch."""
    data = segment.file.read_at(place.position, place.size)
    try:
        return [OffsetAndTimestamp(record[0], record[1]) for record in decode_batch(data)]
    except WireFormatError:
        # A producer stored what nobody can decode. Its header is all there is to go by, and a
        # consumer that starts at the batch sees what is wrong with it.
        return [OffsetAndTimestamp(place.base_offset, header.max_timestamp)]
