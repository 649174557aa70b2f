"""The tasks of the trio loop as a list: a tree of nurseries, with shares of the loop's time.

Each task is reported with the function in which it waits and what it waits for, such as
``Processor.poll`` and ``wait_readable``. Coroutines have frames that say so. Compiled ones have
none, so the coroutine that they await is found among the objects that they refer to.

The time of each step is measured only while the tasks are asked for, since it adds a third to the
cost of a step.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CoroutineType, FrameType, GeneratorType
from typing import Any, Final, overload

import attrs
import trio

from ..._util._monotonic import perf_counter_ns
from ._snapshot_sections import NS, Row, SectionPage

#: How long steps are measured after the tasks were last asked for, in nanoseconds: longer than the
#: longest interval of a dashboard.
MEASURED_NS: Final = 90_000_000_000
#: The maximum number of tasks that are reported.
TASKS_MAX: Final = 2_000
#: The maximum number of coroutines to follow, one awaiting the other.
_AWAITS_MAX: Final = 100
#: How mypyc names the classes of compiled coroutines: function, class if any, and this.
_COMPILED: Final = "_gen"
#: How trio names the task of a compiled method.
_BOUND: Final = re.compile(r"^<bound method ([\w.]+) of .*>$")
#: What waits for the tasks of a nursery, by the name of trio's function.
_NURSERY: Final = "NurseryManager.__aexit__"
#: The object by which compiled code awaits a coroutine of the interpreter.
_WRAPPER: Final = "coroutine_wrapper"


class StepTimes(trio.abc.Instrument):
    """The time that tasks have spent in their steps, measured while it is asked for."""

    def __init__(self) -> None:
        self.began_ns = 0
        self._asked_ns = 0
        self._step_began_ns = 0
        self._times: dict[trio.lowlevel.Task, list[int]] = {}
        self._exited: trio.lowlevel.Task | None = None

    def ask(self) -> None:
        """Measure from now on, for a while."""
        self._asked_ns = perf_counter_ns()
        if not self.began_ns:
            self.began_ns = self._step_began_ns = self._asked_ns
            trio.lowlevel.add_instrument(self)

    def of(self, task: trio.lowlevel.Task) -> tuple[int, int]:
        """Return the time of a task's steps in nanoseconds, and their number."""
        time_ns, steps = self._times.get(task, (0, 0))
        return time_ns, steps

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 - trio's signature
        self._step_began_ns = perf_counter_ns()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._exited:
            self._exited = None
            return
        took = perf_counter_ns() - self._step_began_ns
        times = self._times.get(task)
        if times is None:
            self._times[task] = [took, 1]
        else:
            times[0] += took
            times[1] += 1

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._times.pop(task, None)
        # Its last step ends after that, and must not put it back.
        self._exited = task

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's signature
        if perf_counter_ns() - self._asked_ns > MEASURED_NS:
            trio.lowlevel.remove_instrument(self)
            self.began_ns = 0
            self._times.clear()


@attrs.frozen
class _Node:
    """A task with its place in the tree."""

    number: int
    task: trio.lowlevel.Task
    parent: int | None
    nursery: int


class _Rows(Sequence[Row]):
    """Rows that are converted when they are read: 500 at once would hold up the loop.

    Args:
        nodes: the tasks of the rows.
        convert: returns the row of a task, which may have exited by then.
    """

    def __init__(self, nodes: Sequence[_Node], convert: Callable[[_Node], Row]) -> None:
        self._nodes = nodes
        self._convert = convert

    def __len__(self) -> int:
        return len(self._nodes)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return _Rows(self._nodes[index], self._convert)
        return self._convert(self._nodes[index])


