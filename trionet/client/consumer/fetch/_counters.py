"""Counters of fetched records, for metrics (Kafka: FetchMetricsManager).

Counting a fetched partition or a decoded chunk costs a dict lookup and an addition.
"""

from __future__ import annotations

from ..records._chunk import Chunk
from ._completed_fetch import CompletedFetch


class TopicCounters:
    """The counters of one topic, which only increase.

    Attributes:
        records: the number of decoded records.
        bytes_: the total size of the fetched batches, in bytes.
    """

    __slots__ = ("bytes_", "records")

    def __init__(self) -> None:
        self.records = self.bytes_ = 0


class FetchCounters:
    """The counters of fetched records.

    Attributes:
        topics: each topic's counters, keyed by topic name.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}

    def fetched(self, fetch: CompletedFetch) -> None:
        """Add the size of a partition's fetched batches to its topic's byte count."""
        self._topic(fetch.name.topic).bytes_ += fetch.size

    def decoded(self, chunk: Chunk) -> None:
        """Add the number of decoded records to their topic's record count."""
        self._topic(chunk.name.topic).records += chunk.count

    def _topic(self, name: str) -> TopicCounters:
        counters = self.topics.get(name)
        if counters is None:
            counters = self.topics[name] = TopicCounters()
        return counters
