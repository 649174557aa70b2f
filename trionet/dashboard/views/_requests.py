"""The requests of a connection one by one, as they finish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import attrs
from rich.style import Style

from ..._util._text import counted
from ..drawing import _palette as palette
from ..drawing import _units as units
from ..drawing._cells import Line, Pen
from ..drawing._table import UNREAD, Column, Table, table_of
from ..ui._view import View
from ._apis import PHASE_NAMES, phase_bar, phase_lines

if TYPE_CHECKING:
    from ..model._model import Model
    from ..model._rows import RequestRow


def _api(row: RequestRow) -> str:
    version = "" if row.version is None else f" v{row.version}"
    return f"{row.api or 'unknown'}{version}"


def _error(row: RequestRow) -> str | None:
    if not row.error_code:
        return None
    from ...protocol import error_codes  # the first frame does not need it

    return error_codes.name_of(row.error_code)


def _phase_ms(index: int, row: RequestRow) -> float:
    return row.phases_ms[index]


def _alarm(_: RequestRow) -> Style:
    return palette.ALARM


#: The text shown until the first request.
NONE_YET: Final = (
    "No request has finished since this view was opened. The client's next requests appear here."
)
#: The headings of the phases, in their order.
_PHASES: Final = ("QUEUE", "LOCAL", "REMOTE", "THROTTLE", "RESP Q", "SEND")

REQUEST_COLUMNS: Final[tuple[Column[RequestRow], ...]] = (
    Column("time", "TIME", 12, text=units.clock, priority=4),
    Column("api", "REQUEST", 16, _api, grow=1),
    Column("request_bytes", "SIZE", 8, text=units.size, right=True, priority=2),
    Column("response_bytes", "RESPONSE", 8, text=units.size, right=True, priority=3),
    *(
        Column(
            f"{name.replace(' ', '_')}_ms",
            title,
            8,
            partial(_phase_ms, index),
            units.milliseconds,
            right=True,
            # The phases in which time is spent are the last to be left out.
            priority={"local": 0, "remote": 0, "queue": 1, "throttle": 1}.get(name, 5),
        )
        for index, (name, title) in enumerate(zip(PHASE_NAMES, _PHASES, strict=True))
    ),
    Column("total_ms", "TOTAL", 8, partial(_phase_ms, -1), units.milliseconds, right=True),
    Column("phases", "PHASES", 12, None, priority=6, grow=2, draw=phase_bar),
    Column("error", "ERROR", 10, _error, priority=1, grow=1, style=_alarm),
    Column("client_id", "CLIENT ID", 0),
    Column("number", "NUMBER", 0),
)


class RequestsView(View):
    """The requests of one connection.

    Args:
        connection: the id of the connection.
    """

    help: ClassVar[str] = (
        "The requests of a connection as they finish, the newest first, from the moment in which "
        "this view was opened. While the cursor is in the first row, it follows them; in any other "
        "row it stays with its request, and p freezes the screen. If requests finish faster than "
        "they can be shown, some are skipped and counted. Enter shows one request, and d the "
        "details of the connection."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "SIZE": "size of the request",
        "RESPONSE": "size of the response",
        "QUEUE": "time in the request queue",
        "LOCAL": "time in the handler",
        "REMOTE": "time in which it waited for data or other brokers",
        "THROTTLE": "time for which the client is throttled",
        "RESP Q": "time in the response queue",
        "SEND": "time in which the response was sent",
        "TOTAL": "all of these",
        "ERROR": "the first error in the response",
    }
    opens = "request"
    section: ClassVar[str | None] = "requests"

    def __init__(self, connection: str) -> None:
        self.section_key = connection

    def summary(self, model: Model, pen: Pen) -> Iterable[Line]:
        if model.requests_of == self.section_key and model.requests_skipped:
            skipped = f" {counted(model.requests_skipped, 'request')} skipped"
            yield [pen.text(skipped, palette.NOTE)]

    def table(self, model: Model) -> Table[RequestRow]:
        found = table_of(model.requests, REQUEST_COLUMNS, "number")
        if model.requests_of != self.section_key:
            why = model.connections.missing or UNREAD
            return attrs.evolve(found, rows=(), missing=why, version=self.section_key)
        if not model.requests and found.missing is None:
            return attrs.evolve(found, missing=model.requests.failure or NONE_YET)
        return found

    def opened(self, row: RequestRow) -> View:
        return RequestView(row)

    def details(self, row: RequestRow, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002
        return phase_lines(row.phases_ms, pen)


class RequestView(View):
    """One request.

    Args:
        row: the request.
    """

    name = "request"
    help = "One request with the time that it spent in each phase."

    def __init__(self, row: RequestRow) -> None:
        self.title = _api(row)
        self._row = row

    def lines(self, model: Model, pen: Pen) -> Iterable[Line]:  # noqa: ARG002 - never changes
        row = self._row
        sizes = f"{units.size(row.request_bytes)} in, {units.size(row.response_bytes)} out"
        yield [
            pen.text(
                f" {units.moment(row.time)}  {row.client_id or 'no client id'}  {sizes}",
                palette.DIM,
            )
        ]
        error = _error(row)
        if error is not None:
            yield [pen.text(f" ! {error}", palette.ALARM)]
        yield []
        yield from phase_lines(row.phases_ms, pen)
