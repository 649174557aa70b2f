"""Group commit: concurrent flushes of a log share an fsync, which runs in a thread.

The problem: with ``flush.messages=1`` every produce request waits for the disk, and one fsync per
request would limit a partition to a few hundred requests per second.

The choice: rounds. A round makes everything durable that was written before it started. A task that
needs more than that (data appended since) waits for the next round. The first task that finds no
round running runs one itself; there is no background task.

Refused: a task per log, because nothing may run after its block ends, and idle partitions would
have thousands of idle tasks. Also refused: retrying a failed fsync. The kernel reports a failed
write-back once and may drop the pages, so that a second fsync succeeds although the data is lost
(PostgreSQL learnt this in 2018; Kafka takes the log directory offline). A failure here is final.

Think again if many partitions are flushed at once: one round for all logs of a disk would let it
merge their writes.
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
    """Called first, in the thread: writes files. If it fails, the next round can repeat it."""
    sync: Callable[[], None]
    """Called next, in the thread: makes everything durable. A failure is final."""
    note_done: Callable[[], None]
    """Called in the loop, when both have returned."""


class GroupCommit:
    """Runs rounds for one log, one at a time.

    Args:
        directory: runs blocking work.
        name: the name of the log, for messages.
        limiter: limits how many threads sync concurrently; shared by all logs of a folder. None:
            trio's default.
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
        """Run rounds, or wait for those that other tasks run, until ``is_durable()`` is true.

        Args:
            is_durable: called in the loop, before and after each round.
            begin: called in the loop when a round starts. Not stored: that would be a reference
                cycle, which would keep a closed log in memory.

        Always a checkpoint. If cancelled while another task runs the round, this ends at once; if
        cancelled while running the round itself, when the thread has ended. Either way the round
        counts for all tasks.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if a sync has failed, now or earlier, or a file could not
                be written (in this case another round may succeed).
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
                    " appends until a restart of the broker has checked it"
                )
                self._cause = failure
                self.raise_if_failed()
            this_round.note_done()
        finally:
            self._running = None
            running.set()

    def _work(self, this_round: Round) -> OSError | None:
        """Run the round in a thread; returns the error that makes the log unusable, if any."""
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
