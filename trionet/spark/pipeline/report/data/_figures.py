"""What a report says, without how it is written. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from ...aggregation._partials import PHASES
from ._bins import Bins
from ._time_range import TimeRange

#: Of a thousand requests, how many are no slower than what is told, and how that is called.
SHARES: Final = {"p50": 500, "p95": 950, "p99": 990, "p99.9": 999}


@attrs.frozen
class Filters:
    """Whose requests; of each, no name is everybody."""

    apis: Mapping[int, str] = attrs.field(factory=dict)
    clients: Sequence[str] = ()
    listeners: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.apis or self.clients or self.listeners)


@attrs.frozen(kw_only=True)
class Traffic:
    """Requests, added up; estimates where the log was sampled.

    Attributes:
        records: how many the log has.
        requests: how many they stand for.
        errors: that were answered with an error, or not at all.
        throttled: that had to wait for a quota.
        request_bytes: their sizes.
        response_bytes: the sizes of their answers.
        phase_us: the sum of all times of each phase, in microseconds.
        max_us: the longest total that was seen.
    """

    records: int = 0
    requests: int = 0
    errors: int = 0
    throttled: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    phase_us: Mapping[str, float] = attrs.field(factory=lambda: dict.fromkeys(PHASES, 0.0))
    max_us: int = 0

    @property
    def bytes(self) -> int:
        return self.request_bytes + self.response_bytes

    @property
    def error_share(self) -> float:
        return self.errors / self.requests if self.requests else 0.0

    def mean_us(self, phase: str) -> float:
        return self.phase_us[phase] / self.requests if self.requests else 0.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            records=self.records + other.records,
            requests=self.requests + other.requests,
            errors=self.errors + other.errors,
            throttled=self.throttled + other.throttled,
            request_bytes=self.request_bytes + other.request_bytes,
            response_bytes=self.response_bytes + other.response_bytes,
            phase_us={name: self.phase_us[name] + other.phase_us[name] for name in PHASES},
            max_us=max(self.max_us, other.max_us),
        )


#: The time that each of ``SHARES`` does not exceed, in microseconds; None without requests.
Percentiles = Mapping[str, float | None]


@attrs.frozen
class Api:
    """An API: its traffic, and how long each phase took."""

    name: str
    traffic: Traffic
    percentiles: Mapping[str, Percentiles]


@attrs.frozen
class Talker:
    """A client on a listener, with its share of everybody's requests, bytes and time."""

    client_id: str
    listener: str
    traffic: Traffic
    request_share: float
    byte_share: float
    time_share: float


@attrs.frozen
class Error:
    """How often an API was answered with an error, or not at all."""

    api: str
    end: str
    error: str
    requests: int


@attrs.frozen
class Close:
    """How many connections of a listener were closed for a reason."""

    listener: str
    reason: str
    connections: int
    requests: int
    bytes_received: int
    bytes_sent: int
    open_mean_us: float


@attrs.frozen
class Quota:
    """Whom quotas made wait."""

    client_id: str
    principal: str
    listener: str
    requests: int
    throttled: int
    throttle_us: int
    throttle_max_us: int


@attrs.frozen
class Anomaly:
    """A minute that was not as the hour before it."""

    window: datetime
    api: str
    client_id: str
    listener: str
    measure: str
    value: float
    expected: float
    score: float


@attrs.frozen
class Intake:
    """Records of the log that are in no minute: what is said of them, and how many."""

    late: int = 0
    malformed: int = 0
    newer: int = 0
    ahead: int = 0

    def __bool__(self) -> bool:
        return any(attrs.astuple(self))


@attrs.frozen
class Heat:
    """How many requests of a bin took a time between two bounds, in microseconds."""

    bin: int
    low: float
    high: float
    requests: float


@attrs.frozen(kw_only=True)
class Timeline:
    """What happened when: lists have a number for each bin.

    Attributes:
        bins: the times.
        seconds: how much of each bin there are results of.
        requests: by API, the most frequent first.
        errors: by API and error, the most frequent first.
        percentiles: of the total of all requests, by name.
        slowest: the p99 of the total, by API in the order of ``requests``.
        heat: of the total of all requests.
    """

    bins: Bins
    seconds: Sequence[float]
    requests: Mapping[str, Sequence[float]]
    errors: Mapping[str, Sequence[float]]
    percentiles: Mapping[str, Sequence[float | None]]
    slowest: Mapping[str, Sequence[float | None]]
    heat: Sequence[Heat]


@attrs.frozen(kw_only=True)
class Report:
    """Everything.

    Attributes:
        folder: where the results lie.
        asked: which part of them was asked for.
        filters: whose.
        start: of the first minute.
        end: of the last minute.
        windows: how many minutes there are results of.
        clients: how many client ids there are, one for each listener.
        traffic: of all.
        percentiles: of all, by phase.
        apis: the most frequent first.
        talkers: those with the largest share of anything first.
        errors: the most frequent first.
        closes: the most frequent first.
        quotas: those who waited the longest first.
        anomalies: the most unusual first.
        anomaly_count: how many there are, of which ``anomalies`` are some.
        intake: what is in no minute.
        timeline: what happened when.
    """

    folder: str
    asked: TimeRange
    filters: Filters
    start: datetime
    end: datetime
    windows: int
    clients: int
    traffic: Traffic
    percentiles: Mapping[str, Percentiles]
    apis: Sequence[Api]
    talkers: Sequence[Talker]
    errors: Sequence[Error]
    closes: Sequence[Close]
    quotas: Sequence[Quota]
    anomalies: Sequence[Anomaly]
    anomaly_count: int
    intake: Intake
    timeline: Timeline

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()
