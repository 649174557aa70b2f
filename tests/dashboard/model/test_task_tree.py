"""Tasks in the order of their tree."""

from __future__ import annotations

from typing import Any

from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import TaskRow
from trionet.dashboard.model._task_tree import in_tree_order


def task(number: int, parent: int | None, name: str, nursery: int = 0) -> TaskRow:
    return TaskRow(number, parent, nursery, name, 0, 1, "", "", 0.0, 0, 0.0)


def tree(*tasks: TaskRow) -> list[tuple[str, tuple[bool, ...]]]:
    return [(row.name, row.lasts) for row in in_tree_order(tasks).values()]


def test_each_task_is_below_the_one_that_opened_its_nursery() -> None:
    tasks = task(3, 1, "b"), task(2, 1, "a"), task(0, None, "root"), task(1, 0, "main")

    assert [
        ("root", (True,)),
        ("main", (True, True)),
        ("a", (True, True, False)),
        ("b", (True, True, True)),
    ] == tree(*tasks)


def test_several_nurseries_of_a_task_have_a_row_each() -> None:
    tasks = task(0, None, "root"), task(1, 0, "z"), task(2, 0, "a", 1), task(3, 0, "b", 1)

    assert ["root", "nursery 1 of 1", "z", "nursery 2 of 1", "a", "b"] == [
        name for name, _ in tree(*tasks)
    ]


def test_a_task_whose_parent_was_not_seen_is_at_the_root() -> None:
    assert [("root", (False,)), ("stray", (True,))] == tree(
        task(0, None, "root"), task(9, 8, "stray")
    )


def test_shares_are_of_the_time_since_the_look_before() -> None:
    model = Model()
    values: dict[str, Any] = {"number": 0, "parent": None, "nursery": 0, "name": "root"}
    values |= {"children": 0, "nurseries": 0, "waits_in": "", "waits_for": ""}
    for measured, busy, steps in ((10.0, 2.0, 100), (12.0, 2.5, 150)):
        row = {**values, "busy_seconds": busy, "steps": steps, "measured_seconds": measured}
        model.replace_rows("tasks", model.make_rows("tasks", [row]), 1, measured)

    assert (0.25, 25.0) == (model.tasks[0].share, model.tasks[0].step_rate)
