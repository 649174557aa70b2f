"""The faults of a broker under test: what is armed, what it hit, and what clients did then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, table_of
from ..ui._view import Action, Field, View

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import FaultedRow, FaultRow
    from ..sources._source import Source

#: The states in which a fault still does something.
ACTIVE: Final = ("armed", "holding")


def _time(seconds: float) -> str:
    """Format the time of day in the dashboard's local time zone."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S.%f")[:12]


def _state_style(row: FaultRow) -> Style | None:
    if row.state in ACTIVE:
        return palette.NOTE
    return palette.ALARM if row.state.startswith("failed") else palette.DIM


def _hits(row: FaultRow) -> str:
    return f"{row.hits:,}" if row.times is None else f"{row.hits:,} of {row.times:,}"


def _last(row: FaultRow) -> str | None:
    return row.requests[0].reaction if row.requests else None


FAULT_COLUMNS: Final[tuple[Column[FaultRow], ...]] = (
    Column("number", "NO", 3, right=True),
    Column("state", "STATE", 8, style=_state_style),
    Column("action", "FAULT", 22, grow=2),
    Column("which", "REQUESTS", 16, grow=2, priority=1),
    Column("hits", "HITS", 6, text=units.count, right=True),
    Column("times", "OF", 4, text=units.count, right=True, priority=3),
    Column("reaction", "LAST REACTION", 22, _last, grow=3, priority=2),
)


async def _inject(source: Source, _row: object, answers: Sequence[str]) -> str:
    fault, apis, times, client_id, topic = answers
    given = {"fault": fault, "apis": apis, "times": times, "client_id": client_id, "topic": topic}
    return await source.actions.inject_fault(**{key: text for key, text in given.items() if text})


INJECT: Final = Action(
    "I",
    "inject",
    "inject a fault",
    _inject,
    fields=(
        Field("fault (error name, close, reset, delay 0.5, hold, swallow, cut, corrupt, …)"),
        Field("requests (APIs such as Produce,Fetch; empty: all)", is_optional=True),
        Field("how many requests (empty: 1; all)", is_optional=True),
        Field("of the client id (empty: any)", is_optional=True),
        Field("about the topic (empty: any)", is_optional=True),
    ),
    needs_row=False,
)
REMOVE: Final = Action(
    "X",
    "remove",
    "remove",
    lambda source, row, _: source.actions.remove_fault(row.number),
    question=lambda row, _: f"Remove the fault {row.number}, {row.action}?",
)


class FaultsView(View):
    """A table of the faults, the newest first."""

    name = "faults"
    key = "u"
    title = "Faults"
    help = (
        "The faults of a broker under test: those that tests have injected, and those injected "
        "here with I. A fault is an error such as NOT_LEADER_OR_FOLLOWER, with which the broker "
        "responds; close or reset, which end the connection instead of a response; delay SECONDS; "
        "hold, until the fault is removed; swallow, which never responds; cut, which sends half "
        "of a response; corrupt, which flips a bit of records; throttle MS; full-disk or "
        "stop-reading. HITS counts the requests it was applied to, of so many that it is for, and "
        "LAST REACTION is what the client of the last one did next. Enter shows the requests one "
        "by one."
    )
    opens = "requests"
    section: ClassVar[str | None] = "faults"
    actions: Sequence[Action] = (INJECT, REMOVE)

    def table(self, model: Model) -> Table[FaultRow]:
        return table_of(model.faults, FAULT_COLUMNS, "number", ages=False)

    def opened(self, row: FaultRow) -> View:
        return FaultView(row)

    def details(self, row: FaultRow, model: Model, pen: Pen) -> Iterator[Line]:  # noqa: ARG002
        for request in row.requests:
            client = request.client_id or request.connection
            text = f"{_time(request.time)} {request.api} of {client}: {request.reaction}"
            yield from pen.sentences(text)


REQUEST_COLUMNS: Final[tuple[Column[FaultedRow], ...]] = (
    Column("time", "TIME", 12, text=_time),
    Column("api", "REQUEST", 16),
    Column("client_id", "CLIENT ID", 14, grow=1),
    Column("errors", "RESPONSE", 20, lambda row: ", ".join(row.errors) or None, priority=1),
    Column("reaction", "WHAT THE CLIENT DID NEXT", 30, grow=4),
    Column("connection", "CONNECTION", 0),
)


class FaultView(View):
    """The requests to which one fault was applied.

    Args:
        row: the fault when this view was opened.
    """

    name = "fault"
    help = (
        "The last requests to which the fault was applied, the newest first, and what their "
        "clients did next: which request came first, whether the request was retried, on the same "
        "connection or after a reconnect, and with which result."
    )
    section: ClassVar[str | None] = "faults"

    def __init__(self, row: FaultRow) -> None:
        self.title = f"{row.number}: {row.action}"
        self._number = row.number

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        row = model.faults.get(self._number)
        if row is not None:
            text = f" {row.state}  {row.which}  {_hits(row)} requests"
            yield [pen.text(text, palette.DIM)]

    def table(self, model: Model) -> Table[FaultedRow]:
        row = model.faults.get(self._number)
        found: Table[Any] = table_of(model.faults, (), "time", "connection", ages=False)
        rows = () if row is None else row.requests
        return attrs.evolve(found, columns=REQUEST_COLUMNS, rows=rows, total=None)

    def details(self, row: FaultedRow, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002
        return pen.sentences(row.reaction)
