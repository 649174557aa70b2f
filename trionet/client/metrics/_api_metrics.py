"""Kafka's count and latency metrics for the requests of one API."""

from __future__ import annotations

from collections.abc import Iterator

from ...metrics._families import Family
from ...metrics._group import MetricGroup
from ._counters import ClientCounters

_MS_OF_US = 1e-3


class ApiMetrics:
    """The count and latency metrics of one API, computed from the client's counters.

    Args:
        group: the metric group in which Kafka reports the metrics.
        counters: the client's counters.
        api_key: identifies the API whose requests are measured.
        count: the name prefix of the rate and total, such as ``heartbeat``.
        what: a description of the counted requests.
        time: the name prefix of the latencies, such as ``heartbeat-response-time``.
        has_average: whether Kafka also reports the average latency.
    """

    def __init__(
        self,
        group: MetricGroup,
        counters: ClientCounters,
        api_key: int,
        count: str,
        what: str,
        time: str,
        *,
        has_average: bool = True,
    ) -> None:
        self._counters = counters
        self._api_key = api_key
        self._count = group.rated(count, what)
        self._time_avg = group.share(f"{time}-avg", f"{what}: average time, in ms.")
        self._time_max = group.largest(f"{time}-max", f"{what}: longest time, in ms.", _MS_OF_US)
        self._has_average = has_average

    def families(self, now: float) -> Iterator[Family]:
        api = self._counters.api(self._api_key)
        yield from self._count.families({(): api.responses}, now)
        if self._has_average:
            parts = api.latency_us * _MS_OF_US, api.responses
            yield from self._time_avg.families({(): parts}, now)
        yield from self._time_max.families({(): api.longest_us}, now)
