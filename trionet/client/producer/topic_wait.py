"""Waiting until enough is known of a topic to send to it (Kafka: KafkaProducer.waitOnMetadata)."""

from __future__ import annotations

from typing import Final

import trio

from ...protocol import error_codes
from ..api_errors import api_error
from ..network_client import NetworkClient
from .accumulator import RecordAccumulator
from .record_check import check_topic
from .used_topics import UsedTopics

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
        self, client: NetworkClient, accumulator: RecordAccumulator, topics: UsedTopics
    ) -> None:
        self._client = client
        self._accumulator = accumulator
        self._topics = topics

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
