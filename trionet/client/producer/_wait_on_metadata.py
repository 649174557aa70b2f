"""Waiting until enough is known of a topic to send to it (Kafka: KafkaProducer.waitOnMetadata)."""

from __future__ import annotations

from typing import Final

import trio

from ..._util._counted import counted
from ...errors import BufferExhaustedError, MetadataTimeoutError
from ...protocol import error_codes
from .._api_errors import api_error
from ..metadata._cluster import TopicMetadata
from ..network._kafka_client import KafkaClient
from .batching._accumulator import RecordAccumulator
from .batching._record_checks import check_topic
from .sending._producer_metadata import UsedTopics

# No wait makes these better; all others may pass.
_LASTING: Final = frozenset(
    {error_codes.INVALID_TOPIC_EXCEPTION, error_codes.TOPIC_AUTHORIZATION_FAILED}
)


class TopicWait:
    """See the module.

    Args:
        client: who gets metadata.
        accumulator: who has to know the topic.
        topics: those that are asked for.
    """

    def __init__(
        self, client: KafkaClient, accumulator: RecordAccumulator, topics: UsedTopics
    ) -> None:
        self._client = client
        self._accumulator = accumulator
        self._topics = topics

    @property
    def updates(self) -> int:
        """How often the cluster was described so far."""
        return self._client.metadata.updates

    def knows(self, topic: str, partition: int | None) -> bool:
        """Whether something can be sent there, as far as is known now."""
        self._accumulator.update(self._client.metadata.cluster)
        return self._accumulator.knows(topic, partition)

    def need(self, topic: str, partition: int | None, now: float) -> None:
        """Have a topic asked for that is not known, or has no such partition yet.

        Raises:
            TypeError: it is no text.
            ValueError: it is too long, or not Unicode.
        """
        if not self.knows(topic, partition):
            check_topic(topic)  # to ask for it would end the sending task
            self._topics.use(topic, now)
            self._client.metadata.request_update()
            self._client.wakeup()

    def too_late(
        self, topic: str, partition: int | None, updates: int, seconds: float
    ) -> BufferExhaustedError | MetadataTimeoutError:
        """Why nothing was taken for a topic, or for one partition of it.

        Args:
            topic: its name.
            partition: its number; None for any.
            updates: how often the cluster had been described when the wait began.
            seconds: ``max.block.ms``.
        """
        limit = f"{seconds:g} s (max.block.ms)"
        metadata, problem = self._client.metadata, self._client.connection_problem()
        if self._accumulator.knows(topic, partition):
            why = f": {problem}" if problem else ""
            return BufferExhaustedError(f"buffer.memory had no room within {limit}{why}")
        if metadata.updates == updates and problem:
            why = problem
        elif not metadata.updates:
            why = str(metadata.error or "no broker has responded")
        else:
            why = _what_is_known(metadata.cluster.topics.get(topic), partition)
        what = f"topic {topic!r}" if partition is None else f"partition {partition} of {topic!r}"
        return MetadataTimeoutError(f"no metadata for {what} within {limit}: {why}")

    async def until_known(self, topic: str, partition: int | None) -> None:
        """Wait until a topic, or one partition of it, is known.

        Raises:
            ApiError: there cannot be such a topic, or we may not write to it.
            AuthenticationError, UnsupportedVersionError: the brokers cannot be asked.
            trio.ClosedResourceError: the producer is closed.
        """
        await trio.lowlevel.checkpoint()
        if self.knows(topic, partition):
            return
        metadata = self._client.metadata
        self._topics.use(topic, trio.current_time())
        updates = metadata.request_update()
        while True:
            await self._client.until_updated(updates)
            if self.knows(topic, partition):
                return
            found = metadata.cluster.topics.get(topic)
            if found is not None and found.error_code in _LASTING:
                raise api_error(found.error_code, f"topic {topic}")
            self._topics.use(topic, trio.current_time())
            updates = metadata.request_update()


def _what_is_known(found: TopicMetadata | None, partition: int | None) -> str:
    if found is None:
        return "the brokers have not described it"
    if found.error_code:
        return f"the brokers respond {error_codes.name_of(found.error_code)}"
    if partition is not None and partition not in found.partitions:
        return f"the topic has {counted(len(found.partitions), 'partition')}, and no {partition}"
    return "the brokers know of no leader"
