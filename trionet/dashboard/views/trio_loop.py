"""Trio itself: how busy the loop is, how long it is held, and which tasks it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from .. import amounts, figure_lines
from ..view import Column, Line, Pen, Table, View, rows_of

if TYPE_CHECKING:
    from ..model import Model
    from ..rows import TaskRow


def _name(row: TaskRow) -> str:
    return "  " * row.depth + row.name


TASK_COLUMNS: Final[tuple[Column[TaskRow], ...]] = (
    Column("task", "TASK", 34, _name, grow=1),
    Column("children", "CHILDREN", 8, lambda row: row.children, amounts.count, right=True),
    Column("waits_in", "WAITS IN", 16, lambda row: row.waits_in, grow=2),
    Column("name", "NAME", 0, lambda row: row.name),
    Column("depth", "DEPTH", 0, lambda row: row.depth),
)


class TrioView(View):
    """See the module."""

    name = "trio"
    key = "t"
    title = "Trio"
    help = (
        "One pass of the loop runs every task that is ready; what becomes ready meanwhile waits "
        "for its end. So the length of a pass is the lag that everybody feels; its percentiles "
        "count since the start. Tasks can be seen if the broker runs in this process: the tree of "
        "nurseries from the root on, and where each task waits."
    )
    section: ClassVar[str | None] = "tasks"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        yield from figure_lines.charts(model, ("loop_idle", "loop_passes", "cpu"), pen)
        yield from figure_lines.numbers(
            model, ("loop_lag_p50", "loop_lag_p99", "loop_lag_max"), pen
        )

    def table(self, model: Model) -> Table[TaskRow]:
        return Table(TASK_COLUMNS, key=lambda row: row.number, **rows_of(model.tasks))
