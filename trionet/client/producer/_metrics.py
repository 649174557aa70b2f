"""Kafka's producer metrics: ``producer-metrics`` and ``producer-topic-metrics``.

(Kafka: SenderMetricsRegistry, KafkaProducerMetrics, BufferPool, RecordAccumulator.) Metrics that
would cost time for every record (``record-size-max``) are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...metrics._registry import Family, Labels, Metric
from ...metrics._sensors import MetricGroup, gauges
from .._client_metrics import TOPIC
from ..network._kafka_client import KafkaClient
from .batching._buffer_pool import BufferPool, BufferPoolWaiters
from .sending._counters import SenderCounters, TopicCounters

_MS_OF_US = 1e-3


class CallTimes:
    """The total times of calls, in seconds (Kafka: KafkaProducerMetrics; KIP-761).

    Calls that raise an exception are left out, except those of :meth:`.Producer.flush`.

    Attributes:
        flush: :meth:`.Producer.flush`.
        txn_init: getting the producer id and epoch, whichever call needs it.
        txn_begin: the rest of beginning a transaction.
        txn_send_offsets: sending a consumer's offsets.
        txn_commit: committing.
        txn_abort: aborting.
    """

    def __init__(self) -> None:
        self.flush = self.txn_init = self.txn_begin = 0.0
        self.txn_send_offsets = self.txn_commit = self.txn_abort = 0.0


class ProducerMetrics:
    """Collects the metrics of one producer.

    Args:
        client: the producer's client.
        counters: the sender's counters.
        pool: the buffer pool.
        waiters: the tasks waiting for memory.
        times: the times of calls.
    """

    def __init__(
        self,
        client: KafkaClient,
        counters: SenderCounters,
        pool: BufferPool,
        waiters: BufferPoolWaiters,
        times: CallTimes,
    ) -> None:
        group = client.metrics.group("producer-metrics")
        self._client = client
        self._counters = counters
        self._memory = _Memory(group, pool, waiters)
        self._whole = _Records(group)
        self._topics = _Records(client.metrics.group("producer-topic-metrics", *TOPIC))
        self._batches = _Batches(group)
        self._requests = _Requests(group)
        self._times = _Times(group, times)
        self._metadata_age = group.gauge(
            "metadata-age", "Age of the cluster's metadata, in seconds."
        )
        self._in_flight = group.gauge("requests-in-flight", "Requests awaiting a response.")

    def collect(self, now: float) -> Iterator[Family]:
        """Yield the metric families at ``now`` (see :data:`trionet.metrics._registry.Collect`)."""
        counters = self._counters
        whole = TopicCounters.together(counters.topics.values())
        by_topic: dict[Labels, TopicCounters] = {
            (name,): each for name, each in counters.topics.items()
        }
        yield from self._memory.families(now)
        yield from self._whole.families({(): whole}, now)
        yield from self._topics.families(by_topic, now)
        yield from self._batches.families(counters, whole, now)
        yield from self._requests.families(counters, whole, now)
        yield from self._times.families()
        yield gauges(self._metadata_age, {(): self._client.metadata.age(now)})
        yield gauges(self._in_flight, {(): self._client.in_flight_count()})


class _Memory:
    """The metrics of the buffer pool and of the tasks waiting for memory."""

    def __init__(self, group: MetricGroup, pool: BufferPool, waiters: BufferPoolWaiters) -> None:
        self._exhausted = group.rated(
            "buffer-exhausted", "Records that got no memory within max.block.ms"
        )
        self._waiters = waiters
        self._gauges: tuple[tuple[Metric, Callable[[], float]], ...] = (
            (
                group.gauge("waiting-threads", "Tasks waiting for memory."),
                lambda: waiters.waiting,
            ),
            (
                group.gauge("buffer-total-bytes", "Size of buffer.memory, in bytes."),
                lambda: pool.bytes_max,
            ),
            (
                group.gauge("buffer-available-bytes", "Free space in buffer.memory, in bytes."),
                lambda: pool.available,
            ),
        )
        self._waited = group.total(
            "bufferpool-wait-time-ns-total", "Total time that tasks waited for memory, in ns."
        )
        self._wait_ratio = group.rate(
            "bufferpool-wait-ratio", "Average number of tasks waiting for memory."
        )

    def families(self, now: float) -> Iterator[Family]:
        for metric, value in self._gauges:
            yield gauges(metric, {(): value()})
        seconds = self._waiters.waited_seconds(now)
        yield gauges(self._waited, {(): int(seconds * 1e9)})
        yield from self._wait_ratio.families({(): seconds}, now)
        yield from self._exhausted.families({(): self._waiters.exhausted}, now)


class _Records:
    """The record metrics, in total and per topic."""

    def __init__(self, group: MetricGroup) -> None:
        self._sent = group.rated("record-send", "Records sent")
        self._retried = group.rated("record-retry", "Records queued for a retry")
        self._failed = group.rated("record-error", "Records that failed")
        self._bytes = group.rated("byte", "Bytes of batches sent")
        self._compression = group.share(
            "compression-rate", "Bytes on the wire per byte before compression."
        )

    def families(self, topics: Mapping[Labels, TopicCounters], now: float) -> Iterator[Family]:
        yield from self._sent.families({key: t.records_sent for key, t in topics.items()}, now)
        yield from self._retried.families(
            {key: t.records_retried for key, t in topics.items()}, now
        )
        yield from self._failed.families({key: t.records_failed for key, t in topics.items()}, now)
        yield from self._bytes.families({key: t.bytes_sent for key, t in topics.items()}, now)
        parts = {key: (t.bytes_sent, t.bytes_gathered) for key, t in topics.items()}
        yield from self._compression.families(parts, now)


class _Batches:
    """The metrics of batch sizes and queue times."""

    def __init__(self, group: MetricGroup) -> None:
        self._size_avg = group.share("batch-size-avg", "Average size of a batch, in bytes.")
        self._size_max = group.largest("batch-size-max", "Size of the largest batch, in bytes.")
        self._compression = group.share(
            "compression-rate-avg", "Bytes on the wire per byte before compression."
        )
        self._record_size = group.share(
            "record-size-avg", "Average size of a record before compression, in bytes."
        )
        self._queue_avg = group.share(
            "record-queue-time-avg", "Average time that a batch waited to be sent, in ms."
        )
        self._queue_max = group.largest(
            "record-queue-time-max",
            "Longest time that a batch waited to be sent, in ms.",
            _MS_OF_US,
        )
        self._split = group.rated(
            "batch-split", "Batches that were split because they were too large"
        )

    def families(
        self, counters: SenderCounters, whole: TopicCounters, now: float
    ) -> Iterator[Family]:
        batches = whole.batches_sent
        for share, part, of in (
            (self._size_avg, whole.bytes_sent, batches),
            (self._compression, whole.bytes_sent, whole.bytes_gathered),
            (self._record_size, whole.bytes_gathered, whole.records_sent),
            (self._queue_avg, counters.queue_us * _MS_OF_US, batches),
        ):
            yield from share.families({(): (part, of)}, now)
        yield from self._size_max.families({(): counters.largest_batch}, now)
        yield from self._queue_max.families({(): counters.longest_queue_us}, now)
        yield from self._split.families({(): counters.batches_split}, now)


class _Requests:
    """The metrics of Produce requests and responses."""

    def __init__(self, group: MetricGroup) -> None:
        self._per_request = group.share(
            "records-per-request-avg", "Average number of records in a request."
        )
        self._latency_avg = group.share(
            "request-latency-avg", "Average time from a request to its response, in ms."
        )
        self._latency_max = group.largest(
            "request-latency-max", "Longest time from a request to its response, in ms.", _MS_OF_US
        )
        self._throttle_avg = group.share(
            "produce-throttle-time-avg", "Average time that a broker throttled a request, in ms."
        )
        self._throttle_max = group.largest(
            "produce-throttle-time-max", "Longest time that a broker throttled a request, in ms."
        )

    def families(
        self, counters: SenderCounters, whole: TopicCounters, now: float
    ) -> Iterator[Family]:
        responses = counters.responses_received
        for share, part, of in (
            (self._per_request, whole.records_sent, counters.requests_sent),
            (self._latency_avg, counters.latency_us * _MS_OF_US, responses),
            (self._throttle_avg, counters.throttle_ms, responses),
        ):
            yield from share.families({(): (part, of)}, now)
        yield from self._latency_max.families({(): counters.longest_latency_us}, now)
        yield from self._throttle_max.families({(): counters.longest_throttle_ms}, now)


class _Times:
    """The metrics of the time that tasks spent in calls."""

    def __init__(self, group: MetricGroup, times: CallTimes) -> None:
        self._totals: tuple[tuple[Metric, Callable[[], float]], ...] = tuple(
            (group.total(f"{name}-time-ns-total", f"Total time of {what}, in ns."), seconds)
            for name, what, seconds in (
                ("flush", "flush()", lambda: times.flush),
                ("txn-init", "getting a producer id for transactions", lambda: times.txn_init),
                ("txn-begin", "beginning transactions after that", lambda: times.txn_begin),
                (
                    "txn-send-offsets",
                    "sending offsets in transactions",
                    lambda: times.txn_send_offsets,
                ),
                ("txn-commit", "committing transactions", lambda: times.txn_commit),
                ("txn-abort", "aborting transactions", lambda: times.txn_abort),
            )
        )

    def families(self) -> Iterator[Family]:
        for metric, seconds in self._totals:
            yield gauges(metric, {(): int(seconds() * 1e9)})
