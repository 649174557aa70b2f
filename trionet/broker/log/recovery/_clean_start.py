"""Taking the newest segment as it is after a clean stop, and putting a segment on the disk.

An index is derived data. One that cannot belong to its log file is made again from the headers of
the batches, when it is first needed, and the log file itself is left alone: it was on the disk
before the last stop.
"""

from __future__ import annotations

from ....errors import ApiError, WireFormatError
from ....protocol.records._batch import HEADER_SIZE, BatchHeader, read_header
from ..segments._batch_scan import last_offset_max
from ..segments._index import OffsetIndex, TimeIndex
from ..segments._segment import Segment


def trust_active(segment: Segment, end_offset_max: int, *, gaps_allowed: bool) -> bool:
    """Find the end of the newest segment after a clean stop; False: it has to be scanned.

    Reads its indexes, and the log file from the last index entry on. Blocks.

    Args:
        segment: its end offset is not known yet.
        end_offset_max: it cannot end behind this offset.
        gaps_allowed: compaction may have removed offsets.
    """
    if not segment.size:
        # A log that was never written has no index files, either.
        forget_indexes(segment)
        return True
    try:
        index = OffsetIndex.decode(segment.directory.read(segment.name("index")), segment.size)
        times = TimeIndex.decode(segment.directory.read(segment.name("timeindex")))
        if index is None or times is None:
            return False
        segment.continue_indexes(index, times)
        if not _find_end(segment, index, gaps_allowed) or segment.end_offset > end_offset_max:
            return False
        segment.first_timestamp = read_batch_header(segment, 0).max_timestamp
    except (ApiError, WireFormatError, FileNotFoundError):
        return False
    return True


def _find_end(segment: Segment, index: OffsetIndex, gaps_allowed: bool) -> bool:
    """Follow the batches from the newest index entry to the end of the file; False: something is
    wrong there.
    """
    base_offset = segment.base_offset
    entry, position = index.last()
    # Where the entry's batch starts nobody has said, only where it ends.
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


def forget_indexes(segment: Segment) -> None:
    """Start with empty indexes, in RAM and on the disk."""
    for suffix in ("index", "timeindex"):
        segment.directory.remove(segment.name(suffix))
    segment.start_indexes()


def sync_segment(segment: Segment) -> None:
    """Return when the log file and the saved index files are on the disk. Blocks."""
    segment.file.sync()
    sync_indexes(segment)


def sync_indexes(segment: Segment) -> None:
    """Return when the saved index files are on the disk. Blocks."""
    for suffix in ("index", "timeindex"):
        try:
            segment.directory.sync_file(segment.name(suffix))
        except FileNotFoundError:
            # The active segment's are written when there is something in them.
            continue


def read_batch_header(segment: Segment, position: int) -> BatchHeader:
    """The whole header of the batch at a position. Blocks."""
    return read_header(segment.file.read_at(position, HEADER_SIZE))
