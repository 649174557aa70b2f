"""The results of ``trionet pipeline run``: minutes, top talkers and anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of, without_age
from ..ui._view import Link, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._pipeline import AnomalyRow, MinuteRow, SeriesRow, TalkerRow
    from ..model._section import Section


def _time(window: str) -> str:
    """Format the time of day in UTC, the time zone of the results."""
    return window[11:16]


def _us(value: float) -> str:
    return units.duration(value / 1e6)


MINUTE_COLUMNS: Final[tuple[Column[MinuteRow], ...]] = (
    Column("window", "MINUTE", 6, lambda row: row.window, _time),
    Column("requests", "REQUESTS", 9, lambda row: row.requests, units.count, right=True, grow=1),
    Column(
        "errors",
        "ERRORS",
        8,
        lambda row: row.errors,
        units.count,
        right=True,
        grow=1,
        style=lambda row: palette.ALARM if row.errors else None,
    ),
    Column("throttled", "THROTTLED", 9, lambda row: row.throttled, units.count, right=True, grow=1),
    Column("connections", "CLOSED", 7, lambda row: row.connections, units.count, right=True),
    Column("clients", "CLIENTS", 7, lambda row: row.clients, units.count, right=True),
    Column(
        "request_bytes",
        "IN",
        9,
        lambda row: row.request_bytes,
        units.size,
        right=True,
        priority=1,
    ),
    Column(
        "response_bytes",
        "OUT",
        9,
        lambda row: row.response_bytes,
        units.size,
        right=True,
        priority=1,
    ),
    Column("series", "SERIES", 7, lambda row: row.series, units.count, right=True, priority=2),
    Column("records", "RECORDS", 8, lambda row: row.records, units.count, right=True, priority=3),
)
SERIES_COLUMNS: Final[tuple[Column[SeriesRow], ...]] = (
    Column("api", "API", 16, lambda row: row.api, grow=1),
    Column("client_id", "CLIENT ID", 14, lambda row: row.client_id, grow=2),
    Column("listener", "LISTENER", 10, lambda row: row.listener, priority=4),
    Column("requests", "REQUESTS", 9, lambda row: row.requests, units.count, right=True),
    Column("requests_per_s", "REQ/S", 8, lambda row: row.requests_per_s, units.rate, right=True),
    Column("errors", "ERRORS", 7, lambda row: row.errors, units.count, right=True, priority=1),
    Column("total_p50_us", "P50", 8, lambda row: row.total_p50_us, _us, right=True, priority=1),
    Column("total_p95_us", "P95", 8, lambda row: row.total_p95_us, _us, right=True, priority=3),
    Column("total_p99_us", "P99", 8, lambda row: row.total_p99_us, _us, right=True),
    Column("total_max_us", "MAX", 8, lambda row: row.total_max_us, _us, right=True, priority=2),
)
TALKER_COLUMNS: Final[tuple[Column[TalkerRow], ...]] = (
    Column("window", "MINUTE", 6, lambda row: row.window, _time),
    Column("measure", "MEASURE", 9, lambda row: row.measure),
    Column("rank", "RANK", 4, lambda row: row.rank, right=True),
    Column("client_id", "CLIENT ID", 14, lambda row: row.client_id, grow=2),
    Column("principal", "PRINCIPAL", 14, lambda row: row.principal, priority=2, grow=1),
    Column("listener", "LISTENER", 10, lambda row: row.listener, priority=3),
    Column("share", "SHARE", 7, lambda row: row.share, units.percent, right=True),
    Column(
        "requests", "REQUESTS", 9, lambda row: row.requests, units.count, right=True, priority=1
    ),
    Column("bytes", "BYTES", 9, lambda row: row.bytes, units.size, right=True, priority=1),
    Column("time_us", "TIME", 8, lambda row: row.time_us, _us, right=True, priority=1),
)
ANOMALY_COLUMNS: Final[tuple[Column[AnomalyRow], ...]] = (
    Column("window", "MINUTE", 6, lambda row: row.window, _time),
    Column(
        "score",
        "! SCORE",
        7,
        lambda row: row.score,
        "{:.1f}".format,
        right=True,
        style=lambda _: palette.ALARM,
    ),
    Column("api", "API", 16, lambda row: row.api),
    Column("client_id", "CLIENT ID", 14, lambda row: row.client_id, grow=2),
    Column("measure", "MEASURE", 14, lambda row: row.measure, grow=1),
    Column("value", "VALUE", 10, lambda row: row.value, "{:,.2f}".format, right=True),
    Column("expected", "USUAL", 10, lambda row: row.expected, "{:,.2f}".format, right=True),
    Column("spread", "SPREAD", 9, lambda row: row.spread, "{:,.2f}".format, right=True, priority=2),
    Column("listener", "LISTENER", 10, lambda row: row.listener, priority=3),
    Column("minutes", "OF MIN", 6, lambda row: row.minutes, right=True, priority=4),
)


class PipelineView(View):
    """A table of minutes."""

    name = "pipeline"
    key = "9"
    title = "Spark pipeline"
    help = (
        "The minutes written by `trionet pipeline run`, the newest first. A minute is written "
        "when it is complete, at least a minute after its end. Times are in UTC. Enter shows the "
        "APIs and clients of a minute, o the top talkers, and a the anomalies."
    )
    section: ClassVar[str | None] = "pipeline"
    links: Sequence[Link] = (
        Link("o", "talkers", "top talkers", lambda _: TalkersView()),
        Link("a", "anomalies", "anomalies", lambda _: AnomaliesView()),
    )

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        unusual = len(model.pipeline.anomalies)
        if model.pipeline.topic is not None:
            text = f" {model.pipeline.topic}: {len(model.pipeline.minutes)} minutes"
            yield [pen.text(text, palette.DIM)]
        if unusual:
            yield [pen.text(f" ! {unusual} anomalies; press a", palette.ALARM)]

    def table(self, model: Model) -> Table[MinuteRow]:
        return Table(
            MINUTE_COLUMNS,
            key=lambda row: row.window,
            sort="window",
            descending=True,
            **without_age(rows_of(model.pipeline.minutes)),
        )

    def opened(self, row: MinuteRow) -> View:
        return MinuteView(row.window)


class MinuteView(View):
    """The APIs and clients of a minute.

    Args:
        window: the start of the minute.
    """

    name = "minute"
    help = "The requests of a minute by API, client and listener, with total times."
    section: ClassVar[str | None] = "pipeline"

    def __init__(self, window: str) -> None:
        self.title = f"minute {_time(window)}"
        self._window = window

    def table(self, model: Model) -> Table[SeriesRow]:
        return _of_window(model.pipeline.series, self._window, SERIES_COLUMNS, "requests")


def _of_window(
    section: Section[str, Any], window: str, columns: tuple[Column[Any], ...], sort: str
) -> Table[Any]:
    section_rows = without_age(rows_of(section))
    return Table(
        columns,
        [row for row in section.values() if row.window == window],
        key=lambda row: (row.api, row.client_id, row.listener),
        sort=sort,
        descending=True,
        missing=section_rows["missing"],
        version=section_rows["version"],
        as_of=section_rows["as_of"],
        is_failing=section_rows["is_failing"],
    )


class TalkersView(View):
    """The top clients of each minute."""

    name = "talkers"
    title = "Top talkers"
    help = (
        "The ten clients with the most requests, bytes and time in each minute, and the share of "
        "each client in the total."
    )
    section: ClassVar[str | None] = "pipeline"

    def table(self, model: Model) -> Table[TalkerRow]:
        return Table(
            TALKER_COLUMNS,
            key=lambda row: (row.window, row.measure, row.rank),
            **without_age(rows_of(model.pipeline.talkers)),
        )


class AnomaliesView(View):
    """Unusual values of each minute."""

    name = "anomalies"
    title = "Anomalies"
    help = (
        "Values that are far from the median of the preceding hour. The score is the distance in "
        "units of the spread. Values with a score of at least 5 are reported."
    )
    section: ClassVar[str | None] = "pipeline"

    def table(self, model: Model) -> Table[AnomalyRow]:
        return Table(
            ANOMALY_COLUMNS,
            key=lambda row: (row.window, row.api, row.client_id, row.listener, row.measure),
            **without_age(rows_of(model.pipeline.anomalies)),
        )
