"""Cheap checkpoints and cancellation checks, for loops that need them on every pass."""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, Final

import trio
from trio.lowlevel import current_task

# trio keeps this status for its own `checkpoint_if_cancelled`, which is a coroutine and costs
# several times as much. If a version of trio lacks it, the public function returns the same.
_HAS_STATUS: Final = hasattr(trio.lowlevel.Task, "_cancel_status")


def _schedule_message() -> object:
    """Return the message that a task yields to trio to be rescheduled after other tasks."""
    coroutine: Any = trio.lowlevel.cancel_shielded_checkpoint()  # noqa: ASYNC105
    message = coroutine.send(None)
    coroutine.close()
    return message


_SCHEDULE: Final = _schedule_message()


def is_task_cancelled(task: Any) -> bool:
    """Return whether the next checkpoint of the current task raises :exc:`trio.Cancelled`.

    Args:
        task: the current task. The result is also true for a task that has ended.
    """
    if _HAS_STATUS:
        status = task._cancel_status  # noqa: SLF001 -- see above
        return status is None or bool(status.effectively_cancelled)
    return trio.current_effective_deadline() == -math.inf


class Checkpoint:
    """A reusable checkpoint: ``await`` it any number of times in the task that created it.

    trio's own checkpoint creates and runs three interpreted coroutines, and looks up the current
    task. Together, that costs as much as the rest of a processor's turn without events. When
    compiled, this class is a single native generator. It never delivers a KeyboardInterrupt, so do
    not use it in the main task unless that has other checkpoints.
    """

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task = current_task()

    def __await__(self) -> Generator[Any, Any, None]:
        yield _SCHEDULE
        if is_task_cancelled(self._task):
            yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105 # it is, here
