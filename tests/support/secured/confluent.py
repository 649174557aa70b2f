"""confluent-kafka (librdkafka) over secured listeners."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, ClassVar

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from support.secured.access import OAUTHBEARER, Access, Failure, Refusal
from support.secured.client import PATIENCE_SECONDS, Errors, SecuredClient


class Confluent(SecuredClient):
    """The C client."""

    name = "confluent-kafka"
    errors: ClassVar[Errors] = {
        Failure.WRONG_PASSWORD: ("_AUTHENTICATION", r"Authentication failed"),
        Failure.BAD_TOKEN: ("_AUTHENTICATION", r'"status":"invalid_token"'),
        # The second is what it calls an error of the very first step of a handshake. It is in that
        # step if the broker's response comes before it looks, which it does on a busy machine.
        Failure.EXPIRED_SERVER: ("_SSL|_TRANSPORT", r"certificate verify failed"),
        Failure.OTHER_HOST: ("_SSL|_TRANSPORT", r"certificate verify failed"),
        # Under TLS 1.3 a client learns of it after the handshake, from its first read.
        Failure.EXPIRED_CLIENT: ("_TRANSPORT", r"alert certificate expired"),
        Failure.NO_CERTIFICATE: ("_TRANSPORT", r"alert certificate required"),
    }

    def _settings(self, access: Access, **more: object) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": access.bootstrap,
            "security.protocol": access.protocol,
            "enable.metrics.push": False,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        if access.has_tls:
            settings["ssl.ca.location"] = str(access.trust)
        if access.certificate is not None:
            settings["ssl.certificate.location"] = str(access.certificate)
            settings["ssl.key.location"] = str(access.certificate)
        if access.mechanism:
            settings["sasl.mechanism"] = access.mechanism
        if access.is_unsecured:
            settings["enable.sasl.oauthbearer.unsecure.jwt"] = True
            settings["sasl.oauthbearer.config"] = f"principal={access.user}"
        elif access.mechanism == OAUTHBEARER:
            settings["oauth_cb"] = lambda _: (access.token, time.time() + 3600)
        elif access.mechanism:
            settings |= {"sasl.username": access.user, "sasl.password": access.password}
        return settings

    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        producer = Producer(self._settings(access))
        producer.produce(topic, value, partition=0)
        if producer.flush(PATIENCE_SECONDS):
            raise RuntimeError("the record was not delivered")
        never = {"enable_auto_commit": False, "enable_auto_offset_store": False}
        consumer = Consumer(self._settings(access, group_id="unused", **never))
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            messages = consumer.consume(1, PATIENCE_SECONDS)
        finally:
            consumer.close()
        if not messages or messages[0].error() is not None:
            raise RuntimeError(f"the record was not read: {messages}")
        return messages[0].value() or b""

    def refusals(self, access: Access) -> Generator[Refusal]:
        begin = time.perf_counter()
        told: list[Refusal] = []

        def tell(error: KafkaError) -> None:
            told.append(Refusal(error.name(), error.str(), time.perf_counter() - begin))

        producer = Producer({**self._settings(access), "error_cb": tell})
        while time.perf_counter() - begin < PATIENCE_SECONDS:
            producer.poll(0.1)
            yield from told
            told.clear()
