"""The buffer of fetched records, and their counters for metrics.

(Kafka: FetchBuffer, FetchCollector, FetchMetricsManager.) Counting a fetched partition or a decoded
chunk costs a dict lookup and an addition.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque

from ..._topic_partition import TopicPartition
from ..records._chunk import Chunk, FetchPosition
from ..records._hooks import ConsumerHooks
from ._completed_fetch import CompletedFetch
from ._decompression import Decompression


class TopicCounters:
    """The counters of one topic, which only increase.

    Attributes:
        records: the number of decoded records.
        bytes_: the total size of the fetched batches, in bytes.
    """

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


class FetchBuffer:
    """A queue of completed fetches.

    When :meth:`next_chunk` reaches a fetch, it drops the fetch if the partition was revoked or its
    position has moved or has reached its stop offset, and skips it if the partition is paused.

    Args:
        hooks: notified of decoded records.

    Attributes:
        counters: the counters of fetched and decoded records.
        decompression: a decompression that must run before the next records are available; None if
            none is needed.
    """

    def __init__(self, hooks: ConsumerHooks) -> None:
        self._hooks = hooks
        self.counters = FetchCounters()
        self.decompression: Decompression | None = None
        self._fetches: deque[CompletedFetch] = deque()

    def add(self, fetch: CompletedFetch) -> None:
        self._fetches.append(fetch)
        self.counters.fetched(fetch)

    def next_chunk(self, records_wanted: int) -> Chunk | None:
        """Return the next records; None if there are none or :attr:`decompression` must run first.

        Args:
            records_wanted: the number of records after which no further batch is joined to the
                chunk.

        Raises:
            CorruptRecordError: the next batch cannot be read; every call raises this until the user
                seeks past the batch.
        """
        self.decompression = None
        index = 0
        while index < len(self._fetches):
            fetch = self._fetches[index]
            if not fetch.is_current or fetch.state.is_stopped:
                del self._fetches[index]
            elif not fetch.state.is_fetchable:
                index += 1
            else:
                chunk = self._chunk_of(fetch, records_wanted)
                if chunk is not None or fetch.decompression is not None:
                    return chunk
                del self._fetches[index]
        return None

    def _chunk_of(self, fetch: CompletedFetch, records_wanted: int) -> Chunk | None:
        chunk = fetch.chunk
        if chunk is not None and not chunk.is_done:
            return chunk  # its partition was paused while it was being handed out
        fetch.chunk = None
        chunk = fetch.next_chunk(records_wanted)
        if chunk is None:
            fetch.state.read_to(fetch.position)
            self.decompression = fetch.decompression
        else:
            fetch.state.hand_out(chunk)
            self.counters.decoded(chunk)
            self._hooks.consumed(chunk)
        return chunk

    def ends(self) -> dict[TopicPartition, tuple[int, FetchPosition]]:
        """Return each partition's number of buffered bytes and next position to fetch."""
        found: dict[TopicPartition, tuple[int, FetchPosition]] = {}
        for fetch in self._fetches:
            if fetch.is_current:
                size = found[fetch.name][0] if fetch.name in found else 0
                found[fetch.name] = size + fetch.size, fetch.end
        return found

    def drop_paused(self) -> None:
        """Drop the records of paused partitions to free space; they will be fetched again."""
        for each in self._fetches:
            if each.state.is_paused and each.is_current:
                each.state.refetch()
        self._fetches = deque(each for each in self._fetches if each.is_current)

    def clear(self) -> None:
        self._fetches.clear()
