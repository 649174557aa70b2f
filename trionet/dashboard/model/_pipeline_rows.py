"""The rows of the results of ``trionet pipeline run``, which are loaded when a result arrives.

Values that a result lacks are None: Spark leaves out nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ._row_factory import row_factory


@attrs.frozen
class MinuteRow:
    """The totals of one minute."""

    window: str
    records: int | None
    requests: float | None
    connections: float | None
    request_bytes: float | None
    response_bytes: float | None
    errors: float | None
    throttled: float | None
    clients: int | None
    series: int | None


@attrs.frozen
class SeriesRow:
    """The requests of one API, client and listener in one minute."""

    window: str
    api: str | None
    client_id: str | None
    listener: str | None
    requests: float | None
    requests_per_s: float | None
    request_bytes_per_s: float | None
    response_bytes_per_s: float | None
    errors: float | None
    throttled: float | None
    total_p50_us: float | None
    total_p95_us: float | None
    total_p99_us: float | None
    total_max_us: float | None


@attrs.frozen
class TalkerRow:
    """A top client of one minute by requests, bytes or time."""

    window: str
    measure: str | None
    rank: int | None
    client_id: str | None
    principal: str | None
    listener: str | None
    requests: float | None
    bytes: float | None
    time_us: float | None
    share: float | None


@attrs.frozen
class AnomalyRow:
    """An unusual value in one minute; None if it is not limited to an API, client or listener."""

    window: str
    api: str | None
    client_id: str | None
    listener: str | None
    measure: str | None
    value: float | None
    expected: float | None
    spread: float | None
    score: float | None
    minutes: int | None


@attrs.frozen
class IncidentRow:
    """The last known state of an incident, described by its worst minute; see AnomalyRow."""

    window: str
    incident: str
    state: str | None
    start: str | None
    end: str | None
    worst: str | None
    measure: str | None
    phase: str | None
    api: str | None
    client_id: str | None
    listener: str | None
    reason: str | None
    value: float | None
    expected: float | None
    score: float | None
    anomalies: int | None


#: The functions that convert results, keyed by their kind.
ROWS: Final[Mapping[str, Any]] = {
    "windows": row_factory(MinuteRow),
    "requests": row_factory(SeriesRow),
    "talkers": row_factory(TalkerRow),
    "anomalies": row_factory(AnomalyRow),
    "incidents": row_factory(IncidentRow),
}
