"""Open connections: clients, age, and the phase of the current request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._pen import Line, Pen
from ..drawing._table import Column, Table, rows_of
from ..ui._view import Action, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import ConnectionRow
    from ..sources._source import Source

_LABEL_CELLS: Final = 18


def _software(row: ConnectionRow) -> str | None:
    return f"{row.software} {row.software_version}".strip() or None


def _peer(row: ConnectionRow) -> str:
    # Older brokers do not report the peer; the id contains it.
    return row.peer or row.id


def _quiet(row: ConnectionRow) -> Style | None:
    return palette.NOTE if row.is_muted else None


CONNECTION_COLUMNS: Final[tuple[Column[ConnectionRow], ...]] = (
    Column("peer", "PEER", 21, _peer),
    Column("client_id", "CLIENT ID", 12, lambda row: row.client_id, grow=2),
    Column("software", "SOFTWARE", 18, _software, priority=5, grow=1),
    Column("principal", "PRINCIPAL", 14, lambda row: row.principal, priority=6, grow=1),
    Column("listener", "LISTENER", 10, lambda row: row.listener, priority=7),
    Column("processor", "P", 2, lambda row: row.processor, right=True, priority=8),
    Column("phase", "PHASE", 10, lambda row: row.phase, style=_quiet),
    Column("request", "REQUEST", 12, lambda row: row.request, priority=4),
    Column(
        "request_seconds",
        "FOR",
        7,
        lambda row: row.request_seconds,
        units.duration,
        right=True,
        priority=4,
    ),
    Column("staged", "STG", 3, lambda row: row.staged, right=True, priority=6),
    Column("idle_seconds", "IDLE", 7, lambda row: row.idle_seconds, units.duration, right=True),
    Column(
        "age_seconds",
        "AGE",
        7,
        lambda row: row.age_seconds,
        units.duration,
        right=True,
        priority=3,
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
    Column("protocol", "TLS", 7, lambda row: row.protocol, priority=9),
    Column("mute_state", "MUTE", 0, lambda row: row.mute_state),
    Column("cipher", "CIPHER", 0, lambda row: row.cipher),
    Column("id", "ID", 0, lambda row: row.id),
)


async def _close(source: Source, row: ConnectionRow, answers: Sequence[str]) -> str:  # noqa: ARG001
    return await source.actions.close_connection(row.id)


CLOSE: Final = Action(
    "K",
    "close",
    "close",
    _close,
    question=lambda row, answers: f"Close the connection of {_peer(row)}?",  # noqa: ARG005
)


class ConnectionsView(View):
    """A table of the open connections."""

    name = "connections"
    key = "2"
    title = "Connections"
    help = (
        "The open connections of the broker. PHASE is the phase of the current request. A "
        "connection has one request in flight at a time and is muted until the response is sent. "
        "Frames that have already arrived are staged (STG). IDLE is the time since the last read "
        "or write. Enter shows the details of a connection."
    )
    section: ClassVar[str | None] = "connections"
    actions: Sequence[Action] = (CLOSE,)

    def table(self, model: Model) -> Table[ConnectionRow]:
        return Table(CONNECTION_COLUMNS, key=lambda row: row.number, **rows_of(model.connections))

    def opened(self, row: ConnectionRow) -> View:
        return ConnectionView(row)


class ConnectionView(View):
    """The details of one connection.

    Args:
        row: the row of the connection when this view was opened.
    """

    name = "connection"
    help = "The details of one connection and, after it was closed, the reason."
    section: ClassVar[str | None] = "connections"

    def __init__(self, row: ConnectionRow) -> None:
        self.title = _peer(row)
        self._row = row

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.connections.get(self._row.number)
        if row is None:
            yield from self._ended(model, pen)
            row = self._row
        yield from _fields(row, pen)

    def _ended(self, model: Model, pen: Pen) -> Iterator[Line]:
        closed = next((each for each in model.closed.values() if each.id == self._row.id), None)
        why = "" if closed is None else f": {closed.reason_text} {closed.detail}".rstrip()
        yield [pen.text(f" Closed{why}. The last known details:", palette.NOTE)]
        yield []


def _fields(row: ConnectionRow, pen: Pen) -> Iterator[Line]:
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
        ("request for", _known(row.request_seconds)),
        ("staged frames", row.staged),
        ("mute state", row.mute_state or ("MUTED" if row.is_muted else "NOT_MUTED")),
        ("requests", f"{row.requests:,}"),
        ("bytes received", f"{row.bytes_received:,} ({units.size(row.bytes_received)})"),
        ("bytes sent", f"{row.bytes_sent:,} ({units.size(row.bytes_sent)})"),
    ):
        if value is not None:
            name = pen.cell(f" {label}", _LABEL_CELLS, palette.BOLD)
            yield [name, Segment(" "), pen.text(value)]


def _known(seconds: float | None) -> str | None:
    return None if seconds is None else units.duration(seconds)
