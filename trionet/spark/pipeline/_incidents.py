"""Incidents: the anomalies of one cause, as one thing with a start, an end, a worst minute, a who.

A slow disk is an anomaly of many APIs, clients and measures, minute after minute; an operator wants
to hear of it once. An anomaly belongs to an open incident if it begins within ``ONSET_MINUTES`` of
it, or if it is of the same measure as one of the incident's, and the scope of one is a part of the
other's. An anomaly of another measure belongs to it only if its scope has one of the incident's as
a part, and is not the whole broker, of which everything is a part: otherwise, while the broker has
more requests than usual, the errors of a client would be no incident. An incident is over after
``QUIET_MINUTES`` without anomalies. Its description is that of its worst minute.

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

from ._signals import ALL_APIS, WIDE

#: Anomalies that begin in so many minutes after the first belong to the same incident.
ONSET_MINUTES: Final = 2
#: An incident is over after so many minutes without anomalies.
QUIET_MINUTES: Final = 5
#: A part explains the whole from this share on.
EXPLAINS_MIN: Final = 0.7
#: The most pairs of a measure and a scope remembered of an incident.
SCOPES_MAX: Final = 100

#: The measures by what they say of a cause, the most first: errors are the consequence of a slow
#: broker less often than fewer requests are.
MEASURES: Final = (
    "error_share",
    "broker_p50_us",
    "broker_p99_us",
    "throttled_share",
    "connections_closed",
    "clients",
    "requests_per_s",
)
_DIMENSIONS: Final = ("api_key", "client_id", "listener", "reason")

Anomaly = Mapping[str, Any]
#: API key, client id, listener and reason; None where it is not limited to one.
Scope = tuple[Any, ...]
_WHOLE_BROKER: Final[Scope] = (None,) * len(_DIMENSIONS)


@attrs.frozen(kw_only=True)
class Worst:
    """The description of an incident, by its worst minute.

    Attributes:
        window: the minute.
        measure: the measure that says most of the cause.
        phase: the phase whose mean time has grown most; None for other measures than times.
        api_key, client_id, listener, reason: what is affected; None if several are.
        value, expected, score: the most unusual value of the measure.
    """

    window: int
    measure: str
    phase: str | None
    api_key: int | None
    client_id: str | None
    listener: str | None
    reason: str | None
    value: float
    expected: float
    score: float

    @property
    def rank(self) -> tuple[int, float]:
        """By what to compare minutes: the greater, the worse."""
        return -MEASURES.index(self.measure), abs(self.score)


@attrs.frozen(kw_only=True)
class Incident:
    """An incident that is not over.

    Attributes:
        id: its start in UTC; no two incidents start in the same minute.
        first: the minute of its first anomaly.
        last: the minute of its last anomaly.
        anomalies: the number of anomalies.
        worst: what it is.
        scopes: the measures and scopes of its anomalies, at most ``SCOPES_MAX``.
    """

    id: str
    first: int
    last: int
    anomalies: int
    worst: Worst
    scopes: tuple[tuple[str, Scope], ...]

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Incident:
        """Rebuild an incident from the output of ``attrs.asdict``, after JSON."""
        scopes = tuple((measure, tuple(each)) for measure, each in values["scopes"])
        worst = Worst(**known_fields(Worst, values["worst"]))
        return cls(**{**known_fields(cls, values), "worst": worst, "scopes": scopes})

    def concerns(self, anomaly: Anomaly) -> bool:
        """Return whether an anomaly of a later minute belongs to this incident."""
        if anomaly["window"] - self.first <= ONSET_MINUTES:
            return True
        own = scope(anomaly)
        for measure, each in self.scopes:
            if measure == anomaly["measure"]:
                if _has_part(own, each) or _has_part(each, own):
                    return True
            elif own != _WHOLE_BROKER and _has_part(own, each):
                return True
        return False


def known_fields(of: type[attrs.AttrsInstance], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an attrs class's fields, without those that another version has."""
    return {name: value for name, value in values.items() if name in attrs.fields_dict(of)}


def scope(anomaly: Anomaly) -> Scope:
    """Return what an anomaly is limited to."""
    api_key = None if anomaly["api_key"] == ALL_APIS else anomaly["api_key"]
    return (api_key, *(anomaly[name] for name in _DIMENSIONS[1:]))


