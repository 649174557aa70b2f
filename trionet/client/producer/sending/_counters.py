"""What a producer has sent, and what became of it: plain numbers, for metrics.

(Kafka: SenderMetricsRegistry.) A batch or a request pays a few additions.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....metrics._rates import RollingMaximum
from ..batching._batch import ProducerBatch

US: Final = 1e6


class TopicCounters:
    """One topic's numbers, which only grow.

    Attributes:
        records_sent: with their batches, again for each attempt.
        batches_sent: the same.
        bytes_gathered: of these before compression.
        bytes_sent: as they travel.
        records_retried: that go once more.
        records_failed: whose deliveries failed.
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
        """The sums of several."""
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
    """Everything that is counted where batches are sent and answered.

    Attributes:
        topics: what is counted by topic, by name.
        largest_batch: bytes as they travel, of late.
        batches_split: that were too large.
        queue_us: from the beginning of batches to when they were sent, in all, in microseconds.
        longest_queue_us: the longest of these, of late.
        requests_sent: Produce requests.
        requests_answered: that were answered.
        latency_us: how long these took in all.
        longest_latency_us: the longest of them, of late.
        throttle_ms: what their answers asked for in all.
        longest_throttle_ms: the most that one asked for, of late.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}
        self.largest_batch = RollingMaximum()
        self.batches_split = 0
        self.queue_us = 0
        self.longest_queue_us = RollingMaximum()
        self.requests_sent = self.requests_answered = 0
        self.latency_us = 0
        self.longest_latency_us = RollingMaximum()
        self.throttle_ms = 0
        self.longest_throttle_ms = RollingMaximum()

    def sent(self, batch: ProducerBatch, now: float) -> None:
        """A batch goes out."""
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
        """A batch goes out once more."""
        self._topic(batch).records_retried += batch.record_count

    def failed(self, batch: ProducerBatch) -> None:
        """The deliveries of a batch have failed."""
        self._topic(batch).records_failed += batch.record_count

    def answered(self, latency_seconds: float, throttle_ms: int) -> None:
        """A Produce request was answered."""
        self.requests_answered += 1
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
