"""Each cause for which no broker can be reached is named: in the error, and once in the log.

The seven that people meet most, over real sockets, for producer, consumer and admin alike.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import NamedTuple

import pytest
import trio

import trionet
from support.secured_clients import tls_listener
from support.tls import authority
from trionet.client._topic_partition import TopicPartition
from trionet.errors import TrionetError

pytestmark = pytest.mark.slow

TOPIC = "orders"
#: What is known at once, and what only silence reports.
QUICK_MS, PATIENT_MS = 800, 2600

Settings = dict[str, object]


class Trouble(NamedTuple):
    """A cluster that cannot be used.

    Attributes:
        bootstrap: where the client begins.
        address: what cannot be reached.
        cause: what is said of it.
        limit_ms: how long a call may take.
        config: of the client.
    """

    bootstrap: str
    address: str
    cause: str
    limit_ms: int = QUICK_MS
    config: Mapping[str, object] = MappingProxyType({})


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"


@asynccontextmanager
async def refused() -> AsyncIterator[Trouble]:
    address = closed_port()
    await trio.lowlevel.checkpoint()
    yield Trouble(address, address, "connection refused")


@asynccontextmanager
async def unknown_name() -> AsyncIterator[Trouble]:
    await trio.lowlevel.checkpoint()
    yield Trouble("kafka.invalid:9092", "kafka.invalid:9092", "name does not resolve", PATIENT_MS)


@asynccontextmanager
async def silent() -> AsyncIterator[Trouble]:
    await trio.lowlevel.checkpoint()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        yield Trouble(address, address, "no response to ApiVersions within 2 s", PATIENT_MS)


@asynccontextmanager
async def stalled_handshake() -> AsyncIterator[Trouble]:
    async with silent() as trouble:
        yield trouble._replace(
            cause="the TLS handshake did not finish within 2 s", config=over_tls()
        )


@asynccontextmanager
async def tls_port() -> AsyncIterator[Trouble]:
    async with trionet.open_broker(tls_listener()) as broker:
        address = broker.bootstrap_servers
        cause = "the listener probably speaks TLS; set security.protocol=SSL"
        yield Trouble(address, address, cause)


@asynccontextmanager
async def port_without_tls() -> AsyncIterator[Trouble]:
    async with trionet.open_broker() as broker:
        address = broker.bootstrap_servers
        cause = "the listener probably does not speak TLS; set security.protocol=PLAINTEXT"
        yield Trouble(address, address, cause, config=over_tls())


@asynccontextmanager
async def sasl_port() -> AsyncIterator[Trouble]:
    settings: Settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=secret;"
        ),
    }
    async with trionet.open_broker(settings) as broker:
        address = broker.bootstrap_servers
        cause = "the listener probably requires SASL; set security.protocol=SASL_PLAINTEXT"
        yield Trouble(address, address, cause)


@asynccontextmanager
async def advertised() -> AsyncIterator[Trouble]:
    elsewhere = closed_port()
    async with trionet.open_broker(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": f"PLAINTEXT://{elsewhere}"}
    ) as broker:
        [endpoint] = broker.endpoints
        yield Trouble(f"127.0.0.1:{endpoint.port}", elsewhere, "connection refused")


@asynccontextmanager
async def advertised_name() -> AsyncIterator[Trouble]:
    elsewhere = "kafka.invalid:9092"
    async with trionet.open_broker(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": f"PLAINTEXT://{elsewhere}"}
    ) as broker:
        [endpoint] = broker.endpoints
        where = f"127.0.0.1:{endpoint.port}"
        yield Trouble(where, elsewhere, "name does not resolve", PATIENT_MS)


def over_tls() -> Settings:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().cert_pem.bytes().decode(),
    }


CAUSES: list[Callable[[], AbstractAsyncContextManager[Trouble]]] = [
    refused,
    unknown_name,
    silent,
    stalled_handshake,
    tls_port,
    port_without_tls,
    sasl_port,
    advertised,
    advertised_name,
]


async def produce(trouble: Trouble) -> None:
    config = {
        **trouble.config,
        "max.block.ms": trouble.limit_ms,
        "delivery.timeout.ms": trouble.limit_ms,
        "request.timeout.ms": trouble.limit_ms,
        "linger.ms": 0,
    }
    async with trionet.open_producer(trouble.bootstrap, config) as producer:
        await producer.send(TOPIC, b"one")


async def ask_for_offsets(trouble: Trouble) -> None:
    config = {**trouble.config, "default.api.timeout.ms": trouble.limit_ms}
    async with trionet.open_consumer(trouble.bootstrap, config) as consumer:
        await consumer.beginning_offsets([TopicPartition(TOPIC, 0)])


async def consume(trouble: Trouble) -> None:
    config = {**trouble.config, "default.api.timeout.ms": trouble.limit_ms}
    async with trionet.open_consumer(trouble.bootstrap, config) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        await anext(aiter(consumer))


async def consume_in_a_group(trouble: Trouble) -> None:
    config = {**trouble.config, "default.api.timeout.ms": trouble.limit_ms, "group.id": "g"}
    async with trionet.open_consumer(trouble.bootstrap, config, topics=TOPIC) as consumer:
        await anext(aiter(consumer))


async def administer(trouble: Trouble) -> None:
    config = {
        **trouble.config,
        "default.api.timeout.ms": trouble.limit_ms,
        "request.timeout.ms": trouble.limit_ms,
    }
    async with trionet.open_admin(trouble.bootstrap, config) as admin:
        await admin.list_topics()


CALLS: list[Callable[[Trouble], Awaitable[None]]] = [
    produce,
    ask_for_offsets,
    consume,
    consume_in_a_group,
    administer,
]


async def error_of(call: Callable[[Trouble], Awaitable[None]], trouble: Trouble) -> str:
    with pytest.raises(TrionetError) as raised:
        await call(trouble)
    return str(raised.value)


@pytest.mark.parametrize("cause", CAUSES)
async def test_errors_and_the_log_name_host_port_and_cause(
    cause: Callable[[], AbstractAsyncContextManager[Trouble]], caplog: pytest.LogCaptureFixture
) -> None:
    """Each client logs it once, however often it tries."""
    errors: dict[str, str] = {}

    async def note(call: Callable[[Trouble], Awaitable[None]], trouble: Trouble) -> None:
        errors[call.__name__] = await error_of(call, trouble)

    async with cause() as trouble, trio.open_nursery() as nursery:
        for call in CALLS:
            nursery.start_soon(note, call, trouble)

    for error in errors.values():
        assert trouble.address in error
        assert trouble.cause in error
    warnings = [
        each.getMessage()
        for each in caplog.records
        if each.name == "trionet.client" and each.levelno == logging.WARNING
    ]
    assert len(CALLS) == len(warnings), warnings
    for warning in warnings:
        assert warning.startswith(f"could not connect to {trouble.address} (")
        assert trouble.cause in warning
