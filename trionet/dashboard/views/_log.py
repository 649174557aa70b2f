"""The last lines of the broker's log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, table_of
from ..ui._view import View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import LogRow

_STYLES: Final = {
    "WARNING": palette.NOTE,
    "ERROR": palette.ALARM,
    "CRITICAL": palette.ALARM,
    "DEBUG": palette.DIM,
}


def _style(row: LogRow) -> Style | None:
    return _STYLES.get(row.level)


def _first_line(text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"{first} …" if rest else first


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    Column("time", "TIME", 12, text=units.clock),
    Column("level", "LEVEL", 8, priority=1, style=_style),
    Column("logger", "LOGGER", 16, priority=2, grow=1),
    # The details have all of its lines.
    Column("text", "MESSAGE", 20, text=_first_line, grow=8, style=_style, is_detail=False),
    Column("number", "NUMBER", 0),
)


class LogView(View):
    """A table of log lines."""

    name = "log"
    key = "0"
    title = "Log"
    help = (
        "The last lines of the broker's log, the newest first (the broker keeps 1,000). Times are "
        "in this machine's time zone. Enter shows a line in full."
    )
    empty = "No log lines yet. With trionet broker --log-level debug, a broker logs more."
    opens = "line"
    section: ClassVar[str | None] = "log"

    def table(self, model: Model) -> Table[LogRow]:
        return table_of(model.log, LOG_COLUMNS, "number")

    def details(self, row: LogRow, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002
        return pen.sentences(row.text)

    def opened(self, row: LogRow) -> View:
        return LogLineView(row)


class LogLineView(View):
    """One line of the log.

    Args:
        row: the line.
    """

    name = "line"
    help = "A log line in full, with its traceback."

    def __init__(self, row: LogRow) -> None:
        self.title = f"line {row.number}"
        self._row = row

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - never changes
        row = self._row
        yield [
            Segment(f" {units.moment(row.time)} ", palette.DIM),
            pen.text(row.level, _style(row) or palette.PLAIN),
            pen.text(f" {row.logger}", palette.DIM),
        ]
        yield []
        yield from pen.sentences(row.text)
