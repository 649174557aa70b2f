"""The list of segments of one log, its open files, and retention (Kafka: LogSegments).

Adding or removing a segment replaces the list instead of changing it, so that a thread can continue
to use the list that it has read. An old segment is opened when it is read. Only the most recently
used segments stay open, so that the file descriptors and memory that a log uses are bounded.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from ..files._directory import Directory
from ._log_batches import CLEANED_SUFFIX, SWAP_SUFFIX, file_name, is_offset
from ._log_config import LogConfig
from ._segment import Segment

# How many old segments of a log stay open, with their index in memory, for readers.
OLD_SEGMENTS_LOADED_MAX = 4

_OFFSET_DIGITS = 20
_LEFTOVERS = (".deleted", ".tmp", CLEANED_SUFFIX)
#: The suffixes of the index files.
INDEXES = ("index", "timeindex", "txnindex")
_SEGMENT_SUFFIXES = (*INDEXES, "snapshot", "log")

_base_offset = attrgetter("base_offset")


class Segments:
    """An ordered list of one or more segments, the last of which is active.

    Attributes:
        all: the segments, ascending. Read it once per operation: the list may be replaced.
    """

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        # Ordered by last use. Threads change it without a lock (see _segment): each change is one
        # call of the dict, hence atomic.
        self._loaded: dict[Segment, None] = {}
        self.release_idle()

    @property
    def active(self) -> Segment:
        """The active segment: the last one, to which batches are appended."""
        return self.all[-1]

    @property
    def size(self) -> int:
        """The size of all segments, in bytes."""
        return sum(segment.size for segment in self.all)

    def add(self, segment: Segment) -> None:
        """Add a segment, which becomes the active one."""
        finished = self.active
        self.all = [*self.all, segment]
        # Consumers that are close to the end still read it.
        self._keep_loaded(finished)

    def remove_below(self, offset: int) -> list[Segment]:
        """Remove and return segments that end at or before ``offset``; keep the active segment."""
        kept = [each for each in self.all if each.end_offset > offset or each is self.active]
        removed = self.all[: len(self.all) - len(kept)]
        self.all = kept
        for segment in removed:
            self._loaded.pop(segment, None)
        return removed

    def contains(self, run: list[Segment]) -> bool:
        """Return whether the list contains these segments in sequence, below the active one."""
        segments = self.all
        first = bisect_left(segments, run[0].base_offset, key=_base_offset)
        return first + len(run) < len(segments) and segments[first : first + len(run)] == run

    def replace(self, replaced: list[Segment], segment: Segment) -> None:
        """Put a cleaned segment in the place of others, which the list contains."""
        segments = self.all
        first = bisect_left(segments, segment.base_offset, key=_base_offset)
        # Before they are marked: a thread that finds the mark continues with the new list.
        self.all = [*segments[:first], segment, *segments[first + len(replaced) :]]
        for each in replaced:
            each.is_replaced = True
            self._loaded.pop(each, None)

    def note_use(self, segment: Segment) -> None:
        """Record that a segment was read. Thread-safe."""
        segments = self.all
        found = bisect_left(segments, segment.base_offset, key=_base_offset)
        if found < len(segments) - 1 and segments[found] is segment:
            self._keep_loaded(segment)

    def release_idle(self) -> None:
        """Close the old segments that are not among the most recently used. Thread-safe."""
        # The list is read once: the log may roll at any moment, and the segment that was active
        # when the list was taken must not be closed then either.
        segments = self.all
        loaded = self._loaded
        for segment in segments[:-1]:
            if segment.is_loaded and segment not in loaded:
                segment.release()

    def _keep_loaded(self, segment: Segment) -> None:
        loaded = self._loaded
        loaded.pop(segment, None)
        loaded[segment] = None
        for idle in list(loaded)[:-OLD_SEGMENTS_LOADED_MAX]:
            loaded.pop(idle, None)
            idle.release()


def find_segments(directory: Directory, names: list[str], now_ms: int) -> list[Segment]:
    """Return the segments in a directory, ascending; remove files left by interrupted deletions."""
    named: dict[str, set[int]] = {suffix: set() for suffix in _SEGMENT_SUFFIXES}
    for name in names:
        stem, _, suffix = name.partition(".")
        if name.endswith(_LEFTOVERS):
            directory.remove(name)
        elif suffix in named and len(stem) == _OFFSET_DIGITS and is_offset(stem):
            named[suffix].add(int(stem))
    for suffix in INDEXES:
        for base_offset in named[suffix] - named["log"]:
            directory.remove(file_name(base_offset, suffix))
    bases = sorted(named["log"])
    # The end offset of the last segment is determined later.
    ends = [*bases[1:], *bases[-1:]]
    segments = [
        Segment.old(directory, base_offset, end_offset, now_ms)
        for base_offset, end_offset in zip(bases, ends, strict=True)
    ]
    if named["txnindex"]:
        for segment in segments:
            if segment.base_offset in named["txnindex"]:
                segment.indexes.load_aborted()
    return segments


def count_aborted(segments: list[Segment], end_offset: int) -> int:
    """Return the number of aborted transactions whose markers are below ``end_offset``."""
    count = 0
    for segment in segments:
        aborted = segment.indexes.aborted
        if aborted is not None:
            count += aborted.count_before(end_offset)
    return count


def remove_segments(directory: Directory, segments: list[Segment]) -> None:
    """Remove the files of segments, one segment at a time. Blocks; open files stay readable.

    The caller chooses the order: oldest first at the start of a log, newest first at its end, so
    that a power failure leaves no gap in the middle. Because the file system may reorder removals,
    this syncs the directory after each segment.
    """
    for segment in segments:
        remove_files(directory, segment)
        directory.sync()


def remove_files(directory: Directory, segment: Segment) -> None:
    """Remove the files of a segment, and the snapshot at its start. Blocks; syncs nothing."""
    for suffix in _SEGMENT_SUFFIXES:
        name = file_name(segment.base_offset, suffix)
        if segment.is_held:
            directory.remove(name + SWAP_SUFFIX)
        directory.remove(name)


def start_offset_due(
    segments: list[Segment], config: LogConfig, start_offset: int, limit: int, now_ms: int
) -> int | None:
    """Return the log start offset that retention requires now; None if no segment is due.

    Segments are deleted oldest first, if they are too old (``retention.ms``) or as long as the
    remaining segments total at least ``retention.bytes``. Segments below the log start offset are
    always deleted. The active segment may be deleted too unless it is empty; a new one then
    replaces it.

    Args:
        segments: all segments, ascending.
        config: the settings of the topic.
        start_offset: the current log start offset.
        limit: the high watermark; no record at or above it is deleted.
        now_ms: the current time.
    """
    rest = sum(segment.size for segment in segments)
    due = None
    for segment in segments:
        rest -= segment.size
        is_active = segment is segments[-1]
        # Before the timestamps: in a thread, records that are appended meanwhile are not meant.
        end_offset = segment.end_offset
        if (is_active and not segment.size) or end_offset > limit:
            break
        is_deleted = not is_active and end_offset <= start_offset
        is_old = 0 <= config.retention_ms < now_ms - _newest_ms(segment)
        is_too_much = 0 <= config.retention_bytes <= rest
        if not is_deleted and not (config.removes_old_segments and (is_old or is_too_much)):
            break
        due = max(end_offset, start_offset)
    return due


def _newest_ms(segment: Segment) -> int:
    """Return a segment's greatest timestamp or, if there is none, the time of its last write."""
    newest, _ = segment.newest
    return newest if newest >= 0 else segment.modified_ms
