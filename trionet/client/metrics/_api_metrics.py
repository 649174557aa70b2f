"""Kafka's metrics of the requests of one API: how many, how long, how large, how throttled."""

from __future__ import annotations

from collections.abc import Iterator

from ...metrics._families import Family
from ...metrics._group import MetricGroup
from ._counters import ClientCounters

_MS_OF_US = 1e-3


class ApiMetrics:
    """What is told of one API, from the counters of a client.

    Args:
        group: where Kafka tells it.
        counters: of the client.
        api_key: of the API.
        count: what Kafka's name of the count begins with, such as ``heartbeat``.
        what: what is counted, for people.
        time: what the names of the times begin with, such as ``heartbeat-response-time``.
        has_average: Kafka tells the average time, too.
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
