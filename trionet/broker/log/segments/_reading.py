"""Finds what a fetch or ListOffsets requests: a file range (Kafka: LocalLog.read) or an offset.

A range is found without copying bytes. To look up an offset by timestamp, stored records are
decoded, which no other module of the log does; this may wait for the disk, read large parts of the
log and decode batches, so it is done in a thread.

Thread-safe: each call uses the list of segments that existed at the start of the call.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_right
from math import inf
from operator import attrgetter
from typing import NamedTuple, cast

from ...._util._raising import raise_from
from ...._util.files._log_file import LogFile
from ...._util.files._page_cache import is_page_cached, is_range_cached, warm_range
from ....errors import ApiError, WireFormatError
from ....net.wire._transmission import FileRange
from ....protocol.error_codes import OFFSET_OUT_OF_RANGE
from ....protocol.records._batch import HEADER_SIZE, BatchHeader
from ....protocol.records._records import decode_batch
from ._log_batches import SCAN_BYTES, BatchPlace, header_at
from ._segment import Segment

_base_offset = attrgetter("base_offset")

#: How many segments without records a read in the loop skips: a millisecond.
EMPTIED_AT_ONCE = 100


class LogRead(NamedTuple):
    """The result of a read."""

    records: FileRange
    """The batches, starting with the one that contains the requested offset; may be empty.
    The last batch may be incomplete. The file stays readable while this range is referenced."""
    first_offset: int
    """The base offset of the first batch; the requested offset if the range is empty."""
    segment: Segment
    """The segment whose file contains the range."""


def read_range(
    segments: list[Segment],
    offset: int,
    max_bytes: int,
    up_to: int,
    *,
    min_one_message: bool,
    cached_only: bool,
) -> LogRead | None:
    """Return the file range from the batch that contains ``offset`` to before ``up_to``.

    Args:
        segments: all segments of the log, ascending.
        offset: the first offset, from the log start offset to the log end offset, inclusive.
        max_bytes: the maximum size of the range.
        up_to: the offset at which to stop (exclusive).
        min_one_message: whether to return the whole first batch even if it exceeds ``max_bytes``.
        cached_only: whether to return None instead of waiting for the disk, or searching for long.

    Returns:
        The range; None only with ``cached_only``.

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE if the segment was removed in the meantime; CORRUPT_MESSAGE if
            the bytes on disk are not a batch.
        SegmentReplaced: compaction has replaced a segment; search the current segments again.
    """
    number = bisect_right(segments, offset, key=_base_offset) - 1
    first = number
    emptied: LogRead | None = None
    try:
        while offset < up_to and number < len(segments):
            segment = segments[max(number, 0)]
            if cached_only and (
                number > first + EMPTIED_AT_ONCE or not _can_locate_now(segment, offset)
            ):
                return None
            place = segment.locate(offset)
            if place is not None:
                if place.base_offset >= up_to:
                    break
                read = _range_from(segment, place, max_bytes, up_to, min_one_message)
                if cached_only and not is_cached(read.records):
                    return None
                if place.size > HEADER_SIZE or place.position + place.size < segment.size:
                    return read
                # Nothing but a batch without records is left of this segment. librdkafka takes a
                # response without any record for one that is too small, and reports an error. What
                # follows comes instead; if nothing does, the batch shows where the log ends.
                emptied = read
            # Compaction has removed the end of this segment.
            number += 1
        if emptied is not None:
            return emptied
        segment = segments[-1]
        return LogRead(FileRange(segment.file, segment.size, 0), offset, segment)
    except FileNotFoundError:
        raise_from(ApiError(OFFSET_OUT_OF_RANGE, f"offset {offset} has just been deleted"), None)


def _can_locate_now(segment: Segment, offset: int) -> bool:
    """Return whether :meth:`Segment.locate` would not have to wait for the disk. Never blocks."""
    if not segment.is_loaded:
        return False
    if segment.indexes.find_recent(offset) is not None:
        return True
    position = segment.index.floor(offset - segment.base_offset)[1]
    end = min(position + SCAN_BYTES, segment.size) - 1
    return is_page_cached(segment.file, position) and is_page_cached(segment.file, max(end, 0))


def _range_from(
    segment: Segment, place: BatchPlace, max_bytes: int, up_to: int, min_one_message: bool
) -> LogRead:
    # The size first: the end offset, read later, is at least as new (see Segment).
    end = segment.size
    if segment.end_offset > up_to:
        last = segment.locate(up_to)
        if last is not None:
            end = last.position
    count = min(max_bytes, end - place.position)
    if count < place.size:
        # The batch of up_to - 1 may end after it: no part of it may be visible then.
        is_whole = place.position + place.size <= end
        count = place.size if min_one_message and is_whole else 0
    records = FileRange(segment.file, place.position, count)
    return LogRead(records, place.base_offset, segment)


def is_cached(records: FileRange) -> bool:
    """Return whether a range can be sent without waiting for the disk. Never blocks."""
    return is_range_cached(cast(LogFile, records.file), records.offset, records.count)


def warm(records: FileRange) -> None:
    """Read a range into the page cache. Blocks; call it in a thread.

    Raises:
        OSError: the range cannot be read from disk.
    """
    warm_range(cast(LogFile, records.file), records.offset, records.count)


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
    # Few of these have to be opened, usually the first alone.
    newest_first = [(segment.newest, segment) for segment in segments]
    newest_first.sort(key=lambda each: each[0][0], reverse=True)
    for (timestamp, offset), segment in newest_first:
        if timestamp < 0 or (
            best is not None and (timestamp, -segment.base_offset) < (best.timestamp, -best.offset)
        ):
            continue
        records = _records_at(segment, offset, start_offset)
        if all(record.timestamp < timestamp for record in records):
            # The newest record was deleted, perhaps without the rest of its batch, or removed by
            # compaction, which may keep the timestamp in the header of an empty batch.
            records = _newest_left(segment, start_offset)
        if records:
            best = max(
                [*([best] if best else []), *records],
                key=lambda record: (record.timestamp, -record.offset),
            )
    return best


def _records_at(segment: Segment, offset: int, start_offset: int) -> list[OffsetAndTimestamp]:
    """Return the records from ``start_offset`` on of the batch that contains ``offset``."""
    place = segment.locate(offset) if offset >= start_offset else None
    if place is None:
        return []
    header = header_at(segment.file, place.position)
    return [record for record in _times(segment, place, header) if record.offset >= start_offset]


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


def _newest_left(segment: Segment, start_offset: int) -> list[OffsetAndTimestamp]:
    """Return the records from ``start_offset`` on of the batches that may have the newest one.

    They are the batch in which the log starts, whose header may have the timestamp of a deleted
    record, and of the others the first one with the greatest timestamp.
    """
    records: list[OffsetAndTimestamp] = []
    offset, timestamp = -1, -1
    for place in segment.places_from(start_offset):
        if place.base_offset < start_offset:
            records += _records_at(segment, place.last_offset, start_offset)
            continue
        header = header_at(segment.file, place.position)
        if header.count and header.max_timestamp > timestamp:
            offset, timestamp = place.last_offset, header.max_timestamp
    return records + _records_at(segment, offset, start_offset)


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
