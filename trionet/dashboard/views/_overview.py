"""The overview: of a trionet broker traffic, connections, load, cluster and the busiest APIs; of
other brokers, which report nothing of that, the rate of records, topics and groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from ..drawing import _figure_lines as figure_lines
from ..drawing import _palette as palette
from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, heading_line, layout, row_line
from ..model._section import Section
from ..ui._view import View
from . import _channels as channels
from ._apis import API_COLUMNS, phases_legend
from ._groups import GROUP_COLUMNS, GroupsView
from ._topics import TOPIC_COLUMNS, TopicsView

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
LAG: Final = ("lag",)
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
#: The figures of brokers that do not report their inside, and the columns of their topics and
#: groups.
RECORDS: Final = ("records", "lag")
_TOPIC_COLUMNS: Final = ("name", "partitions", "records", "rate", "bytes", "trend")
_GROUP_COLUMNS: Final = ("id", "state", "members", "lag", "trend")
#: The minimum number of rows of each of both tables, and the lines of a table beside its rows.
_ROWS_MIN: Final = 3
_TABLE_LINES: Final = 2


class OverviewView(View):
    """Charts of the figures above a table of the APIs."""

    name = "overview"
    key = "1"
    title = "Overview"
    terms: ClassVar[Mapping[str, str]] = {
        "REQ/S": "requests per second",
        "BYTES/S": "bytes received and sent per second",
        "PHASE": "what the channel does or waits for",
        "FOR": "how long it has had its request",
        "STAGED": "requests that were read, and wait for their turn",
        "ERR/S": "errors in responses per second",
        "P50 P99": "times that half, and 99 of 100, of the requests do not exceed",
        "PARTS": "number of partitions",
        "REC/S": "records written per second",
        "LAG": "offsets between what a group has committed and the ends of the partitions",
    }
    help = (
        "Traffic, load and cluster at a glance. Rates cover the time since the last read. "
        "Sparklines show the last minutes, the newest value at the right. Idle and blocked are "
        "fractions of time; a loop that is idle for less than 20 % is busy. Loop lag is the "
        "duration of a pass of the trio loop, during which all other tasks wait. Percentiles "
        "cover the time since the start. A channel is muted from the receipt of a request until "
        "its response is sent, and while it is throttled; below is what the muted ones wait for. "
        "Requests that were read meanwhile are staged. The tables list the busiest channels, "
        "without those of dashboards, and the busiest APIs with a bar for the phases of their "
        "requests. Brokers other than trionet's do not report any of that: of them, the overview "
        "has the records that are written per second, the lag of all groups, the topics with the "
        "most records per second and the groups with the most lag, without internal topics."
    )
    section: ClassVar[str | None] = "overview"

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        if self.is_waiting(model):
            for why in (f"Waiting for {model.about.source} ...", model.apis.missing or ""):
                yield from pen.sentences(why, palette.NOTE)
            return
        if not model.has_internals:
            yield from _of_cluster(model, pen)
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
    left = list(_charts("Traffic", NARROW_TRAFFIC, model, half))
    lag = figure_lines.charts(model, LAG, half)
    right = list(_block("Load", [*load, *lag], half, figure_lines.span(model, LAG, half)))
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
    yield from _charts("Traffic", TRAFFIC, model, pen, height)
    yield from _charts("Connections", CONNECTIONS, model, pen)
    span = figure_lines.span(model, channels.FIGURES, pen)
    yield from _block("Muted and staged", channels.strip(model, pen), pen, span)


def _right(model: Model, pen: Pen) -> Iterator[Line]:
    gauges = [
        *figure_lines.request_queue(model, pen),
        *figure_lines.gauges(model, SHARES, pen),
        *figure_lines.numbers(model, LOOP, pen),
    ]
    yield from _block("Loop and queues", gauges, pen)
    yield from _block("Resources", figure_lines.numbers(model, (*HELD, *STORED), pen), pen)
    cluster = [
        *figure_lines.charts(model, LAG, pen),
        *figure_lines.numbers(model, CLUSTER, pen),
    ]
    yield from _block("Cluster", cluster, pen, figure_lines.span(model, LAG, pen))


def _charts(
    title: str, names: Sequence[str], model: Model, pen: Pen, height: int = 1
) -> Iterator[Line]:
    lines = figure_lines.charts(model, names, pen, height)
    yield from _block(title, lines, pen, figure_lines.span(model, names, pen))


def _block(title: str, lines: Iterable[Line], pen: Pen, span: str = "") -> Iterator[Line]:
    """Yield lines, if there are any, below their title and the time that charts cover."""
    found = list(lines)
    if found:
        yield pen.rule(title, span)
        yield from found


def _apis(model: Model, pen: Pen) -> Iterator[Line]:
    yield pen.rule("APIs")
    if model.apis.missing is not None:
        yield from pen.sentences(model.apis.missing, palette.NOTE)
        return
    rows = sorted(model.apis.values(), key=lambda row: row.rate or 0, reverse=True)
    columns = _named(API_COLUMNS, _COLUMNS)
    yield from phases_legend(columns, pen)
    yield from _table(columns, rows, "rate", pen)


def _named(columns: Sequence[Column[Any]], names: Sequence[str]) -> Sequence[Column[Any]]:
    return [each for each in columns if each.name in names]


def _table(
    columns: Sequence[Column[Any]], rows: Sequence[Any], sort: str, pen: Pen
) -> Iterator[Line]:
    """Draw rows that are sorted by a column, the largest first."""
    table = Table(columns, rows, lambda row: row)
    shown = layout(columns, pen.width, rows, sort=sort)
    yield heading_line(shown, pen, sort, descending=True, rows=rows)
    for row in rows:
        yield row_line(table, shown, row, pen, is_selected=False)


def _of_cluster(model: Model, pen: Pen) -> Iterator[Line]:
    """Yield what every cluster reports, with as many topics and groups as there is room for."""
    half = attrs.evolve(pen, width=(pen.width - _GAP) // 2) if pen.width >= WIDE else pen
    height = 1 + sum(pen.height >= each for each in TALL)
    records = list(_charts("Records and lag", RECORDS, model, half, height))
    cluster = list(_block("Cluster", figure_lines.numbers(model, CLUSTER, half), half))
    above = [*records, *cluster]
    if half is not pen:
        above = list(figure_lines.beside(records, cluster, half.width, _GAP))
    below: list[Line] = []
    if model.apis.missing is not None:
        why = f"Requests, connections and APIs: {model.apis.missing}"
        below = [[], *pen.sentences(why, palette.DIM)]
    topics = [row for row in model.topics.values() if not row.is_internal]
    groups = list(model.groups.values())
    room = pen.height - len(above) - len(below) - 2 * _TABLE_LINES
    least = max(_ROWS_MIN, room // 2)
    of_topics = max(least, room - min(least, len(groups)))
    of_groups = max(least, room - min(of_topics, len(topics)))
    yield from above
    yield from _largest(TOPICS, model.topics, topics, of_topics, pen)
    yield from _largest(GROUPS, model.groups, groups, of_groups, pen)
    yield from below


@attrs.frozen
class _Ranking:
    """A table of the rows that are first in an order.

    Attributes:
        title: the heading above it.
        empty: the text if there are no rows.
        columns: the columns.
        sort: the name of the column whose largest values are first.
    """

    title: str
    empty: str
    columns: Sequence[Column[Any]]
    sort: str

    def first(self, rows: Sequence[Any], count: int) -> Sequence[Any]:
        """Return the first rows in the order, those without a value last."""
        value = attrgetter(self.sort)
        found = nlargest(count, [row for row in rows if value(row) is not None], value)
        if len(found) < count:
            found += islice((row for row in rows if value(row) is None), count - len(found))
        return found


TOPICS: Final = _Ranking(
    "Busiest topics", TopicsView.empty, _named(TOPIC_COLUMNS, _TOPIC_COLUMNS), "rate"
)
GROUPS: Final = _Ranking(
    "Groups with the most lag", GroupsView.empty, _named(GROUP_COLUMNS, _GROUP_COLUMNS), "lag"
)


def _largest(
    ranking: _Ranking, section: Section[Any, Any], rows: Sequence[Any], count: int, pen: Pen
) -> Iterator[Line]:
    """Yield the heading and the first rows of a ranking, or why there are none."""
    why = section.missing or (section.failure if section.updated_at is None else None)
    if why is None and section.updated_at is None:
        return  # not read yet
    shown = ranking.first(rows, count)
    more = f", {len(shown):,} of {len(rows):,}" if len(shown) < len(rows) else ""
    yield pen.rule(f"{ranking.title}{more}")
    if why is None and not rows:
        why = ranking.empty
    if why is not None:
        yield from pen.sentences(why, palette.NOTE)
        return
    yield from _table(ranking.columns, shown, ranking.sort, pen)
