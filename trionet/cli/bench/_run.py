"""What all runs have in common: the clock, the end, and a line about the progress now and then."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from trionet._util._single_error import raise_single_error

from ._plan import Plan
from ._result import Result, progress
from ._tally import Tally

#: What a shell calls the end by a signal.
SIGNAL_STATUS = 128


class Run:
    """One run, which a signal ends early, with the results it has by then.

    Args:
        things: what is counted.
        plan: when it ends.
        interval: between two lines about the progress, in seconds; 0 for none.

    Attributes:
        tally: what was counted.
        stopping: set by the first signal.
        signal: which it was; 0 for none.
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
        """What is counted from here on is what counts."""
        self.tally = Tally(self.now())
        self._has_begun.set()
        return self.tally

    def is_over(self, taken: int) -> bool:
        """Whether no more is to be done, with so much taken."""
        return (
            taken >= self.plan.records_max or self.now() >= self.ends_at or self.stopping.is_set()
        )

    @property
    def ends_at(self) -> float:
        """When it ends at the latest."""
        return self.tally.began + self.plan.seconds_max

    async def wait_until(self, at: float) -> None:
        """Wait until a time, or the end."""
        with trio.move_on_at(min(at, self.ends_at)):
            await self.stopping.wait()

    async def watch(self, signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
        """The first signal ends the run; a second one, or one before it, waits for nothing."""
        async for number in signals:
            is_first = not self.signal
            self.signal = self.signal or number
            if not is_first or not self._has_begun.is_set():
                scope.cancel(reason="a second signal, or one before there is a result")
                return
            self.stopping.set()

    async def tell_progress(self) -> None:
        """A line now and then; on a terminal one takes the place of the other."""
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
    """Do the work of a run; None if it was ended before it had results."""
    result: Result | None = None
    with (
        raise_single_error(),
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.watch, signals, nursery.cancel_scope)
            nursery.start_soon(run.tell_progress)
            result = await work(run)
            nursery.cancel_scope.cancel(reason="the run is over")
    _show("", is_last=True)
    return result


def is_unicode(encoding: str | None) -> bool:
    """Whether what is written in an encoding may have bars and Greek letters."""
    return (encoding or "").lower().replace("-", "").startswith("utf")


def _show(line: str, *, is_last: bool = False) -> None:
    on_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}
    if on_terminal:
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
    elif not is_last:
        print(line, file=sys.stderr, flush=True)
