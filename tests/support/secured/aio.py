"""aiokafka over secured listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError
from aiokafka.helpers import create_ssl_context

from support.secured.access import OAUTHBEARER, Access, Failure, Refusal
from support.secured.client import PATIENCE_SECONDS, Errors, SecuredClient, without_leftovers
from support.secured.logged import errors_logged_by


class Aiokafka(SecuredClient):
    """The asyncio client; what its caller gets is always the same, the reason is in its log."""

    name = "aiokafka"
    errors: ClassVar[Errors] = {
        Failure.WRONG_PASSWORD: ("SaslAuthenticationFailed", r"Authentication failed"),
        # It takes the refusal of a token for its acceptance (RFC 7628, 3.2.2), and goes on.
        Failure.BAD_TOKEN: ("KafkaConnectionError", r"closed"),
        Failure.EXPIRED_SERVER: ("SSLCertVerificationError", r"certificate has expired"),
        Failure.OTHER_HOST: ("SSLCertVerificationError", r"[Hh]ostname mismatch"),
        # Under TLS 1.3 a client learns of it after the handshake, and this one from the end.
        Failure.EXPIRED_CLIENT: ("KafkaConnectionError", r""),
        Failure.NO_CERTIFICATE: ("KafkaConnectionError", r""),
    }

    def _settings(self, access: Access) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": access.bootstrap,
            "security_protocol": access.protocol,
        }
        if access.has_tls:
            own = access.certificate and str(access.certificate)
            settings["ssl_context"] = create_ssl_context(
                cafile=str(access.trust), certfile=own, keyfile=own
            )
        if access.mechanism:
            settings["sasl_mechanism"] = access.mechanism
        if access.mechanism == OAUTHBEARER:
            settings["sasl_oauth_token_provider"] = _Token(access.token)
        elif access.mechanism:
            settings["sasl_plain_username"] = access.user
            settings["sasl_plain_password"] = access.password
        return settings

    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        return asyncio.run(asyncio.wait_for(self._exchange(access, topic, value), PATIENCE_SECONDS))

    async def _exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        async with AIOKafkaProducer(**self._settings(access)) as producer:
            await producer.send_and_wait(topic, value, partition=0)
        never = {"group_id": None, "enable_auto_commit": False}
        async with AIOKafkaConsumer(**self._settings(access), **never) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            found: bytes = (await consumer.getone()).value
        return found

    def refusals(self, access: Access) -> Generator[Refusal]:
        with errors_logged_by("aiokafka") as errors, without_leftovers():
            asyncio.run(self._try(access))
        yield from errors

    async def _try(self, access: Access) -> None:
        producer = AIOKafkaProducer(**self._settings(access))
        try:
            await asyncio.wait_for(producer.start(), PATIENCE_SECONDS)
            raise RuntimeError("aiokafka got in")
        except KafkaConnectionError:
            pass
        finally:
            await producer.stop()


class _Token(AbstractTokenProvider):  # type: ignore[misc,no-any-unimported]
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token
