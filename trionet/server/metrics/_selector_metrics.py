"""Kafka's selector metrics of the processors: connections, bytes, frames, polls, authentications.

(Kafka: Selector.SelectorMetrics.) The metrics are computed from the counters of the processors, by
listener and processor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ...metrics import _kafka_names as names
from ...metrics._loop import LoopStatistics
from ...metrics._rates import RollingMaximum
from ...metrics._registry import Family, Labels, Metric
from ...metrics._sensors import Derived, Largest, RateAndTotal, Sampling, gauges, ratio, share
from ...net.wire._close_reason import CloseReason
from .._processor import Processor
from .._processor_counts import ProcessorCounts
from ._snapshot_sections import NS, software_of

# Further kinds of connections are counted together: clients choose their software name freely.
KINDS_MAX = 100
OTHER = ("other", "other")

Processors = Callable[[], Sequence[ProcessorCounts]]

_COUNTS: Final[tuple[tuple[tuple[Metric, Metric], Callable[[ProcessorCounts], float]], ...]] = (
    (names.CONNECTION_CLOSE, lambda p: p.closed.total()),
    (names.CONNECTION_CREATION, lambda p: p.connections_created),
    (names.OUTGOING_BYTE, lambda p: p.bytes_sent),
    (names.INCOMING_BYTE, lambda p: p.bytes_received),
    (names.REQUEST, lambda p: p.responses_sent),
    (names.RESPONSE, lambda p: p.requests_received),
    (names.NETWORK_IO, lambda p: p.counters.network_io),
    (names.SELECT, lambda p: p.counters.polls),
    (names.SUCCESSFUL_AUTHENTICATION, lambda p: p.counters.authenticated),
    (names.FAILED_AUTHENTICATION, lambda p: p.counters.authentication_failures),
    (names.SUCCESSFUL_REAUTHENTICATION, lambda p: p.counters.reauthenticated),
    (names.FAILED_REAUTHENTICATION, lambda p: p.counters.reauthentication_failures),
)
_GAUGES: Final[tuple[tuple[Metric, Callable[[ProcessorCounts], float]], ...]] = (
    (names.CONNECTION_COUNT, lambda p: p.connection_count),
    (names.SUCCESSFUL_AUTHENTICATION_NO_REAUTH, lambda p: p.counters.authenticated_for_good),
    (names.EXPIRED_CONNECTIONS_KILLED, lambda p: p.closed[CloseReason.SESSION_EXPIRED]),
    (names.IO_TIME_NS_TOTAL, lambda p: p.counters.io_ns),
    (names.IOTIME_TOTAL, lambda p: p.counters.io_ns),
)
_MAXIMA: Final[tuple[tuple[Metric, Callable[[ProcessorCounts], RollingMaximum]], ...]] = (
    (names.REQUEST_SIZE_MAX, lambda p: p.counters.largest_send),
    (names.REAUTHENTICATION_LATENCY_MAX, lambda p: p.counters.longest_reauthentication_ms),
)
_Shares = Callable[[ProcessorCounts, LoopStatistics], tuple[float, float]]
# Kafka's time in select is the loop's idle time: a poll that waits lets other tasks run.
_SHARES: Final[tuple[tuple[Metric, Callable[[Sequence[float]], float], _Shares], ...]] = (
    (names.REQUEST_SIZE_AVG, share, lambda p, _: (p.bytes_sent, p.responses_sent)),
    (
        names.REAUTHENTICATION_LATENCY_AVG,
        share,
        lambda p, _: (p.counters.reauthentication_ms, p.counters.reauthenticated),
    ),
    (names.IO_WAIT_TIME_NS_AVG, share, lambda p, loop: (loop.idle_seconds * NS, p.counters.polls)),
    (names.IO_TIME_NS_AVG, share, lambda p, _: (p.counters.io_ns, p.counters.polls)),
    (names.IO_WAIT_RATIO, ratio, lambda _, loop: (loop.idle_seconds, loop.seconds)),
    (names.IO_RATIO, ratio, lambda p, loop: (p.counters.io_ns, loop.seconds * NS)),
)


class SelectorMetrics:
    """The collector of one server's selector metrics.

    Args:
        processors: returns the current processors.
        loop: returns the statistics of the loop that the processors share.
        sampling: the windows of rates and averages.
    """

    def __init__(
        self, processors: Processors, loop: Callable[[], LoopStatistics], sampling: Sampling
    ) -> None:
        self._processors = processors
        self._loop = loop
        self._counts = [(RateAndTotal(*metrics, sampling), count) for metrics, count in _COUNTS]
        self._maxima = [(Largest(metric), largest) for metric, largest in _MAXIMA]
        self._shares = [(Derived(m, compute, sampling), both) for m, compute, both in _SHARES]

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        processors: dict[Labels, ProcessorCounts] = {
            (each.endpoint.listener_name, str(each.id)): each for each in self._processors()
        }
        loop = self._loop()
        for sensor, count in self._counts:
            yield from sensor.families({key: count(p) for key, p in processors.items()}, now)
        for derived, both in self._shares:
            yield from derived.families({key: both(p, loop) for key, p in processors.items()}, now)
        for maximum, largest in self._maxima:
            yield from maximum.families({key: largest(p) for key, p in processors.items()}, now)
        for metric, value in _GAUGES:
            yield gauges(metric, {key: value(p) for key, p in processors.items()})
        for metric in (names.IO_WAIT_TIME_NS_TOTAL, names.IO_WAITTIME_TOTAL):
            yield gauges(metric, dict.fromkeys(processors, int(loop.idle_seconds * NS)))
        expired = sum(p.closed[CloseReason.SESSION_EXPIRED] for p in processors.values())
        yield gauges(names.EXPIRED_CONNECTIONS_KILLED_COUNT, {(): expired})


class ConnectionKinds:
    """The collector of open connections by client software and by TLS cipher.

    The connections are counted only when a snapshot is taken, so counting adds no work per
    connection, and no closed connection can remain in a count.

    Args:
        processors: returns the current processors.
    """

    def __init__(self, processors: Callable[[], Iterable[Processor]]) -> None:
        self._processors = processors

    def collect(self, now: float) -> Iterator[Family]:  # noqa: ARG002 - all collectors take it
        """Yield the current families (see :data:`trionet.metrics._registry.Collect`)."""
        software: Counter[Labels] = Counter()
        ciphers: Counter[Labels] = Counter()
        for processor in self._processors():
            channels = list(processor.selector.channels)
            of_cipher = Counter(c.tls.cipher for c in channels if c.tls is not None and c.is_ready)
            labels = (processor.endpoint.listener_name, str(processor.id))
            _add(software, Counter(map(software_of, channels)), labels)
            _add(ciphers, of_cipher, labels)
        yield gauges(names.CONNECTIONS_SOFTWARE, software)
        yield gauges(names.CONNECTIONS_TLS_INFO, ciphers)


def _add(counts: Counter[Labels], found: Counter[tuple[str, str]], labels: Labels) -> None:
    for number, (kind, count) in enumerate(found.most_common()):
        first, second = kind if number < KINDS_MAX else OTHER
        counts[first, second, *labels] += count
