"""Causes are logged when they are new, and summed up in a sentence for errors.

Each cause for which no broker can be reached is named: in the error, and once in the log.

The seven that people meet most, over real sockets, for producer, consumer and admin alike.

A client that has met something else than what it was set up for says so, and what to set.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import attrs
import pytest
import trio
from trio.testing import MockClock

import trionet
from support.scripted_node import Hangup, ScriptedNode
from support.secured_clients import tls_listener
from support.tls import authority
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import COORDINATOR_ID_BASE, Cluster, Node
from trionet.client.network._open_client import open_network_client
from trionet.client.network._reachability import Reachability
from trionet.errors import AuthenticationError, CallTimedOutError, TrionetError
from trionet.testing import MemoryNetwork

SERVERS = Cluster.bootstrap([("one", 9092), ("two", 9092)])
ONE, TWO = SERVERS.nodes.values()
BROKER = Node(1, "kafka", 9092)
KNOWN = Cluster(nodes={1: BROKER, 2: Node(2, "other", 9092)})
REFUSED = "connection refused"


@pytest.fixture
def reachability() -> Reachability:
    return Reachability()


# The log.


def test_a_cause_is_logged_once_however_often_it_is_met(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        reachability.failed(ONE, REFUSED)

    [warning] = caplog.records
    assert "could not connect to one:9092 (bootstrap): connection refused" == warning.message
    assert logging.WARNING == warning.levelno


def test_another_cause_or_another_node_is_logged(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(ONE, REFUSED)
    reachability.failed(ONE, "no route to host")
    reachability.failed(TWO, REFUSED)

    assert 3 == len(caplog.records)


def test_a_cause_is_logged_again_after_the_node_was_reached(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(ONE, REFUSED)
    reachability.reached(ONE)
    reachability.failed(ONE, REFUSED)

    assert 2 == len(caplog.records)


def test_both_connections_of_a_coordinator_have_one_cause(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(BROKER, REFUSED)
    reachability.failed(attrs.evolve(BROKER, id=COORDINATOR_ID_BASE - 1), REFUSED)

    assert 1 == len(caplog.records)


def test_an_advertised_address_that_never_worked_is_called_one(
    reachability: Reachability, caplog: pytest.LogCaptureFixture
) -> None:
    reachability.failed(BROKER, REFUSED)
    reachability.reached(BROKER)
    reachability.failed(BROKER, REFUSED)

    first, second = (each.message for each in caplog.records)
    hint = "; broker 1 advertises that address (advertised.listeners)"
    assert "could not connect to kafka:9092 (node 1): connection refused" == second
    assert first == second + hint


# The sentence.


def test_nothing_is_wrong_before_anything_was_tried(reachability: Reachability) -> None:
    assert "" == reachability.problem(SERVERS)


def test_all_bootstrap_servers_are_named(reachability: Reachability) -> None:
    reachability.failed(ONE, REFUSED)
    expected = "no bootstrap broker could be reached (one:9092: connection refused; two:9092: {})"

    assert expected.format("no response yet") == reachability.problem(SERVERS)
    reachability.failed(TWO, "no route to host")
    assert expected.format("no route to host") == reachability.problem(SERVERS)


def test_many_are_counted(reachability: Reachability) -> None:
    many = Cluster.bootstrap([(f"host{number}", 9092) for number in range(5)])
    for each in many.nodes.values():
        reachability.failed(each, REFUSED)

    assert "host2:9092: connection refused and 2 more)" in reachability.problem(many)


def test_a_bootstrap_server_that_fails_beside_one_that_works_is_no_problem(
    reachability: Reachability,
) -> None:
    reachability.failed(ONE, REFUSED)

    assert "" == reachability.problem(KNOWN)


def test_advertised_addresses_are_the_problem_even_when_the_client_begins_anew(
    reachability: Reachability,
) -> None:
    """As it does again and again while no broker can be reached, and a bootstrap server can."""
    reachability.failed(ONE, REFUSED)
    reachability.failed(BROKER, REFUSED)
    problem = (
        "broker 1 advertises kafka:9092 (advertised.listeners), which cannot be reached:"
        " connection refused"
    )

    assert problem == reachability.problem(KNOWN)
    assert problem == reachability.problem(SERVERS)
    reachability.failed(TWO, REFUSED)
    assert reachability.problem(SERVERS).startswith("no bootstrap broker could be reached")


def test_a_broker_that_worked_before_does_not_advertise_a_wrong_address(
    reachability: Reachability,
) -> None:
    reachability.reached(BROKER)
    reachability.failed(BROKER, REFUSED)

    expected = "broker 1 at kafka:9092 cannot be reached: connection refused"
    assert expected == reachability.problem(KNOWN)


def test_a_broker_that_left_the_cluster_is_forgotten(reachability: Reachability) -> None:
    reachability.failed(Node(3, "gone", 9092), REFUSED)
    reachability.forget_departed(KNOWN)

    assert "" == reachability.problem(KNOWN)


# What the system said, and a refusal by all.

ECONNREFUSED = ConnectionRefusedError(111, "Connection refused")


def test_an_error_has_what_the_system_said_as_its_cause(reachability: Reachability) -> None:
    error = reachability.failed(ONE, REFUSED, ECONNREFUSED)

    assert "could not connect to one:9092 (bootstrap): connection refused" == str(error)
    assert ECONNREFUSED is error.__cause__
    assert error is reachability.error(SERVERS)


def test_nothing_listens_where_all_bootstrap_servers_refuse(reachability: Reachability) -> None:
    reachability.failed(ONE, REFUSED, ECONNREFUSED)
    assert "" == reachability.refusal(SERVERS)  # the other may still respond
    reachability.failed(TWO, REFUSED, ECONNREFUSED)

    expected = "nothing listens at one:9092 or two:9092 (connection refused)"
    assert expected == reachability.refusal(SERVERS)


def test_silence_is_no_refusal(reachability: Reachability) -> None:
    reachability.failed(ONE, REFUSED, ECONNREFUSED)
    reachability.silent(TWO, "no response to the TCP connect within 2 s")

    assert "" == reachability.refusal(SERVERS)


def test_refusals_of_several_kinds_are_named_each(reachability: Reachability) -> None:
    reachability.failed(ONE, REFUSED, ECONNREFUSED)
    unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
    reachability.failed(TWO, "name does not resolve (unknown)", unknown)

    assert reachability.problem(SERVERS) == reachability.refusal(SERVERS)


def test_rejected_credentials_are_a_refusal(reachability: Reachability) -> None:
    for each in (ONE, TWO):
        reachability.failed(each, "invalid password", AuthenticationError("invalid password"))

    assert reachability.problem(SERVERS) == reachability.refusal(SERVERS) != ""


@pytest.mark.parametrize("because", [None, socket.gaierror(socket.EAI_AGAIN, "try again")])
def test_what_a_starting_container_looks_like_is_no_refusal(
    reachability: Reachability, because: OSError | None
) -> None:
    reachability.failed(ONE, REFUSED, ECONNREFUSED)
    reachability.failed(TWO, "the connection was closed, or its name is not known yet", because)

    assert "" == reachability.refusal(SERVERS)


def test_advertised_addresses_that_all_refuse_are_a_wrong_setting(
    reachability: Reachability,
) -> None:
    other = KNOWN.nodes[2]
    reachability.reached(ONE)
    reachability.failed(BROKER, REFUSED, ECONNREFUSED)
    assert "" == reachability.refusal(KNOWN)  # the other may still respond
    reachability.failed(other, REFUSED, ECONNREFUSED)

    expected = (
        "one:9092 responded, and says that the brokers are at kafka:9092 or other:9092, where"
        " nothing listens (connection refused): set advertised.listeners"
    )
    assert expected == reachability.refusal(KNOWN)
    assert expected == reachability.refusal(SERVERS)  # where the client begins anew


def test_an_advertised_name_that_does_not_exist_is_a_refusal(reachability: Reachability) -> None:
    reachability.reached(ONE)
    unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
    reachability.failed(BROKER, "name does not resolve (unknown)", unknown)

    assert reachability.problem(SERVERS) == reachability.refusal(SERVERS)
    assert "broker 1 advertises kafka:9092" in reachability.refusal(SERVERS)


def test_a_broker_that_was_reached_and_stops_has_no_wrong_setting(
    reachability: Reachability,
) -> None:
    reachability.reached(BROKER)
    reachability.failed(BROKER, REFUSED, ECONNREFUSED)

    assert "broker 1 at kafka:9092 cannot be reached: connection refused" == reachability.refusal(
        SERVERS
    )


# Waits.


def bootstrap() -> Cluster:
    return SERVERS


async def wait(reachability: Reachability) -> None:
    with reachability.until_reached(60, bootstrap):
        await trio.sleep_forever()


async def test_a_wait_ends_if_no_broker_was_ever_reached(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    """A bootstrap server is not yet a broker of the cluster."""
    reachability.reached(ONE)
    failure = reachability.failed(TWO, REFUSED)
    with pytest.raises(CallTimedOutError, match=r"= 60000: no bootstrap broker .* two") as raised:
        await wait(reachability)

    assert 60 == trio.current_time()
    assert failure is raised.value.__cause__


async def test_short_waits_add_up_and_begin_anew_after_the_error(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    reachability.failed(ONE, REFUSED)
    for expected in (60, 120):
        while trio.current_time() < expected - 7:
            with trio.move_on_after(7):
                await wait(reachability)
        with pytest.raises(CallTimedOutError):
            await wait(reachability)

        assert expected == trio.current_time()


async def test_a_wait_goes_on_once_a_broker_was_reached(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    reachability.failed(ONE, REFUSED)

    async def respond() -> None:
        await trio.sleep(59)
        reachability.reached(BROKER)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(respond)
        with reachability.until_reached(60, bootstrap):
            await trio.sleep(1000)
        with reachability.until_reached(60, bootstrap):
            await trio.sleep(1000)


async def test_a_wait_with_nothing_wrong_is_begun_again(
    autojump_clock: MockClock, reachability: Reachability
) -> None:
    """As for a topic that does not exist yet: its caller loops."""
    with reachability.until_reached(60, bootstrap):
        await trio.sleep(1000)

    assert 60 == trio.current_time()


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


async def error_of(call: Callable[[Trouble], Awaitable[None]], trouble: Trouble) -> TrionetError:
    with pytest.raises(TrionetError) as raised:
        await call(trouble)
    return raised.value


@pytest.mark.parametrize("cause", CAUSES)
async def test_errors_and_the_log_name_host_port_and_cause(
    cause: Callable[[], AbstractAsyncContextManager[Trouble]], caplog: pytest.LogCaptureFixture
) -> None:
    """Each client logs it once, however often it tries."""
    errors: dict[str, TrionetError] = {}

    async def note(call: Callable[[Trouble], Awaitable[None]], trouble: Trouble) -> None:
        errors[call.__name__] = await error_of(call, trouble)

    async with cause() as trouble, trio.open_nursery() as nursery:
        for call in CALLS:
            nursery.start_soon(note, call, trouble)

    for error in errors.values():
        for each in (error, error.__cause__):
            assert trouble.address in str(each)
            assert trouble.cause in str(each)
    warnings = [
        each.getMessage()
        for each in caplog.records
        if each.name == "trionet.client" and each.levelno == logging.WARNING
    ]
    assert len(CALLS) == len(warnings), warnings
    for warning in warnings:
        assert warning.startswith(f"could not connect to {trouble.address} (")
        assert trouble.cause in warning


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (b"", "the listener probably speaks TLS; set security.protocol=SSL"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "text of another protocol, which begins with 'HTTP'"),
        (b"\x15\x03\x03\0\2\2\x28", "the listener speaks TLS; set security.protocol=SSL"),
    ],
)
async def test_connection_that_ends_before_the_response_to_api_versions_is_a_warning(
    response: bytes, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def other(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if response:
            await stream.send_all(response)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, host="127.0.0.1")
        [listener] = await nursery.start(serve, other, 0)
        port = listener.socket.getsockname()[1]
        async with open_network_client(f"127.0.0.1:{port}") as client:
            while not caplog.text:
                await client.poll()
        nursery.cancel_scope.cancel()

    [record, *_] = caplog.records
    assert logging.WARNING == record.levelno
    assert f"could not connect to 127.0.0.1:{port} (bootstrap): " in record.getMessage()
    assert cause in record.getMessage()


async def test_broker_that_has_responded_before_and_stops_is_not_set_up_otherwise(
    network: MemoryNetwork, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """While it stops, it may accept a connection that it closes at once."""
    node = ScriptedNode(network)
    async with (
        node.listening(),
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        node.replies["ApiVersions"] = lambda _: Hangup()
        await node.seen[-1].stream.aclose()
        while not caplog.text:
            await client.until_polled()
        nursery.cancel_scope.cancel()

    assert ["could not connect to 10.0.0.1:9092 (node 1): the peer closed the connection"] == (
        caplog.messages
    )
