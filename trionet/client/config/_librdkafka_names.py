"""librdkafka's names for Kafka's keys, used by the error that suggests Kafka's name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: Kafka's keys, keyed by librdkafka's names for them.
KAFKAS_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.commit.enable": "enable.auto.commit",
        "batch.num.messages": "batch.size",
        "compression.codec": "compression.type",
        "compression.level": "compression.gzip.level, compression.lz4.level or"
        " compression.zstd.level",
        "fetch.error.backoff.ms": "retry.backoff.ms",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "fetch.wait.max.ms": "fetch.max.wait.ms",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "message.max.bytes": "max.request.size",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "metadata.broker.list": "bootstrap.servers",
        "queue.buffering.max.kbytes": "buffer.memory",
        "queue.buffering.max.messages": "buffer.memory",
        "queue.buffering.max.ms": "linger.ms",
        "request.required.acks": "acks",
        "sasl.mechanisms": "sasl.mechanism",
        "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
        "socket.receive.buffer.bytes": "receive.buffer.bytes",
        "socket.send.buffer.bytes": "send.buffer.bytes",
        "socket.timeout.ms": "request.timeout.ms",
        "statistics.interval.ms": "statistics()",
        "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    }
)
