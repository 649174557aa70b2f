"""kafka-python 3: pure Python with a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.codec import has_lz4, has_snappy, has_zstd

from support.cache import Unavailable
from support.clients.client import PATIENCE_SECONDS, Admin, Arrived, Client, Headers, Record


class KafkaPython(Client, Admin):
    """The pure Python client; raises `Unavailable` without the packages of its three codecs."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        if not (has_snappy() and has_lz4() and has_zstd()):
            raise Unavailable("kafka-python is installed without its extras snappy, lz4 and zstd")

    def writable(self, records: Sequence[Record]) -> list[Record]:
        """Its producer wants a key or a value, and every header to have a value."""
        return [
            attrs.evolve(record, headers=_with_values(record.headers))
            for record in records
            if record.key is not None or record.value is not None
        ]

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=is_idempotent,
            acks="all",
            linger_ms=50,
            batch_size=1_000_000,
        )
        with contextlib.closing(producer):
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    list(record.headers),
                    record.partition,
                    record.timestamp,
                )
                for record in records
            ]
            return [future.get(PATIENCE_SECONDS).offset for future in futures]

    def _consumer(self) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        arrived: list[Arrived] = []
        missing = dict(counts)
        with contextlib.closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(topic, partition) for partition in counts])
            for partition in counts:
                consumer.seek(TopicPartition(topic, partition), start)
            while any(count > 0 for count in missing.values()):
                polled = consumer.poll(timeout_ms=PATIENCE_SECONDS * 1000)
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
        at = TopicPartition(topic, 0)
        with contextlib.closing(self._consumer()) as consumer:
            answer = consumer.offsets_for_times({at: timestamp})[at]
        return None if answer is None else answer.offset

    def _admin(self) -> Any:
        return KafkaAdminClient(bootstrap_servers=self.bootstrap)

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config)}
        with self._admin() as admin:
            admin.create_topics({name: wanted})

    def delete_topic(self, name: str) -> None:
        with self._admin() as admin:
            admin.delete_topics([name])

    def topics(self) -> dict[str, int]:
        with self._admin() as admin:
            return {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics()}

    def topic_config(self, name: str) -> dict[str, str | None]:
        with self._admin() as admin:
            described = admin.describe_configs([ConfigResource("TOPIC", name)], config_filter="all")
        return {key: entry["value"] for key, entry in described["topic"][name].items()}

    def cluster(self) -> tuple[str | None, list[str]]:
        with self._admin() as admin:
            described = admin.describe_cluster()
        brokers = [f"{broker['host']}:{broker['port']}" for broker in described["brokers"]]
        return described["cluster_id"], brokers


def _with_values(headers: Headers) -> Headers:
    return tuple((name, b"" if value is None else value) for name, value in headers)
