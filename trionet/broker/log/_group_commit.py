"""Implements group commit: concurrent flushes of a log share an fsync, which runs in a thread.

The problem: with ``flush.messages=1``, every produce request waits for the disk, and one fsync per
request would limit a partition to a few hundred requests per second.

The choice: flush in rounds. A round makes durable everything that was written before it started. A
task that needs later data to be durable waits for the next round. A task that finds no round
running runs one itself, so no background task is needed.

Rejected: a task per log, because no task may outlive its nursery, and because thousands of idle
partitions would each have an idle task. Also rejected: retrying a failed fsync. The kernel reports
a failed write-back once and may then drop the pages, so a second fsync would succeed even though
the data is lost (PostgreSQL learnt this in 2018; Kafka takes the log directory offline). A failed
fsync is therefore final.

Reconsider if many partitions are flushed concurrently: a single round for all logs on a disk would
let the kernel merge their writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import trio

from ...errors import ApiError
from ...protocol.error_codes import KAFKA_STORAGE_ERROR
from .files._directory import Directory


class Round(NamedTuple):
    """The steps of one round: save, sync, and record that it is done."""

    save: Callable[[], None]
    """Writes files. Called first, in a worker thread. If it fails, the next round can retry."""
    sync: Callable[[], None]
    """Makes everything durable. Called second, in the same thread. A failure is final."""
    note_done: Callable[[], None]
    """Records the result. Called in the loop after ``save`` and ``sync`` have returned."""


class GroupCommit:
    """Runs the group commits of one log, one round at a time.

    Args:
        directory: the partition's directory, whose ``in_thread`` method runs the rounds.
        name: the log's name, for use in messages.
        limiter: limits how many threads sync concurrently; shared by all logs in a data directory.
            None for trio's default limiter.
    """

    def __init__(
        self, directory: Directory, name: str, limiter: trio.CapacityLimiter | None = None
    ) -> None:
        self.failure: str | None = None
        self._cause: OSError | None = None
        self._directory = directory
        self._name = name
        self._limiter = limiter
        self._running: trio.Event | None = None

    async def until(self, is_durable: Callable[[], bool], begin: Callable[[], Round]) -> None:
        """Run rounds, or wait for other tasks' rounds, until ``is_durable()`` returns true.

        Args:
            is_durable: called in the loop, before and after each round.
            begin: called in the loop when a round starts. It is not stored, because a reference
                cycle would keep a closed log in memory.

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
                await self._run_round(begin)
            else:
                await self._running.wait()
        if not waited:
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def idle(self) -> None:
        """Wait until no round is running. Always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._running is not None:
            await self._running.wait()

    def raise_if_failed(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if a sync has failed."""
        if self.failure is not None:
            raise ApiError(KAFKA_STORAGE_ERROR, self.failure) from self._cause

    async def _run_round(self, begin: Callable[[], Round]) -> None:
        running = self._running = trio.Event()
        try:
            work = partial(self._work, this_round := begin())
            failure = await self._directory.in_thread(work, self._limiter)
            if failure is not None:
                self.failure = (
                    f"{self._name}: syncing written data failed ({failure}); the log rejects"
                    " appends until the broker has been restarted and has checked the log"
                )
                self._cause = failure
                self.raise_if_failed()
            this_round.note_done()
        finally:
            self._running = None
            running.set()

    def _work(self, this_round: Round) -> OSError | None:
        """Run a round, in a thread. Return the sync error, if any; it makes the log read-only."""
        try:
            this_round.save()
        except OSError as error:
            raise ApiError(
                KAFKA_STORAGE_ERROR, f"{self._name}: flush failed (no data is lost): {error}"
            ) from error
        try:
            this_round.sync()
        except OSError as error:
            return error
        return None
