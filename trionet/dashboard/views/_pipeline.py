"""The results of ``trionet pipeline run``: minutes, top talkers and anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, alarm_if, table_of
from ..ui._view import Link, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._pipeline_rows import AnomalyRow, IncidentRow, MinuteRow, SeriesRow, TalkerRow


def _time(window: str) -> str:
    """Format the time of day in UTC, the time zone of the results."""
    return window[11:16]


def _us(value: float) -> str:
    return units.duration(value / 1e6)


def _amount(value: float) -> str:
    """Format a value of any measure, in at most eight characters."""
    return f"{value:.2f}" if abs(value) < 999.995 else units.count(value)


MINUTE_COLUMNS: Final[tuple[Column[MinuteRow], ...]] = (
    Column("window", "MINUTE", 6, text=_time),
    Column("requests", "REQUESTS", 9, text=units.count, right=True, grow=1),
    Column("errors", "ERRORS", 8, text=units.count, right=True, grow=1, style=alarm_if("errors")),
    Column("throttled", "THROTTLED", 9, text=units.count, right=True, grow=1),
    Column("connections", "CLOSED", 7, text=units.count, right=True),
    Column("clients", "CLIENTS", 7, text=units.count, right=True),
    Column("request_bytes", "IN", 9, text=units.size, right=True, priority=1),
    Column("response_bytes", "OUT", 9, text=units.size, right=True, priority=1),
    Column("series", "SERIES", 7, text=units.count, right=True, priority=2),
    Column("records", "RECORDS", 8, text=units.count, right=True, priority=3),
)
SERIES_COLUMNS: Final[tuple[Column[SeriesRow], ...]] = (
    Column("api", "API", 16, grow=1),
    Column("client_id", "CLIENT ID", 14, grow=2),
    Column("listener", "LISTENER", 10, priority=4),
    Column("requests", "REQUESTS", 9, text=units.count, right=True),
    Column("requests_per_s", "REQ/S", 8, text=units.rate, right=True),
    Column("errors", "ERRORS", 7, text=units.count, right=True, priority=1),
    Column("total_p50_us", "P50", 8, text=_us, right=True, priority=1),
    Column("total_p95_us", "P95", 8, text=_us, right=True, priority=3),
    Column("total_p99_us", "P99", 8, text=_us, right=True),
    Column("total_max_us", "MAX", 8, text=_us, right=True, priority=2),
)
TALKER_COLUMNS: Final[tuple[Column[TalkerRow], ...]] = (
    Column("window", "MINUTE", 6, text=_time),
    Column("measure", "MEASURE", 9),
    Column("rank", "RANK", 4, right=True),
    Column("client_id", "CLIENT ID", 14, grow=2),
    Column("principal", "PRINCIPAL", 14, priority=2, grow=1),
    Column("listener", "LISTENER", 10, priority=3),
    Column("share", "SHARE", 7, text=units.percent, right=True),
    Column("requests", "REQUESTS", 9, text=units.count, right=True, priority=1),
    Column("bytes", "BYTES", 9, text=units.size, right=True, priority=1),
    Column("time_us", "TIME", 8, text=_us, right=True, priority=1),
)
INCIDENT_COLUMNS: Final[tuple[Column[IncidentRow], ...]] = (
    Column("start", "START", 6, text=_time),
    Column("end", "END", 6, text=_time, priority=3),
    Column("state", "! STATE", 7, style=lambda row: palette.ALARM if row.state == "open" else None),
    Column("measure", "MEASURE", 12, grow=1),
    Column("phase", "PHASE", 14, priority=2),
    Column("api", "API", 12, grow=1),
    Column("client_id", "CLIENT ID", 12, priority=1, grow=2),
    Column("listener", "LISTENER", 10, priority=2),
    Column("reason", "CLOSED", 14, priority=2),
    Column("value", "WORST", 8, text=_amount, right=True),
    Column("expected", "USUAL", 8, text=_amount, right=True),
    Column("worst", "AT", 6, text=_time, priority=3),
    Column("anomalies", "ANOMALIES", 9, text=units.count, right=True, priority=4),
    Column("score", "SCORE", 0, text="{:.1f}".format),
    Column("incident", "INCIDENT", 0, is_searched=False),
)
ANOMALY_COLUMNS: Final[tuple[Column[AnomalyRow], ...]] = (
    Column("window", "MINUTE", 6, text=_time),
    Column("score", "! SCORE", 7, text="{:.1f}".format, right=True, style=lambda _: palette.ALARM),
    Column("api", "API", 12, grow=1),
    Column("client_id", "CLIENT ID", 12, priority=1, grow=2),
    Column("measure", "MEASURE", 12, grow=1),
    Column("value", "VALUE", 8, text=_amount, right=True),
    Column("expected", "USUAL", 8, text=_amount, right=True),
    Column("spread", "SPREAD", 8, text=_amount, right=True, priority=2),
    Column("listener", "LISTENER", 10, priority=3),
    Column("minutes", "OF MIN", 6, right=True, priority=4),
)


def _malformed(model: Model, pen: Pen) -> Iterable[Line]:
    """Say how many records of the results topic are no results, if any."""
    count = model.pipeline.malformed
    if count:
        text = f" ! {counted(count, 'malformed record')} not shown"
        yield [pen.text(text, palette.ALARM)]


class PipelineView(View):
    """A table of minutes."""

    name = "pipeline"
    key = "9"
    title = "Spark pipeline"
    help = (
        "The minutes written by `trionet pipeline run`, the newest first. A minute is written "
        "when it is complete, at least a minute after its end. Times are in UTC. Enter shows the "
        "APIs and clients of a minute, i the incidents, a the anomalies, and o the top talkers."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "THROTTLED": "requests whose client was throttled",
        "CLOSED": "connections that were closed",
        "CLIENTS": "different client ids",
        "IN OUT": "bytes of requests and responses",
        "SERIES": "combinations of API, client and listener",
        "RECORDS": "records of the request log",
    }
    empty = (
        "No minutes yet. trionet pipeline run writes each minute once it is complete, a minute "
        "after its end at the earliest."
    )
    opens = "minute"
    section: ClassVar[str | None] = "pipeline"
    links: Sequence[Link] = (
        Link("o", "talkers", "top talkers", lambda _: TalkersView()),
        Link("i", "incidents", "incidents", lambda _: IncidentsView()),
        Link("a", "anomalies", "anomalies", lambda _: AnomaliesView()),
    )

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        incidents = model.pipeline.incidents
        going_on = sum(row.state == "open" for row in incidents.values())
        if model.pipeline.topic is not None:
            text = f" {model.pipeline.topic}: {counted(len(model.pipeline.minutes), 'minute')}"
            yield [pen.text(text, palette.DIM)]
        yield from _malformed(model, pen)
        if incidents:
            text = f" ! {counted(len(incidents), 'incident')}, {going_on} not over; press i"
            yield [pen.text(text, palette.ALARM)]

    def table(self, model: Model) -> Table[MinuteRow]:
        minutes = model.pipeline.minutes
        return table_of(
            minutes, MINUTE_COLUMNS, "window", sort="window", descending=True, ages=False
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
    terms: ClassVar[Mapping[str, str]] = {
        "REQ/S": "requests per second",
        "P50 P95 P99 MAX": "times that half, 95 of 100, 99 of 100, and all do not exceed",
    }
    empty = "No requests in this minute."
    section: ClassVar[str | None] = "pipeline"

    def __init__(self, window: str) -> None:
        self.title = f"minute {_time(window)}"
        self._window = window

    def table(self, model: Model) -> Table[SeriesRow]:
        series = model.pipeline.series
        found = table_of(
            series,
            SERIES_COLUMNS,
            "api",
            "client_id",
            "listener",
            sort="requests",
            descending=True,
            ages=False,
        )
        rows = [row for row in series.values() if row.window == self._window]
        return attrs.evolve(found, rows=rows, total=None)


class TalkersView(View):
    """The top clients of each minute."""

    name = "talkers"
    title = "Top talkers"
    help = (
        "The ten clients with the most requests, bytes and time in each minute, and the share of "
        "each client in the total."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "MEASURE": "requests, bytes or time",
        "RANK": "1 for the largest",
        "PRINCIPAL": "the authenticated user, such as User:alice",
    }
    empty = "No talkers yet. They appear with the first minute that trionet pipeline run writes."
    section: ClassVar[str | None] = "pipeline"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        return _malformed(model, pen)

    def table(self, model: Model) -> Table[TalkerRow]:
        talkers = model.pipeline.talkers
        return table_of(talkers, TALKER_COLUMNS, "window", "measure", "rank", ages=False)


class IncidentsView(View):
    """What has gone wrong, an incident a row."""

    name = "incidents"
    title = "Incidents"
    help = (
        "Anomalies of one cause, described by their worst minute. Nothing is shown where an "
        "incident is not limited to one API, client or listener. It is over after five minutes "
        "without anomalies."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "MEASURE": "what was unusual",
        "PHASE": "the phase of requests in which the time was lost",
        "CLOSED": "the close reason of connections, if it is about these",
        "WORST": "the value furthest from the usual one",
        "USUAL": "the median of the hour before",
        "AT": "the minute of the worst value",
    }
    empty = (
        "No incidents: nothing unusual so far. What is usual is known ten minutes after trionet "
        "pipeline run has begun."
    )
    section: ClassVar[str | None] = "pipeline"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        return _malformed(model, pen)

    def table(self, model: Model) -> Table[IncidentRow]:
        incidents = model.pipeline.incidents
        return table_of(
            incidents, INCIDENT_COLUMNS, "incident", sort="start", descending=True, ages=False
        )


class AnomaliesView(View):
    """Unusual values of each minute."""

    name = "anomalies"
    title = "Anomalies"
    help = (
        "Values that are far from the median of the preceding hour. The score is the distance in "
        "units of the spread. Values with a score of at least 5 are reported."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "MEASURE": "what was unusual",
        "USUAL": "the median of the hour before",
        "SPREAD": "how far values are usually from it",
        "OF MIN": "number of minutes that it is the median of",
    }
    empty = (
        "No anomalies: nothing unusual so far. What is usual is known ten minutes after trionet "
        "pipeline run has begun."
    )
    section: ClassVar[str | None] = "pipeline"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        return _malformed(model, pen)

    def table(self, model: Model) -> Table[AnomalyRow]:
        key = ("window", "api", "client_id", "listener", "measure")
        return table_of(model.pipeline.anomalies, ANOMALY_COLUMNS, *key, ages=False)
