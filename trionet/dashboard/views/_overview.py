"""The overview: traffic, connections, load, cluster, and the busiest APIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from ..drawing import _figure_lines as figure_lines
from ..drawing import _palette as palette
from ..drawing._cells import Line, Pen
from ..drawing._graphs import legend
from ..drawing._table import Table, heading_line, layout, row_line
from ..ui._view import View
from . import _channels as channels
from ._apis import API_COLUMNS, PHASE_NAMES

if TYPE_CHECKING:
    from ..model._model import Model

TRAFFIC: Final = ("requests", "errors", "bytes_in", "bytes_out")
CONNECTIONS: Final = ("connections", "connections_created", "connections_closed", "in_flight")
SHARES: Final = ("loop_idle", "handlers_idle", "acceptor_blocked", "cpu")
LOOP: Final = ("loop_lag_p50", "loop_lag_p99", "loop_lag_max", "loop_passes")
HELD: Final = ("response_queue", "delayed", "fetch_sessions", "failed_authentications")
STORED: Final = ("resident", "memory_used", "open_files", "log_bytes")
CLUSTER: Final = (
    "brokers",
    "topics",
    "partitions",
    "under_replicated",
    "leaderless",
    "groups",
)
#: The minimum width for all blocks; narrower screens first show the most important figures.
WIDE: Final = 110
#: The figures of a narrow screen: of traffic, and of load.
NARROW_TRAFFIC: Final = (*TRAFFIC, "connections")
NARROW_LOAD: Final = ("loop_idle", "handlers_idle", "cpu")
#: The minimum heights of the view at which graphs of traffic have two and three lines.
TALL: Final = (34, 50)
#: The number of channels in the table of the busiest ones, and on the tallest screens.
BUSIEST: Final = (5, 10)
_GAP: Final = 3
_COLUMNS: Final = ("name", "rate", "p50_ms", "p99_ms", "error_rate", "mean_ms")


class OverviewView(View):
    """Charts of the figures above a table of the APIs."""

    name = "overview"
    key = "1"
    title = "Overview"
    help = (
        "Traffic, load and cluster at a glance. Rates cover the time since the last read. "
        "Sparklines show the last minutes, the newest value at the right. Idle and blocked are "
        "fractions of time; a loop that is idle for less than 20 % is busy. Loop lag is the "
        "duration of a pass of the trio loop, during which all other tasks wait. Percentiles "
        "cover the time since the start. A channel is muted from the receipt of a request until "
        "its response is sent, and while it is throttled; below is what the muted ones wait for. "
        "Requests that were read meanwhile are staged. The tables list the busiest channels, "
        "without those of dashboards, and the busiest APIs with a bar for the phases of their "
        "requests."
    )

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        if self.is_waiting(model):
            for why in (f"Waiting for {model.about.source} ...", model.apis.missing or ""):
                yield from pen.sentences(why, palette.NOTE)
            return
        yield from _wide(model, pen) if pen.width >= WIDE else _narrow(model, pen)

    def is_waiting(self, model: Model) -> bool:
        return not model.figures.reported() and not model.apis


def _wide(model: Model, pen: Pen) -> Iterator[Line]:
    half = attrs.evolve(pen, width=(pen.width - _GAP) // 2)
    left, right = list(_left(model, half)), list(_right(model, half))
    if left and right:
        yield from figure_lines.beside(left, right, half.width, _GAP)
    else:
        yield from left or right
    yield from _busiest(model, pen)
    yield from _apis(model, pen)


def _narrow(model: Model, pen: Pen) -> Iterator[Line]:
    """Yield a line or two of each block, so that all are on 80x24, and then the rest."""
    half = attrs.evolve(pen, width=(pen.width - _GAP) // 2)
    load = [
        *figure_lines.request_queue(model, half),
        *figure_lines.gauges(model, NARROW_LOAD, half),
    ]
    left = list(_block("Traffic", figure_lines.charts(model, NARROW_TRAFFIC, half), half))
    right = list(_block("Load", [*load, *figure_lines.charts(model, ("lag",), half)], half))
    if left and right:
        yield from figure_lines.beside(left, right, half.width, _GAP)
    else:
        yield from left or right
    yield from _block("Cluster", figure_lines.numbers(model, CLUSTER, pen), pen)
    yield from _block("Muted and staged", channels.reasons(model, pen), pen)
    yield from _apis(model, pen)
    yield from _busiest(model, pen)
    others = (*CONNECTIONS[1:], *LOOP, *HELD, *STORED)
    yield from _block("Other figures", figure_lines.numbers(model, others, pen), pen)


def _busiest(model: Model, pen: Pen) -> Iterator[Line]:
    count = BUSIEST[pen.height >= TALL[-1]]
    yield from _block("Busiest channels", channels.busiest(model, count, pen), pen)


def _left(model: Model, pen: Pen) -> Iterator[Line]:
    height = 1 + sum(pen.height >= each for each in TALL)
    yield from _block("Traffic", figure_lines.charts(model, TRAFFIC, pen, height), pen)
    yield from _block("Connections", figure_lines.charts(model, CONNECTIONS, pen), pen)
    yield from _block("Muted and staged", channels.strip(model, pen), pen)


def _right(model: Model, pen: Pen) -> Iterator[Line]:
    gauges = [
        *figure_lines.request_queue(model, pen),
        *figure_lines.gauges(model, SHARES, pen),
        *figure_lines.numbers(model, LOOP, pen),
    ]
    yield from _block("Loop and queues", gauges, pen)
    yield from _block("Resources", figure_lines.numbers(model, (*HELD, *STORED), pen), pen)
    cluster = [
        *figure_lines.charts(model, ("lag",), pen),
        *figure_lines.numbers(model, CLUSTER, pen),
    ]
    yield from _block("Cluster", cluster, pen)


def _block(title: str, lines: Iterable[Line], pen: Pen) -> Iterator[Line]:
    found = list(lines)
    if found:
        yield pen.rule(title)
        yield from found


def _apis(model: Model, pen: Pen) -> Iterator[Line]:
    yield pen.rule("APIs")
    if model.apis.missing is not None:
        yield from pen.sentences(model.apis.missing, palette.NOTE)
        return
    rows = sorted(model.apis.values(), key=lambda row: row.rate or 0, reverse=True)
    table = Table(
        [each for each in API_COLUMNS if each.name in _COLUMNS], rows, lambda row: row.name
    )
    columns = layout(table.columns, pen.width)
    yield legend(PHASE_NAMES, pen)
    yield heading_line(columns, pen, "rate", descending=True)
    for row in rows:
        yield row_line(table, columns, row, pen, is_selected=False)
