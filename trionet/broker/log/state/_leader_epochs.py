"""Which leader epoch began at which offset of a log (Kafka: LeaderEpochFileCache, KIP-101).

A leader epoch is a stretch of a log's life in which nothing that was readable got lost. A consumer
that comes back asks where the epoch of its last record ends (KIP-320); an end before its position
means that what it has read is not in the log any more. One broker alone begins another epoch after
every stop that was not clean, since nobody can tell then what a power cut has taken.

Pure; the file is Kafka's ``leader-epoch-checkpoint``: version 0, a count, and ``epoch offset`` a
line.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

UNDEFINED = -1

#: A greater one that is read somewhere is damage. Below 2**31, so that a million more can follow.
EPOCH_MAX = 2**31 - 2**20

_OFFSET_MAX = 2**63 - 1

_epoch = itemgetter(0)
_start_offset = itemgetter(1)


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """A leader epoch and the offset behind its last record; both -1 where that is not known."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log; epochs and offsets both rise.

    Threads may look something up while the loop changes it: the list is replaced, never changed.

    Args:
        starts: in rising order.
        is_saved: the file says the same.
    """

    def __init__(self, starts: list[EpochStart] | None = None, is_saved: bool = False) -> None:
        self._starts = starts or []
        self.is_saved = is_saved

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 without any."""
        starts = self._starts
        return starts[-1].epoch if starts else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that the record at ``start_offset`` is the first of ``epoch``.

        Nothing changes if the epoch is the newest one already. Entries which the new one
        contradicts, later ones or such without a record, go.
        """
        starts = self._starts
        if starts and starts[-1].epoch == epoch and starts[-1].start_offset <= start_offset:
            return
        kept = [each for each in starts if each.epoch < epoch and each.start_offset < start_offset]
        self._starts = [*kept, EpochStart(epoch, start_offset)]
        self.is_saved = False

    def at(self, offset: int) -> int:
        """The epoch of the record at ``offset``; -1 if it is older than all that is known."""
        starts = self._starts
        found = bisect_right(starts, offset, key=_start_offset) - 1
        return starts[found].epoch if found >= 0 else UNDEFINED

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """Where an epoch ends: the answer of OffsetForLeaderEpoch.

        Args:
            epoch: of a record that somebody has.
            log_end: the end of the log, which is that of the newest epoch.

        Returns:
            The newest epoch up to the asked one, and the start of the one that followed it. An
            epoch older than all that are known counts as ended where the oldest begins.
        """
        starts = self._starts
        if not starts or epoch < 0 or epoch > starts[-1].epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == starts[-1].epoch:
            return EpochEnd(epoch, log_end)
        later = bisect_right(starts, epoch, key=_epoch)
        known = starts[later - 1].epoch if later else epoch
        return EpochEnd(known, starts[later].start_offset)

    def remove_below(self, start_offset: int) -> None:
        """Forget what lies below the log's start; the epoch that holds it then begins there.

        The file may keep it: it is cut again at the next start.
        """
        starts = self._starts
        later = bisect_right(starts, start_offset, key=_start_offset)
        if later and starts[later - 1].start_offset < start_offset:
            self._starts = [EpochStart(starts[later - 1].epoch, start_offset), *starts[later:]]
        elif later > 1:
            self._starts = starts[later - 1 :]

    def remove_from(self, end_offset: int) -> None:
        """Forget epochs that begin at or behind the end of a log that was cut."""
        kept = [each for each in self._starts if each.start_offset < end_offset]
        if len(kept) < len(self._starts):
            self._starts = kept
            self.is_saved = False

    def note_saved(self, data: bytes) -> None:
        """The file holds ``data`` now, which :meth:`encode` gave a while ago."""
        self.is_saved = data == self.encode()

    def encode(self) -> bytes:
        """The file's bytes."""
        starts = self._starts
        lines = ["0", str(len(starts)), *(f"{epoch} {offset}" for epoch, offset in starts)]
        return ("\n".join(lines) + "\n").encode()

    def __repr__(self) -> str:
        return f"LeaderEpochs({[tuple(each) for each in self._starts]})"


def decode_epochs(data: bytes) -> LeaderEpochs:
    """Read the file back.

    Raises:
        ValueError: it is not one, or not whole.
    """
    lines = data.decode().splitlines()
    if len(lines) < 2 or lines[0] != "0" or lines[1] != str(len(lines) - 2):
        raise ValueError("version 0, a count and as many lines were expected")
    starts = []
    for line in lines[2:]:
        epoch, _, offset = line.partition(" ")
        if not (epoch.isascii() and epoch.isdigit() and offset.isascii() and offset.isdigit()):
            raise ValueError(f"{line!r} is no epoch and offset")
        if int(epoch) > EPOCH_MAX or int(offset) > _OFFSET_MAX:
            raise ValueError(f"{line[:60]!r} is beyond epoch {EPOCH_MAX} or offset {_OFFSET_MAX}")
        starts.append(EpochStart(int(epoch), int(offset)))
    for before, after in pairwise(starts):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            raise ValueError(f"{tuple(before)} and {tuple(after)} do not rise")
    return LeaderEpochs(starts, is_saved=True)
