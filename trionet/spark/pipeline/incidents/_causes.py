"""The causes of incidents: which anomalies are of one, and how it is described.

Anomalies are of one cause if they deviate in the same way (measure, direction, culprit; see
:mod:`._culprits`), and the scope of one is a part of the other's, or they begin within
``ONSET_MINUTES``. A cause has a time of its own, and is described by its worst minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from .._signals import WIDE
from ._culprits import (
    WHOLE_BROKER,
    Attributed,
    Deviation,
    Scope,
    has_part,
    is_of_many_apis,
)

#: Anomalies that begin in so many minutes after the first may have the same cause.
ONSET_MINUTES: Final = 2
#: The most scopes remembered of a cause.
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
#: The measures that are often the effect of another one.
EFFECTS: Final = frozenset(MEASURES[-3:])
_DIMENSIONS: Final = ("api_key", "client_id", "listener", "reason")


def known_fields(of: type[attrs.AttrsInstance], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an attrs class's fields, without those that another version has."""
    return {name: value for name, value in values.items() if name in attrs.fields_dict(of)}


@attrs.frozen(kw_only=True)
class Worst:
    """The description of a cause, by its worst minute.

    Attributes:
        window: the minute.
        measure: the measure.
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
class Cause:
    """What deviates in one way, in an incident.

    Attributes:
        first: the minute of its first anomaly.
        last: the minute of its last anomaly.
        last_whole: the last minute with an anomaly that is not of one client; -1 for none.
        deviation: how it deviates.
        worst: what it is.
        scopes: the scopes of its anomalies, at most ``SCOPES_MAX``.
    """

    first: int
    last: int
    last_whole: int
    deviation: Deviation
    worst: Worst
    scopes: tuple[Scope, ...]

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Cause:
        """Rebuild a cause from the output of ``attrs.asdict``, after JSON."""
        parts = {
            "deviation": Deviation(**known_fields(Deviation, values["deviation"])),
            "worst": Worst(**known_fields(Worst, values["worst"])),
            "scopes": tuple(map(tuple, values["scopes"])),
        }
        return cls(**{**known_fields(cls, values), **parts})

    def goes_on_with(self, found: Attributed, window: int) -> bool:
        """Return whether what was found in a minute is of this cause."""
        if found.deviation != self.deviation:
            return False
        if window - self.first <= ONSET_MINUTES or _is_related(self.scopes, (found.scope,)):
            return True
        return self.last >= window - 1 and is_of_many_apis(self.scopes, found.scope[2])

    def holds(self, found: Attributed, window: int) -> bool:
        """Return whether all clients have this, and what was found is a part of it."""
        mine, other = self.deviation, found.deviation
        if mine.client_id is not None or self.last_whole < window - 1:
            return False
        if (mine.measure, mine.is_more) != (other.measure, other.is_more):
            return False
        return any(has_part(each, found.scope) for each in self.scopes)

    def belongs_with(self, other: Cause) -> bool:
        """Return whether this cause, which has just begun, is of the same fault as another one."""
        mine, its = self.deviation, other.deviation
        is_same_client = mine.client_id == its.client_id
        if self.first - other.first > ONSET_MINUTES:
            lasts = other.last >= self.first - 1
            return is_same_client and lasts and _is_related(self.scopes, other.scopes)
        if is_same_client and (mine.client_id is not None or mine.measure == its.measure):
            return True
        is_effect = mine.measure == its.measure or not EFFECTS.isdisjoint(
            (mine.measure, its.measure)
        )
        is_of_all = None in (mine.client_id, its.client_id)
        return is_of_all and (is_same_client or is_effect) and _overlap(self.scopes, other.scopes)


def _is_related(some: Iterable[Scope], others: Sequence[Scope]) -> bool:
    """Return whether a scope is a part of another one, which is not the whole broker."""
    return any(
        each == other
        or (WHOLE_BROKER not in (each, other) and (has_part(each, other) or has_part(other, each)))
        for each in some
        for other in others
    )


def _overlap(some: Iterable[Scope], others: Sequence[Scope]) -> bool:
    """Return whether something may be in two scopes."""
    return any(
        all(None in (a, b) or a == b for a, b in zip(each, other, strict=True))
        for each in some
        for other in others
    )


def only_cause(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of the only cause that an earlier version has kept of an incident."""
    worst = values["worst"]
    client = worst["client_id"]
    deviation = Deviation.of(worst)
    if client is None:
        deviation = attrs.evolve(deviation, phase=worst["phase"])
    else:
        deviation = deviation.of_client(client)
    return {
        **{name: values[name] for name in ("first", "last")},
        "last_whole": values["last"] if client is None else -1,
        "deviation": attrs.asdict(deviation),
        "worst": worst,
        "scopes": [[worst[name] for name in _DIMENSIONS]],
    }


