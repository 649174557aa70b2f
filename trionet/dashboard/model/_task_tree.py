"""Puts tasks in the order of a tree: each below the task that opened its nursery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from ._rows import TaskRow

#: The maximum number of levels that are drawn. A tree may be as deep as it has tasks, so that its
#: lines would grow with the square of their number.
LEVELS_MAX: Final = 64


def in_tree_order(rows: Iterable[TaskRow]) -> dict[int, TaskRow]:
    """Return the tasks in the order of their tree, keyed by number.

    A task with tasks in several nurseries has a row for each of them, above its tasks. Tasks whose
    parent is not among the rows, since they began while the list was read, are at the root.

    Args:
        rows: the tasks in any order.
    """
    tasks = {row.number: row for row in rows}
    children: dict[int | None, list[TaskRow]] = {}
    for row in sorted(tasks.values(), key=_order):
        children.setdefault(row.parent if row.parent in tasks else None, []).append(row)
    found: dict[int, TaskRow] = {}
    pending = list(_ends(children.get(None, []), ()))[::-1]
    while pending:
        row = pending.pop()
        found[row.number] = row
        if row.number < 0:
            parent = row.parent
            below = [each for each in children.get(parent, []) if each.nursery == row.nursery]
        else:
            below = children.get(row.number, [])
            if len({each.nursery for each in below}) > 1:
                below = list(_nurseries(row, below))
        pending += list(_ends(below, row.lasts))[::-1]
    return found


def _order(row: TaskRow) -> tuple[int, str, int]:
    return row.nursery, row.name, row.number


def _ends(rows: list[TaskRow], lasts: tuple[bool, ...]) -> Iterator[TaskRow]:
    """Yield siblings with their places in the tree, given that of their parent."""
    for row in rows:
        yield attrs.evolve(row, lasts=(*lasts, row is rows[-1])[:LEVELS_MAX])


def _nurseries(task: TaskRow, children: list[TaskRow]) -> Iterator[TaskRow]:
    """Yield a row for each nursery that has some of a task's children."""
    counts: dict[int, int] = {}
    for row in children:
        counts[row.nursery] = counts.get(row.nursery, 0) + 1
    for index, count in counts.items():
        number = -1 - task.number * 1_000 - index
        name = f"nursery {index + 1} of {task.nurseries}"
        yield TaskRow(number, task.number, index, name, count, 1, "", "", 0.0, 0, 0.0)
