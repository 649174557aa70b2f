"""Kafka's request metrics: rates, times per phase, sizes and errors.

(Kafka: RequestMetrics.) The request router keeps the counts; this module converts them to families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Protocol

from . import _kafka_names as names
from ._rates import upper_of
from ._registry import Family, Labels
from ._request_times import PHASES, STEP_NS, TOTAL, RequestTimes
from ._sensors import HistogramSource, Meter, Quantiles

_MS = 1e6  # in nanoseconds
# Requests of which Kafka may have to convert the records.
_CONVERTED = ("Fetch", "Produce")
# The error name of a response without any error.
_NO_ERROR = "NONE"


class RequestSource(Protocol):
    """A source of cumulative request counts, such as a request router."""

    def request_times(self) -> Iterable[RequestTimes]:
        """Return the times and sizes of finished requests, by kind."""
        ...

    def requests(self) -> Mapping[Labels, int]:
        """Return the number of requests, by name and version."""
        ...

    def deprecated_requests(self) -> Mapping[Labels, int]:
        """Return the number of requests with deprecated versions (KIP-896).

        The counts are keyed by request name and version, and the client's software name and
        version.
        """
        ...

    def errors(self) -> Mapping[Labels, int]:
        """Return the number of errors in responses, by request name and error name.

        ``NONE`` counts the responses without errors. A response with several errors counts once for
        each error.
        """
        ...


class RequestMetrics:
    """The collector of request metrics.

    Args:
        source: provides the counts.
    """

    def __init__(self, source: RequestSource) -> None:
        self._source = source
        self._requests = Meter(*names.REQUESTS_PER_SEC)
        self._deprecated = Meter(*names.DEPRECATED_REQUESTS_PER_SEC)
        self._errors = Meter(*names.ERRORS_PER_SEC)
        # Names say milliseconds, numbers have a fraction: Kafka's are rounded to whole ones.
        self._phases = [Quantiles(metric, STEP_NS / _MS) for metric in names.PHASE_TIMES_MS]
        self._sizes = Quantiles(names.REQUEST_BYTES)
        self._conversions = [
            Quantiles(names.MESSAGE_CONVERSIONS_TIME_MS),
            Quantiles(names.TEMPORARY_MEMORY_BYTES),
        ]

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        source = self._source
        yield from self._requests.families(source.requests(), now)
        yield from self._deprecated.families(source.deprecated_requests(), now)
        yield from self._errors.families(source.errors(), now)
        kinds: dict[Labels, RequestTimes] = {
            (name,): times for times in source.request_times() for name in times.names
        }
        for phase, sensor in enumerate(self._phases):
            yield from sensor.families(_durations(kinds, phase), now)
        sizes = {
            key: HistogramSource(times.requests, times.bytes, times.sizes.copy)
            for key, times in kinds.items()
        }
        yield from self._sizes.families(sizes, now)
        unconverted = {
            key: HistogramSource(times.requests, 0, partial(_all_zero, times))
            for key, times in kinds.items()
            if key[0] in _CONVERTED
        }
        for sensor in self._conversions:
            yield from sensor.families(unconverted, now)


def _durations(kinds: Mapping[Labels, RequestTimes], phase: int) -> dict[Labels, HistogramSource]:
    return {
        key: HistogramSource(
            times.count(phase), times.sum_ns(phase) / _MS, partial(times.counts, phase)
        )
        for key, times in kinds.items()
    }


def _all_zero(times: RequestTimes) -> list[int]:
    return [times.requests]


def api_totals(source: RequestSource) -> list[dict[str, object]]:
    """Return a row for each API that has at least one finished request.

    A row contains the API's ``name``, the number of finished ``requests``, the sum of their sizes
    in ``bytes``, the number of ``errors`` in the responses, the total time in each phase, keyed by
    Kafka's phase name, in ``phases_ms``, and the distribution of total times in ``total_ms``: the
    upper bound and the count of each non-empty bucket, in ascending order.
    """
    errors: dict[str, int] = {}
    for (name, error), count in source.errors().items():
        if error != _NO_ERROR:
            errors[name] = errors.get(name, 0) + count
    return [
        {
            "name": times.names[0],
            "requests": times.requests,
            "bytes": times.bytes,
            "errors": errors.get(times.names[0], 0),
            "phases_ms": {name: times.sum_ns(phase) / _MS for phase, name in enumerate(PHASES)},
            "total_ms": [
                (upper_of(bucket) * STEP_NS / _MS, count)
                for bucket, count in enumerate(times.counts(TOTAL))
                if count
            ],
        }
        for times in source.request_times()
        if times.requests
    ]
