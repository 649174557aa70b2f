"""Whether a task was cancelled, asked so often that a checkpoint each time would cost too much."""

# Compiled by mypyc.

from __future__ import annotations

import math
from typing import Any, Final

import trio
from trio.lowlevel import current_task

# trio keeps the answer ready for its own `checkpoint_if_cancelled`, which is a coroutine and costs
# several times as much. Where it does not any more, its public function tells the same.
_HAS_STATUS: Final = hasattr(trio.lowlevel.Task, "_cancel_status")


def is_cancelled() -> bool:
    """Whether the next checkpoint of the task that runs raises :exc:`trio.Cancelled`."""
    return is_task_cancelled(current_task())


def is_task_cancelled(task: Any) -> bool:
    """The same of a task, for those who ask so often that finding it would cost more.

    Of one that has ended it is true, too.
    """
    if _HAS_STATUS:
        status = task._cancel_status  # noqa: SLF001 -- see above
        return status is None or bool(status.effectively_cancelled)
    return trio.current_effective_deadline() == -math.inf
