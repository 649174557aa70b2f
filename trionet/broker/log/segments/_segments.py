"""The segments of one log, and which of the old ones are kept open.

(Kafka: LogSegments.) The list is replaced, never changed, when a segment is added or removed, so
that a thread can go on reading the list it took. Old segments are opened when they are read; only
the most recently used stay open, so that a log uses a bounded number of descriptors and a bounded
amount of memory.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from ._segment import Segment

# How many old segments of a log stay open, with their index in memory, for readers.
OLD_SEGMENTS_LOADED_MAX = 4

_base_offset = attrgetter("base_offset")


class Segments:
    """An ordered list of at least one segment, the last of which is active.

    Attributes:
        all: the segments, ascending. Read it once per operation: the list may be replaced.
    """

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        # Ordered by last use. Threads change it without a lock (see _segment): each change is one
        # call of the dict, hence atomic.
        self._loaded: dict[Segment, None] = {}
        self.release_idle()

    def __len__(self) -> int:
        return len(self.all)

    @property
    def active(self) -> Segment:
        """The last segment, which appends go to."""
        return self.all[-1]

    @property
    def size(self) -> int:
        """The size of all segments, in bytes."""
        return sum(segment.size for segment in self.all)

    def add(self, segment: Segment) -> None:
        """Make a segment the active one."""
        finished = self.active
        self.all = [*self.all, segment]
        # Consumers that are close to the end still read it.
        self._keep_loaded(finished)

    def remove_below(self, offset: int) -> list[Segment]:
        """Remove and return the segments that end at ``offset`` or before, except the active one."""
        kept = [each for each in self.all if each.end_offset > offset or each is self.active]
        removed = self.all[: len(self.all) - len(kept)]
        self.all = kept
        for segment in removed:
            self._loaded.pop(segment, None)
        return removed

    def note_use(self, base_offset: int) -> None:
        """Record that the segment with this base offset was read. Thread-safe."""
        segments = self.all
        found = bisect_left(segments, base_offset, key=_base_offset)
        if found < len(segments) - 1 and segments[found].base_offset == base_offset:
            self._keep_loaded(segments[found])

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
