"""Network processors with their queues, and the trio loop with its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment

from ..drawing import _figure_lines as figure_lines
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._graphs import meter
from ..drawing._table import Column, Table, alarm_if, axis_line, table_of, trend_column
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ProcessorRow, TaskRow

SHARES: Final = ("loop_idle", "processors_idle", "handlers_idle")
#: The figures of the loop that have charts.
CHARTS: Final = ("loop_idle", "loop_passes", "cpu")

PROCESSOR_COLUMNS: Final[tuple[Column[ProcessorRow], ...]] = (
    Column("id", "P", 3, right=True),
    Column("listener", "LISTENER", 12, priority=2, grow=1),
    Column("connections", "CONNS", 6, text=units.count, right=True),
    Column("in_flight", "FLIGHT", 6, text=units.count, right=True),
    Column("response_queue", "RESPONSES", 9, text=units.count, right=True),
    Column(
        "request_queue_full",
        "FULL",
        6,
        text=units.count,
        right=True,
        priority=3,
        style=alarm_if("request_queue_full"),
    ),
    Column("request_rate", "REQ/S", 7, text=units.rate, right=True),
    Column("response_rate", "RESP/S", 7, text=units.rate, right=True, priority=5),
    Column("bytes_received_rate", "IN/S", 8, text=units.size, right=True, priority=4),
    Column("bytes_sent_rate", "OUT/S", 8, text=units.size, right=True, priority=4),
    trend_column("request_rate", 10, priority=1, grow=3),
    Column("requests", "REQUESTS", 0, text=units.count),
    Column("responses", "RESPONSES", 0, text=units.count),
    Column("bytes_received", "IN", 0, text=units.size),
    Column("bytes_sent", "OUT", 0, text=units.size),
)


class ProcessorsView(View):
    """A table of the processors, below the request queue."""

    name = "processors"
    key = "4"
    short = "procs"
    title = "Processors and queues"
    help = (
        "A processor reads requests from connections and writes responses. Requests wait for "
        "handlers in one queue of queued.max.requests. If the queue is full, a processor stops "
        "reading, which makes clients wait. All processors and handlers share one loop, so none of "
        "them is idle while the loop is busy."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "P": "number of the processor",
        "CONNS": "its connections",
        "FLIGHT": "requests being handled",
        "RESPONSES": "responses waiting for the processor",
        "FULL": "how often it has found the request queue full",
        "REQ/S RESP/S": "requests and responses per second",
        "IN/S OUT/S": "bytes received and sent per second",
        "TREND": "REQ/S of the last minutes",
    }
    empty = "No processors: the broker has no open listener yet."

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        yield from figure_lines.request_queue(model, pen)
        yield from figure_lines.gauges(model, SHARES, pen)

    def table(self, model: Model) -> Table[ProcessorRow]:
        return table_of(model.processors, PROCESSOR_COLUMNS, "id", sort="id")


def _branch(row: TaskRow, width: int, pen: Pen) -> Line:
    """Draw a task with the branches of the tree that lead to it."""
    glyphs = pen.glyphs
    # The root, which all tasks have in common, needs no branch.
    levels = row.lasts[1:]
    above = "".join("  " if is_last else f"{glyphs.wall} " for is_last in levels[:-1])
    own = (f"{glyphs.end} " if levels[-1] else f"{glyphs.fork} ") if levels else ""
    branches = (above + own)[: max(0, width - _NAME_CELLS_MIN)]
    style = palette.DIM if row.number < 0 else palette.PLAIN
    return [
        Segment(branches, palette.RULE),
        pen.cell(row.name, max(0, width - len(branches)), style),
    ]


def _share_bar(row: TaskRow, width: int, pen: Pen) -> Line:
    return [] if row.share is None else meter(row.share, width, pen)


#: The minimum width of a task's name, however deep in the tree it is.
_NAME_CELLS_MIN: Final = 12

TASK_COLUMNS: Final[tuple[Column[TaskRow], ...]] = (
    Column("name", "TASK", 40, grow=3, draw=_branch),
    Column("share", "SHARE", 7, text=units.percent, right=True),
    Column("shares", "OF THE LOOP", 11, None, priority=3, draw=_share_bar),
    Column("step_rate", "STEPS/S", 8, text=units.rate, right=True, priority=2),
    Column("waits_for", "WAITS FOR", 20, priority=1, grow=1),
    Column("waits_in", "IN", 22, priority=1, grow=3),
    Column("children", "CHILDREN", 0),
    Column("depth", "DEPTH", 0, lambda row: len(row.lasts) - 1),
    Column("busy_seconds", "BUSY", 0, text=units.duration),
    Column("steps", "STEPS", 0, text=units.count),
)


class TrioView(View):
    """A table of tasks below figures of the loop."""

    name = "trio"
    key = "t"
    title = "Trio"
    help = (
        "The trio loop and its tasks. A pass of the loop runs every ready task. Tasks that become "
        "ready during a pass wait until it ends, so the duration of a pass is the lag of all of "
        "them. Percentiles cover the time since the start. The tasks are a tree from the root "
        "down: each is below the task that opened its nursery, and a task with several nurseries "
        "has a row for each. "
        "Shares are measured while this view is shown. The command :sort share lists the "
        "busiest tasks first."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "SHARE": "the share of the loop's time in which the task ran since the last read",
        "STEPS/S": "how often per second it ran until it had to wait again",
        "WAITS FOR": "the function of trio that it has called",
        "IN": "the function that has called it",
    }
    empty = "No tasks yet: they are listed while this view is shown."
    section: ClassVar[str | None] = "tasks"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        yield from figure_lines.charts(model, CHARTS, pen)
        passes = model.figures.history("loop_passes")
        if len(passes):
            yield axis_line(passes, pen)
        yield from figure_lines.numbers(
            model, ("loop_lag_p50", "loop_lag_p99", "loop_lag_max"), pen
        )

    def table(self, model: Model) -> Table[TaskRow]:
        return table_of(model.tasks, TASK_COLUMNS, "number")
