"""The trio loop: load, duration of passes, and tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from ..drawing import _figure_lines as figure_lines
from ..drawing import _units as units
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import TaskRow


def _name(row: TaskRow) -> str:
    return "  " * row.depth + row.name


TASK_COLUMNS: Final[tuple[Column[TaskRow], ...]] = (
    Column("task", "TASK", 34, _name, grow=1),
    Column("children", "CHILDREN", 8, lambda row: row.children, units.count, right=True),
    Column("waits_in", "WAITS IN", 16, lambda row: row.waits_in, grow=2),
    Column("name", "NAME", 0, lambda row: row.name),
    Column("depth", "DEPTH", 0, lambda row: row.depth),
)


class TrioView(View):
    """A table of tasks below figures of the loop."""

    name = "trio"
    key = "t"
    title = "Trio"
    help = (
        "A pass of the loop runs every ready task. Tasks that become ready during a pass wait "
        "until it ends, so the duration of a pass is the lag of all of them. Percentiles cover "
        "the time since the start. Tasks are available if the broker runs in this process. They "
        "are listed as a tree of nurseries from the root down, with the function in which each "
        "task waits."
    )
    section: ClassVar[str | None] = "tasks"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        yield from figure_lines.charts(model, ("loop_idle", "loop_passes", "cpu"), pen)
        yield from figure_lines.numbers(
            model, ("loop_lag_p50", "loop_lag_p99", "loop_lag_max"), pen
        )

    def table(self, model: Model) -> Table[TaskRow]:
        return Table(TASK_COLUMNS, key=lambda row: row.number, **rows_of(model.tasks))
