"""The segments of one log: which there are, and which of the old ones are at hand.

The list is replaced, never changed, when a segment comes or goes: a thread that reads goes on with
the one it took. Old segments are opened when somebody reads them; only the ones used last stay
open, so that a log costs a bounded number of descriptors and a bounded piece of RAM.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from ._segment import Segment

# How many old segments of a log keep their file open and their index in RAM for readers.
OLD_SEGMENTS_LOADED_MAX = 4

_base_offset = attrgetter("base_offset")


class Segments:
    """An ordered list of at least one segment, the last of which grows.

    Attributes:
        all: the segments, ascending; take it once and use that.
    """

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        # The one used last is last. Threads change it without a lock, which an exception between
        # its release and what it guards would leave locked: each change is one call of the dict.
        self._loaded: dict[Segment, None] = {}
        self.release_idle()

    def __len__(self) -> int:
        return len(self.all)

    @property
    def active(self) -> Segment:
        """The last of them."""
        return self.all[-1]

    @property
    def size(self) -> int:
        """The bytes of all of them."""
        return sum(segment.size for segment in self.all)

    def add(self, segment: Segment) -> None:
        """Go on with a new active segment."""
        finished = self.active
        self.all = [*self.all, segment]
        # Whoever follows the log closely still reads its end.
        self._keep_loaded(finished)

    def remove_below(self, offset: int) -> list[Segment]:
        """Take away the segments that end at or before ``offset``; the active one stays."""
        kept = [each for each in self.all if each.end_offset > offset or each is self.active]
        removed = self.all[: len(self.all) - len(kept)]
        self.all = kept
        for segment in removed:
            self._loaded.pop(segment, None)
        return removed

    def note_use(self, base_offset: int) -> None:
        """Somebody has read the segment with this base offset. Thread-safe."""
        segments = self.all
        found = bisect_left(segments, base_offset, key=_base_offset)
        if found < len(segments) - 1 and segments[found].base_offset == base_offset:
            self._keep_loaded(segments[found])

    def release_idle(self) -> None:
        """Close the old segments that are not among those used last. Thread-safe."""
        # One look at the list: the log may go on with a new segment at any moment, and the last
        # one of the list, which grew when it was taken, is not idle then either.
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
