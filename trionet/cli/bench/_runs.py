"""Runs of benchmarks: limits and rate, clock and signals, progress lines and the printed result."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

import trio

from trionet._util._raising import raise_single_error
from trionet._util._text import counted

from ..terminal._output import TEXT, print_message, stdout, write
from ..terminal._streams import discard_output
from ._results import Result, Tally, progress


class Plan(NamedTuple):
    """Limits and rate of a run.

    Attributes:
        records_max: the maximum number of records; infinity for no limit.
        seconds_max: the maximum duration in seconds; infinity for no limit.
        rate: the number of records per second; 0 for no limit.
    """

    records_max: float = math.inf
    seconds_max: float = math.inf
    rate: float = 0.0


#: The interval between groups, unless the interval between records is longer.
GROUP_SECONDS: Final = 0.001


class Pace:
    """A schedule of groups of records at a requested rate.

    Records are scheduled in groups, because a loop cannot schedule 100,000 records a second one by
    one. If a group waits because earlier groups took too long, the wait is part of its latency.
    Otherwise a server that stalls for a second would delay a single group and every other record
    due in that second would look fast (coordinated omission).

    Args:
        rate: the number of records per second.
        began: the due time of the first record, in seconds.
    """

    def __init__(self, rate: float, began: float) -> None:
        self._rate = rate
        self._began = began
        self._interval = max(GROUP_SECONDS, 1 / rate)
        self._number = 0

    @property
    def due_at(self) -> float:
        """The due time of the next group, in seconds."""
        return self._began + self._number * self._interval

    def take(self) -> int:
        """Return the number of records in the next group, and advance past that group."""
        count = self._until(self._number + 1) - self._until(self._number)
        self._number += 1
        return count

    def _until(self, number: int) -> int:
        # Rounded, because products such as 3 * 0.001 * 1000 may be slightly below an integer.
        return int(round(number * self._interval * self._rate, 6))


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
        pace: the schedule; None without a rate, and before :meth:`begin`.
        stopping: set by the first signal.
        signal: the number of the first signal; 0 if there was none.
    """

    def __init__(self, things: str, plan: Plan, interval: float) -> None:
        self.plan = plan
        self.now = trio.lowlevel.current_clock().current_time
        self.tally = Tally(self.now())
        self.pace: Pace | None = None
        self.stopping = trio.Event()
        self.signal = 0
        self._things = things
        self._interval = interval
        self._has_begun = trio.Event()

    def begin(self) -> Tally:
        """Start measuring with a new tally, and return it."""
        self.tally = Tally(self.now())
        self.pace = Pace(self.plan.rate, self.tally.began) if self.plan.rate else None
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

    async def wait_for_last_interval(self) -> None:
        """Wait until the interval after the last group has passed, and count it.

        Otherwise, n records would take n - 1 intervals, and their rate would exceed the requested
        one. Without a rate there are no intervals.
        """
        await trio.lowlevel.checkpoint()
        if self.pace is not None:
            due_at = self.pace.due_at
            await self.wait_until(due_at)
            self.tally.last = max(self.tally.last, min(due_at, self.now()))

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
        number = 0
        while self._interval:
            number += 1
            seconds = number * self._interval
            await trio.sleep_until(self.tally.began + seconds)
            shown = progress(
                self._things,
                seconds,
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


async def finish(
    arguments: argparse.Namespace,
    things: str,
    plan: Plan,
    work: Callable[[Run], Awaitable[Result]],
) -> int:
    """Run a benchmark and print the result.

    Args:
        arguments: the parsed arguments.
        things: the plural noun for the counted items, such as ``records``.
        plan: the limits and the rate.
        work: the load.

    Returns:
        The exit status: 0 on success, 1 if any operation failed or the result is incomplete, or
        128 + N if signal N ended the run.
    """
    run = Run(things, plan, arguments.reporting_interval)
    result = await run_load(run, work)
    if result is not None:
        try:
            _write(arguments.format, result)
        except BrokenPipeError:
            discard_output()
        for note in result.notes:
            print_message(arguments, note)
        if result.tally.failed:
            failed = counted(result.tally.failed, things.removesuffix("s"))
            print_message(arguments, f"{failed} failed: {result.tally.failure}")
    if run.signal:
        return SIGNAL_STATUS + run.signal
    return 0 if result is not None and result.is_complete and not result.tally.failed else 1


def _write(form: str, result: Result) -> None:
    if form != TEXT:
        write(form, result.table(), result.document())
        return
    out = stdout()
    lines = result.lines(is_unicode=is_unicode(sys.stdout.encoding))
    out.writelines(f"{line}\n" for line in lines)
    out.flush()
