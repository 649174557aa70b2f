"""Says who holds the event loop, since nobody's heartbeats leave meanwhile.

A member that is silent is thrown out of its group, and its user sees no more than endless
rebalances. Who called what blocks is known only here: a trio instrument is told of every step of
every task.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, Final

import trio

LOGGER: Final = logging.getLogger(__name__)

_OWN: Final = ("trio", "outcome", "trionet")
"""Packages whose lines say nothing about who called what blocks."""


class LoopWatch(trio.abc.Instrument):
    """Watches the steps of all tasks of a run; there is one for all consumers of it.

    Attributes:
        limits: from how many seconds on a step is told of; one for each who watches.
    """

    def __init__(self) -> None:
        self.limits: list[float] = []
        self._clock = trio.lowlevel.current_clock().current_time
        self._limit = 0.0
        self._task: trio.lowlevel.Task | None = None
        self._began = 0.0

    def begin(self) -> None:
        """Watch from now on, in the middle of a step."""
        self._task, self._began = trio.lowlevel.current_task(), self._clock()
        trio.lowlevel.add_instrument(self)

    def changed(self) -> None:
        """The limits have changed."""
        self._limit = min(self.limits, default=0.0)

    # Called in every step, and so with no more than must be: a step ends where the next begins.

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        now = self._clock()
        if self._task is not None and now - self._began > self._limit:
            self._tell(self._task, now - self._began)
        self._task, self._began = task, now

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        if self._task is not None:
            held = self._clock() - self._began
            if held > self._limit:
                self._tell(self._task, held)
            self._task = None

    def _tell(self, task: trio.lowlevel.Task, seconds: float) -> None:
        where = whereabouts(task.coro)
        LOGGER.warning(
            "task %s held the event loop for %.1f s%s: no heartbeat could leave meanwhile, and"
            " nothing else could happen. Await what takes long, or give it to"
            " trio.to_thread.run_sync",
            task.name,
            seconds,
            f", and has come to {where}" if where else "",
        )


def whereabouts(coroutine: Any) -> str:
    """The innermost line at which a coroutine waits, if it is not trio's or ours; else empty."""
    found = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in _OWN:
            code: CodeType = frame.f_code
            found = f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return found


_WATCH: Final = trio.lowlevel.RunVar[LoopWatch]("trionet.client.consumer.loop_watch")


@contextmanager
def watching_loop(seconds: float) -> Iterator[None]:
    """Warn of every step of any task that takes longer, as long as the block runs.

    Args:
        seconds: the least of those who watch at the same time is taken; infinite for not at all,
            since each step of any task costs some 10,000 instructions more while it is watched: one
            to two microseconds, or two fifths of a bare checkpoint, most of it trio's for calling
            an instrument.
    """
    if seconds == math.inf:
        yield
        return
    try:
        watch = _WATCH.get()
    except LookupError:
        watch = LoopWatch()
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
