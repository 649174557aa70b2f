"""The topics whose metadata a producer needs (Kafka: ProducerMetadata).

A topic is added with its first record, and dropped once it has been idle for
``metadata.max.idle.ms``. As in Kafka, idle topics are dropped when new metadata arrives.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable

from ...network._metadata import Metadata


class ProducerMetadata:
    """The topics in use, whose metadata is kept up to date.

    Args:
        metadata: the metadata of the producer's client.
        idle_seconds_max: ``metadata.max.idle.ms``.
    """

    def __init__(self, metadata: Metadata, idle_seconds_max: float) -> None:
        self._metadata = metadata
        self._idle_seconds_max = idle_seconds_max
        self._used_at: dict[str, float] = {}
        self._updates = 0

    def use(self, topic: str, now: float) -> None:
        """Record that a topic is used, and request the metadata of a new topic immediately."""
        is_new = topic not in self._used_at
        self._used_at[topic] = now
        if is_new:
            self._metadata.set_topics(frozenset(self._used_at))

    def use_without_leader(self, topics: Iterable[str], now: float) -> None:
        """Record the topics whose batches wait for an unknown leader, and request metadata."""
        for topic in topics:
            self.use(topic, now)
        self._metadata.request_update()

    def expire(self, now: float) -> None:
        """Drop the idle topics if metadata has arrived since the last call."""
        if self._metadata.updates == self._updates:
            return
        self._updates = self._metadata.updates
        since = now - self._idle_seconds_max
        idle = [topic for topic, used_at in self._used_at.items() if used_at <= since]
        if idle:
            for topic in idle:
                del self._used_at[topic]
            self._metadata.set_topics(frozenset(self._used_at))
