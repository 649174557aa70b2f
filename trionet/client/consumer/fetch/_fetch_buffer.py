"""The buffer of fetched records (Kafka: FetchBuffer, FetchCollector)."""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque

from ..._topic_partition import TopicPartition
from ..records._chunk import Chunk
from ..records._hooks import ConsumerHooks
from ..state._partition_state import FetchPosition
from ._completed_fetch import CompletedFetch
from ._counters import FetchCounters
from ._decompression import Decompression


class FetchBuffer:
    """A queue of completed fetches.

    When :meth:`next_chunk` reaches a fetch, it drops the fetch if the partition was revoked or its
    position has moved, and skips it if the partition is paused.

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
            if not fetch.is_current:
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
