"""Kafka's selector metrics of the processors: connections, bytes, frames, polls, authentications.

(Kafka: Selector.SelectorMetrics.) Made of numbers that processors keep anyway, by listener and
processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Protocol

from ..metrics import selector_names as names
from ..metrics.families import Family, Metric
from ..metrics.kafka_names import EXPIRED_CONNECTIONS_KILLED, EXPIRED_CONNECTIONS_KILLED_COUNT
from ..metrics.loop import LoopStatistics
from ..metrics.rates import SAMPLE_SECONDS, SAMPLES
from ..metrics.sensors import Labels, Largest, RateAndTotal, Share, gauges
from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.selector_counters import SelectorCounters

NS = 1e9


class ProcessorSource(Protocol):
    """What is read of a processor; all of it counts from its start."""

    id: int
    endpoint: Endpoint
    closed: Counter[CloseReason]
    request_queue_full: int
    requests_received: int
    responses_sent: int
    connections_created: int

    @property
    def counters(self) -> SelectorCounters: ...

    @property
    def connection_count(self) -> int: ...

    @property
    def bytes_received(self) -> int: ...

    @property
    def bytes_sent(self) -> int: ...

    @property
    def response_queue_size(self) -> int: ...


Processors = Callable[[], Sequence[ProcessorSource]]


def labels_of(processor: ProcessorSource) -> Labels:
    """A processor's listener and number, as every selector metric has them."""
    return processor.endpoint.listener_name, str(processor.id)


class SelectorMetrics:
    """The collector of one server's selector metrics.

    Args:
        processors: the processors there are at the moment.
        loop: the loop that they share.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def __init__(
        self,
        processors: Processors,
        loop: Callable[[], LoopStatistics],
        *,
        samples: int = SAMPLES,
        seconds: float = SAMPLE_SECONDS,
    ) -> None:
        self._processors = processors
        self._loop = loop

        def rated(metrics: tuple[Metric, Metric]) -> RateAndTotal:
            return RateAndTotal(*metrics, samples, seconds)

        self._counts: list[tuple[RateAndTotal, Callable[[ProcessorSource], float]]] = [
            (rated(names.CONNECTION_CLOSE), lambda p: p.closed.total()),
            (rated(names.CONNECTION_CREATION), lambda p: p.connections_created),
            (rated(names.OUTGOING_BYTE), lambda p: p.bytes_sent),
            (rated(names.INCOMING_BYTE), lambda p: p.bytes_received),
            (rated(names.REQUEST), lambda p: p.responses_sent),
            (rated(names.RESPONSE), lambda p: p.requests_received),
            (rated(names.NETWORK_IO), lambda p: p.counters.network_io),
            (rated(names.SELECT), lambda p: p.counters.polls),
            (rated(names.SUCCESSFUL_AUTHENTICATION), lambda p: p.counters.authenticated),
            (rated(names.FAILED_AUTHENTICATION), lambda p: p.counters.authentication_failures),
            (rated(names.SUCCESSFUL_REAUTHENTICATION), lambda p: p.counters.reauthenticated),
            (
                rated(names.FAILED_REAUTHENTICATION),
                lambda p: p.counters.reauthentication_failures,
            ),
        ]

        def share(metric: Metric, at_most: float = inf) -> Share:
            return Share(metric, at_most=at_most, samples=samples, seconds=seconds)

        self._request_size_avg = share(names.REQUEST_SIZE_AVG)
        self._request_size_max = Largest(names.REQUEST_SIZE_MAX)
        self._reauthentication_avg = share(names.REAUTHENTICATION_LATENCY_AVG)
        self._reauthentication_max = Largest(names.REAUTHENTICATION_LATENCY_MAX)
        self._io_time_avg = share(names.IO_TIME_NS_AVG)
        self._io_ratio = share(names.IO_RATIO, 1.0)
        self._io_wait_time_avg = share(names.IO_WAIT_TIME_NS_AVG)
        self._io_wait_ratio = share(names.IO_WAIT_RATIO, 1.0)

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        processors = {labels_of(processor): processor for processor in self._processors()}
        for sensor, count in self._counts:
            values = {labels: count(source) for labels, source in processors.items()}
            yield from sensor.families(values, now)
        yield gauges(
            names.CONNECTION_COUNT, {key: p.connection_count for key, p in processors.items()}
        )
        yield from self._sizes(processors, now)
        yield from self._authentications(processors, now)
        yield from self._times(processors, now)

    def _sizes(self, processors: Mapping[Labels, ProcessorSource], now: float) -> Iterator[Family]:
        parts = {key: (p.bytes_sent, p.responses_sent) for key, p in processors.items()}
        yield from self._request_size_avg.families(parts, now)
        largest = {key: p.counters.largest_send for key, p in processors.items()}
        yield from self._request_size_max.families(largest, now)

    def _authentications(
        self, processors: Mapping[Labels, ProcessorSource], now: float
    ) -> Iterator[Family]:
        counters = {key: p.counters for key, p in processors.items()}
        for_good = {key: c.authenticated_for_good for key, c in counters.items()}
        yield gauges(names.SUCCESSFUL_AUTHENTICATION_NO_REAUTH, for_good)
        parts = {key: (c.reauthentication_ms, c.reauthenticated) for key, c in counters.items()}
        yield from self._reauthentication_avg.families(parts, now)
        longest = {key: c.longest_reauthentication_ms for key, c in counters.items()}
        yield from self._reauthentication_max.families(longest, now)
        expired = {key: p.closed[CloseReason.SESSION_EXPIRED] for key, p in processors.items()}
        yield gauges(EXPIRED_CONNECTIONS_KILLED, expired)
        yield gauges(EXPIRED_CONNECTIONS_KILLED_COUNT, {(): sum(expired.values())})

    def _times(self, processors: Mapping[Labels, ProcessorSource], now: float) -> Iterator[Family]:
        """Kafka's time in select is the loop's idle time: a poll that waits lets others run."""
        loop = self._loop()
        waited_ns = int(loop.idle_seconds * NS)
        waited = dict.fromkeys(processors, waited_ns)
        worked = {key: p.counters.io_ns for key, p in processors.items()}
        polls = {key: p.counters.polls for key, p in processors.items()}
        elapsed = loop.seconds * NS
        for metric in (names.IO_WAIT_TIME_NS_TOTAL, names.IO_WAITTIME_TOTAL):
            yield gauges(metric, waited)
        for metric in (names.IO_TIME_NS_TOTAL, names.IOTIME_TOTAL):
            yield gauges(metric, worked)
        for share, parts, whole in (
            (self._io_wait_time_avg, waited, polls),
            (self._io_time_avg, worked, polls),
            (self._io_wait_ratio, waited, dict.fromkeys(processors, elapsed)),
            (self._io_ratio, worked, dict.fromkeys(processors, elapsed)),
        ):
            both = {key: (part, whole[key]) for key, part in parts.items()}
            yield from share.families(both, now)
