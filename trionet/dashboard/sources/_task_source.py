"""A source that reads trio's tasks in this process while they are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from ..model._model import Model
from ..model._rows import TaskRow
from ._source import INTERVAL_SECONDS

#: The maximum number of tasks reported.
TASKS_MAX: Final = 2000


class TaskSource:
    """A :class:`.Part` that reads the task tree of the current trio loop."""

    def __init__(self) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._is_needed = False
        self._has_changed = trio.Event()

    def focus(self, section: str | None, key: object = None) -> None:  # noqa: ARG002 - Source
        """Select the data to show; see :meth:`.Source.focus`."""
        self._is_needed = section == "tasks"
        if self._is_needed:
            self._has_changed.set()

    async def run(
        self,
        model: Model,
        changed: Callable[[], None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        task_status.started()
        while True:
            await self._has_changed.wait()
            if not self._is_needed:
                self._has_changed = trio.Event()
                continue
            rows, total = task_rows()
            model.tasks.replace(rows, trio.current_time(), total)
            model.version += 1
            changed()
            await trio.sleep(self.interval_seconds)


def task_rows() -> tuple[dict[int, TaskRow], int]:
    """Return the tasks, parents before children, and the total number of tasks."""
    root = trio.lowlevel.current_root_task()
    rows: dict[int, TaskRow] = {}
    pending: list[tuple[trio.lowlevel.Task, int]] = [] if root is None else [(root, 0)]
    total = 0
    while pending:
        task, depth = pending.pop()
        total += 1
        children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        pending += [(child, depth + 1) for child in sorted(children, key=_name, reverse=True)]
        if len(rows) < TASKS_MAX:
            number = len(rows)
            rows[number] = TaskRow(number, _name(task), depth, len(children), _waits_in(task))
    return rows, total


def _name(task: trio.lowlevel.Task) -> str:
    return str(task.name)


def _waits_in(task: trio.lowlevel.Task) -> str:
    """Return the innermost function outside trio in which a task waits."""
    found = ""
    for frame, line in task.iter_await_frames():
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("trio."):
            found = f"{frame.f_code.co_qualname} ({module}:{line})"
    return found
