"""Kafka's metrics of how much room a server has: its queues, and who is idle.

(Kafka: SocketServer, Processor, RequestChannel, KafkaRequestHandlerPool.) Kafka's network threads
are idle one by one. Here all processors run on one loop, so that a processor that waits may wait
for its neighbours; the share of the time in which the loop itself waited is what tells how much
room there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ..metrics import kafka_names as names
from ..metrics.families import Family, Kind, Metric, single
from ..metrics.loop import LoopStatistics
from ..metrics.rates import SAMPLE_SECONDS, SAMPLES
from ..metrics.request_times import LOCAL, RequestTimes
from ..metrics.sensors import Labels, Share, gauges
from ..net.close_reason import CloseReason
from .selector_metrics import NS, Processors, ProcessorSource

CONNECTIONS_CLOSED = Metric(
    "trionet_connections_closed_total",
    Kind.COUNTER,
    "Connections that ended, by reason.",
    ("reason",),
)
REQUEST_QUEUE_CAPACITY = Metric(
    "trionet_request_queue_capacity", Kind.GAUGE, "Requests that may wait: queued.max.requests."
)
REQUEST_QUEUE_FULL = Metric(
    "trionet_request_queue_full_total",
    Kind.COUNTER,
    "How often a processor stopped reading because too many requests waited.",
    ("networkProcessor",),
)
UNEXPECTED_ERRORS = Metric(
    "trionet_unexpected_errors_total",
    Kind.COUNTER,
    "What failed in the server outside the step of any channel; each kind is logged.",
)


class LoadMetrics:
    """The collector of queues and idle ratios.

    Args:
        processors: the processors there are at the moment.
        loop: the loop that they share.
        queued: how many requests wait for a handler.
        queued_max: how many may.
        handler_seconds: for how long there were handler tasks, in all, also while their number
            was another one.
        closed: connections that ended since the start, by reason.
        unexpected_errors: what failed outside the step of a channel since the start.
        times: what requests are counted in.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def __init__(
        self,
        processors: Processors,
        loop: Callable[[], LoopStatistics],
        *,
        queued: Callable[[], int],
        queued_max: int,
        handler_seconds: Callable[[], float],
        closed: Callable[[], Mapping[CloseReason, int]],
        unexpected_errors: Callable[[], int],
        times: Callable[[], Iterable[RequestTimes]],
        samples: int = SAMPLES,
        seconds: float = SAMPLE_SECONDS,
    ) -> None:
        self._processors = processors
        self._loop = loop
        self._queued = queued
        self._queued_max = queued_max
        self._handler_seconds = handler_seconds
        self._closed = closed
        self._unexpected_errors = unexpected_errors
        self._times = times

        def ratio(metric: Metric) -> Share:
            return Share(metric, at_most=1.0, samples=samples, seconds=seconds)

        self._loop_idle = ratio(names.NETWORK_PROCESSOR_AVG_IDLE_PERCENT)
        self._idle = ratio(names.IDLE_PERCENT)
        self._handlers_idle = ratio(names.REQUEST_HANDLER_AVG_IDLE_PERCENT)

    def collect(self, now: float) -> Iterator[Family]:
        """The families at ``now`` (see :data:`trionet.metrics.registry.Collect`)."""
        processors = self._processors()
        yield single(names.REQUEST_QUEUE_SIZE, self._queued())
        yield single(REQUEST_QUEUE_CAPACITY, self._queued_max)
        by_id: dict[Labels, ProcessorSource] = {(str(p.id),): p for p in processors}
        sizes: dict[Labels, float] = {key: p.response_queue_size for key, p in by_id.items()}
        yield gauges(names.RESPONSE_QUEUE_SIZE, {("",): sum(sizes.values()), **sizes})
        full = {key: p.request_queue_full for key, p in by_id.items()}
        yield gauges(REQUEST_QUEUE_FULL, full)
        yield single(UNEXPECTED_ERRORS, self._unexpected_errors())
        closed = self._closed()
        yield gauges(
            CONNECTIONS_CLOSED, {(reason.name,): closed.get(reason, 0) for reason in CloseReason}
        )
        loop = self._loop()
        idle = (loop.idle_seconds, loop.seconds)
        # After the end nobody is idle (Kafka: SocketServerTest.testMetricCollectionAfterShutdown).
        yield from self._loop_idle.families({(): idle if processors else (0.0, 0.0)}, now)
        yield from self._idle.families(dict.fromkeys(by_id, idle), now)
        available = self._handler_seconds()
        busy = sum(times.sum_ns(LOCAL) for times in self._times()) / NS
        yield from self._handlers_idle.families({(): (available - busy, available)}, now)
