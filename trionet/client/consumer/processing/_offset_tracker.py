"""How far one partition may be committed while its records finish in any order. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ..records._chunk import NO_EPOCH


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
        self._epochs: deque[tuple[int, int]] = deque()

    def take(self, offsets: Sequence[int], position: int, leader_epoch: int = NO_EPOCH) -> None:
        """Add records that are about to be handled.

        Args:
            offsets: their offsets, which ascend and follow those taken before.
            position: the position after them, past any offsets without records.
            leader_epoch: the leader epoch in which they were appended; -1 if it is unknown.
        """
        if offsets and (not self._epochs or self._epochs[-1][1] != leader_epoch):
            self._epochs.append((offsets[0], leader_epoch))
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

    def leader_epoch(self) -> int | None:
        """Return the leader epoch of the last record before the offset to commit (KIP-320).

        None if it is unknown, or there is no such record.
        """
        epochs, offset = self._epochs, self.committable
        while len(epochs) > 1 and epochs[1][0] < offset:
            epochs.popleft()
        if not epochs or epochs[0][0] >= offset or epochs[0][1] == NO_EPOCH:
            return None
        return epochs[0][1]

    def __len__(self) -> int:
        """Return the number of records from the first unfinished one on."""
        return len(self._offsets)
