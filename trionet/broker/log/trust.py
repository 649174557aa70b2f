"""Taking segments as they are: what is checked when nothing is scanned.

An index is derived data. One that cannot belong to its log file is made again from the headers of
the batches, and the log file itself is left alone: it was on the disk before the last stop.
"""

from __future__ import annotations

from ...errors import ApiError, WireFormatError
from ...protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from .index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex
from .segment import Segment


def trust(segment: Segment) -> bool:
    """Whether the ends of an old segment's index files can be those of its log file.

    Learns the segment's newest timestamp on the way. Blocks.
    """
    index_tail = _tail(segment, "index", OFFSET_ENTRY_SIZE)
    time_tail = _tail(segment, "timeindex", TIME_ENTRY_SIZE)
    if index_tail is None or time_tail is None:
        return False
    times = TimeIndex.decode(time_tail)
    if times is None or OffsetIndex.decode(index_tail, segment.size) is None:
        return False
    segment.max_timestamp, offset = times.last()
    segment.max_timestamp_offset = segment.base_offset + offset
    return True


def trust_active(segment: Segment) -> bool:
    """Find the end of the newest segment after a clean stop; False: it has to be scanned.

    Reads from the last index entry on. Blocks.
    """
    if not trust(segment):
        return False
    try:
        position = segment.index.last_position()
        for place in segment.places(position):
            position = place.position + place.size
            segment.end_offset = place.last_offset + 1
        if position != segment.size:
            return False
        if segment.size:
            segment.first_timestamp = read_batch_header(segment, 0).max_timestamp
        segment.continue_indexes(segment.time_index)
    except (ApiError, WireFormatError):
        return False
    return True


def forget_indexes(segment: Segment) -> None:
    """Start with empty indexes, in RAM and on the disk."""
    for suffix in ("index", "timeindex"):
        segment.directory.remove(segment.name(suffix))
    segment.max_timestamp = -1
    segment.start_indexes()


def sync_segment(segment: Segment) -> None:
    """Return when the log file and the saved index files are on the disk. Blocks."""
    segment.file.sync()
    for suffix in ("index", "timeindex"):
        try:
            segment.directory.sync_file(segment.name(suffix))
        except FileNotFoundError:
            # The active segment's are written when there is something in them.
            continue


def read_batch_header(segment: Segment, position: int) -> BatchHeader:
    """The whole header of the batch at a position. Blocks."""
    return read_header(segment.file.read_at(position, HEADER_SIZE))


def _tail(segment: Segment, suffix: str, entry_size: int) -> bytes | None:
    """The last two entries of an index file (b"" without any); None: it is missing or torn.

    Two, because one says nothing: zeros, which a crash can leave behind the entries, are a possible
    entry but not one that rises.
    """
    name = segment.name(suffix)
    try:
        size = segment.directory.size(name)
        if size % entry_size:
            return None
        return segment.directory.read(name, max(0, size - 2 * entry_size))
    except FileNotFoundError:
        return None
