"""The start offset of each leader epoch of a log (Kafka: LeaderEpochFileCache, KIP-101).

Records that were readable in a leader epoch are not lost while that epoch is current. A consumer
that resumes asks where the leader epoch of its last record ends (KIP-320). If that end offset is
below its position, the log no longer contains some of the records that it has read. A single broker
starts a new leader epoch after every unclean shutdown, since it cannot know what a power failure
has lost.

A leader epoch is on disk before its records count as durable. A leader epoch whose records a crash
may have lost is never used again, because a consumer may have seen it. The file format is that of
Kafka's ``leader-epoch-checkpoint``: version 0, a count, and one line per epoch, ``epoch offset``.
Without the file, the epochs are rebuilt from the batch headers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from ...._util._logging import get_logger
from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ..segments._log_batches import header_at
from ..segments._segment import Segment

logger = get_logger("trionet.broker.log")

LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

UNDEFINED = -1

#: A greater epoch in a file or batch counts as damage. The limit leaves room for a million epochs.
EPOCH_MAX = 2**31 - 2**20

_OFFSET_MAX = 2**63 - 1

_epoch = itemgetter(0)
_start_offset = itemgetter(1)


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """A leader epoch and the offset after its last record; both -1 if unknown."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs of one log, ascending both by epoch and by start offset.

    Threads may look up epochs while the loop changes them, because every change replaces the list.

    Args:
        starts: the epochs in ascending order.
        is_saved: whether the file contains exactly these epochs.
    """

    def __init__(self, starts: list[EpochStart] | None = None, is_saved: bool = False) -> None:
        self._starts = starts or []
        self.is_saved: bool = is_saved

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def latest(self) -> int:
        """The latest epoch; -1 if there is none."""
        starts = self._starts
        return starts[-1].epoch if starts else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that ``epoch`` starts at ``start_offset``.

        Does nothing if ``epoch`` is already the latest epoch and starts at or before
        ``start_offset``. Removes entries that contradict the new entry, because they are later or
        would have no records.
        """
        starts = self._starts
        if starts and starts[-1].epoch == epoch and starts[-1].start_offset <= start_offset:
            return
        kept = [each for each in starts if each.epoch < epoch and each.start_offset < start_offset]
        self._starts = [*kept, EpochStart(epoch, start_offset)]
        self.is_saved = False

    def at(self, offset: int) -> int:
        """Return the epoch of the record at ``offset``; -1 if it precedes all known epochs."""
        starts = self._starts
        found = bisect_right(starts, offset, key=_start_offset) - 1
        return starts[found].epoch if found >= 0 else UNDEFINED

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """Return the end offset of an epoch, for OffsetForLeaderEpoch.

        Args:
            epoch: the epoch of a record that a client has read.
            log_end: the log end offset, where the latest epoch ends.

        Returns:
            The latest known epoch that is not greater than ``epoch``, and the start offset of the
            next epoch. An epoch older than all known epochs ends where the oldest known one starts.
            Both values are -1 if ``epoch`` is newer than all known epochs.
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
        """Remove epochs below the log start offset.

        The epoch that contains the log start offset then starts there. The file may still contain
        the removed epochs; the next startup removes them again.
        """
        starts = self._starts
        later = bisect_right(starts, start_offset, key=_start_offset)
        if later and starts[later - 1].start_offset < start_offset:
            self._starts = [EpochStart(starts[later - 1].epoch, start_offset), *starts[later:]]
        elif later > 1:
            self._starts = starts[later - 1 :]

    def remove_from(self, end_offset: int) -> None:
        """Remove epochs that start at or after ``end_offset``, the end of a truncated log."""
        kept = [each for each in self._starts if each.start_offset < end_offset]
        if len(kept) < len(self._starts):
            self._starts = kept
            self.is_saved = False

    def note_saved(self, data: bytes) -> None:
        """Record that the file now contains ``data``, an earlier result of :meth:`encode`."""
        self.is_saved = data == self.encode()

    def encode(self) -> bytes:
        """Encode the leader epoch file."""
        starts = self._starts
        lines = ["0", str(len(starts)), *(f"{epoch} {offset}" for epoch, offset in starts)]
        return ("\n".join(lines) + "\n").encode()

    def __repr__(self) -> str:
        return f"LeaderEpochs({[tuple(each) for each in self._starts]})"


def decode_epochs(data: bytes) -> LeaderEpochs:
    """Decode the leader epoch file.

    Raises:
        ValueError: the data is malformed or incomplete.
    """
    lines = data.decode().splitlines()
    if len(lines) < 2 or lines[0] != "0" or lines[1] != str(len(lines) - 2):
        raise ValueError("expected version 0, a count, and that many lines")
    starts = []
    for line in lines[2:]:
        epoch, _, offset = line.partition(" ")
        if not (epoch.isascii() and epoch.isdigit() and offset.isascii() and offset.isdigit()):
            raise ValueError(f"invalid line {line!r}: expected epoch and offset")
        if int(epoch) > EPOCH_MAX or int(offset) > _OFFSET_MAX:
            raise ValueError(
                f"invalid line {line[:60]!r}: the epoch must not exceed {EPOCH_MAX}, nor the offset"
                f" {_OFFSET_MAX}"
            )
        starts.append(EpochStart(int(epoch), int(offset)))
    for before, after in pairwise(starts):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            raise ValueError(
                f"epoch and start offset must both increase, from {tuple(before)} to {tuple(after)}"
            )
    return LeaderEpochs(starts, is_saved=True)


def stored_epochs(
    directory: Directory, name: str, *, is_expected: bool = False
) -> LeaderEpochs | None:
    """Return the epochs stored in their file; None if it is missing or damaged. Blocks."""
    try:
        return decode_epochs(directory.read(LEADER_EPOCH_FILE))
    except FileNotFoundError:
        if is_expected:
            logger.warning("%s: %s is missing; rebuilding it", name, LEADER_EPOCH_FILE)
        return None
    except ValueError as error:
        logger.warning("%s: %s is damaged; rebuilding it: %s", name, LEADER_EPOCH_FILE, error)
        return None


def epochs_of_batches(segments: Iterable[Segment]) -> LeaderEpochs:
    """Rebuild the epochs from the headers of all batches. Blocks.

    After an unreadable batch, continues with the next segment.
    """
    epochs = LeaderEpochs()
    for segment in segments:
        try:
            for place in segment.places(0):
                header = header_at(segment.file, place.position)
                if epochs.latest < header.leader_epoch <= EPOCH_MAX:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except (ApiError, WireFormatError) as error:
            logger.warning("%r: leader epochs may be lost: %s", segment, error)
        if segment.indexes.offsets is None:
            segment.close_file()  # a log may have more segments than descriptors are left
    return epochs


def assign_next_epoch(
    directory: Directory, epochs: LeaderEpochs, end_offset: int, latest: int = 0
) -> None:
    """Start an epoch at the end of a log after an unclean shutdown. Blocks until it is durable.

    Consumers may have read records beyond the current end, which are now lost. The epoch of those
    records is not used again, because a consumer may have seen it.

    Args:
        directory: the partition's directory.
        epochs: the epochs of the log.
        end_offset: the log end offset.
        latest: an epoch that is known to have started, even if ``epochs`` does not contain it.

    Raises:
        OSError: the file could not be written.
    """
    following = max(epochs.latest, latest, 0) + 1
    epochs.remove_from(end_offset)
    epochs.assign(following, end_offset)
    data = epochs.encode()
    directory.replace(LEADER_EPOCH_FILE, data)
    epochs.note_saved(data)
