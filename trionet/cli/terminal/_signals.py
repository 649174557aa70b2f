"""Signals that end a command: the first one as it should, the second one at once."""

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
    """Whether the command is to end.

    Attributes:
        number: of the first signal; None as long as there was none.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._waits: dict[trio.CancelScope, float] = {}

    @property
    def status(self) -> int:
        """The exit status, as shells tell of signals; 0 without one."""
        return 0 if self.number is None else 128 + self.number

    def stop(self, number: int) -> None:
        """A signal came."""
        self.number = number
        now = trio.current_time()
        for scope, seconds in self._waits.items():
            scope.deadline = now + seconds

    @contextmanager
    def ending_waits(self, seconds: float = 0.0) -> Iterator[trio.CancelScope]:
        """A signal ends what waits in this block, also one that came before.

        Args:
            seconds: how long after it.
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
    """Stop with the first signal; with the second one, cancel the scope."""
    async for number in signals:
        if stop.number is not None:
            scope.cancel(reason="a second signal")
            return
        stop.stop(number)
