"""Threads, limits on connections and certificates that are altered while the broker serves."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock

from support.client import Client, connect, host_and_port
from support.config_calls import (
    BROKER,
    DELETE,
    SET,
    alter,
    delete,
    incremental_request,
    put,
    sets,
    settings_of,
)
from support.tls import authority, certificate, client_context, der_of, write_pem
from trionet import Broker, open_broker
from trionet.broker.run._reconfiguration import LOOKUP_SECONDS_MAX
from trionet.protocol.error_codes import INVALID_REQUEST
from trionet.protocol.messages.api_versions import ApiVersionsRequest

OF_LISTENER = "listener.name.plaintext.max.connections"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(num_io_threads=4, num_network_threads=2) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as client:
        yield client


def processors(broker: Broker) -> int:
    return len(broker._server.processors)


async def is_served(address: str) -> bool:
    """Whether a new connection gets a response; False if it is closed."""
    async with connect(address) as client:
        try:
            await client.call(ApiVersionsRequest(), 0)
        except EOFError:
            return False
        return True


# Threads.


async def test_handlers_and_processors_become_more_and_fewer(
    broker: Broker, client: Client
) -> None:
    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))

    await put(client, BROKER, "1", num_network_threads=4, num_io_threads=8)
    assert (4, 8) == (processors(broker), len(broker._server._handlers or ()))

    await delete(client, BROKER, "1", "num.network.threads", "num.io.threads")
    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))
    assert await is_served(broker.bootstrap_servers)


@pytest.mark.parametrize("index", range(4))
async def test_who_asks_for_fewer_processors_has_a_response_even_if_its_own_ends(
    index: int,
) -> None:
    """Each of four connections is on another processor, and two of these end."""
    async with open_broker(num_network_threads=4) as broker, AsyncExitStack() as stack:
        clients = []
        for _ in range(4):
            clients.append(await stack.enter_async_context(connect(broker.bootstrap_servers)))
            await clients[-1].call(ApiVersionsRequest(), 0)

        await put(clients[index], BROKER, "1", num_network_threads=2)

        assert 2 == processors(broker)


async def test_a_listener_can_have_its_own_number_of_processors(
    broker: Broker, client: Client
) -> None:
    key = "listener.name.plaintext.num.network.threads"
    assert (0, "") == await alter(client, BROKER, "1", (key, SET, "3"))
    assert 3 == processors(broker)

    await put(client, BROKER, "1", num_network_threads=4)
    assert 3 == processors(broker)

    assert (0, "") == await alter(client, BROKER, "1", (key, DELETE, None))
    assert 4 == processors(broker)


async def test_too_many_threads_at_once_change_nothing(broker: Broker, client: Client) -> None:
    for settings in ({"num_io_threads": 9}, {"num_network_threads": 5}):
        code, message = await alter(client, BROKER, "1", *sets(**settings, message_max_bytes=5))

        assert (INVALID_REQUEST, True) == (code, " in one step; allowed: " in message)

    assert (2, 4) == (processors(broker), len(broker._server._handlers or ()))
    assert 1_048_588 == broker.config.integer("message.max.bytes")


# Connections.


async def test_another_limit_of_an_address_counts_for_the_next_connection(
    broker: Broker, client: Client
) -> None:
    await put(client, BROKER, "1", max_connections_per_ip=1)
    assert not await is_served(broker.bootstrap_servers)

    await put(client, BROKER, "1", max_connections_per_ip_overrides="localhost:5")
    assert await is_served(broker.bootstrap_servers)

    await put(client, BROKER, "1", max_connections_per_ip_overrides="127.0.0.1:0")
    assert not await is_served(broker.bootstrap_servers)

    await delete(client, BROKER, "1", "max.connections.per.ip", "max.connections.per.ip.overrides")
    assert await is_served(broker.bootstrap_servers)


async def test_host_names_are_looked_up_only_when_they_are_altered(
    broker: Broker, client: Client
) -> None:
    asked: list[str] = []

    class Resolver(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host: bytes | None, *_: object, **__: object) -> Any:
            await trio.lowlevel.checkpoint()
            asked.append((host or b"").decode())
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.7", 0))]

        async def getnameinfo(self, sockaddr: object, flags: int) -> tuple[str, str]:
            raise NotImplementedError

    trio.socket.set_custom_hostname_resolver(Resolver())
    await put(client, BROKER, "1", max_connections_per_ip_overrides="db.example:5")
    await put(client, BROKER, "1", log_retention_ms=5000, max_connections_per_ip=7)
    assert ["db.example"] == asked

    await put(client, BROKER, "1", max_connections_per_ip_overrides="db.example:5")
    assert ["db.example", "db.example"] == asked
    limits = broker._server.quotas.limits
    assert (7, {"127.0.0.7": 5}) == (limits.connections_per_ip_max, limits.overrides)


async def test_host_names_that_cannot_be_resolved_keep_no_other_alteration_waiting(
    broker: Broker, client: Client, mock_clock: MockClock
) -> None:
    asked = trio.Event()

    class Resolver(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host: bytes | None, *_: object, **__: object) -> Any:
            asked.set()
            await trio.sleep_forever()

        async def getnameinfo(self, sockaddr: object, flags: int) -> tuple[str, str]:
            raise NotImplementedError

    trio.socket.set_custom_hostname_resolver(Resolver())
    names = ",".join(f"name{number}:5" for number in range(1000))
    operations = sets(max_connections_per_ip_overrides=names)
    await client.send(incremental_request((BROKER, "", operations)), 1)
    await asked.wait()
    mock_clock.jump(LOOKUP_SECONDS_MAX)

    [result] = (await client.receive()).responses

    assert INVALID_REQUEST == result.error_code
    assert "could not be resolved within 10 s" in result.error_message
    await put(client, BROKER, "", message_max_bytes=5)


@pytest.mark.parametrize("key", ["max.connections", OF_LISTENER])
async def test_a_connection_that_waits_for_a_limit_is_let_in_when_it_is_raised(
    broker: Broker, client: Client, key: str
) -> None:
    assert (0, "") == await alter(client, BROKER, "1", (key, SET, "1"))
    async with connect(broker.bootstrap_servers) as waiting:
        await waiting.send(ApiVersionsRequest(), 0)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert 1 == broker.statistics().server.connections

        assert (0, "") == await alter(client, BROKER, "1", (key, SET, "2"))

        assert 0 == (await waiting.receive()).error_code


async def test_limits_and_rates_reach_the_server(broker: Broker, client: Client) -> None:
    listener = "listener.name.plaintext"
    await put(client, BROKER, "", max_connections=50, max_connection_creation_rate=60)
    await alter(
        client,
        BROKER,
        "1",
        (f"{listener}.max.connections", SET, "70"),
        (f"{listener}.max.connection.creation.rate", SET, "80"),
    )

    quotas = broker._server.quotas
    [of_listener] = [each.limits for each in quotas.listeners]
    assert (50, 60) == (quotas.limits.connections_max, quotas.limits.connections_per_second_max)
    assert (70, 80) == (of_listener.connections_max, of_listener.connections_per_second_max)


# Certificates.

STORE = "listener.name.secure.ssl.keystore"


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker with a listener of each kind, and a client of the open one."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
        f"{STORE}.type": "PEM",
        f"{STORE}.location": write_pem(tmp_path / "first.pem", certificate()),
    }
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        yield broker, client


async def shown_by(broker: Broker, ca: str = "ca") -> bytes | None:
    """The certificate that a new client of the secure listener is shown."""
    [endpoint] = [each for each in broker.endpoints if each.listener_name == "SECURE"]
    stream = await trio.open_tcp_stream(*host_and_port(endpoint.address))
    tls = trio.SSLStream(stream, client_context(ca), server_hostname="localhost")
    async with tls:
        await tls.do_handshake()
        shown: bytes | None = tls.getpeercert(binary_form=True)
        return shown


def other(unit: str = "tests") -> trustme.LeafCert:
    return authority().issue_cert(
        "127.0.0.1",
        "localhost",
        common_name="broker",
        organization_name="trionet",
        organization_unit_name=unit,
    )


async def test_new_connections_are_shown_another_certificate(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    broker, client = secure
    assert der_of(certificate()) == await shown_by(broker)
    leaf = other()
    path = write_pem(tmp_path / "second.pem", leaf)

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, path))

    assert der_of(leaf) == await shown_by(broker)
    [setting] = (await settings_of(client, BROKER, "1", f"{STORE}.location")).values()
    assert path == setting.value

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", DELETE, None))
    assert der_of(certificate()) == await shown_by(broker)


async def test_the_same_location_again_reads_a_file_that_was_replaced(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    """KAFKA-14136; it is also looked at by itself, ten seconds later."""
    broker, client = secure
    path, leaf = tmp_path / "first.pem", other()
    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, str(path)))
    write_pem(path, leaf)
    assert der_of(certificate()) == await shown_by(broker)

    assert (0, "") == await alter(client, BROKER, "1", (f"{STORE}.location", SET, str(path)))

    assert der_of(leaf) == await shown_by(broker)


@pytest.mark.parametrize("why", ["missing", "garbage", "another subject"])
async def test_a_certificate_that_cannot_be_used_is_refused_and_the_old_stays(
    secure: tuple[Broker, Client], tmp_path: Path, why: str
) -> None:
    broker, client = secure
    path = tmp_path / "second.pem"
    if why == "garbage":
        path.write_text("garbage")
    elif why == "another subject":
        write_pem(path, other("somebody else"))

    code, message = await alter(
        client, BROKER, "1", (f"{STORE}.location", SET, str(path)), *sets(message_max_bytes=5)
    )

    assert INVALID_REQUEST == code
    assert "listener SECURE: " in message
    assert der_of(certificate()) == await shown_by(broker)
    assert 1_048_588 == broker.config.integer("message.max.bytes")


async def test_a_check_of_a_certificate_does_not_use_it(
    secure: tuple[Broker, Client], tmp_path: Path
) -> None:
    broker, client = secure
    path = write_pem(tmp_path / "second.pem", other())

    answer = await alter(client, BROKER, "1", (f"{STORE}.location", SET, path), validate_only=True)

    assert (0, "") == answer
    assert der_of(certificate()) == await shown_by(broker)


async def test_another_trust_store_decides_about_new_clients(tmp_path: Path) -> None:
    trust = "listener.name.secure.ssl.truststore"
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
        f"{STORE}.type": "PEM",
        f"{STORE}.location": write_pem(tmp_path / "first.pem", certificate()),
        f"{trust}.type": "PEM",
        f"{trust}.certificates": authority("ca").cert_pem.bytes().decode(),
        "listener.name.secure.ssl.client.auth": "required",
    }
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        assert await is_let_in(broker)

        other_authority = authority("another").cert_pem.bytes().decode()
        assert (0, "") == await alter(
            client, BROKER, "1", (f"{trust}.certificates", SET, other_authority)
        )

        assert not await is_let_in(broker)


async def is_let_in(broker: Broker) -> bool:
    """Whether a client with a certificate of the tests' usual authority is served."""
    [endpoint] = [each for each in broker.endpoints if each.listener_name == "SECURE"]
    stream = await trio.open_tcp_stream(*host_and_port(endpoint.address))
    context = client_context(leaf=certificate("client"))
    async with trio.SSLStream(stream, context, server_hostname="localhost") as tls:
        try:
            client = Client(tls)
            await client.call(ApiVersionsRequest(), 0)
        except (EOFError, ssl.SSLError, trio.BrokenResourceError):
            return False
        return True
