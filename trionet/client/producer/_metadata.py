"""The metadata of the topics that a producer uses, and the wait for it.

(Kafka: ProducerMetadata, KafkaProducer.waitOnMetadata.) A topic is added with its first record, and
dropped once it has been idle for ``metadata.max.idle.ms``.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

import trio

from ..._util._text import counted
from ...errors import BufferExhaustedError, MetadataTimeoutError
from ...protocol import error_codes
from .._api_errors import api_error
from ..network._cluster import TopicMetadata
from ..network._kafka_client import KafkaClient
from ..network._metadata import Metadata
from .batching._accumulator import RecordAccumulator
from .batching._records import check_topic


class ProducerMetadata:
    """The topics in use, whose metadata is kept up to date.

    Args:
        metadata: the metadata of the producer's client.
        idle_seconds_max: ``metadata.max.idle.ms``.
    """

    def __init__(self, metadata: Metadata, idle_seconds_max: float) -> None:
        self._metadata = metadata
        self._idle_seconds_max = idle_seconds_max
        # When each topic was last used, the longest unused topic first.
        self._used_at: OrderedDict[str, float] = OrderedDict()

    def use(self, topic: str, now: float) -> None:
        """Record that a topic is used, and request the metadata of a new topic immediately."""
        self._used_at[topic] = now
        self._used_at.move_to_end(topic)
        self._metadata.add_topics((topic,))

    def request(self, topics: Collection[str], now: float) -> int:
        """Record that topics are used, and request their metadata.

        Returns:
            See :meth:`.Metadata.request_update`.
        """
        for topic in topics:
            self.use(topic, now)
        return self._metadata.request_topics(topics)

    def expire(self, now: float) -> None:
        """Drop the idle topics."""
        since = now - self._idle_seconds_max
        while self._used_at:
            topic, used_at = next(iter(self._used_at.items()))
            if used_at > since:
                break
            del self._used_at[topic]
            self._metadata.remove_topics((topic,))


# These errors persist; all other errors may be temporary.
_LASTING: Final = frozenset(
    {error_codes.INVALID_TOPIC_EXCEPTION, error_codes.TOPIC_AUTHORIZATION_FAILED}
)


class MetadataWaiter:
    """Requests topic metadata for a producer, and waits for it.

    Args:
        client: provides the metadata.
        accumulator: holds the records waiting to be sent.
        topics: the topics whose metadata the producer needs.
        check: raises the error that has ended the producer, if any.
    """

    def __init__(
        self,
        client: KafkaClient,
        accumulator: RecordAccumulator,
        topics: ProducerMetadata,
        check: Callable[[], None],
    ) -> None:
        self._client = client
        self._check = check
        self._accumulator = accumulator
        self._topics = topics

    @property
    def updates(self) -> int:
        """The number of metadata updates since the client was created."""
        return self._client.metadata.updates

    def knows(self, topic: str, partition: int | None) -> bool:
        """Return whether the metadata of a topic, or of one of its partitions, is known."""
        self._accumulator.queues.topics.update(self._client.metadata.cluster)
        return self._accumulator.knows(topic, partition)

    def request(self, topic: str, partition: int | None, now: float) -> None:
        """Request the metadata of a topic if the topic or the partition is not known.

        Raises:
            TypeError: the topic is not a str.
            ValueError: the name is too long, or cannot be encoded as UTF-8.
        """
        if not self.knows(topic, partition):
            check_topic(topic)  # requesting its metadata would end the sending task
            self._topics.request((topic,), now)
            self._client.wakeup()

    def timeout_error(
        self, topic: str, partition: int | None, updates: int, seconds: float
    ) -> BufferExhaustedError | MetadataTimeoutError:
        """Return the error for a wait that exceeded ``max.block.ms``.

        Args:
            topic: the topic.
            partition: the partition; None for any.
            updates: the number of metadata updates when the wait began.
            seconds: ``max.block.ms``.
        """
        limit = f"{seconds:g} s (max.block.ms)"
        metadata, problem = self._client.metadata, self._client.connection_problem()
        error: BufferExhaustedError | MetadataTimeoutError
        if self._accumulator.knows(topic, partition):
            why = f": {problem}" if problem else ""
            error = BufferExhaustedError(f"no space in buffer.memory within {limit}{why}")
        elif metadata.updates == updates and problem:
            # Without the topic, which is not the problem.
            error = MetadataTimeoutError(f"{problem}; gave up after {limit}")
        else:
            return _unknown(metadata, topic, partition, limit)
        error.__cause__ = self._client.connection_error()
        return error

    async def until_known(self, topic: str, partition: int | None) -> None:
        """Wait until the metadata of a topic, or of one of its partitions, is known.

        Raises:
            ApiError: the topic's name is not valid, or the client may not write to it.
            AuthenticationError, UnsupportedVersionError: no broker accepts this client.
            trio.ClosedResourceError: the producer is closed.
            Exception: the error that has ended the producer, after which no metadata arrives.
        """
        await trio.lowlevel.checkpoint()
        if self.knows(topic, partition):
            return
        metadata = self._client.metadata
        updates = self._topics.request((topic,), trio.current_time())
        while True:
            await self._client.until_updated(updates, self._check)
            if self.knows(topic, partition):
                return
            found = metadata.cluster.topics.get(topic)
            if found is not None and found.error_code in _LASTING:
                raise api_error(found.error_code, f"topic {topic}")
            updates = self._topics.request((topic,), trio.current_time())


def _unknown(
    metadata: Metadata, topic: str, partition: int | None, limit: str
) -> MetadataTimeoutError:
    """Return the error of a wait during which no connection problem was known."""
    if metadata.updates:
        why = _what_is_known(metadata.cluster.topics.get(topic), partition)
    else:
        why = str(metadata.error or "no broker has responded")
    what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
    error = MetadataTimeoutError(f"no metadata for {what} within {limit}: {why}")
    error.__cause__ = metadata.error
    return error


def _what_is_known(found: TopicMetadata | None, partition: int | None) -> str:
    if found is None:
        return "the brokers have returned no metadata for it"
    if found.error_code:
        return f"the brokers returned {error_codes.name_of(found.error_code)}"
    if partition is not None and partition not in found.partitions:
        return f"the topic has only {counted(len(found.partitions), 'partition')}"
    return "it has no leader"
