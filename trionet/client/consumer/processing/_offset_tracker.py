"""How far one partition may be committed while its records finish in any order. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class OffsetTracker:
    """The offsets of one partition from the first unfinished record on.

    A group can store only one offset for each partition. So a record that has finished is not
    committed before all records ahead of it have, and is handled again after a crash.

    Args:
        position: the offset of the first record that will be taken, or before it.

    Attributes:
        position: the position after the last record taken.
        committed: the last offset that was committed; initially that of the first record.
    """

    def __init__(self, position: int) -> None:
        self.position = self.committed = position
        self._offsets: deque[int] = deque()
        self._finished: set[int] = set()

    def take(self, offsets: Sequence[int], position: int) -> None:
        """Add records that are about to be handled.

        Args:
            offsets: their offsets, which ascend and follow those taken before.
            position: the position after them, past any offsets without records.
        """
        self._offsets.extend(offsets)
        self.position = position

    def finish(self, offset: int) -> None:
        """Record that the record at this offset has been handled."""
        self._finished.add(offset)
        offsets = self._offsets
        while offsets and offsets[0] in self._finished:
            self._finished.remove(offsets.popleft())

    @property
    def committable(self) -> int:
        """The offset to commit: that of the first unfinished record, or the position after all."""
        return self._offsets[0] if self._offsets else self.position

    def __len__(self) -> int:
        """Return the number of records from the first unfinished one on."""
        return len(self._offsets)
