"""What a consumer has fetched and handed out: plain numbers, for metrics.

(Kafka: FetchMetricsManager.) A fetched partition or a decoded chunk pays two additions.
"""

from __future__ import annotations

from ..records._chunk import Chunk
from ._completed_fetch import CompletedFetch


class TopicCounters:
    """One topic's numbers, which only grow.

    Attributes:
        records: that were decoded to be handed out.
        bytes_: of their batches as they came.
    """

    __slots__ = ("bytes_", "records")

    def __init__(self) -> None:
        self.records = self.bytes_ = 0


class FetchCounters:
    """Everything that is counted of fetched records.

    Attributes:
        topics: by name.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounters] = {}

    def fetched(self, fetch: CompletedFetch) -> None:
        """Batches of a partition came."""
        self._topic(fetch.name.topic).bytes_ += fetch.size

    def decoded(self, chunk: Chunk) -> None:
        """Records are there to be handed out."""
        self._topic(chunk.name.topic).records += chunk.count

    def _topic(self, name: str) -> TopicCounters:
        counters = self.topics.get(name)
        if counters is None:
            counters = self.topics[name] = TopicCounters()
        return counters