def _has_part(whole: Scope, part: Scope) -> bool:
    return all(a is None or a == b for a, b in zip(whole, part, strict=True))


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
            anomalies: their anomalies, in the order of their minutes.
        """
        by_window = {
            window: list(each) for window, each in groupby(anomalies, lambda each: each["window"])
        }
        for window in windows:
            self._add_minute(window, by_window.get(window, []))

    def _add_minute(self, window: int, anomalies: Sequence[Anomaly]) -> None:
        assigned: dict[int, list[Anomaly]] = {}
        number = len(self.open)
        for each in anomalies:
            known = (n for n, incident in enumerate(self.open) if incident.concerns(each))
            # What begins in the same minute has the same cause.
            place = next(known, number)
            assigned.setdefault(place, []).append(each)
            self.incident_of.append(self.open[place].id if place < number else _id(window))
        for place, found in assigned.items():
            if place < number:
                self.open[place] = _continued(self.open[place], window, found)
            else:
                self.open.append(_begun(window, found))
        for place in sorted(assigned):
            self.rows.append(MinuteOfIncident(window, self.open[place], is_over=False))
        for incident in [each for each in self.open if window - each.last >= QUIET_MINUTES]:
            self.open.remove(incident)
            self.rows.append(MinuteOfIncident(window, incident, is_over=True))


def _id(window: int) -> str:
    return datetime.fromtimestamp(window * 60, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _begun(window: int, anomalies: Sequence[Anomaly]) -> Incident:
    return Incident(
        id=_id(window),
        first=window,
        last=window,
        anomalies=len(anomalies),
        worst=described(anomalies),
        scopes=_scopes((), anomalies),
    )


def _continued(incident: Incident, window: int, anomalies: Sequence[Anomaly]) -> Incident:
    return attrs.evolve(
        incident,
        last=window,
        anomalies=incident.anomalies + len(anomalies),
        worst=max(incident.worst, described(anomalies), key=lambda each: each.rank),
        scopes=_scopes(incident.scopes, anomalies),
    )


def _scopes(
    known: Sequence[tuple[str, Scope]], anomalies: Sequence[Anomaly]
) -> tuple[tuple[str, Scope], ...]:
    found = ((each["measure"], scope(each)) for each in anomalies)
    return tuple(dict.fromkeys([*known, *found]))[:SCOPES_MAX]


def described(anomalies: Sequence[Anomaly]) -> Worst:
    """Describe what the anomalies of a minute have in common.

    The measure that says most of the cause is looked at. A client is named if it explains the
    deviation of the whole broker or API, an API, listener or reason if there is no other.
    """
    measure = min((each["measure"] for each in anomalies), key=MEASURES.index)
    found = [each for each in anomalies if each["measure"] == measure]
    client = _culprit(found)
    if client is not None:
        found = [each for each in found if each["client_id"] == client]
    worst = max(found, key=lambda each: abs(each["score"]))
    common = {name: _common(found, at) for at, name in enumerate(_DIMENSIONS)}
    if common["reason"] is None:  # connections that close are often the consequence
        common["reason"] = _common(anomalies, _DIMENSIONS.index("reason"))
    return Worst(
        window=worst["window"],
        measure=measure,
        phase=worst["phase"],
        **{**common, "client_id": client},
        value=worst["value"],
        expected=worst["expected"],
        score=worst["score"],
    )


def _common(anomalies: Sequence[Anomaly], at: int) -> Any:
    values = {each for anomaly in anomalies if (each := scope(anomaly)[at]) is not None}
    return next(iter(values)) if len(values) == 1 else None


def _culprit(anomalies: Sequence[Anomaly]) -> str | None:
    """Return the client that explains a deviation; None if there is none."""
    by_client: dict[str, float] = {}
    whole = 0.0
    for each in anomalies:
        if each["level"] in WIDE:
            whole = max(whole, _excess(each))
        elif each["client_id"] is not None:
            known = by_client.get(each["client_id"], 0.0)
            by_client[each["client_id"]] = max(known, _excess(each))
    if not by_client:
        return None
    client, excess = max(by_client.items(), key=lambda item: item[1])
    is_enough = excess >= EXPLAINS_MIN * max(whole, sum(by_client.values()))
    return client if is_enough else None


def _excess(anomaly: Anomaly) -> float:
    """Return how much of a measure is unusual, for comparing a part with the whole."""
    excess = abs(anomaly["value"] - anomaly["expected"])
    # A share counts for as many requests as it is of, and so does a time.
    return float(excess if anomaly["measure"] == "requests_per_s" else excess * anomaly["requests"])


def changes(rows: Iterable[MinuteOfIncident]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of incidents."""
    for row in rows:
        incident, worst = row.incident, attrs.asdict(row.incident.worst)
        yield {
            "window": row.window,
            "incident": incident.id,
            "state": "over" if row.is_over else "open",
            "start": incident.first,
            "end": incident.last + 1,
            "worst": worst.pop("window"),
            **worst,
            "anomalies": incident.anomalies,
        }


#: The rows of the table of incidents before Spark has computed its columns.
ROWS: Final = pa.schema(
    [
        ("window", pa.int64()),
        *((name, pa.string()) for name in ("incident", "state")),
        *((name, pa.int64()) for name in ("start", "end", "worst")),
        *((name, pa.string()) for name in ("measure", "phase")),
        ("api_key", pa.int32()),
        *((name, pa.string()) for name in ("api", "client_id", "listener", "reason")),
        *((name, pa.float64()) for name in ("value", "expected", "score")),
        ("anomalies", pa.int64()),
    ]
)
