"""Open and closed connections, and incremental fetch sessions (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import attrs
from rich.segment import Segment
from rich.style import Style

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._graphs import meter
from ..drawing._table import Column, Table, table_of
from ..ui._view import Action, Link, View
from ._channels import peer_of
from ._requests import RequestsView

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ClosedRow, ConnectionRow, FetchSessionRow

_LABEL_CELLS: Final = 19
#: The widths of a close reason and of its numbers, in cells.
_REASON_CELLS: Final = 24
_NUMBER_CELLS: Final = 9


def _style(row: ConnectionRow) -> Style | None:
    return palette.DIM if row.is_dashboard else None


def _software(row: ConnectionRow) -> str | None:
    return f"{row.software} {row.software_version}".strip() or None


CONNECTION_COLUMNS: Final[tuple[Column[ConnectionRow], ...]] = (
    Column("peer", "PEER", 21, peer_of),
    Column("client_id", "CLIENT ID", 12, grow=2),
    Column("software", "SOFTWARE", 18, _software, priority=5, grow=1),
    Column("principal", "PRINCIPAL", 14, priority=6, grow=1),
    Column("listener", "LISTENER", 10, priority=7),
    Column("processor", "P", 2, right=True, priority=8),
    Column("phase", "PHASE", 14, grow=1, style=lambda row: palette.NOTE if row.is_muted else None),
    Column("request", "REQUEST", 12, priority=4, grow=1),
    Column("request_seconds", "FOR", 7, text=units.duration, right=True, priority=4),
    Column("staged", "STAGED", 6, right=True, priority=6),
    Column("idle_seconds", "IDLE", 7, text=units.duration, right=True),
    Column("age_seconds", "AGE", 7, text=units.duration, right=True, priority=3),
    Column("request_rate", "REQ/S", 7, text=units.rate, right=True, priority=1),
    Column("requests", "REQS", 7, text=units.count, right=True, priority=5),
    Column("bytes_received", "IN", 8, text=units.size, right=True, priority=4),
    Column("bytes_sent", "OUT", 8, text=units.size, right=True, priority=4),
    Column("byte_rate", "BYTES/S", 0, text=units.size),
    Column("protocol", "TLS", 7, priority=9, is_optional=True),
    Column("mute_state", "MUTE", 0),
    Column("cipher", "CIPHER", 0),
    Column("id", "ID", 0),
)
CLOSE: Final = Action(
    "K",
    "close",
    "close",
    lambda source, row, _: source.actions.close_connection(row.id),
    question=lambda row, _: f"Close the connection of {peer_of(row)}?",
)


class ConnectionsView(View):
    """A table of the open connections."""

    name = "connections"
    key = "2"
    short = "conns"
    title = "Connections"
    help = (
        "The open connections of the broker. A connection has one request in flight at a time and "
        "is muted until the response is sent. The connections of dashboards are dim. Enter shows "
        "the requests of a connection one by one, as they finish."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "PEER": "address of the client",
        "SOFTWARE": "name and version that the client has sent",
        "PRINCIPAL": "the authenticated user, such as User:alice",
        "P": "number of the network processor",
        "PHASE": "phase of the current request",
        "FOR": "how long it has had this request",
        "STAGED": "requests that have arrived meanwhile, and wait for their turn",
        "IDLE": "time since the last read or write",
        "AGE": "time since it was accepted",
        "REQ/S": "requests per second",
        "REQS": "requests so far",
        "IN OUT": "bytes received and sent",
        "TLS": "version of TLS",
    }
    empty = (
        "No connections: no client is connected to this broker. trionet produce TOPIC is one; -b "
        "sets the address."
    )
    opens = "requests"
    section: ClassVar[str | None] = "connections"
    actions: Sequence[Action] = (CLOSE,)

    def table(self, model: Model) -> Table[ConnectionRow]:
        found = table_of(model.connections, CONNECTION_COLUMNS, "number")
        return attrs.evolve(found, style=_style)

    def opened(self, row: ConnectionRow) -> View:
        return ConnectionView(row)


class ConnectionView(RequestsView):
    """The requests of one connection as they finish, below a line about the connection.

    Args:
        row: the row of the connection when this view was opened.
    """

    name = "connection"

    def __init__(self, row: ConnectionRow) -> None:
        super().__init__(row.id)
        self.title = peer_of(row)
        self._row = row
        self.links = (Link("d", "details", "connection", lambda _: ConnectionDetailsView(row)),)

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.connections.get(self._row.number)
        if row is None:
            yield from closed_lines(model, self._row, pen)
        yield from _state_lines(row or self._row, pen)
        yield from super().summary(model, pen)


class ConnectionDetailsView(View):
    """The details of one connection.

    Args:
        row: the row of the connection when this view was opened.
    """

    name = "details"
    help = "The details of one connection and, after it was closed, the reason."
    section: ClassVar[str | None] = "connections"

    def __init__(self, row: ConnectionRow) -> None:
        self.title = "details"
        self._row = row

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.connections.get(self._row.number)
        if row is None:
            yield from closed_lines(model, self._row, pen)
            yield []
        yield from _fields(row or self._row, pen)


def closed_lines(model: Model, row: ConnectionRow, pen: Pen) -> Iterator[Line]:
    """Say that a connection was closed, and why if that is known."""
    closed = next((each for each in model.closed.values() if each.id == row.id), None)
    why = "" if closed is None else f": {closed.reason_text} {closed.detail}".rstrip()
    yield [pen.text(f" Closed{why}. The last known details:", palette.NOTE)]


def _state_lines(row: ConnectionRow, pen: Pen) -> list[Line]:
    parts = [
        row.client_id or "no client id",
        _software(row) or "",
        row.principal,
        counted(row.requests, "request"),
        f"{units.rate(row.request_rate)}/s",
        f"in {units.size(row.bytes_received)}",
        f"out {units.size(row.bytes_sent)}",
        row.phase or "",
        f"staged {row.staged}" if row.staged else "",
    ]
    return pen.phrases(filter(None, parts))


def _fields(row: ConnectionRow, pen: Pen) -> Iterator[Line]:
    running = row.request_seconds
    tls = " ".join(filter(None, (row.protocol, row.cipher))) or "none"
    for label, value in (
        ("id", row.id),
        ("peer", row.peer),
        ("client id", row.client_id),
        ("software", _software(row)),
        ("principal", row.principal),
        ("listener", row.listener),
        ("processor", row.processor),
        ("TLS", tls),
        ("open for", units.duration(row.age_seconds)),
        ("idle for", units.duration(row.idle_seconds)),
        ("phase", row.phase),
        ("request", row.request),
        ("request for", None if running is None else units.duration(running)),
        ("staged frames", row.staged),
        ("mute state", row.mute_state or ("MUTED" if row.is_muted else "NOT_MUTED")),
        ("requests", f"{row.requests:,}"),
        ("bytes received", f"{row.bytes_received:,} ({units.size(row.bytes_received)})"),
        ("bytes sent", f"{row.bytes_sent:,} ({units.size(row.bytes_sent)})"),
    ):
        if value is not None:
            yield [pen.label(f" {label}", _LABEL_CELLS, palette.BOLD), pen.text(value)]


CLOSED_COLUMNS: Final[tuple[Column[ClosedRow], ...]] = (
    Column("closed_seconds_ago", "AGO", 8, text=units.duration, right=True),
    Column("peer", "PEER", 21),
    Column("reason", "REASON", 22, grow=1),
    Column("detail", "DETAIL", 16, lambda row: row.detail or None, priority=1, grow=3),
    Column("principal", "PRINCIPAL", 14, priority=5, grow=1),
    Column("listener", "LISTENER", 10, priority=4),
    Column("age_seconds", "LASTED", 7, text=units.duration, right=True, priority=2),
    Column("requests", "REQS", 7, text=units.count, right=True, priority=2),
    Column("bytes_received", "IN", 8, text=units.size, right=True, priority=3),
    Column("bytes_sent", "OUT", 8, text=units.size, right=True, priority=3),
    Column("reason_text", "WHY", 0),
    Column("id", "ID", 0),
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
    terms: ClassVar[Mapping[str, str]] = {
        "AGO": "how long ago it was closed",
        "PEER": "address of the client",
        "PRINCIPAL": "the authenticated user, such as User:alice",
        "LASTED": "how long it was open",
        "REQS": "requests in that time",
        "IN OUT": "bytes received and sent in that time",
    }
    empty = (
        "No connection has been closed yet. Each is listed here once its client or the broker "
        "closes it."
    )
    section: ClassVar[str | None] = "closed"

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        rows = sorted(model.close_reasons.values(), key=lambda row: row.count, reverse=True)
        most = max((row.count for row in rows), default=0)
        width = max(0, pen.width - _REASON_CELLS - 2 * _NUMBER_CELLS - 4)
        if rows:
            yield pen.rule("Closed since the start, and now")
        for row in rows[: max(1, pen.height // 3)]:
            yield [
                pen.label(f" {row.reason}", _REASON_CELLS, palette.BOLD),
                pen.cell(units.count(row.count), _NUMBER_CELLS, right=True),
                pen.cell(units.per_second(row.rate), _NUMBER_CELLS, palette.DIM, right=True),
                Segment("  "),
                *meter(row.count / most if most else 0.0, width, pen),
            ]

    def table(self, model: Model) -> Table[ClosedRow]:
        return table_of(model.closed, CLOSED_COLUMNS, "number")


SESSION_COLUMNS: Final[tuple[Column[FetchSessionRow], ...]] = (
    Column("id", "SESSION", 12, right=True),
    Column("epoch", "EPOCH", 10, text="{:,}".format, right=True),
    Column("partitions", "PARTITIONS", 10, text=units.count, right=True),
    Column("idle_seconds", "IDLE", 8, text=units.duration, right=True),
    Column("client_id", "CLIENT ID", 14, priority=1, grow=1),
    Column("client_host", "HOST", 15, priority=2),
    Column(
        "uses_topic_ids", "NAMED BY", 8, text=lambda value: "id" if value else "name", priority=1
    ),
)


class FetchSessionsView(View):
    """A table of the fetch sessions in the broker's cache."""

    name = "sessions"
    key = "e"
    short = "sess"
    title = "Fetch sessions"
    help = (
        "The incremental fetch sessions in the broker's cache. With a session, a Fetch request "
        "only names the partitions that changed."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "SESSION": "id of the session",
        "EPOCH": "number of fetches in it",
        "IDLE": "time since the last one",
        "NAMED BY": "whether topics are named by ids or by names",
    }
    empty = (
        "No fetch sessions yet. A consumer starts one with its first fetch: trionet consume TOPIC."
    )
    section: ClassVar[str | None] = "fetch_sessions"

    def table(self, model: Model) -> Table[FetchSessionRow]:
        return table_of(model.fetch_sessions, SESSION_COLUMNS, "number")
