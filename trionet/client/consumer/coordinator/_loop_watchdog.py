"""A watchdog for tasks that block the event loop and so prevent heartbeats.

The coordinator removes a member whose heartbeats are late, and the user sees only repeated
rebalances. The watchdog names the blocking task in the log. It is a trio instrument, which trio
calls for every step of every task.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, Final

import trio

from ...._util._logging import get_logger

LOGGER: Final = get_logger(__name__)

_OWN: Final = ("trio", "outcome", "trionet")
"""The packages whose frames are skipped in the search for the user's blocking code."""


class LoopWatchdog(trio.abc.Instrument):
    """An instrument that times the steps of all tasks, shared by the consumers of a trio run.

    Attributes:
        limits: each consumer's limit on the duration of a step, in seconds.
    """

    def __init__(self) -> None:
        self.limits: list[float] = []
        self._clock = trio.lowlevel.current_clock().current_time
        self._limit = 0.0
        self._task: trio.lowlevel.Task | None = None
        self._began = 0.0

    def begin(self) -> None:
        """Start watching. May be called in the middle of a step."""
        self._task, self._began = trio.lowlevel.current_task(), self._clock()
        trio.lowlevel.add_instrument(self)

    def changed(self) -> None:
        """Update the effective limit after a change to :attr:`limits`."""
        self._limit = min(self.limits, default=0.0)

    # Called in every step, and so kept minimal: a step ends where the next one begins.

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        now = self._clock()
        if self._task is not None and now - self._began > self._limit:
            self._warn(self._task, now - self._began)
        self._task, self._began = task, now

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        if self._task is not None:
            held = self._clock() - self._began
            if held > self._limit:
                self._warn(self._task, held)
            self._task = None

    def _warn(self, task: trio.lowlevel.Task, seconds: float) -> None:
        where = whereabouts(task.coro)
        LOGGER.warning(
            "task %s blocked the event loop for %.1f s%s: no heartbeat could be sent, and no other"
            " task could run. Await slow operations, or run them with trio.to_thread.run_sync",
            task.name,
            seconds,
            f", up to {where}" if where else "",
        )


def whereabouts(coroutine: Any) -> str:
    """Return the innermost line of user code in a suspended coroutine; empty if there is none."""
    found = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in _OWN:
            code: CodeType = frame.f_code
            found = f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return found


_WATCH: Final = trio.lowlevel.RunVar[LoopWatchdog]("trionet.client.consumer.loop_watch")


@contextmanager
def watching_loop(seconds: float) -> Iterator[None]:
    """Within the block, log a warning for each step of a task that exceeds a time limit.

    Args:
        seconds: the limit. Among concurrent blocks, the lowest limit applies. Infinity disables the
            watchdog. The watchdog costs some 10,000 instructions per step of any task: one to two
            microseconds, or two fifths of a bare checkpoint, most of which trio spends on calling
            the instrument.
    """
    if seconds == math.inf:
        yield
        return
    try:
        watch = _WATCH.get()
    except LookupError:
        watch = LoopWatchdog()
        _WATCH.set(watch)
    if not watch.limits:
        watch.begin()
    watch.limits.append(seconds)
    watch.changed()
    try:
        yield
    finally:
        watch.limits.remove(seconds)
        watch.changed()
        if not watch.limits:
            trio.lowlevel.remove_instrument(watch)
