"""One fsync for everybody who waits: rounds in a thread, with waiters of a round sharing it.

A round makes durable what was written before it began. Who needs more than that (data appended
after the running fsync began) waits for the next round. The first waiter that finds no round
running runs one itself; there is no background task.

What was refused: a task of its own per log (nothing may run after its block ends, and thousands of
idle tasks for idle partitions), and retrying a failed fsync. The kernel reports a failed write-back
once and may drop the pages, so that a second fsync succeeds without the data being anywhere
(PostgreSQL learnt it in 2018; Kafka takes the log directory offline). A failure here is final.
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
    """What one round does."""

    save: Callable[[], None]
    """In the thread, first: write what may be written again if that fails."""
    sync: Callable[[], None]
    """In the thread, then: make it all durable. Its failure is final."""
    note_done: Callable[[], None]
    """In the loop, when both have returned."""


class GroupCommit:
    """Runs rounds for one log, one at a time.

    Args:
        directory: runs what blocks.
        name: for messages.
        limiter: how many threads may sync at once, shared by all logs of a folder; None: trio's.
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
        """Take part in rounds until ``is_durable()``.

        Args:
            is_durable: asked in the loop, before and after each round.
            begin: called in the loop when a round starts. Not kept: it would be a circle, and so a
                log that is gone would stay in memory.

        Always a checkpoint. Cancelled while another task runs the round: leaves at once. Cancelled
        while running it: leaves when the thread has ended. Either way the round counts for all.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, a sync failed now or earlier, or a file could not be
                written (another round may succeed).
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
        """Return when no round is running; always a checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._running is not None:
            await self._running.wait()

    def raise_if_failed(self) -> None:
        """Refuse to go on after a failed sync."""
        if self.failure is not None:
            raise ApiError(KAFKA_STORAGE_ERROR, self.failure) from self._cause

    async def _run_round(self, begin: Callable[[], Round]) -> None:
        running = self._running = trio.Event()
        try:
            work = partial(self._work, this_round := begin())
            failure = await self._directory.in_thread(work, self._limiter)
            if failure is not None:
                self.failure = (
                    f"{self._name}: the disk refused data that was written before ({failure}); the "
                    "log takes no more records until the broker has been restarted and has checked "
                    "it"
                )
                self._cause = failure
                self.raise_if_failed()
            this_round.note_done()
        finally:
            self._running = None
            running.set()

    def _work(self, this_round: Round) -> OSError | None:
        """In the thread; returns what makes the log unusable."""
        try:
            this_round.save()
        except OSError as error:
            raise ApiError(
                KAFKA_STORAGE_ERROR, f"{self._name}: flushing failed, nothing is lost: {error}"
            ) from error
        try:
            this_round.sync()
        except OSError as error:
            return error
        return None
