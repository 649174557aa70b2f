"""Kafka's load metrics for a server: the sizes of its queues, and idle ratios.

(Kafka: SocketServer, Processor, RequestChannel, KafkaRequestHandlerPool.) In Kafka, each thread has
its own idle time. Here, all processors and handlers share one loop, and a waiting task may be
waiting for other tasks. So spare capacity is computed from the idle time of the loop: see
:func:`idle_of_processor` and :func:`idle_of_handlers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from ...metrics import _kafka_names as names
from ...metrics._loop import LoopStatistics
from ...metrics._registry import Family, Kind, Labels, Metric, single
from ...metrics._request_times import LOCAL, RequestTimes
from ...metrics._sensors import Derived, Grown, Sampling, gauges
from ...net.wire._close_reason import CloseReason
from .._processor_counts import ProcessorCounts
from .._socket_server import SocketServer
from ._selector_metrics import Processors
from ._snapshot_sections import NS

CONNECTIONS_CLOSED = Metric(
    "trionet_connections_closed_total",
    Kind.COUNTER,
    "Closed connections, by reason.",
    ("reason",),
)
REQUEST_QUEUE_CAPACITY = Metric(
    "trionet_request_queue_capacity", Kind.GAUGE, "Limit on queued requests: queued.max.requests."
)
REQUEST_QUEUE_FULL = Metric(
    "trionet_request_queue_full_total",
    Kind.COUNTER,
    "How often a processor stopped reading because the request queue was full.",
    ("networkProcessor",),
)
UNEXPECTED_ERRORS = Metric(
    "trionet_unexpected_errors_total",
    Kind.COUNTER,
    "Unexpected errors in the server outside the steps of channels; each kind is logged.",
)

#: A loop whose idle share is smaller than this is saturated. Below this share, the idle ratios fall
#: to 0, even if a processor or the handlers do little, since they could not do much more. The share
#: is this large because a third of a busy loop's time is scheduling, which is not part of any
#: task's time.
SATURATED_BELOW: Final = 0.1


def idle_of_processor(grown: Grown) -> float:
    """Return a processor's idle ratio, as if it had the loop's idle time to itself.

    Args:
        grown: the increase of three times, in seconds: the loop's idle time, the elapsed time, and
            the time of the processor's own I/O.
    """
    idle, elapsed, io = grown
    if idle <= 0 or elapsed <= 0:
        return 0.0
    return idle / (idle + max(0.0, io)) * min(1.0, idle / (SATURATED_BELOW * elapsed))


def idle_of_handlers(grown: Grown) -> float:
    """Return the idle ratio of the request handlers, from 0 to 1.

    Handlers have no spare capacity while the loop has none, or while all handlers are occupied,
    even if they are only waiting for a thread.

    Args:
        grown: the increase of four times, in seconds: the loop's idle time, the elapsed time, the
            time in which requests were handled (including waits for threads), and the run time of
            all handlers.
    """
    idle, elapsed, handled, available = grown
    if available <= 0:
        return 0.0
    of_loop = idle_of_processor((idle, elapsed, min(handled, elapsed - idle)))
    return max(0.0, min(of_loop, 1 - handled / available))


@attrs.define(eq=False, slots=False)
class LoadMetrics:
    """The collector of queue sizes and idle ratios.

    Args:
        processors: returns the current processors.
        loop: returns the statistics of the loop that the processors share.
        server: the server whose queue and handlers are measured.
        times: returns the times of finished requests.
        sampling: the windows of the ratios.
    """

    _processors: Processors
    _loop: Callable[[], LoopStatistics]
    _server: SocketServer
    _times: Callable[[], Iterable[RequestTimes]]
    _sampling: Sampling

    def __attrs_post_init__(self) -> None:
        sampling = self._sampling
        self._idle = Derived(names.IDLE_PERCENT, idle_of_processor, sampling)
        self._handlers_idle = Derived(
            names.REQUEST_HANDLER_AVG_IDLE_PERCENT, idle_of_handlers, sampling
        )

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        server, processors = self._server, self._processors()
        yield single(names.REQUEST_QUEUE_SIZE, len(server.request_channel))
        yield single(REQUEST_QUEUE_CAPACITY, server.request_channel.requests_max)
        by_id: dict[Labels, ProcessorCounts] = {(str(p.id),): p for p in processors}
        sizes: dict[Labels, float] = {key: p.response_queue_size for key, p in by_id.items()}
        yield gauges(names.RESPONSE_QUEUE_SIZE, {("",): sum(sizes.values()), **sizes})
        full = {key: p.request_queue_full for key, p in by_id.items()}
        yield gauges(REQUEST_QUEUE_FULL, full)
        yield single(UNEXPECTED_ERRORS, server.faults.count)
        closed = server.statistics().closed
        yield gauges(
            CONNECTIONS_CLOSED, {(reason.name,): closed.get(reason, 0) for reason in CloseReason}
        )
        loop = self._loop()
        of_loop = (loop.idle_seconds, loop.seconds)
        worked = {key: (p.counters.io_ns / NS,) for key, p in by_id.items()}
        [idle] = self._idle.families(worked, now, of_loop)
        yield idle
        average = sum(sample.value for sample in idle.samples) / max(1, len(idle.samples))
        yield single(names.NETWORK_PROCESSOR_AVG_IDLE_PERCENT, average)
        handled = sum(times.sum_ns(LOCAL) for times in self._times()) / NS
        handlers: dict[Labels, Sequence[float]] = {(): (handled, server.handler_seconds())}
        [handlers_idle] = self._handlers_idle.families(handlers, now, of_loop)
        # After the end nothing is idle (Kafka: SocketServerTest.testMetricCollectionAfterShutdown).
        yield handlers_idle if processors else single(handlers_idle.metric, 0.0)
