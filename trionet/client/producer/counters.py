"""What a producer has sent, and what became of it; numbers that only grow, for metrics."""

from __future__ import annotations


class SenderCounters:
    """Counts by Kafka's names (Kafka: SenderMetricsRegistry).

    Attributes:
        records_sent: with their batch, again for each attempt.
        records_retried: that go once more.
        records_failed: whose deliveries failed.
        batches_sent: as records.
        bytes_sent: of batches as they travel, compressed.
        batches_split: that were too large.
        queue_seconds: from the beginning of batches to when they were sent, together.
        queue_seconds_max: the longest of these.
        requests_sent: Produce requests.
        requests_answered: that were answered.
        latency_seconds: how long these took together.
        latency_seconds_max: the longest of them.
        throttle_seconds: what answers asked for together (``produce-throttle-time``).
        throttle_seconds_max: the most that one asked for.
    """

    __slots__ = (
        "batches_sent",
        "batches_split",
        "bytes_sent",
        "latency_seconds",
        "latency_seconds_max",
        "queue_seconds",
        "queue_seconds_max",
        "records_failed",
        "records_retried",
        "records_sent",
        "requests_answered",
        "requests_sent",
        "throttle_seconds",
        "throttle_seconds_max",
    )

    def __init__(self) -> None:
        self.records_sent = self.records_retried = self.records_failed = 0
        self.batches_sent = self.bytes_sent = self.batches_split = 0
        self.queue_seconds = self.queue_seconds_max = 0.0
        self.requests_sent = self.requests_answered = 0
        self.latency_seconds = self.latency_seconds_max = 0.0
        self.throttle_seconds = self.throttle_seconds_max = 0.0

    def answered(self, latency_seconds: float, throttle_ms: int) -> None:
        """A Produce request was answered."""
        self.requests_answered += 1
        self.latency_seconds += latency_seconds
        self.latency_seconds_max = max(self.latency_seconds_max, latency_seconds)
        throttle = throttle_ms / 1000
        self.throttle_seconds += throttle
        self.throttle_seconds_max = max(self.throttle_seconds_max, throttle)

    def sent(self, records: int, bytes_: int, queued_seconds: float) -> None:
        """A batch goes out."""
        self.batches_sent += 1
        self.records_sent += records
        self.bytes_sent += bytes_
        self.queue_seconds += queued_seconds
        self.queue_seconds_max = max(self.queue_seconds_max, queued_seconds)
