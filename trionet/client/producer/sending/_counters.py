"""The sender's counters, from which its metrics are computed (Kafka: SenderMetricsRegistry)."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....metrics._rates import RollingMaximum
from ..batching._batch import ProducerBatch

US: Final = 1e6


class TopicCounters:
    """The counters of one topic, which never decrease.

    Attributes:
        records_sent: the number of records sent, counted again with each attempt.
        batches_sent: the number of batches sent, counted again with each attempt.
        bytes_gathered: the size of the sent batches before compression.
        bytes_sent: the size of the sent batches on the wire.
        records_retried: the number of records queued for a retry.
        records_failed: the number of records that failed.
    """

    __slots__ = (
        "batches_sent",
        "bytes_gathered",
        "bytes_sent",
        "records_failed",
        "records_retried",
        "records_sent",
    )

    def __init__(self) -> None:
        self.records_sent = self.batches_sent = self.bytes_gathered = self.bytes_sent = 0
        self.records_retried = self.records_failed = 0

    @classmethod
    def together(cls, topics: Iterable[TopicCounters]) -> TopicCounters:
        """Return the counters of several topics, added up."""
        whole = cls()
        for each in topics:
            whole.records_sent += each.records_sent
            whole.batches_sent += each.batches_sent
            whole.bytes_gathered += each.bytes_gathered
            whole.bytes_sent += each.bytes_sent
            whole.records_retried += each.records_retried
            whole.records_failed += each.records_failed
        return whole


class SenderCounters:
    """The counters of Produce requests and batches.

    Attributes:
        topics: the counters of each topic, keyed by name.
        largest_batch: the largest recent batch, in bytes on the wire.
        batches_split: the number of batches that were split because they were too large.
        queue_us: the total time between the creation and the sending of batches, in microseconds.
        longest_queue_us: the longest recent queue time, in microseconds.
        requests_sent: the number of Produce requests sent.
        responses_received: the number of Produce responses received.
        latency_us: the total latency of Produce requests, in microseconds.
        longest_latency_us: the longest recent latency, in microseconds.
        throttle_ms: the total throttle time of the responses, in milliseconds.
        longest_throttle_ms: the longest recent throttle time, in milliseconds.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}
        self.largest_batch: RollingMaximum = RollingMaximum()
        self.batches_split = 0
        self.queue_us: int = 0
        self.longest_queue_us: RollingMaximum = RollingMaximum()
        self.requests_sent: int = 0
        self.responses_received: int = 0
        self.latency_us: int = 0
        self.longest_latency_us: RollingMaximum = RollingMaximum()
        self.throttle_ms: int = 0
        self.longest_throttle_ms: RollingMaximum = RollingMaximum()

    def sent(self, batch: ProducerBatch, now: float) -> None:
        """Count a sent batch."""
        topic = self._topic(batch)
        size = batch.sent_size
        topic.batches_sent += 1
        topic.records_sent += batch.record_count
        topic.bytes_gathered += batch.size
        topic.bytes_sent += size
        _raise_to(self.largest_batch, size)
        queued_us = int((now - batch.created_at) * US)
        self.queue_us += queued_us
        _raise_to(self.longest_queue_us, queued_us)

    def retried(self, batch: ProducerBatch) -> None:
        """Count a batch that is queued for a retry."""
        self._topic(batch).records_retried += batch.record_count

    def failed(self, batch: ProducerBatch) -> None:
        """Count a failed batch."""
        self._topic(batch).records_failed += batch.record_count

    def response_received(self, latency_seconds: float, throttle_ms: int) -> None:
        """Count a response to a Produce request."""
        self.responses_received += 1
        latency_us = int(latency_seconds * US)
        self.latency_us += latency_us
        _raise_to(self.longest_latency_us, latency_us)
        self.throttle_ms += throttle_ms
        _raise_to(self.longest_throttle_ms, throttle_ms)

    def _topic(self, batch: ProducerBatch) -> TopicCounters:
        name = batch.topic_partition.topic
        counters = self.topics.get(name)
        if counters is None:
            counters = self.topics[name] = TopicCounters()
        return counters


def _raise_to(maximum: RollingMaximum, value: int) -> None:
    maximum.current = max(maximum.current, value)
