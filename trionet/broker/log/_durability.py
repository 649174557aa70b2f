"""What of a log is on the disk, and getting the rest there (Kafka: UnifiedLog.flush).

The recovery point is the offset below which everything survives a power cut. Only a finished fsync
moves it, and only to where the log ended when that fsync began. A segment that was rolled since the
last round is made durable with all its files; until then the recovery point that is *stored* stays
at or below its start, so that a crash has its indexes made again.
"""

# Compiled by mypyc.

from __future__ import annotations

import trio

from ._group_commit import GroupCommit, Round
from .files._checkpoint_files import PARTITION_FILE
from .files._directory import Directory
from .recovery._clean_start import sync_segment
from .segments._segment import Segment
from .segments._segments import Segments
from .state._leader_epochs import LEADER_EPOCH_FILE, LeaderEpochs
from .state._producer_recovery import write_snapshot
from .state._producer_state import ProducerEntry


class Durability:
    """The durable side of one log.

    Args:
        directory: the partition's folder.
        parent: the data folder, which holds the partition folder's name; None: it is durable.
        name: of the partition, for messages.
        recovery_point: everything below is on the disk.
        segments: of the log, whose end is where the active one ends; those that have ended may be
            released when they are complete on the disk.
        epochs: of the log; on the disk before records of a new epoch count as durable.
        limiter: how many threads may sync at once.
    """

    def __init__(
        self,
        directory: Directory,
        parent: Directory | None,
        name: str,
        recovery_point: int,
        segments: Segments,
        epochs: LeaderEpochs,
        limiter: trio.CapacityLimiter | None,
    ) -> None:
        self.recovery_point = recovery_point
        active = segments.active
        # The segment that the recovery point lies in, and how many bytes of it are before.
        self._durable_end = active.base_offset, active.size
        self._directory = directory
        self._parent = parent
        self._segments = segments
        self._epochs = epochs
        self._commit = GroupCommit(directory, name, limiter)
        self._rolled: tuple[Segment, ...] = ()
        self._pictures: tuple[tuple[int, dict[int, ProducerEntry]], ...] = ()
        self._names_made = 1
        self._names_durable = 0
        self._unflushed_since: int | None = None
        self._appended_in_round: int | None = None

    # What the log tells

    def note_append(self, now_ms: int) -> None:
        """Something was written that is not durable yet."""
        if self._unflushed_since is None:
            self._unflushed_since = now_ms
        if self._appended_in_round is None:
            self._appended_in_round = now_ms

    def note_roll(self, segment: Segment, producers: dict[int, ProducerEntry]) -> None:
        """``segment`` is finished; ``producers`` is a picture of what was known at its end."""
        self._rolled = (*self._rolled, segment)
        self._pictures = (*self._pictures, (segment.end_offset, producers))
        self._names_made += 1

    def forget_before(self, base_offset: int, start_offset: int) -> None:
        """The segments below ``base_offset`` are gone."""
        self._rolled = tuple(each for each in self._rolled if each.base_offset >= base_offset)
        self._pictures = tuple(each for each in self._pictures if each[0] >= base_offset)
        self.recovery_point = max(self.recovery_point, start_offset)
        if self._durable_end[0] < base_offset:
            # Its segment is gone; or more bytes are durable, but none of them is needed any more.
            self._durable_end = base_offset, 0

    # What it asks

    @property
    def failure(self) -> str | None:
        """Why nothing more may be written: a sync failed."""
        return self._commit.failure

    @property
    def has_rolled(self) -> bool:
        """Finished segments are not on the disk yet."""
        return bool(self._rolled)

    @property
    def stored_recovery_point(self) -> int:
        """What may be written down as the recovery point."""
        if not self._rolled:
            return self.recovery_point
        return min(self.recovery_point, *(each.base_offset for each in self._rolled))

    @property
    def stored_position(self) -> tuple[int, int]:
        """The segment that this point lies in, and how many bytes of it are before."""
        stored = self.stored_recovery_point
        # Otherwise a segment begins there that has ended and is not on the disk.
        return self._durable_end if stored == self.recovery_point else (stored, 0)

    def is_durable(self, offset: int) -> bool:
        """Everything below ``offset`` is on the disk, the indexes of finished segments too."""
        return self.recovery_point >= offset and not any(
            each.end_offset <= offset for each in self._rolled
        )

    def due(self, now_ms: int, flush_messages: int, flush_ms: int) -> int | None:
        """Up to where the policy wants a flush now."""
        active = self._segments.active
        end_offset = active.end_offset
        if end_offset - self.recovery_point >= flush_messages:
            return end_offset
        if self._unflushed_since is not None and now_ms - self._unflushed_since >= flush_ms:
            return end_offset
        return active.base_offset if self._rolled else None

    def abandon(self, reason: str) -> None:
        """Begin no round any more; who waits for one gets KAFKA_STORAGE_ERROR with ``reason``."""
        self._commit.failure = self._commit.failure or reason

    async def flush(self, up_to: int) -> None:
        """See :meth:`trionet.broker.log.Log.flush`."""
        await self._commit.until(lambda: self.is_durable(up_to), self._begin)

    async def save_epochs(self) -> None:
        """Return when every leader epoch is written down; as :meth:`flush`."""
        await self._commit.until(lambda: self._epochs.is_saved, self._begin)

    async def idle(self) -> None:
        """Return when no thread of a flush is at work; always a checkpoint."""
        await self._commit.idle()

    def _begin(self) -> Round:
        active = self._segments.active
        end_offset = active.end_offset
        position = active.base_offset, active.size
        rolled, pictures = self._rolled, self._pictures
        names_made = self._names_made
        epochs = None if self._epochs.is_saved else self._epochs.encode()
        self._appended_in_round = None

        def save() -> None:
            for segment in rolled:
                segment.save_indexes()
            if active.has_unsaved_index:
                active.save_indexes()
            if epochs is not None:
                self._directory.replace(LEADER_EPOCH_FILE, epochs)
            for offset, producers in pictures:
                write_snapshot(self._directory, offset, producers)

        def sync() -> None:
            for segment in rolled:
                sync_segment(segment)
            active.file.sync()
            if not self._names_durable:
                self._sync_metadata()
            if names_made > self._names_durable:
                self._directory.sync()
                if self._parent is not None:
                    self._parent.sync()

        def note_done() -> None:
            # Its segment may have been deleted meanwhile, and everything below the end with it.
            is_there = position[0] >= self._segments.all[0].base_offset
            if is_there and end_offset >= self.recovery_point:
                self.recovery_point, self._durable_end = end_offset, position
            self._rolled = tuple(each for each in self._rolled if each not in rolled)
            self._pictures = tuple(each for each in self._pictures if each not in pictures)
            if epochs is not None:
                self._epochs.note_saved(epochs)
            self._names_durable = names_made
            self._unflushed_since = self._appended_in_round
            if rolled:
                self._segments.release_idle()

        return Round(save, sync, note_done)

    def _sync_metadata(self) -> None:
        """The topic's id belongs to the first record that must survive."""
        try:
            self._directory.sync_file(PARTITION_FILE)
        except FileNotFoundError:
            # A log without one: only a folder of logs knows topics.
            return
