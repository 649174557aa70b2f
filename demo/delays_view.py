"""The delays by carrier and route as a page of the dashboard, as they come out of Spark. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from demo.analysis import Analysis
from demo.board import Result, minutes
from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing import _units as units
from trionet.dashboard.drawing._cells import Line, Pen
from trionet.dashboard.drawing._table import Column, Table
from trionet.dashboard.ui._view import View

if TYPE_CHECKING:
    from trionet.dashboard.model._model import Model

#: A mean from here on is marked.
BAD_MINUTES: Final = 60


def _get(name: str) -> Callable[[Result], Any]:
    return lambda row: row[name]


def _route(row: Result) -> str:
    return f"{row['origin']}-{row['dest']}"


def _is_bad(row: Result) -> bool:
    return (row["delay_mean"] or 0) >= BAD_MINUTES


def _number(name: str, title: str, width: int, priority: int = 0) -> Column[Result]:
    return Column(
        name, title, width, _get(name), units.count, right=True, priority=priority, grow=1
    )


def _delay(name: str, title: str, width: int, priority: int = 0) -> Column[Result]:
    return Column(name, title, width, _get(name), minutes, right=True, priority=priority, grow=1)


COLUMNS: Final[tuple[Column[Result], ...]] = (
    Column("carrier", "CARRIER", 7, _get("carrier")),
    Column("route", "ROUTE", 8, _route),
    _number("flights", "FLIGHTS", 7),
    _number("departed", "DEPARTED", 8, 2),
    _number("late", "LATE", 6, 1),
    Column(
        "delay_mean",
        "MEAN",
        10,
        _get("delay_mean"),
        lambda value: f"! {minutes(value)}" if value >= BAD_MINUTES else minutes(value),
        right=True,
        grow=1,
        style=lambda row: palette.ALARM if _is_bad(row) else None,
    ),
    _delay("delay_p90", "1 IN 10", 9),
    _delay("delay_max", "WORST", 9, 1),
    _delay("arrival_delay_mean", "AT ARRIVAL", 10, 3),
    _number("bad_weather_departed", "IN BAD WEATHER", 14, 4),
    _delay("bad_weather_delay_mean", "MEAN THEN", 9, 4),
    _number("seats", "SEATS", 7, 3),
    Column(
        "plane_years_mean",
        "PLANES' AGE",
        11,
        _get("plane_years_mean"),
        "{:.0f} years".format,
        right=True,
        priority=5,
        grow=1,
    ),
    Column("start", "", 0, _get("start")),
    Column("end", "", 0, _get("end")),
)


class DelaysView(View):
    """See the module.

    Args:
        analysis: what is shown.
    """

    name = "delays"
    key = "d"
    title = "Delays by carrier and route"
    help = (
        "What Spark has made of the newest window that is over, from the topic of flights to that "
        "of delays: each carrier and route, the longest mean first. Who was cancelled has no "
        "delay; late is more than 15 minutes; one flight in ten was as late as 1 IN 10 or later. "
        "Bad weather is rain, snow, or less than three miles to be seen. The replay closes about a "
        "window a second: p keeps one on the screen, / finds a carrier or a route."
    )

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        analysis = self._analysis
        if not analysis.obstacle:
            yield [pen.text(f" Spark: {analysis.status()}", palette.DIM)]
        elif analysis.board.rows:
            yield [pen.text(f" {self._no_more()}", palette.NOTE)]
        if analysis.board.rows:
            yield [pen.text(f" {analysis.board.headline()}")]

    def table(self, model: Model) -> Table[Result]:
        board = self._analysis.board
        return Table(
            COLUMNS,
            board.rows,
            key=lambda row: (row["carrier"], row["origin"], row["dest"]),
            missing=None if board.rows else self._missing(),
            sort="delay_mean",
            descending=True,
            version=board.version,
        )

    def _missing(self) -> str:
        if self._analysis.obstacle:
            return self._no_more()
        return f"Spark reports {self._analysis.windows} at a time, once it is over; none is yet."

    def _no_more(self) -> str:
        return f"no delays by Spark: {self._analysis.obstacle}"