@attrs.define(eq=False)
class Growing:
    """A cause, and what a minute adds to it.

    Attributes:
        deviation: how it deviates.
        cause: the cause up to now; None if it begins.
        place: where its incident is.
        found: the anomalies and parts of the minute.
        scopes: their scopes, without those of sums.
    """

    deviation: Deviation
    cause: Cause | None = None
    place: int | None = None
    found: list[Attributed] = attrs.field(factory=list)
    scopes: list[Scope] = attrs.field(factory=list)

    def is_for(self, found: Attributed, window: int) -> bool:
        """Return whether it has been there before, or has begun with the same."""
        return self.cause is None or self.cause.goes_on_with(found, window)

    def is_part_of(self, found: Attributed) -> bool:
        """Return whether an anomaly may be the sum of what this cause has, now or before."""
        known = self.scopes or (self.cause.scopes if self.cause else ())
        return any(has_part(found.scope, each) for each in known)

    @property
    def excess(self) -> float:
        return max((abs(each.row["excess"]) for each in self.found), default=0.0)

    def grown(self, window: int) -> Cause:
        """Return the cause at the end of the minute."""
        worst = described(self.found)
        first, last_whole, scopes = window, -1, tuple(dict.fromkeys(self.scopes))
        if self.cause is not None:
            first, last_whole = self.cause.first, self.cause.last_whole
            scopes = tuple(dict.fromkeys([*self.cause.scopes, *self.scopes]))
            worst = max(self.cause.worst, worst, key=lambda each: each.rank)
        if any(each.row["level"] in WIDE for each in self.found):
            last_whole = window
        return Cause(
            first=first,
            last=window,
            last_whole=last_whole,
            deviation=self.deviation,
            worst=worst,
            scopes=scopes[:SCOPES_MAX],
        )


@attrs.define
class Minute:
    """The causes of the open incidents, and those that begin in a minute.

    Attributes:
        window: the minute.
        causes: the causes.
        by_deviation: the same, by how they deviate.
        of_everyone: the causes of open incidents that are not of one client.
    """

    window: int
    causes: list[Growing] = attrs.field(factory=list)
    by_deviation: dict[Deviation, list[Growing]] = attrs.field(factory=dict)
    of_everyone: list[Growing] = attrs.field(factory=list)

    @classmethod
    def of(cls, window: int, causes: Iterable[Sequence[Cause]]) -> Minute:
        """Return a minute in which nothing has been found yet.

        Args:
            window: the minute.
            causes: those of each incident.
        """
        minute = cls(window)
        for place, of_incident in enumerate(causes):
            for cause in of_incident:
                minute._append(Growing(cause.deviation, cause, place))
        return minute

    def _append(self, growing: Growing) -> None:
        self.causes.append(growing)
        self.by_deviation.setdefault(growing.deviation, []).append(growing)
        if growing.cause is not None and growing.deviation.client_id is None:
            self.of_everyone.append(growing)

    def add(self, found: Iterable[Attributed]) -> None:
        """Add the anomalies of the minute to the causes that they are of."""
        items = list(found)
        of_row: dict[int, Growing] = {}
        # Sums come after what they may be sums of, and parts of a whole after it.
        items.sort(key=lambda each: (each.whole is not None, each.sums))
        for each in items:
            growing, is_scope = self._cause_of(each, of_row)
            growing.found.append(each)
            of_row[id(each.row)] = growing
            if is_scope:
                growing.scopes.append(each.scope)

    def _cause_of(self, found: Attributed, of_row: Mapping[int, Growing]) -> tuple[Growing, bool]:
        """Return the cause of an anomaly, and whether the cause has the anomaly's scope now."""
        same = self.by_deviation.get(found.deviation, ())
        if found.whole is not None:
            for each in same:  # it was there before the others had it
                since = self.window if each.cause is None else each.cause.first
                if self.window - since > ONSET_MINUTES and each.is_for(found, self.window):
                    return each, True
            return of_row[id(found.whole)], False
        if found.sums:
            terms = [each for each in same if each.is_part_of(found)]
            if terms:
                return max(terms, key=lambda each: each.excess), False
        for each in same:
            if each.is_for(found, self.window):
                return each, True
        for each in self.of_everyone:
            if each.cause is not None and each.cause.holds(found, self.window):
                return each, False
        growing = Growing(found.deviation)
        self._append(growing)
        return growing, True


def described(found: Sequence[Attributed]) -> Worst:
    """Describe what the anomalies of a cause have in common in a minute.

    The measure that says most of the cause is looked at, and the culprit's own values, or those of
    the wholes. An API, listener or reason is named if there is no other.
    """
    measure = min((each.row["measure"] for each in found), key=MEASURES.index)
    of_measure = [each for each in found if each.row["measure"] == measure]
    client = found[0].deviation.client_id
    own = [each for each in of_measure if (each.row["level"] in WIDE) == (client is None)]
    chosen = own or of_measure
    worst = max((each.row for each in chosen), key=lambda row: abs(row["score"]))
    common = {name: _common(chosen, at) for at, name in enumerate(_DIMENSIONS)}
    return Worst(
        window=worst["window"],
        measure=measure,
        phase=worst["phase"],
        **{**common, "client_id": client},
        value=worst["value"],
        expected=worst["expected"],
        score=worst["score"],
    )


def _common(found: Sequence[Attributed], at: int) -> Any:
    values = {each.scope[at] for each in found} - {None}
    return values.pop() if len(values) == 1 else None
