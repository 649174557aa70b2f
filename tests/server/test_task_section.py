"""The tasks of the loop, as a snapshot has them."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trionet.server.metrics import _task_section as section
from trionet.server.metrics._task_section import TaskSection, waits_of


def by_name(tasks: TaskSection) -> dict[str, Any]:
    return {str(row["name"]): row for row in tasks.page(500, None).rows}


async def sleeper() -> None:
    await trio.sleep_forever()


async def parent_of(name: str) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper, name=name)


async def test_tasks_are_a_tree_with_what_each_waits_for() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(parent_of, "the child", name="the parent")
        await wait_all_tasks_blocked()

        rows = by_name(TaskSection())

        parent, child = rows["the parent"], rows["the child"]
        assert parent["number"] == child["parent"]
        assert (1, 1) == (parent["children"], parent["nurseries"])
        assert "its nursery" == parent["waits_for"]
        assert "sleep_forever" == child["waits_for"]
        assert child["waits_in"].startswith(f"sleeper ({__name__}:")
        assert None is rows["<init>"]["parent"]
        nursery.cancel_scope.cancel()


async def test_steps_are_measured_once_somebody_has_asked() -> None:
    async def busy() -> None:
        while True:
            until = time.perf_counter_ns() + 1_000_000
            while time.perf_counter_ns() < until:
                pass
            await trio.lowlevel.checkpoint()

    tasks = TaskSection()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy, name="busy")
        nursery.start_soon(sleeper, name="idle")
        before = by_name(tasks)
        assert (0, 0.0) == (before["busy"]["steps"], before["busy"]["busy_seconds"])
        for _ in range(20):
            await trio.lowlevel.checkpoint()

        after = by_name(tasks)
        assert after["busy"]["steps"] >= 19
        spent = after["busy"]["busy_seconds"]
        assert 0.019 <= spent <= after["busy"]["measured_seconds"]
        assert after["idle"]["steps"] <= 1
        assert before["busy"]["number"] == after["busy"]["number"]
        nursery.cancel_scope.cancel()


async def test_tasks_that_end_leave_nothing() -> None:
    """A broker starts a task for each connection, and a dashboard asks for days."""
    tasks = TaskSection()
    tasks.page(1, None)
    ended: list[weakref.ref[trio.lowlevel.Task]] = []

    async def end() -> None:
        ended.append(weakref.ref(trio.lowlevel.current_task()))
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(end)
    gc.collect()

    assert [None] * 10 == [each() for each in ended]
    assert any(row["steps"] for row in by_name(tasks).values())


async def test_measuring_ends_when_nobody_asks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = TaskSection()
    tasks.page(1, None)
    monkeypatch.setattr(section, "MEASURED_NS", 0)
    for _ in range(3):
        await trio.lowlevel.checkpoint()
    monkeypatch.undo()

    before = by_name(tasks)
    assert {0} == {row["steps"] for row in before.values()}


async def test_pages_are_all_tasks_together() -> None:
    async with trio.open_nursery() as nursery:
        for number in range(7):
            nursery.start_soon(sleeper, name=f"task {number}")
        await wait_all_tasks_blocked()
        tasks = TaskSection()
        found: list[Any] = []
        before: Any = None
        while rows := tasks.page(3, before).rows:
            found += rows
            before = rows[-1]["number"]

        names = [row["name"] for row in found]
        assert len(names) == tasks.page(500, None).total
        assert {f"task {number}" for number in range(7)} <= set(names)
        nursery.cancel_scope.cancel()


async def test_a_row_is_converted_when_it_is_read_even_of_a_task_that_has_exited() -> None:
    tasks = TaskSection()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(parent_of, "the child", name="the parent")
        await wait_all_tasks_blocked()
        page = tasks.page(500, None)
        nursery.cancel_scope.cancel()

    rows: dict[object, Any] = {row["name"]: row for row in page.rows}

    assert ("", "", 0) == tuple(
        rows["the parent"][name] for name in ("waits_in", "waits_for", "children")
    )
    assert len(page.rows) == len(rows)


class run_Loop_gen:  # noqa: N801 - as mypyc names the method `run` of a class `Loop`
    """What a compiled coroutine is: it has no frame, and refers to what it awaits."""

    __slots__ = ("awaited", "awaits", "other")

    def __init__(self, awaited: object, other: object, awaits: object) -> None:
        self.awaited, self.other, self.awaits = awaited, other, awaits

    def send(self, value: object) -> None:
        raise NotImplementedError


class Loop:
    """The class of the method."""


def test_of_a_compiled_coroutine_what_it_awaits_is_found_among_what_it_refers_to() -> None:
    finished = sleeper()
    finished.close()
    suspended = parent_of("x")
    compiled = run_Loop_gen(finished, "something else", suspended)

    chain = list(section._chain(compiled))

    assert ("Loop.run", __name__, 0) == chain[0]
    assert "parent_of" == chain[1][0]
    suspended.close()


async def test_a_task_that_runs_waits_for_nothing() -> None:
    assert "" == waits_of(trio.lowlevel.current_task())[1]
