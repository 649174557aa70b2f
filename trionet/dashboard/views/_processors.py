"""Network processors, and the queues between processors and handlers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rich.segment import Segment

from ..drawing import _figure_lines as figure_lines
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import sparkline
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ProcessorRow


SHARES: Final = ("loop_idle", "processors_idle", "handlers_idle")


def _history(row: ProcessorRow, width: int, pen: Pen) -> Line:
    return [Segment(sparkline(row.history.values(width), width, pen.glyphs), palette.CHART)]


PROCESSOR_COLUMNS: Final[tuple[Column[ProcessorRow], ...]] = (
    Column("id", "P", 3, lambda row: row.id, right=True),
    Column("listener", "LISTENER", 12, lambda row: row.listener, priority=2, grow=1),
    Column("connections", "CONNS", 6, lambda row: row.connections, units.count, right=True),
    Column("in_flight", "FLIGHT", 6, lambda row: row.in_flight, units.count, right=True),
    Column(
        "response_queue", "RESPONSES", 9, lambda row: row.response_queue, units.count, right=True
    ),
    Column(
        "request_queue_full",
        "FULL",
        6,
        lambda row: row.request_queue_full,
        units.count,
        right=True,
        priority=3,
        style=lambda row: palette.ALARM if row.request_queue_full else None,
    ),
    Column("request_rate", "REQ/S", 7, lambda row: row.request_rate, units.rate, right=True),
    Column(
        "response_rate",
        "RESP/S",
        7,
        lambda row: row.response_rate,
        units.rate,
        right=True,
        priority=5,
    ),
    Column(
        "bytes_received_rate",
        "IN/S",
        8,
        lambda row: row.bytes_received_rate,
        units.size,
        right=True,
        priority=4,
    ),
    Column(
        "bytes_sent_rate",
        "OUT/S",
        8,
        lambda row: row.bytes_sent_rate,
        units.size,
        right=True,
        priority=4,
    ),
    Column("trend", "TREND", 10, priority=1, grow=3, draw=_history),
    Column("requests", "REQUESTS", 0, lambda row: row.requests),
    Column("responses", "RESPONSES", 0, lambda row: row.responses),
    Column("bytes_received", "IN", 0, lambda row: row.bytes_received),
    Column("bytes_sent", "OUT", 0, lambda row: row.bytes_sent),
)


class ProcessorsView(View):
    """A table of the processors, below the request queue."""

    name = "processors"
    key = "4"
    title = "Processors and queues"
    help = (
        "A processor reads requests from connections and writes responses. Requests wait for "
        "handlers in one queue of queued.max.requests. If the queue is full, a processor stops "
        "reading, which makes clients wait; FULL counts these stops. FLIGHT is the number of "
        "requests being handled, and RESPONSES is the number of responses waiting for the "
        "processor. All processors and handlers share one loop, so none of them is idle while the "
        "loop is busy."
    )

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        yield from figure_lines.request_queue(model, pen)
        yield from figure_lines.gauges(model, SHARES, pen)

    def table(self, model: Model) -> Table[ProcessorRow]:
        return Table(
            PROCESSOR_COLUMNS, key=lambda row: row.id, sort="id", **rows_of(model.processors)
        )
