"""The faults of a broker under test: what is armed, what it hit, and what clients did then."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


#: The faults that take a time, and the unit of a number without one, in seconds.
_TIMED: Final = {"delay": 1.0, "throttle": 0.001}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0}
#: What a fault can be limited to, and the broker's word for it.
_LIMITS: Final = {"client": "client_id", "topic": "topic"}
_ALL: Final = "all"
#: The faults that are not about requests, and the one limit that each takes.
_LIMITS_OF: Final = {"full-disk": "topic", "stop-reading": "client"}
_FORM: Final = "FAULT [APIS] [COUNT] [client=ID] [topic=NAME]"
_USAGE: Final = (
    "an error, close, reset, delay 1s, hold, swallow, cut, corrupt, throttle 1s, full-disk,"
    " stop-reading; then [APIS] [COUNT] [client=ID] [topic=NAME] (any, once)"
)


@attrs.frozen
class FaultOrder:
    """A fault to inject, as typed in one line, such as ``delay 100ms Fetch``.

    Attributes:
        name: the name of the fault.
        fault: the fault with its time, as it was typed.
        words: the parameters for the broker, without those left out.
    """

    name: str
    fault: str
    words: Mapping[str, str]

    @classmethod
    def parsed(cls, text: str) -> FaultOrder:
        """Return the fault that a line describes; the broker checks names.

        Raises:
            ValueError: the line does not have the form of one.
        """
        first, *rest = shlex.split(text) or [""]
        name, *others = first.split() or [""]  # a command may have it in quotes: "delay 0.5"
        rest = [*others, *rest]
        if not name:
            raise ValueError(f"expected {_FORM}")
        fault = shown = name
        if name in _TIMED:
            time = rest.pop(0) if rest else ""
            fault, shown = f"{name} {_number(name, time)}", f"{name} {time}"
        words = {"fault": fault}
        bare: list[str] = []
        for word in rest:
            limit, equals, value = word.partition("=")
            if not equals:
                bare.append(word)
            elif limit in _LIMITS and value:
                words[_LIMITS[limit]] = value
            else:
                raise ValueError(f"{word}: expected client=ID or topic=NAME")
        if bare and (bare[-1].isdecimal() or bare[-1] == _ALL):
            words["times"] = bare.pop()
        if len(bare) > 1:
            raise ValueError(f"{bare[1]}: expected a number of requests, or {_ALL}")
        if bare:
            words["apis"] = bare[0]
        if words.get("times", "1").strip("0") == "":
            raise ValueError(f"{words['times']}: expected 1 request or more, or {_ALL}")
        only = _LIMITS_OF.get(name)
        if only is not None and words.keys() - {"fault", _LIMITS[only]}:
            raise ValueError(f"{name} takes nothing but {only}=")
        return cls(name, shown, words)

    def __str__(self) -> str:
        """Return what it does, also by the defaults of what was left out."""
        words = self.words
        client = f"client {words['client_id']}" if "client_id" in words else "any client"
        topic = f"topic {words['topic']}" if "topic" in words else "any topic"
        if self.name == "full-disk":
            return f"{self.fault}: {topic}"
        if self.name == "stop-reading":
            return f"{self.fault}: {client}"
        times = words.get("times", "1")
        requests = {"1": "the next request", _ALL: "all requests"}.get(times)
        apis = words.get("apis", _ALL).replace(",", ", ")
        of = "any API" if apis == _ALL else apis
        which = requests or f"the next {times} requests"
        return f"{self.fault}: {which} of {of}, {client}, {topic}"


def _number(name: str, time: str) -> str:
    """Return the number of a fault that takes a time, in the broker's unit."""
    found = _TIME.fullmatch(time)
    if found is None:
        raise ValueError(f"{name} takes a time, such as {name} 100ms")
    unit = _TIMED[name]
    number = float(found[1]) * _UNITS.get(found[2], unit) / unit
    if unit == 1:
        return f"{number:g}"
    if abs(number - round(number)) > 1e-6:
        raise ValueError(f"{name} takes whole milliseconds")
    return str(round(number))


def _error(text: str) -> str | None:
    try:
        FaultOrder.parsed(text)
    except ValueError as error:
        return str(error)
    return None


def _preview(text: str) -> str:
    if not text.strip():
        return _USAGE
    try:
        return str(FaultOrder.parsed(text))
    except ValueError as error:
        return str(error)


async def _inject(source: Source, _row: object, answers: Sequence[str]) -> str:
    order = FaultOrder.parsed(answers[0])
    await source.actions.inject_fault(**order.words)
    return f"injected {order}"


INJECT: Final = Action(
    "I",
    "inject",
    "inject a fault",
    _inject,
    fields=(Field("such as delay 100ms Fetch", check=_error, takes_rest=True, preview=_preview),),
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
        "responds; close or reset, which end the connection instead of a response; delay TIME; "
        "hold, until the fault is removed; swallow, which never responds; cut, which sends half "
        "of a response; corrupt, which flips a bit of records; throttle TIME; full-disk or "
        "stop-reading. The next request of any API, client and topic meets it, unless APIs, a "
        "number of requests (or all), client=ID and topic=NAME follow, as in delay 100ms "
        "Produce,Fetch 3 topic=orders. Enter shows the requests one by one."
    )
    terms: ClassVar[Mapping[str, str]] = {
        "NO": "number of the fault",
        "HITS OF": "requests that it was applied to, and how many it is for",
        "LAST REACTION": "what the client of the last one did next",
    }
    empty = (
        "No faults yet. I injects one, such as delay 100ms Fetch; those that a test injects are "
        "listed here, too."
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
            text = f"{units.clock(request.time)} {request.api} of {client}: {request.reaction}"
            yield from pen.sentences(text)


REQUEST_COLUMNS: Final[tuple[Column[FaultedRow], ...]] = (
    Column("time", "TIME", 12, text=units.clock, priority=2),
    Column("api", "REQUEST", 16, grow=1),
    Column("client_id", "CLIENT ID", 14, grow=1),
    Column("errors", "RESPONSE", 20, lambda row: ", ".join(row.errors) or None, priority=1),
    Column("reaction", "WHAT THE CLIENT DID NEXT", 24, grow=4),
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
    empty = "No request has met this fault yet. It is for the next ones of the kinds it names."
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
