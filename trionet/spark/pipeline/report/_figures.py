"""The content of a report, independent of its output format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from .._estimates import api_name, error_name
from .._fold import EXPECTED_ERRORS
from .._partials import PHASES
from ._inputs import Filters, TimeRange

#: The maximum number of bins per chart.
BINS_MAX: Final = 120

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: Round durations, in seconds.
ROUND_TIMES: Final = (
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@attrs.frozen
class Bins:
    """Adjacent time intervals of equal length, as in a timeline."""

    start: datetime
    seconds: int
    count: int

    @classmethod
    def over(cls, start: datetime, end: datetime) -> Bins:
        """Divide a time range into the shortest bins of round length that still fit in a chart."""
        whole = (end - start).total_seconds()
        candidates = (each for each in ROUND_TIMES if whole <= each * BINS_MAX)
        seconds = next(candidates, DAY * math.ceil(whole / BINS_MAX / DAY))
        return cls(start, seconds, max(1, math.ceil(whole / seconds)))

    @property
    def end(self) -> datetime:
        return self.time(self.count)

    def time(self, index: int) -> datetime:
        """Return the start time of a bin."""
        return self.start + timedelta(seconds=self.seconds * index)

    def place(self, time: datetime) -> float:
        """Return the position of a time, as a number of bins from the start."""
        return (time - self.start).total_seconds() / self.seconds

    def covered(self, end: datetime) -> Sequence[float]:
        """Return how many seconds of each bin precede ``end``, a time in the last bin."""
        ends = (min(end, self.time(index + 1)) for index in range(self.count))
        return [(each - self.time(index)).total_seconds() for index, each in enumerate(ends)]


#: The percentiles of a report: their names, and values in thousandths.
SHARES: Final = {"p50": 500, "p95": 950, "p99": 990, "p99.9": 999}


@attrs.frozen(kw_only=True)
class Traffic:
    """Request totals, which are estimates if the log was sampled.

    Attributes:
        records: the number of log records.
        requests: the number of requests that the records represent.
        errors: the number of requests that got an error response, or whose connection was closed
            before the response.
        throttled: the number of requests that were throttled by a quota.
        request_bytes: the total size of the requests.
        response_bytes: the total size of the responses.
        phase_us: the total duration of each phase, in microseconds.
        max_us: the longest total duration of a request, in microseconds.
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


#: The value of each percentile of ``SHARES``, in microseconds; None without requests.
Percentiles = Mapping[str, float | None]


@attrs.frozen
class Api:
    """The traffic of an API, and the percentiles of each phase."""

    name: str
    traffic: Traffic
    percentiles: Mapping[str, Percentiles]


@attrs.frozen
class Talker:
    """A client on a listener, with its share of all requests, bytes and time."""

    client_id: str
    listener: str
    traffic: Traffic
    request_share: float
    byte_share: float
    time_share: float


#: The APIs of errors that are steps of the protocol, by their names; empty for all APIs.
_EXPECTED: Final = {
    error_name(code): frozenset(map(api_name, apis)) for code, apis in EXPECTED_ERRORS.items()
}


@attrs.frozen
class Error:
    """The number of requests to an API that got a given error, or no response."""

    api: str
    end: str
    error: str
    requests: int

    @property
    def is_expected(self) -> bool:
        """Whether it is a step of the protocol rather than a failure."""
        apis = _EXPECTED.get(self.error)
        return apis is not None and self.end == "answered" and (not apis or self.api in apis)


@attrs.frozen
class Close:
    """The connections to a listener that were closed for a given reason."""

    listener: str
    reason: str
    connections: int
    requests: int
    bytes_received: int
    bytes_sent: int
    open_mean_us: float


@attrs.frozen
class Quota:
    """A client that was throttled by quotas."""

    client_id: str
    principal: str
    listener: str
    requests: int
    throttled: int
    throttle_us: int
    throttle_max_us: int


@attrs.frozen
class Anomaly:
    """A value that deviates from those of the preceding hour; None if it is not limited to one."""

    window: datetime
    api: str | None
    client_id: str | None
    listener: str | None
    measure: str
    value: float
    expected: float
    score: float


@attrs.frozen
class Cause:
    """One of the causes of an incident, with its own time; None if it is not limited to one."""

    start: datetime
    end: datetime
    worst: datetime
    measure: str
    phase: str | None
    api: str | None
    client_id: str | None
    listener: str | None
    reason: str | None
    value: float
    expected: float
    score: float


@attrs.frozen
class Incident:
    """Anomalies of one fault: the cause that says most, with None for what is not limited to one.

    ``causes`` are all of them, by their start; none if an earlier version has written it.
    """

    incident: str
    state: str
    start: datetime
    end: datetime
    worst: datetime
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
    causes: Sequence[Cause]


@attrs.frozen
class Objective:
    """How much of an objective's error budget the requests of the report have used."""

    objective: str
    api: str | None
    client_id: str | None
    target: float
    requests: int
    bad: int
    burn_1h_max: float
    page_minutes: int
    ticket_minutes: int

    @property
    def good_share(self) -> float:
        return 1 - self.bad / self.requests if self.requests else 1.0

    @property
    def budget_used(self) -> float:
        """The bad requests as a share of those that are allowed among so many."""
        return self.bad / (self.requests * (1 - self.target)) if self.requests else 0.0


@attrs.frozen
class Intake:
    """The number of log records that are not included in any minute, by cause."""

    late: int = 0
    malformed: int = 0
    newer: int = 0
    ahead: int = 0
    old: int = 0

    def __bool__(self) -> bool:
        return any(attrs.astuple(self))


@attrs.frozen
class Heat:
    """The number of requests in a bin whose duration is between two bounds, in microseconds."""

    bin: int
    low: float
    high: float
    requests: float


@attrs.frozen(kw_only=True)
class Timeline:
    """Figures over time; each list has one value per bin.

    Attributes:
        bins: the time intervals.
        seconds: how many seconds of each bin are covered by results.
        requests: the number of requests by API, the most frequent first.
        errors: the number of requests by error, the most frequent first.
        percentiles: percentiles of the total duration of all requests, by name.
        slowest: the p99 of the total duration by API, in the order of ``requests``.
        heat: the distribution of the total duration of all requests.
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
    """A complete report.

    Attributes:
        folder: the path of the results directory.
        requested: the requested time range.
        filters: which requests are included.
        start: the start of the first minute with results.
        end: the end of the last minute with results.
        windows: the number of minutes with results.
        clients: the number of distinct pairs of client id and listener.
        traffic: the totals of all requests.
        percentiles: the percentiles of all requests, by phase.
        apis: the APIs, the most frequent first.
        talkers: the clients with the largest share of requests, bytes or time, descending.
        errors: the errors, the most frequent first.
        closes: the closed connections by reason, the most frequent first.
        quotas: the throttled clients, the longest throttled first.
        anomalies: the anomalies with the highest scores, descending.
        anomaly_count: the total number of anomalies.
        incidents: the incidents, the latest first.
        objectives: the service level objectives.
        intake: the number of records that are not included in any minute.
        clocks_ahead: by how many minutes the clocks of brokers have been ahead, by their node ids,
            the one furthest ahead first.
        timeline: figures over time.
    """

    folder: str
    requested: TimeRange
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
    incidents: Sequence[Incident]
    objectives: Sequence[Objective]
    intake: Intake
    clocks_ahead: Mapping[int, int]
    timeline: Timeline

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()
