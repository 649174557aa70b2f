"""confluent-kafka: librdkafka from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the stubs forget one
    AdminClient,
    ConfigResource,
)
from confluent_kafka.cimpl import TIMESTAMP_LOG_APPEND_TIME, NewTopic

from support.clients.client import PATIENCE_SECONDS, Admin, Arrived, Client, Record


class Confluent(Client, Admin):
    """The C client."""

    name = "confluent-kafka"

    def _settings(self, **settings: object) -> dict[str, Any]:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        return {
            "bootstrap.servers": self.bootstrap,
            "enable.metrics.push": False,
            "log_level": 3,
            **dotted,
        }

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        offsets: list[int] = []
        errors: list[object] = []

        def delivered(error: object, message: Message) -> None:
            if error is not None:
                errors.append(error)
            offsets.append(message.offset() or 0)

        producer = Producer(
            self._settings(
                compression_type=codec,
                enable_idempotence=is_idempotent,
                acks="all",
                linger_ms=50,
                message_timeout_ms=PATIENCE_SECONDS * 1000,
            )
        )
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
                timestamp=record.timestamp or 0,
                headers=list(record.headers),
            )
        left = producer.flush(PATIENCE_SECONDS)
        if left or errors:
            raise RuntimeError(f"{left} records were not delivered; errors: {errors[:3]}")
        return offsets

    def _consumer(self) -> Consumer:
        return Consumer(
            self._settings(
                group_id="unused",
                enable_auto_commit=False,
                enable_auto_offset_store=False,
                auto_offset_reset="error",
            )
        )

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, partition, start) for partition in counts])
            arrived: list[Arrived] = []
            missing = sum(counts.values())
            while missing:
                messages = consumer.consume(min(missing, 1000), PATIENCE_SECONDS)
                if not messages:
                    raise RuntimeError(f"{missing} records of {topic} never came")
                arrived += map(_arrived, messages)
                missing -= len(messages)
        finally:
            consumer.close()
        return arrived

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        consumer = self._consumer()
        try:
            asked = [TopicPartition(topic, 0, timestamp)]
            (answer,) = consumer.offsets_for_times(asked, timeout=PATIENCE_SECONDS)
        finally:
            consumer.close()
        if answer.error is not None:
            raise KafkaException(answer.error)
        return None if answer.offset < 0 else answer.offset

    def _admin(self) -> AdminClient:
        """Keep it until the answer is there: an admin client that is collected fails its calls."""
        return AdminClient(self._settings())

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        topic = NewTopic(name, partitions, 1, config=dict(config))
        admin = self._admin()
        admin.create_topics([topic])[name].result(PATIENCE_SECONDS)

    def delete_topic(self, name: str) -> None:
        admin = self._admin()
        admin.delete_topics([name])[name].result(PATIENCE_SECONDS)

    def topics(self) -> dict[str, int]:
        metadata = self._admin().list_topics(timeout=PATIENCE_SECONDS)
        return {name: len(topic.partitions) for name, topic in metadata.topics.items()}

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        admin = self._admin()
        (future,) = admin.describe_configs([resource]).values()
        return {key: entry.value for key, entry in future.result(PATIENCE_SECONDS).items()}

    def cluster(self) -> tuple[str | None, list[str]]:
        admin = self._admin()
        described = admin.describe_cluster().result(PATIENCE_SECONDS)
        return described.cluster_id, [f"{node.host}:{node.port}" for node in described.nodes]


def _arrived(message: Message) -> Arrived:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    kind, timestamp = message.timestamp()
    offset, partition = message.offset(), message.partition()
    assert offset is not None
    assert partition is not None
    headers = tuple(cast(list[tuple[str, bytes | None]], message.headers() or []))
    return Arrived(
        offset,
        Record(message.key(), message.value(), headers, timestamp, partition),
        kind == TIMESTAMP_LOG_APPEND_TIME,
    )