class TaskSection:
    """The section of the tasks of the current trio loop; see :data:`._snapshot_sections.Section`.

    Tasks are numbered in the order in which they were first seen, parents before their children.
    """

    def __init__(self) -> None:
        self._times = StepTimes()
        self._numbers: dict[trio.lowlevel.Task, int] = {}
        self._next = 0

    def page(self, count_max: int, before: int | None) -> SectionPage:
        """Return a page of the tasks, those with the highest numbers first, and measure them."""
        self._times.ask()
        nodes = sorted(self._walk(), key=lambda node: -node.number)
        shown = [node for node in nodes if before is None or node.number < before]
        return SectionPage(len(nodes), _Rows(shown[:count_max], self._row))

    def _walk(self) -> Iterator[_Node]:
        root = trio.lowlevel.current_root_task()
        pending = [] if root is None else [(root, None, 0)]
        known, self._numbers = self._numbers, {}
        at = 0
        while at < len(pending) and at < TASKS_MAX:
            task, parent, nursery = pending[at]
            at += 1
            number = known.get(task)
            if number is None:
                number, self._next = self._next, self._next + 1
            self._numbers[task] = number
            yield _Node(number, task, parent, nursery)
            pending += [
                (child, number, index)  # type: ignore[misc] # of the first, None
                for index, each in enumerate(task.child_nurseries)
                for child in each.child_tasks
            ]

    def _row(self, node: _Node) -> Row:
        task = node.task
        function, waits_for = waits_of(task)
        time_ns, steps = self._times.of(task)
        return {
            "number": node.number,
            "parent": node.parent,
            "nursery": node.nursery,
            "name": _BOUND.sub(r"\1", str(task.name)),
            "children": sum(len(each.child_tasks) for each in task.child_nurseries),
            "nurseries": len(task.child_nurseries),
            "waits_in": function,
            "waits_for": waits_for,
            "busy_seconds": time_ns / NS,
            "steps": steps,
            "measured_seconds": (perf_counter_ns() - self._times.began_ns) / NS,
        }


def waits_of(task: trio.lowlevel.Task) -> tuple[str, str]:
    """Return the innermost function outside trio in which a task waits, and trio's function there.

    Either is empty if it is not known, as in a task that runs.
    """
    function = waits_for = ""
    for name, module, line in _chain(task.coro):
        if not module.startswith("trio."):
            at = f":{line}" if line else ""
            function, waits_for = f"{name} ({module}{at})", ""
        elif not waits_for:
            waits_for = name
    return function, "its nursery" if waits_for == _NURSERY else waits_for


def _chain(coroutine: Any) -> Iterator[tuple[str, str, int]]:
    """Yield name, module and line (0 if unknown) of a coroutine and those that it awaits."""
    current = coroutine
    for _ in range(_AWAITS_MAX):
        frame, following = _frame_and_awaited(current)
        if frame is not None:
            module = frame.f_globals.get("__name__", "")
            yield frame.f_code.co_qualname, module, frame.f_lineno
        elif type(current).__name__.endswith(_COMPILED):
            module = type(current).__module__
            name = type(current).__name__.removesuffix(_COMPILED)
            yield _compiled_name(name, module), module, 0
        if following is None:
            return
        current = following


def _frame_and_awaited(coroutine: Any) -> tuple[FrameType | None, Any]:
    if isinstance(coroutine, CoroutineType):
        return coroutine.cr_frame, coroutine.cr_await
    if isinstance(coroutine, GeneratorType):
        return coroutine.gi_frame, coroutine.gi_yieldfrom
    return None, _awaited(coroutine, 0)


def _awaited(coroutine: Any, depth: int) -> Any:
    """Return what a coroutine without a frame awaits, or None if that is not known.

    It also refers to what it has awaited before, so only what leads to a suspended frame counts.
    """
    if depth > _AWAITS_MAX:
        return None
    for found in gc.get_referents(coroutine):
        if isinstance(found, CoroutineType | GeneratorType):
            frame, _ = _frame_and_awaited(found)
            if frame is not None:
                return found
        elif _is_compiled(found) and _awaited(found, depth + 1) is not None:
            return found
    return None


def _is_compiled(found: object) -> bool:
    name = type(found).__name__
    return name == _WRAPPER or (name.endswith(_COMPILED) and hasattr(found, "send"))


def _compiled_name(name: str, module: str) -> str:
    """Return ``Processor.run`` for ``run_Processor``, if the module has such a class."""
    for at, character in enumerate(name):
        kind = getattr(sys.modules.get(module), name[at + 1 :], None) if character == "_" else None
        if isinstance(kind, type):
            return f"{name[at + 1 :]}.{name[:at]}"
    return name
