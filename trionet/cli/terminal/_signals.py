"""Signals that stop a command: the first gracefully, the second immediately."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

import trio

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Stop:
    """A request to stop a command.

    Attributes:
        number: the number of the first signal; None if there was none.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._waits: dict[trio.CancelScope, float] = {}

    @property
    def status(self) -> int:
        """The exit status after a signal, as in shells; 0 if there was none."""
        return 0 if self.number is None else 128 + self.number

    def stop(self, number: int) -> None:
        """Record a signal, and cancel :meth:`ending_waits` blocks after their grace periods."""
        self.number = number
        now = trio.current_time()
        for scope, seconds in self._waits.items():
            scope.deadline = now + seconds

    def begin_grace_again(self) -> None:
        """Begin the grace periods again, after progress that is worth waiting for."""
        if self.number is not None:
            self.stop(self.number)

    @contextmanager
    def ending_waits(self, seconds: float = 0.0) -> Iterator[trio.CancelScope]:
        """Cancel the block on a signal, or immediately if there already was one.

        Args:
            seconds: the grace period after the signal, in seconds.
        """
        with trio.CancelScope() as scope:
            if self.number is not None:
                scope.deadline = trio.current_time() + seconds
            self._waits[scope] = seconds
            try:
                yield scope
            finally:
                del self._waits[scope]


async def watch_signals(signals: AsyncIterator[int], stop: Stop, scope: trio.CancelScope) -> None:
    """Request a stop on the first signal, and cancel the scope on the second."""
    async for number in signals:
        if stop.number is not None:
            scope.cancel(reason="a second signal")
            return
        stop.stop(number)
