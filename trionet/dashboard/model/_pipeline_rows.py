"""The rows of the results of ``trionet pipeline run``, which are loaded when a result arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ._rows import row_factory


@attrs.frozen
class MinuteRow:
    """The totals of one minute."""

    window: str
    records: int
    requests: float
    connections: float
    request_bytes: float
    response_bytes: float
    errors: float
    throttled: float
    clients: int
    series: int


@attrs.frozen
class SeriesRow:
    """The requests of one API, client and listener in one minute."""

    window: str
    api: str
    client_id: str
    listener: str
    requests: float
    requests_per_s: float
    request_bytes_per_s: float
    response_bytes_per_s: float
    errors: float
    throttled: float
    total_p50_us: float | None
    total_p95_us: float | None
    total_p99_us: float | None
    total_max_us: float | None


@attrs.frozen
class TalkerRow:
    """A top client of one minute by requests, bytes or time."""

    window: str
    measure: str
    rank: int
    client_id: str
    principal: str
    listener: str
    requests: float
    bytes: float
    time_us: float
    share: float


@attrs.frozen
class AnomalyRow:
    """An unusual value in one minute; None if it is not limited to an API, client or listener."""

    window: str
    api: str | None
    client_id: str | None
    listener: str | None
    measure: str
    value: float
    expected: float
    spread: float
    score: float
    minutes: int


@attrs.frozen
class IncidentRow:
    """The last known state of an incident, described by its worst minute; see AnomalyRow."""

    window: str
    incident: str
    state: str
    start: str
    end: str
    worst: str
    measure: str
    phase: str | None
    api: str | None
    client_id: str | None
    listener: str | None
    reason: str | None
    value: float
    expected: float
    score: float
    anomalies: int


#: The functions that convert results, keyed by their kind.
ROWS: Final[Mapping[str, Any]] = {
    "windows": row_factory(MinuteRow),
    "requests": row_factory(SeriesRow),
    "talkers": row_factory(TalkerRow),
    "anomalies": row_factory(AnomalyRow),
    "incidents": row_factory(IncidentRow),
}
