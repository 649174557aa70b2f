"""Tracks which part of a log is on disk, and flushes the rest (Kafka: UnifiedLog.flush).

The recovery point is the offset below which everything survives a power failure. It advances when
an fsync completes, to what the log end offset was before that fsync, and when deletions move the
log start offset past it. A round also syncs all files of each segment that was rolled since the
previous round. Until then, the *stored* recovery point stays at or below the base offset of that
segment, so that startup after a crash rebuilds the segment's indexes.
"""

# Compiled by mypyc.

from __future__ import annotations

import trio

from ._group_commit import GroupCommit, Round
from .files._checkpoint_files import PARTITION_FILE
from .files._directory import Directory
from .segments._segment import Segment
from .segments._segments import Segments
from .state._leader_epochs import LEADER_EPOCH_FILE, LeaderEpochs
from .state._producer_snapshot import write_snapshot
from .state._producer_state import ProducerEntry


class Durability:
    """Runs the flushes of one log, and tracks its recovery point.

    Args:
        directory: the partition's directory.
        parent: the data directory, which must be synced to make the partition directory's name
            durable; None if the name is already durable.
        name: the partition's name, for use in messages.
        recovery_point: the offset below which everything is on disk.
        segments: the log's segments; a rolled segment is released once it is on disk.
        epochs: the log's leader epochs, which are saved before records of a new epoch count as
            durable.
        limiter: limits how many threads sync concurrently; None for trio's default limiter.
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
        # The segment that contains the recovery point, and how many of its bytes are before it.
        self._durable_end = active.base_offset, active.size
        self._directory = directory
        self._parent = parent
        self._segments = segments
        self._epochs = epochs
        self._commit = GroupCommit(directory, name, limiter)
        self._rolled: tuple[Segment, ...] = ()
        self._snapshots: tuple[tuple[int, dict[int, ProducerEntry]], ...] = ()
        self._names_made = 1
        self._names_durable = 0
        self._unflushed_since: int | None = None
        self._appended_in_round: int | None = None

    # Called by the log

    def note_append(self, now_ms: int) -> None:
        """Record an append that is not yet durable."""
        if self._unflushed_since is None:
            self._unflushed_since = now_ms
        if self._appended_in_round is None:
            self._appended_in_round = now_ms

    def note_roll(self, segment: Segment, producers: dict[int, ProducerEntry]) -> None:
        """Record that ``segment`` was rolled, and the state of the producers at its end."""
        self._rolled = (*self._rolled, segment)
        self._snapshots = (*self._snapshots, (segment.end_offset, producers))
        self._names_made += 1

    def forget_before(self, base_offset: int, start_offset: int) -> None:
        """Note the removal of segments below ``base_offset`` and records below ``start_offset``."""
        self._rolled = tuple(each for each in self._rolled if each.base_offset >= base_offset)
        self._snapshots = tuple(each for each in self._snapshots if each[0] >= base_offset)
        self.recovery_point = max(self.recovery_point, start_offset)
        if self._durable_end[0] < base_offset:
            # Its segment was removed. (More bytes may be durable, but they are not needed.)
            self._durable_end = base_offset, 0

    # Queried by the log

    @property
    def failure(self) -> str | None:
        """Why the log rejects writes; None unless a sync has failed or the log was abandoned."""
        return self._commit.failure

    @property
    def has_rolled(self) -> bool:
        """Whether any rolled segment has not been flushed yet."""
        return bool(self._rolled)

    @property
    def stored_recovery_point(self) -> int:
        """The recovery point that may safely be written to the checkpoint file."""
        if not self._rolled:
            return self.recovery_point
        return min(self.recovery_point, *(each.base_offset for each in self._rolled))

    @property
    def stored_position(self) -> tuple[int, int]:
        """The stored recovery point, as a segment's base offset and a position in its log file."""
        stored = self.stored_recovery_point
        # If they differ, it is the start of a rolled segment that is not on disk.
        return self._durable_end if stored == self.recovery_point else (stored, 0)

    def is_durable(self, offset: int) -> bool:
        """Return whether all data below ``offset``, and rolled segments' indexes, are on disk."""
        return self.recovery_point >= offset and not any(
            each.end_offset <= offset for each in self._rolled
        )

    def due(self, now_ms: int, flush_messages: int, flush_ms: int) -> int | None:
        """Return the offset up to which a flush is due now, or None; see :meth:`.Log.flush_due`."""
        active = self._segments.active
        end_offset = active.end_offset
        if end_offset - self.recovery_point >= flush_messages:
            return end_offset
        if self._unflushed_since is not None and now_ms - self._unflushed_since >= flush_ms:
            return end_offset
        return active.base_offset if self._rolled else None

    def abandon(self, reason: str) -> None:
        """Start no further rounds; pending flushes raise KAFKA_STORAGE_ERROR with ``reason``."""
        self._commit.failure = self._commit.failure or reason

    async def flush(self, up_to: int) -> None:
        """Wait until everything below ``up_to`` is durable; see :meth:`.Log.flush`."""
        await self._commit.until(lambda: self.is_durable(up_to), self._begin)

    async def save_epochs(self) -> None:
        """Wait until every leader epoch is durable. Raises the same errors as :meth:`flush`."""
        await self._commit.until(lambda: self._epochs.is_saved, self._begin)

    async def idle(self) -> None:
        """Wait until no flush is running in a thread. Always a checkpoint."""
        await self._commit.idle()

    def _begin(self) -> Round:
        active = self._segments.active
        end_offset = active.end_offset
        position = active.base_offset, active.size
        rolled, snapshots = self._rolled, self._snapshots
        names_made = self._names_made
        epochs = None if self._epochs.is_saved else self._epochs.encode()
        self._appended_in_round = None

        def save() -> None:
            for segment in rolled:
                segment.indexes.save()
            if active.indexes.has_unsaved:
                active.indexes.save()
            if epochs is not None:
                self._directory.replace(LEADER_EPOCH_FILE, epochs)
            for offset, producers in snapshots:
                write_snapshot(self._directory, offset, producers)

        def sync() -> None:
            for segment in rolled:
                segment.file.sync()
                segment.indexes.sync()
            active.file.sync()
            if not self._names_durable:
                self._sync_metadata()
            if names_made > self._names_durable:
                self._directory.sync()
                if self._parent is not None:
                    self._parent.sync()

        def note_done() -> None:
            # Its segment may have been deleted during the sync, with everything below its end.
            is_there = position[0] >= self._segments.all[0].base_offset
            if is_there and end_offset >= self.recovery_point:
                self.recovery_point, self._durable_end = end_offset, position
            self._rolled = tuple(each for each in self._rolled if each not in rolled)
            self._snapshots = tuple(each for each in self._snapshots if each not in snapshots)
            if epochs is not None:
                self._epochs.note_saved(epochs)
            self._names_durable = names_made
            self._unflushed_since = self._appended_in_round
            if rolled:
                self._segments.release_idle()

        return Round(save, sync, note_done)

    def _sync_metadata(self) -> None:
        """Sync the file with the topic id, which must be durable once the first record is."""
        try:
            self._directory.sync_file(PARTITION_FILE)
        except FileNotFoundError:
            # The log was opened without a topic id, outside a LogFolder.
            return
