"""kafka-python 3 over secured listeners."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, ClassVar

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError
from kafka.net.sasl.oauth import AbstractTokenProvider

from support.secured.access import OAUTHBEARER, Access, Failure, Refusal
from support.secured.client import (
    PATIENCE_SECONDS,
    REFUSAL_SECONDS_MAX,
    Errors,
    SecuredClient,
    without_leftovers,
)
from support.secured.logged import errors_logged_by


class KafkaPython(SecuredClient):
    """The pure Python client; the reason of a refusal is in its log."""

    name = "kafka-python"
    errors: ClassVar[Errors] = {
        Failure.WRONG_PASSWORD: ("SaslAuthenticationFailedError", r"Authentication failed"),
        Failure.BAD_TOKEN: ("SaslAuthenticationFailedError", r"invalid_token"),
        Failure.EXPIRED_SERVER: ("KafkaConnectionError", r"certificate has expired"),
        Failure.OTHER_HOST: ("KafkaConnectionError", r"[Hh]ostname mismatch"),
        # Under TLS 1.3 a client learns of it after the handshake, from its first read.
        Failure.EXPIRED_CLIENT: ("KafkaConnectionError", r"(?i)alert certificate expired"),
        Failure.NO_CERTIFICATE: ("KafkaConnectionError", r"(?i)alert certificate required"),
    }

    def _settings(self, access: Access, **more: object) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": access.bootstrap,
            "security_protocol": access.protocol,
            **more,
        }
        if access.has_tls:
            settings["ssl_cafile"] = str(access.trust)
        if access.certificate is not None:
            settings["ssl_certfile"] = settings["ssl_keyfile"] = str(access.certificate)
        if access.mechanism:
            settings["sasl_mechanism"] = access.mechanism
        if access.mechanism == OAUTHBEARER:
            settings["sasl_oauth_token_provider"] = _Token(access.token)
        elif access.mechanism:
            settings["sasl_plain_username"] = access.user
            settings["sasl_plain_password"] = access.password
        return settings

    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        with contextlib.closing(KafkaProducer(**self._settings(access))) as producer:
            producer.send(topic, value, partition=0).get(PATIENCE_SECONDS)
        settings = self._settings(access, group_id=None, enable_auto_commit=False)
        with contextlib.closing(KafkaConsumer(**settings)) as consumer:
            at = TopicPartition(topic, 0)
            consumer.assign([at])
            consumer.seek(at, 0)
            polled = consumer.poll(timeout_ms=PATIENCE_SECONDS * 1000)
        if not polled:
            raise RuntimeError("the record was not read")
        found: bytes = polled[at][0].value
        return found

    def refusals(self, access: Access) -> Generator[Refusal]:
        with errors_logged_by("kafka.net.connection") as errors, without_leftovers():
            self._try(access)
        yield from errors

    def _try(self, access: Access) -> None:
        made = []

        def client(**settings: object) -> Any:
            made.append(KafkaProducer.DEFAULT_CONFIG["kafka_client"](**settings))
            return made[0]

        # It tries again and again, and tells its caller only that the time is over.
        milliseconds = int(REFUSAL_SECONDS_MAX * 1000)
        settings = self._settings(access, kafka_client=client, bootstrap_timeout_ms=milliseconds)
        try:
            KafkaProducer(**settings).close()
        except KafkaTimeoutError:
            made[0].close()  # which it does not do by itself
        else:
            raise RuntimeError("kafka-python got in")


class _Token(AbstractTokenProvider):  # type: ignore[misc,no-any-unimported]
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token
