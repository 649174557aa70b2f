"""Close reasons of connections, and recently closed connections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import bar
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ClosedRow

#: The widths of a reason and of the numbers, in cells.
_REASON_CELLS: Final = 24
_NUMBER_CELLS: Final = 9

CLOSED_COLUMNS: Final[tuple[Column[ClosedRow], ...]] = (
    Column(
        "closed_seconds_ago",
        "AGO",
        8,
        lambda row: row.closed_seconds_ago,
        units.duration,
        right=True,
    ),
    Column("peer", "PEER", 21, lambda row: row.peer),
    Column("reason", "REASON", 22, lambda row: row.reason, grow=1),
    Column("detail", "DETAIL", 16, lambda row: row.detail or None, priority=1, grow=3),
    Column("principal", "PRINCIPAL", 14, lambda row: row.principal, priority=5, grow=1),
    Column("listener", "LISTENER", 10, lambda row: row.listener, priority=4),
    Column(
        "age_seconds",
        "LASTED",
        7,
        lambda row: row.age_seconds,
        units.duration,
        right=True,
        priority=2,
    ),
    Column("requests", "REQS", 7, lambda row: row.requests, units.count, right=True, priority=2),
    Column(
        "bytes_received",
        "IN",
        8,
        lambda row: row.bytes_received,
        units.size,
        right=True,
        priority=3,
    ),
    Column("bytes_sent", "OUT", 8, lambda row: row.bytes_sent, units.size, right=True, priority=3),
    Column("reason_text", "WHY", 0, lambda row: row.reason_text),
    Column("id", "ID", 0, lambda row: row.id),
)


class CloseReasonsView(View):
    """Counts by close reason, above a table of recently closed connections."""

    name = "closes"
    key = "8"
    title = "Close reasons"
    help = (
        "Every connection is closed for exactly one reason. The chart counts the reasons since "
        "the broker started. The table lists the last closed connections, the newest first (the "
        "broker keeps 1,000). Connections that were reset before the broker accepted them are "
        "only counted."
    )
    section: ClassVar[str | None] = "closed"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        rows = sorted(model.close_reasons.values(), key=lambda row: row.count, reverse=True)
        most = max((row.count for row in rows), default=0)
        width = max(0, pen.width - _REASON_CELLS - 2 * _NUMBER_CELLS - 4)
        for row in rows[: max(1, pen.height // 3)]:
            yield [
                pen.cell(f" {row.reason}", _REASON_CELLS, palette.BOLD),
                pen.cell(units.count(row.count), _NUMBER_CELLS, right=True),
                pen.cell(units.per_second(row.rate), _NUMBER_CELLS, palette.DIM, right=True),
                Segment("  "),
                Segment(bar(row.count / most if most else 0.0, width, pen.glyphs), palette.CHART),
            ]

    def table(self, model: Model) -> Table[ClosedRow]:
        return Table(CLOSED_COLUMNS, key=lambda row: row.number, **rows_of(model.closed))
