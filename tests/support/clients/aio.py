"""aiokafka: asyncio, with a record codec in Cython."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from support.clients.client import PATIENCE_SECONDS, Admin, Arrived, Client, Record


class Aiokafka(Client, Admin):
    """The asyncio client; every call runs a loop of its own."""

    name = "aiokafka"

    def writable(self, records: Sequence[Record]) -> list[Record]:
        """Its producer wants a key or a value."""
        return [record for record in records if record.key is not None or record.value is not None]

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        return asyncio.run(self._write(topic, records, codec, is_idempotent))

    async def _write(
        self, topic: str, records: Sequence[Record], codec: str, is_idempotent: bool
    ) -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=is_idempotent,
            acks="all",
            linger_ms=50,
            max_batch_size=1_000_000,
        )
        async with producer:
            futures = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    record.timestamp,
                    list(record.headers),
                )
                for record in records
            ]
            done = await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_SECONDS)
        return [metadata.offset for metadata in done]

    def _consumer(self) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        return asyncio.run(self._read(topic, counts, start))

    async def _read(self, topic: str, counts: Mapping[int, int], start: int) -> list[Arrived]:
        arrived: list[Arrived] = []
        missing = dict(counts)
        async with self._consumer() as consumer:
            consumer.assign([TopicPartition(topic, partition) for partition in counts])
            for partition in counts:
                consumer.seek(TopicPartition(topic, partition), start)
            while any(count > 0 for count in missing.values()):
                polled = await consumer.getmany(timeout_ms=PATIENCE_SECONDS * 1000)
                if not polled:
                    raise RuntimeError(f"records of {topic} never came: {missing}")
                for at, messages in polled.items():
                    taken = messages[: missing[at.partition]]
                    missing[at.partition] -= len(taken)
                    arrived += [
                        Arrived(
                            message.offset,
                            Record(
                                message.key,
                                message.value,
                                tuple(message.headers),
                                message.timestamp,
                                at.partition,
                            ),
                            message.timestamp_type == 1,
                        )
                        for message in taken
                    ]
        return arrived

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        return asyncio.run(self._offset_for_time(topic, timestamp))

    async def _offset_for_time(self, topic: str, timestamp: int) -> int | None:
        at = TopicPartition(topic, 0)
        async with self._consumer() as consumer:
            answer = (await consumer.offsets_for_times({at: timestamp}))[at]
        return None if answer is None else answer.offset

    def _administer(self, name: str, *arguments: object) -> Any:
        async def call() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                return await getattr(admin, name)(*arguments)
            finally:
                await admin.close()

        return asyncio.run(call())

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        topic = NewTopic(name, partitions, 1, topic_configs=dict(config))
        _raise_errors(self._administer("create_topics", [topic]).topic_errors)

    def delete_topic(self, name: str) -> None:
        _raise_errors(self._administer("delete_topics", [name]).topic_error_codes)

    def topics(self) -> dict[str, int]:
        described = self._administer("describe_topics")
        return {topic["topic"]: len(topic["partitions"]) for topic in described}

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        (response,) = self._administer("describe_configs", [resource])
        ((code, _, _, _, entries),) = response.resources
        _raise_errors([(name, code)])
        return {entry[0]: entry[1] for entry in entries}

    def cluster(self) -> tuple[str | None, list[str]]:
        described = self._administer("describe_cluster")
        brokers = [f"{broker['host']}:{broker['port']}" for broker in described["brokers"]]
        return described["cluster_id"], brokers


def _raise_errors(results: Sequence[Sequence[Any]]) -> None:
    """aiokafka's admin client gives responses as they came, with their error codes."""
    refused = [result for result in results if result[1] != 0]
    if refused:
        raise RuntimeError(f"refused: {refused}")
