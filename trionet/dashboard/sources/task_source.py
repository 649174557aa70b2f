"""The tasks of trio in this process, while somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from ..model import Model
from ..rows import TaskRow
from . import INTERVAL_SECONDS

#: How many tasks are told of at most.
TASKS_MAX: Final = 2000


class TaskSource:
    """Feeds a model with the tree of tasks of the loop that it runs on."""

    def __init__(self) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._is_needed = False
        self._asked = trio.Event()

    def focus(self, section: str | None, key: object = None) -> None:  # noqa: ARG002 - Source
        """See :class:`.Source`."""
        self._is_needed = section == "tasks"
        if self._is_needed:
            self._asked.set()

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Feed the model until cancelled; see :class:`.Source`."""
        task_status.started()
        while True:
            await self._asked.wait()
            if not self._is_needed:
                self._asked = trio.Event()
                continue
            rows, total = task_rows()
            model.tasks.replace(rows, trio.current_time(), total)
            model.version += 1
            changed()
            await trio.sleep(self.interval_seconds)


def task_rows() -> tuple[dict[int, TaskRow], int]:
    """The tasks below the root, each before those of its nurseries, and how many there are."""
    root = trio.lowlevel.current_root_task()
    rows: dict[int, TaskRow] = {}
    left: list[tuple[trio.lowlevel.Task, int]] = [] if root is None else [(root, 0)]
    total = 0
    while left:
        task, depth = left.pop()
        total += 1
        children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        left += [(child, depth + 1) for child in sorted(children, key=_name, reverse=True)]
        if len(rows) < TASKS_MAX:
            number = len(rows)
            rows[number] = TaskRow(number, _name(task), depth, len(children), _waits_in(task))
    return rows, total


def _name(task: trio.lowlevel.Task) -> str:
    return str(task.name)


def _waits_in(task: trio.lowlevel.Task) -> str:
    """The innermost function of the task that is not of trio."""
    found = ""
    for frame, line in task.iter_await_frames():
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("trio."):
            found = f"{frame.f_code.co_qualname} ({module}:{line})"
    return found
