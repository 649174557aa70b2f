"""One cancellation, at the n-th await point of one task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import trio


@attrs.frozen
class Lag:
    """How long after the task began to wait there it is cancelled.

    Attributes:
        passes: of the scheduler.
        seconds: of the clock, after these.
    """

    passes: int = 0
    seconds: float = 0.0


class Cut(trio.abc.Instrument):
    """Counts how often a task waits, and cancels it once.

    Args:
        at: at which of its waits, from 1.
        lag: how much later.

    Attributes:
        is_made: there was such a wait.
    """

    def __init__(self, at: int, lag: Lag) -> None:
        self._at = at
        self._lag = lag
        self._count = 0
        self._task: trio.lowlevel.Task | None = None
        self._scope: trio.CancelScope | None = None
        self._due = trio.Event()
        self.is_made = False

    @contextmanager
    def around(self) -> Iterator[trio.CancelScope]:
        """Count the waits of this block, and cancel it if it has that one."""
        with trio.CancelScope() as scope:
            self._task, self._scope = trio.lowlevel.current_task(), scope
            try:
                yield scope
            finally:
                self._task = None

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Called by trio when a task waits; a cancellation from here finds it waiting."""
        if task is not self._task:
            return
        self._count += 1
        if self._count == self._at:
            self.is_made = True
            if self._lag == Lag():
                self.cancel()
            else:
                self._due.set()

    def cancel(self) -> None:
        """Cancel the block whose wait it was; nothing happens if that is over by now."""
        assert self._scope is not None
        self._scope.cancel(reason="the schedule has come to this await")

    async def come_later(self) -> None:
        """Cancel with a lag, if there is one."""
        await self._due.wait()
        scope = self._scope
        assert scope is not None
        for _ in range(self._lag.passes):
            await trio.lowlevel.checkpoint()
        if self._lag.seconds:
            await trio.sleep(self._lag.seconds)
        scope.cancel(reason="the schedule has come to this await")
