"""The topics that a producer needs to know about (Kafka: ProducerMetadata).

Pure. A topic enters the metadata with its first record and leaves them when it was not used for
``metadata.max.idle.ms``; it is looked at when metadata have come, as Kafka's.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable

from ...metadata._metadata import Metadata


class UsedTopics:
    """See the module.

    Args:
        metadata: of the producer's client.
        idle_seconds_max: ``metadata.max.idle.ms``.
    """

    def __init__(self, metadata: Metadata, idle_seconds_max: float) -> None:
        self._metadata = metadata
        self._idle_seconds_max = idle_seconds_max
        self._used_at: dict[str, float] = {}
        self._updates = 0

    def use(self, topic: str, now: float) -> None:
        """A topic is needed; if it is new, it is asked for at once."""
        is_new = topic not in self._used_at
        self._used_at[topic] = now
        if is_new:
            self._metadata.want(frozenset(self._used_at))

    def use_without_leader(self, topics: Iterable[str], now: float) -> None:
        """There is something to send, and nobody is known to send it to."""
        for topic in topics:
            self.use(topic, now)
        self._metadata.request_update()

    def expire(self, now: float) -> None:
        """If metadata have come since the last time, forget the topics that are not used."""
        if self._metadata.updates == self._updates:
            return
        self._updates = self._metadata.updates
        since = now - self._idle_seconds_max
        idle = [topic for topic, used_at in self._used_at.items() if used_at <= since]
        if idle:
            for topic in idle:
                del self._used_at[topic]
            self._metadata.want(frozenset(self._used_at))
