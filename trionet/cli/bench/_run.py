"""What all runs have in common: the clock, when they end, signals and progress lines."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from trionet._util._raising import raise_single_error

from ._plan import Plan
from ._result import Result, progress
from ._tally import Tally

#: Added to the number of a signal, this is the exit status after the signal, as in shells.
SIGNAL_STATUS = 128


class Run:
    """One run of a benchmark. A signal ends the run early but keeps its results.

    Args:
        things: the plural noun for the counted items, such as ``records``.
        plan: the limits of the run.
        interval: the interval between progress lines in seconds; 0 for none.

    Attributes:
        tally: the counts.
        stopping: set by the first signal.
        signal: the number of the first signal; 0 if there was none.
    """

    def __init__(self, things: str, plan: Plan, interval: float) -> None:
        self.plan = plan
        self.now = trio.lowlevel.current_clock().current_time
        self.tally = Tally(self.now())
        self.stopping = trio.Event()
        self.signal = 0
        self._things = things
        self._interval = interval
        self._has_begun = trio.Event()

    def begin(self) -> Tally:
        """Start measuring with a new tally, and return it."""
        self.tally = Tally(self.now())
        self._has_begun.set()
        return self.tally

    def is_over(self, done: int) -> bool:
        """Return whether the run is over, given the number of records processed."""
        return done >= self.plan.records_max or self.now() >= self.ends_at or self.stopping.is_set()

    @property
    def ends_at(self) -> float:
        """The time by which the run ends."""
        return self.tally.began + self.plan.seconds_max

    async def wait_until(self, at: float) -> None:
        """Wait until the given time or the end of the run, whichever is earlier."""
        with trio.move_on_at(min(at, self.ends_at)):
            await self.stopping.wait()

    async def watch(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        """End the run on the first signal, and cancel it on a second one.

        A signal before :meth:`begin` also cancels the run, because there is no result yet.
        """
        async for number in signals:
            is_first = not self.signal
            self.signal = self.signal or number
            if not is_first or not self._has_begun.is_set():
                scope.cancel(reason="a second signal, or one before there is a result")
                return
            self.stopping.set()

    async def report_progress(self) -> None:
        """Print a progress line at each interval, replacing the previous one on a terminal."""
        await self._has_begun.wait()
        second = 0
        while self._interval:
            second += 1
            await trio.sleep_until(self.tally.began + second * self._interval)
            shown = progress(
                self._things,
                round(second * self._interval),
                self.tally.take_window(),
                self._interval,
                is_unicode=is_unicode(sys.stderr.encoding),
            )
            _show(shown)


async def run_load(run: Run, work: Callable[[Run], Awaitable[Result]]) -> Result | None:
    """Execute a run and return the result, or None if cancelled before there was a result."""
    result: Result | None = None
    with (
        raise_single_error(),
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.watch, signals, nursery.cancel_scope)
            nursery.start_soon(run.report_progress)
            result = await work(run)
            nursery.cancel_scope.cancel(reason="the run is over")
    _show("", is_last=True)
    return result


def is_unicode(encoding: str | None) -> bool:
    """Return whether the encoding is a UTF encoding, which can represent bars and Greek letters."""
    return (encoding or "").lower().replace("-", "").startswith("utf")


def _show(line: str, *, is_last: bool = False) -> None:
    on_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}
    if on_terminal:
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
    elif not is_last:
        print(line, file=sys.stderr, flush=True)
