"""Incidents: the anomalies of one fault, with a start, an end, a worst minute and a culprit.

A slow disk is an anomaly of many APIs, clients and measures, minute after minute; an operator wants
to hear of it once. Two faults at a time must remain two.

Anomalies are first of a cause, such as the slow requests of one client; see
:mod:`._causes`. Causes are one incident if they begin within ``ONSET_MINUTES`` and are of
the same client, or of no single client and the same measure, or have a scope in common; later, only
if the culprit is the same and one scope is a part of the other's while both last. The whole broker,
of which everything is a part, does not count then. An incident is over after ``QUIET_MINUTES``
without anomalies. It is described by the cause that says most.

This is plain Python on the driver: anomalies are few. Minutes are handled one after the other, and
the open incidents are part of the job's state, so that it makes no difference where micro-batches
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import attrs
import pyarrow as pa

from .._estimates import api_name
from ._causes import Cause, Growing, Minute, Worst, known_fields, only_cause
from ._culprits import Anomaly, attributed

#: An incident is over after so many minutes without anomalies.
QUIET_MINUTES: Final = 5
#: The most causes of an incident.
CAUSES_MAX: Final = 20


@attrs.frozen(kw_only=True)
class Incident:
    """An incident that is not over.

    Attributes:
        id: its start in UTC, and a number if it is not the first one of that minute.
        first: the minute of its first anomaly.
        last: the minute of its last anomaly.
        anomalies: the number of anomalies.
        causes: its causes, by their beginning.
    """

    id: str
    first: int
    last: int
    anomalies: int
    causes: tuple[Cause, ...]

    @property
    def worst(self) -> Worst:
        """What it is: the cause that says most."""
        worst = max((each.worst for each in self.causes), key=lambda each: each.rank)
        if worst.reason is None:  # connections that close are often the consequence
            reasons = {each.worst.reason for each in self.causes} - {None}
            if len(reasons) == 1:
                return attrs.evolve(worst, reason=reasons.pop())
        return worst

    def grown(self, growing: Growing, cause: Cause) -> Incident:
        """Return the incident with what a minute has added to one of its causes, or a new one."""
        causes = [cause if each is growing.cause else each for each in self.causes]
        return attrs.evolve(
            self,
            last=cause.last,
            anomalies=self.anomalies + sum(not each.row["is_part"] for each in growing.found),
            causes=tuple(causes if growing.cause is not None else [*causes, cause]),
        )

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Incident:
        """Rebuild an incident from the output of ``attrs.asdict``, after JSON."""
        if "causes" not in values:  # from an earlier version, which has kept only the worst of them
            values = {**values, "causes": [only_cause(values)]}
        causes = tuple(map(Cause.from_values, values["causes"]))
        return cls(**{**known_fields(cls, values), "causes": causes})


@attrs.frozen
class MinuteOfIncident:
    """An incident as it is at the end of a minute in which something about it has changed.

    Attributes:
        window: the minute.
        incident: the incident.
        is_over: whether it has ended; its last minute is ``incident.last``.
    """

    window: int
    incident: Incident
    is_over: bool


@attrs.define
class IncidentTracker:
    """Assigns anomalies to incidents, minute by minute.

    Attributes:
        open: the incidents that are not over.
        rows: what has changed, in the order of the minutes.
        incident_of: the incident of each anomaly, in the order in which they were added.
    """

    open: list[Incident]
    rows: list[MinuteOfIncident] = attrs.field(factory=list)
    incident_of: list[str] = attrs.field(factory=list)

    def add(self, windows: Iterable[int], anomalies: Sequence[Anomaly]) -> None:
        """Add minutes.

        Args:
            windows: the minutes with records, ascending.
            anomalies: their anomalies and parts, in the order of their minutes.
        """
        by_window = {
            window: list(each) for window, each in groupby(anomalies, lambda each: each["window"])
        }
        for window in windows:
            self._add_minute(window, by_window.get(window, []))

    def _add_minute(self, window: int, rows: Sequence[Anomaly]) -> None:
        minute = Minute.of(window, [each.causes for each in self.open])
        minute.add(attributed(rows))
        incident_of = self._grow(minute)
        self.incident_of += [incident_of[id(row)] for row in rows if not row["is_part"]]
        for incident in self.open:
            if incident.last == window:
                self.rows.append(MinuteOfIncident(window, incident, is_over=False))
        known, self.open = self.open, []
        for incident in known:
            if window - incident.last < QUIET_MINUTES:
                self.open.append(incident)
            else:
                self.rows.append(MinuteOfIncident(window, incident, is_over=True))

    def _grow(self, minute: Minute) -> dict[int, str]:
        """Let the causes of a minute grow and begin; return the incident of each row by its id."""
        incident_of: dict[int, str] = {}
        # Of causes of different clients, only those of no single one can be of the same fault.
        places: dict[str | None, set[int]] = {}
        earlier = len(self.open)
        for at, incident in enumerate(self.open):
            for known in incident.causes:
                places.setdefault(known.deviation.client_id, set()).add(at)
        for each in minute.causes:
            if not each.found:
                continue
            cause = each.grown(minute.window)
            place = each.place
            if place is None:
                client = each.deviation.client_id
                among = places.get(client, set()) | places.get(None, set())
                place = self._place(cause, range(len(self.open)) if client is None else among)
                if place is None:
                    place = len(self.open)
                    self.open.append(_begun(cause, place - earlier))
                places.setdefault(client, set()).add(place)
            incident = self.open[place].grown(each, cause)
            self.open[place] = incident
            incident_of |= {id(found.row): incident.id for found in each.found}
        return incident_of

    def _place(self, cause: Cause, among: Iterable[int]) -> int | None:
        """Return where the incident is that a new cause belongs to; None if it is a new one."""
        for place in sorted(among):
            known = self.open[place].causes
            if len(known) < CAUSES_MAX and any(map(cause.belongs_with, known)):
                return place
        return None


def _begun(cause: Cause, others: int) -> Incident:
    """Return the incident of a cause, after so many others that begin in the same minute."""
    begin = datetime.fromtimestamp(cause.first * 60, UTC).strftime("%Y-%m-%dT%H:%MZ")
    name = f"{begin}/{others + 1}" if others else begin
    return Incident(id=name, first=cause.first, last=cause.first, anomalies=0, causes=())


def changes(rows: Iterable[MinuteOfIncident]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of incidents."""
    for row in rows:
        incident = row.incident
        causes = sorted(incident.causes, key=lambda each: each.first)
        yield {
            "window": row.window,
            "incident": incident.id,
            "state": "over" if row.is_over else "open",
            "start": incident.first,
            "end": incident.last + 1,
            **_described(incident.worst),
            "worst": incident.worst.window,
            "anomalies": incident.anomalies,
            "causes": [
                {
                    "start": _time(each.first),
                    "end": _time(each.last + 1),
                    "worst": _time(each.worst.window),
                    **_described(each.worst),
                }
                for each in causes
            ],
        }


def _described(worst: Worst) -> dict[str, Any]:
    values = attrs.asdict(worst, filter=lambda field, _: field.name != "window")
    return {**values, "api": None if worst.api_key is None else api_name(worst.api_key)}


def _time(window: int) -> str:
    return datetime.fromtimestamp(window * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_WORST: Final = (
    *((name, pa.string()) for name in ("measure", "phase")),
    ("api_key", pa.int32()),
    *((name, pa.string()) for name in ("api", "client_id", "listener", "reason")),
    *((name, pa.float64()) for name in ("value", "expected", "score")),
)
#: The rows of the table of incidents before Spark has computed its columns.
ROWS: Final = pa.schema(
    [
        ("window", pa.int64()),
        *((name, pa.string()) for name in ("incident", "state")),
        *((name, pa.int64()) for name in ("start", "end", "worst")),
        *_WORST,
        ("anomalies", pa.int64()),
        (
            "causes",
            pa.list_(
                pa.struct([*((name, pa.string()) for name in ("start", "end", "worst")), *_WORST])
            ),
        ),
    ]
)
