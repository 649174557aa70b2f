"""Finds the file range that a fetch requests, without copying bytes (Kafka: LocalLog.read).

Thread-safe: each call uses the list of segments that existed at the start of the call.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple, cast

from ...._util._raising import raise_from
from ....errors import ApiError
from ....net.wire._transmission import FileRange
from ....protocol.error_codes import OFFSET_OUT_OF_RANGE
from ..files._directory import LogFile
from ..files._page_cache import is_page_cached, is_range_cached, warm_range
from ._log_batches import SCAN_BYTES, BatchPlace
from ._segment import Segment

_base_offset = attrgetter("base_offset")


class LogRead(NamedTuple):
    """The result of a read."""

    records: FileRange
    """The batches, starting with the one that contains the requested offset; may be empty.
    The last batch may be incomplete. The file stays readable while this range is referenced."""
    first_offset: int
    """The base offset of the first batch; the requested offset if the range is empty."""
    segment_base_offset: int
    """The base offset of the segment whose file contains the range."""


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
        cached_only: whether to return None instead of waiting for the disk.

    Returns:
        The range; None only with ``cached_only``.

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE if the segment was removed in the meantime; CORRUPT_MESSAGE if
            the bytes on disk are not a batch.
    """
    number = bisect_right(segments, offset, key=_base_offset) - 1
    try:
        while offset < up_to and number < len(segments):
            segment = segments[max(number, 0)]
            if cached_only and not _can_locate_now(segment, offset):
                return None
            place = segment.locate(offset)
            if place is not None and place.base_offset < up_to:
                read = _range_from(segment, place, max_bytes, up_to, min_one_message)
                return None if cached_only and not is_cached(read.records) else read
            # Compaction has removed the end of this segment.
            number += 1
        segment = segments[-1]
        return LogRead(FileRange(segment.file, segment.size, 0), offset, segment.base_offset)
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
    return LogRead(records, place.base_offset, segment.base_offset)


def is_cached(records: FileRange) -> bool:
    """Return whether a range can be sent without waiting for the disk. Never blocks."""
    return is_range_cached(cast(LogFile, records.file), records.offset, records.count)


def warm(records: FileRange) -> None:
    """Read a range into the page cache. Blocks; call it in a thread.

    Raises:
        OSError: the range cannot be read from disk.
    """
    warm_range(cast(LogFile, records.file), records.offset, records.count)
