"""Tracks which part of a log is on disk, and flushes the rest (Kafka: UnifiedLog.flush).

The recovery point is the offset below which everything survives a power failure. It advances when
an fsync completes, to what the log end offset was before that fsync, and when deletions move the
log start offset past it. A round also syncs all files of each segment that was rolled since the
previous round. Until then, the *stored* recovery point stays at or below the base offset of that
segment, so that startup after a crash rebuilds the segment's indexes.

The problem: with ``flush.messages=1``, every produce request waits for the disk, and one fsync per
request would limit a partition to a few hundred requests per second.

The choice: group commit. Concurrent flushes share an fsync, which runs in a thread. A round makes
durable everything that was written before it started. A task that needs later data to be durable
waits for the next round. A task that finds no round running runs one itself, so no background task
is needed.

Rejected: a task per log, because no task may outlive its nursery, and because thousands of idle
partitions would each have an idle task. Also rejected: retrying a failed fsync. The kernel reports
a failed write-back once and may then drop the pages, so a second fsync would succeed even though
the data is lost (PostgreSQL learnt this in 2018; Kafka takes the log directory offline). A failed
fsync is therefore final.

Reconsider if many partitions are flushed concurrently: a single round for all logs on a disk would
let the kernel merge their writes.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import trio

from ..._util._raising import raise_from
from ...errors import ApiError
from ...protocol.error_codes import KAFKA_STORAGE_ERROR
from .files._checkpoint_files import PARTITION_FILE
from .files._directory import Directory
from .segments._segment import Segment
from .segments._segments import Segments
from .state._leader_epochs import LEADER_EPOCH_FILE, LeaderEpochs
from .state._producer_state import ProducerEntry, write_snapshot


class FlushRound(NamedTuple):
    """What one round of flushing brings to the disk: the state of a log when the round began."""

    active: Segment
    end_offset: int
    position: tuple[int, int]
    durable_bytes: int
    rolled: tuple[Segment, ...]
    snapshots: tuple[tuple[int, dict[int, ProducerEntry]], ...]
    names_made: int
    epochs: bytes | None


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
        limiter: limits how many threads sync concurrently; shared by all logs in a data directory.
            None for trio's default limiter.

    Attributes:
        recovery_point: the offset below which everything is on disk.
        durable_bytes: where the recovery point is, as a position in the log (see
            :attr:`.Segment.bytes_before`).
        failure: why the log rejects writes; None unless a sync has failed or the log was abandoned.
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
        self.failure: str | None = None
        active = segments.active
        # The segment that contains the recovery point, and how many of its bytes are before it.
        self._durable_end = active.base_offset, active.size
        self.durable_bytes: int = active.bytes_before + active.size
        self._directory = directory
        self._parent = parent
        self._segments = segments
        self._epochs = epochs
        self._name = name
        self._limiter = limiter
        self._cause: OSError | None = None
        self._running: trio.Event | None = None
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
        """Return whether all data below ``offset``, and what belongs to it, are on disk.

        These are the indexes of rolled segments, and the snapshots of producers at their ends.
        """
        return self.recovery_point >= offset and not (
            any(each.end_offset <= offset for each in self._rolled)
            or any(each[0] <= offset for each in self._snapshots)
        )

    def due(self, now_ms: int, flush_messages: int, flush_ms: int) -> int | None:
        """Return the offset up to which a flush is due now, or None; see :meth:`.Log.flush_due`."""
        active = self._segments.active
        end_offset = active.end_offset
        if end_offset - self.recovery_point >= flush_messages:
            return end_offset
        if self._unflushed_since is not None and now_ms - self._unflushed_since >= flush_ms:
            return end_offset
        return active.base_offset if self._rolled or self._snapshots else None

    def abandon(self, reason: str) -> None:
        """Start no further rounds; pending flushes raise KAFKA_STORAGE_ERROR with ``reason``."""
        self.failure = self.failure or reason

    async def flush(self, up_to: int) -> None:
        """Wait until everything below ``up_to`` is durable; see :meth:`.Log.flush`."""
        await self._until(lambda: self.is_durable(up_to))

    async def save_snapshots(self) -> None:
        """Wait until there is a snapshot at the base of each segment, and that is durable.

        Syncs nothing else, so that records that are about to be deleted are not waited for.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if an earlier sync failed.
            OSError: a file could not be written; a later round may succeed.

        Cancellation: like :meth:`flush`.
        """
        await self.idle()
        snapshots = self._snapshots
        if not snapshots:
            return
        self.raise_if_failed()
        self._running = trio.Event()
        try:
            work = partial(self._write_snapshots, snapshots)
            await self._directory.in_thread(work, self._limiter)
            self._note_snapshots(snapshots)
        finally:
            self.release_round()

    async def save_epochs(self) -> None:
        """Wait until every leader epoch is durable. Raises the same errors as :meth:`flush`."""
        await self._until(lambda: self._epochs.is_saved)

    @property
    def is_running(self) -> bool:
        """Whether a flush is running in a thread."""
        return self._running is not None

    async def idle(self) -> None:
        """Wait until no flush is running in a thread. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._running is not None:
            await self._running.wait()

    # Rounds

    async def _until(self, is_durable: Callable[[], bool]) -> None:
        """Run rounds, or wait for other tasks' rounds, until ``is_durable()`` returns true.

        Always a checkpoint. A task that is cancelled while waiting for another task's round stops
        waiting immediately. A task that is cancelled while running a round first waits for the
        thread to finish. In either case, the round takes effect for all tasks.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if this or an earlier sync failed, or if a file could not
                be written. After a failed write, a later round may succeed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        waited = False
        while not is_durable():
            self.raise_if_failed()
            waited = True
            if self._running is None:
                await self._run_round()
            else:
                await self._running.wait()
        if not waited:
            await trio.lowlevel.cancel_shielded_checkpoint()

    def raise_if_failed(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if a sync has failed, or the log was abandoned."""
        if self.failure is not None:
            raise_from(ApiError(KAFKA_STORAGE_ERROR, self.failure), self._cause)

    async def _run_round(self) -> None:
        try:
            round = self.begin_round()
            failure = await self._directory.in_thread(
                partial(self.write_round, round), self._limiter
            )
            if failure is not None:
                self.note_failure(failure)
                self.raise_if_failed()
            self.end_round(round)
        finally:
            self.release_round()

    def begin_round(self) -> FlushRound:
        """Begin a round, for which no other may be running; call :meth:`release_round` then."""
        self._running = trio.Event()
        active = self._segments.active
        self._appended_in_round = None
        return FlushRound(
            active,
            active.end_offset,
            (active.base_offset, active.size),
            active.bytes_before + active.size,
            self._rolled,
            self._snapshots,
            self._names_made,
            None if self._epochs.is_saved else self._epochs.encode(),
        )

    def write_round(self, round: FlushRound, *, syncs_parent: bool = True) -> OSError | None:
        """Write and sync the files of a round, in a thread. Returns why a sync failed, if it did.

        Args:
            round: the result of :meth:`begin_round`.
            syncs_parent: whether to sync the data directory if needed; if not, the caller does it.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if a file could not be written; the next round can retry.
        """
        try:
            self._save(round)
        except OSError as error:
            text = f"{self._name}: flush failed (no data is lost): {error}"
            raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        try:
            self._sync(round, syncs_parent=syncs_parent)
        except OSError as error:
            return error
        return None

    def note_failure(self, failure: OSError) -> None:
        """Note that a sync has failed, which is final."""
        self.failure = (
            f"{self._name}: syncing written data failed ({failure}); the log rejects"
            " appends until the broker has been restarted and has checked the log"
        )
        self._cause = failure

    def end_round(self, round: FlushRound) -> None:
        """Note what a round has brought to the disk."""
        # Its segment may have been deleted during the sync, with everything below its end.
        is_there = round.position[0] >= self._segments.all[0].base_offset
        if is_there and round.end_offset >= self.recovery_point:
            self.recovery_point, self._durable_end = round.end_offset, round.position
            self.durable_bytes = round.durable_bytes
        self._rolled = tuple(each for each in self._rolled if each not in round.rolled)
        self._note_snapshots(round.snapshots)
        if round.epochs is not None:
            self._epochs.note_saved(round.epochs)
        self._names_durable = round.names_made
        self._note_flushed()
        if round.rolled:
            self._segments.release_idle()

    def release_round(self) -> None:
        """Let the next round begin."""
        running, self._running = self._running, None
        if running is not None:
            running.set()

    def _note_snapshots(self, written: tuple[tuple[int, dict[int, ProducerEntry]], ...]) -> None:
        self._snapshots = tuple(each for each in self._snapshots if each not in written)

    def _note_flushed(self) -> None:
        # Not in _run_round(): compiled, that would take what it has set to None for None still.
        self._unflushed_since = self._appended_in_round

    def _save(self, round: FlushRound) -> None:
        """Write the files of a round, in a thread. If this fails, the next round can retry."""
        for segment in round.rolled:
            segment.indexes.save()
        if round.active.indexes.has_unsaved:
            round.active.indexes.save()
        if round.epochs is not None:
            self._directory.replace(LEADER_EPOCH_FILE, round.epochs)
        self._write_snapshots(round.snapshots)

    def _write_snapshots(self, snapshots: tuple[tuple[int, dict[int, ProducerEntry]], ...]) -> None:
        for offset, producers in snapshots:
            write_snapshot(self._directory, offset, producers)

    def _sync(self, round: FlushRound, *, syncs_parent: bool) -> None:
        """Make everything durable, in the same thread. A failure is final."""
        for segment in round.rolled:
            segment.file.sync()
            segment.indexes.sync()
        round.active.file.sync()
        if not self._names_durable:
            self._sync_metadata()
        if round.names_made > self._names_durable:
            self._directory.sync()
            if self._parent is not None and syncs_parent:
                self._parent.sync()

    def _sync_metadata(self) -> None:
        """Sync the file with the topic id, which must be durable once the first record is."""
        try:
            self._directory.sync_file(PARTITION_FILE)
        except FileNotFoundError:
            # The log was opened without a topic id, outside a LogFolder.
            return
