"""Opens the newest segment after a clean shutdown, without scanning it.

Indexes are derived data. An index that does not match its log file is rebuilt from the batch
headers when it is first needed. The log file is not changed, since it was on disk before the last
shutdown.
"""

from __future__ import annotations

from ....errors import ApiError, WireFormatError
from ..segments._batch_scan import last_offset_max
from ..segments._index import OffsetIndex
from ..segments._log_batches import header_at
from ..segments._segment import Segment


def find_clean_end(segment: Segment, end_offset_max: int, *, gaps_allowed: bool) -> bool:
    """Find the end of the newest segment after a clean shutdown.

    Reads the indexes, and the log file starting at the last index entry. Blocks. Returns False if
    the segment must be scanned instead.

    Args:
        segment: the newest segment, whose end offset is unknown.
        end_offset_max: the greatest possible end offset.
        gaps_allowed: whether compaction may have removed offsets.
    """
    if not segment.size:
        # A log that was never written to has no index files.
        segment.indexes.drop()
        return True
    try:
        index, times = segment.indexes.read_offsets(segment.size), segment.indexes.read_times()
        if index is None or times is None:
            return False
        segment.indexes.resume(index, times, segment.size)
        if not _find_end(segment, index, gaps_allowed) or segment.end_offset > end_offset_max:
            return False
        segment.indexes.first_timestamp = header_at(segment.file, 0).max_timestamp
    except (ApiError, WireFormatError, FileNotFoundError):
        return False
    return True


def _find_end(segment: Segment, index: OffsetIndex, gaps_allowed: bool) -> bool:
    """Follow the batches from the last index entry to the file's end; return False if damaged."""
    base_offset = segment.base_offset
    entry, position = index.last()
    # An index entry holds the last offset of its batch, not the first.
    following = None if position else base_offset
    for place in segment.places(position):
        if following is None:
            is_next = place.last_offset == base_offset + entry
        else:
            is_next = place.base_offset == following or (
                gaps_allowed and place.base_offset > following
            )
        if not is_next or place.last_offset > last_offset_max(base_offset):
            return False
        following = place.last_offset + 1
        position = place.position + place.size
    if following is None or position != segment.size:
        return False
    segment.end_offset = following
    return True
