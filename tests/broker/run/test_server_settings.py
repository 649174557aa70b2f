"""From Kafka's keys to what a running broker does with connections and file descriptors."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trionet.broker.run._server_settings as module
from support.brokers import broker_and_client, close_reasons
from support.calls import batch, create_topic, delete_topic, fetch, produce, values_of
from support.client import Client, connect, host_and_port
from support.eventually import eventually
from support.leaks import descriptors
from support.trionet_process import trionet_broker_process
from support.wire import Peer
from trionet import Broker, ConfigError, open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._dynamic_config import DynamicConfig
from trionet.broker.run._server_settings import (
    CONNECTIONS_MIN,
    connections_max,
    log_connections_max,
    log_lockouts,
    server_config,
)
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol._config_types import Value
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.server._server_config import ServerConfig
from trionet.server.quotas._connection_limits import UNLIMITED, ListenerLimits

TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
}


async def settings(given: dict[str, object]) -> ServerConfig:
    return await server_config(BrokerConfig.from_settings({**TWO_LISTENERS, **given}))


async def is_served(client: Client) -> bool:
    answer = await client.call(ApiVersionsRequest(), 0)
    return bool(answer.error_code == 0)


async def is_refused(broker: Broker, number: int = 0) -> bool:
    with await Peer.connect(broker.endpoints[number].port) as peer:
        return await peer.receive_to_end() == b""


async def test_defaults_are_kafkas() -> None:
    """Only the connections leave file descriptors to others."""
    found = await settings({})

    assert (3, 8, 500, -1, 104857600) == (
        found.num_network_threads,
        found.num_io_threads,
        found.queued_max_requests,
        found.queued_max_request_bytes,
        found.socket_request_max_bytes,
    )
    assert (102400, 102400, 50, 600_000) == (
        found.socket_send_buffer_bytes,
        found.socket_receive_buffer_bytes,
        found.socket_listen_backlog_size,
        found.connections_max_idle_ms,
    )
    assert (connections_max(BrokerConfig({})), UNLIMITED, UNLIMITED, {}) == (
        found.limits.connections_max,
        found.limits.connections_per_ip_max,
        found.limits.connections_per_second_max,
        found.limits.overrides,
    )
    assert (11, 1, None) == (
        found.quota_window_num,
        found.quota_window_size_seconds,
        found.protected_listener,
    )


async def test_limits_of_the_broker_and_of_a_listener_are_different_ones() -> None:
    """Q7, Q10: only a key of the listener itself limits a listener."""
    found = await settings(
        {
            "max.connections": 10,
            "max.connection.creation.rate": 20,
            "listener.name.internal.max.connections": 3,
            "listener.name.internal.max.connection.creation.rate": 4,
            "listener.name.internal.num.network.threads": 5,
        }
    )

    assert (10, 20) == (found.limits.connections_max, found.limits.connections_per_second_max)
    assert ListenerLimits() == found.listener_limits["PLAINTEXT"]
    assert (
        ListenerLimits(connections_max=3, connections_per_second_max=4)
        == (found.listener_limits["INTERNAL"])
    )
    assert {"INTERNAL": 5} == found.listener_network_threads


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("listener.name.internal.max.connections", 0, "1 or more"),
        ("listener.name.internal.max.connection.creation.rate", 0, "1 or more"),
        ("max.connections.per.ip", 0, "overrides is set"),
        ("max.connections.per.ip.overrides", "nowhere at all:5", "cannot resolve"),
        ("inter.broker.listener.name", "EXTERNAL", "not in listeners"),
        ("num.network.threads", 0, "num.network.threads"),
    ],
)
async def test_what_is_not_allowed_is_a_configuration_error(
    key: str, value: object, text: str
) -> None:
    """Q15: also for the whole broker, and for addresses."""
    with pytest.raises(ConfigError, match=text):
        await settings({key: value})


async def test_an_override_by_name_raises_the_limit_of_its_addresses() -> None:
    """P22: one more is refused, and when one has gone there is room again."""
    given = {"max.connections.per.ip": 1, "max.connections.per.ip.overrides": "localhost:3"}
    with trio.fail_after(10):
        async with open_broker(given) as broker:
            address = broker.bootstrap_servers
            async with connect(address) as first, connect(address) as second:
                async with connect(address) as third:
                    for client in (first, second, third):
                        assert await is_served(client)
                    assert await is_refused(broker)
                await wait_all_tasks_blocked()

                async with connect(address) as another:
                    assert await is_served(another)


async def test_the_listener_between_brokers_gets_in_at_the_expense_of_others() -> None:
    """Q20: the least recently used one of the processor that sees it first goes."""
    given = {
        **TWO_LISTENERS,
        "max.connections": 2,
        "inter.broker.listener.name": "INTERNAL",
        "num.network.threads": 1,
    }
    with trio.fail_after(10):
        async with open_broker(given) as broker:
            outside, inside = (endpoint.address for endpoint in broker.endpoints)
            async with connect(outside) as first, connect(outside) as second:
                assert await is_served(first)
                assert await is_served(second)

                async with connect(inside) as protected:
                    assert await is_served(protected)
                    assert b"" == await first.receive_to_end()
                    assert await is_served(second)
            assert CloseReason.EXCESS_CONNECTION in await close_reasons(broker)


async def test_the_idle_time_is_that_of_the_setting(mock_clock: MockClock) -> None:
    """P12: connections.max.idle.ms."""
    async with open_broker({"connections.max.idle.ms": 5000}) as broker:
        async with connect(broker.bootstrap_servers) as client:
            assert await is_served(client)
            mock_clock.jump(4.9)
            assert await is_served(client)

            mock_clock.jump(5.1)

            assert b"" == await client.receive_to_end()
        assert [CloseReason.IDLE] == list(await close_reasons(broker))


resource = pytest.importorskip("resource", reason="needs the limits of Unix")

LIMIT = 256
TOPICS = 80


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """What the process may open: 1000 files."""
    monkeypatch.setattr(module, "descriptor_limit", lambda: 1000)
    return 1000


def test_connections_leave_half_of_the_descriptors_to_files(limit: int) -> None:
    assert 500 == connections_max(BrokerConfig({}))
    assert 166 == connections_max(BrokerConfig({}), nodes=3)
    assert 20 == connections_max(BrokerConfig.from_settings({"max.connections": "20"}))
    assert 0 == connections_max(BrokerConfig.from_settings({"max.connections": "0"}))


def test_the_reserve_is_a_setting_and_shuts_no_client_out(limit: int) -> None:
    reserve = "file.descriptors.reserve"
    assert 900 == connections_max(BrokerConfig.from_settings({reserve: "100"}))
    assert 1000 == connections_max(BrokerConfig.from_settings({reserve: "0"}))
    assert CONNECTIONS_MIN == connections_max(BrokerConfig.from_settings({reserve: "5000"}))


def test_without_a_limit_of_descriptors_connections_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft // 2 == connections_max(BrokerConfig({}))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, hard))
    assert UNLIMITED == connections_max(BrokerConfig({}))


def test_a_setting_that_counts_for_less_is_reported(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    log_connections_max(BrokerConfig({}), 1)
    log_connections_max(BrokerConfig.from_settings({"max.connections": "500"}), 1)
    assert "" == caplog.text

    log_connections_max(BrokerConfig.from_settings({"max.connections": "501"}), 1)

    [(_, level, message)] = caplog.record_tuples
    assert logging.WARNING == level
    assert message.startswith("max.connections = 501 is reduced to 500: the process may open 1000")


@contextlib.contextmanager
def strangers(address: str, count: int) -> Iterator[None]:
    """Connections that say nothing, as many as are let in and a few in the backlog."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect(host_and_port(address))
        yield


def with_descriptors(limit: int) -> list[str]:
    """A command that runs another one with so many file descriptors."""
    code = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}));"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", code]


async def test_strangers_leave_the_descriptors_that_partitions_need(tmp_path: Path) -> None:
    """On a disk, each partition opens a file when it is written for the first time."""
    topics = [f"t{number}" for number in range(TOPICS)]
    with trionet_broker_process(tmp_path / "data", before=with_descriptors(LIMIT)) as (address, _):
        async with connect(address) as client:
            for topic in topics:
                await create_topic(client, topic)
            with strangers(address, 2 * LIMIT):
                written = [await produce(client, topic, batch(b"x")) for topic in topics]
    assert {0} == {each.error_code for each in written}


async def test_partitions_in_memory_take_descriptors_when_they_are_written_to() -> None:
    """Two topics of 10,000 partitions had taken them all, and with them every later request."""

    def files() -> int:
        gc.collect()  # those of tests before
        return len([each for each in descriptors() if "memfd:" in each])

    async with broker_and_client() as (_, client):
        before = files()
        await create_topic(client, "big", partitions=50)
        created = files() - before
        await produce(client, "big", batch(b"a"), partition=3)
        assert [b"a"] == values_of(await fetch(client, "big", partition=3))
        written = files() - before

    assert [0, 1] == [created, written]


async def test_without_descriptors_for_logs_a_broker_in_memory_still_serves() -> None:
    """What has no place is refused; who comes anew is served, and deleting makes room."""
    with trionet_broker_process(before=with_descriptors(LIMIT)) as (address, _):
        async with connect(address) as client:
            await create_topic(client, "big", partitions=LIMIT)
            codes = [
                (await produce(client, "big", batch(b"a"), partition=index)).error_code
                for index in range(LIMIT)
            ]
            assert {0, KAFKA_STORAGE_ERROR} == set(codes)
            assert codes == sorted(codes)
            assert LIMIT // 2 < codes.count(0) < LIMIT - LIMIT // 16
            assert [b"a"] == values_of(await fetch(client, "big"))
        async with connect(address) as another:
            await delete_topic(another, "big")
            await create_topic(another, "small")

            async def write() -> int:
                return (await produce(another, "small", batch(b"a"))).error_code

            # The files of what is deleted go in the background.
            await eventually(write, lambda code: not code)


@pytest.mark.parametrize(
    ("settings", "effect"),
    [
        ({"max.connections": 1}, "only 1 connection;"),
        ({"listener.name.plaintext.max.connections": 1}, "only 1 connection;"),
        ({"max.connections.per.ip": 1}, "only 1 connection of an address;"),
        (
            {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "127.0.0.1:5"},
            "connections only from the addresses in max.connections.per.ip.overrides;",
        ),
        (
            {"max.connections.per.ip.overrides": "127.0.0.1:0,127.0.0.2:1,::1:0"},
            "no connection from 127.0.0.1, ::1;",
        ),
        ({"message.max.bytes": 60}, "no records;"),
    ],
)
def test_a_start_warns_of_altered_settings_that_keep_clients_out(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Value], effect: str
) -> None:
    static = BrokerConfig.from_settings({})

    log_lockouts(DynamicConfig(static, cluster=settings))
    log_lockouts(DynamicConfig(static, own=settings))

    key = next(iter(settings))
    assert 2 == caplog.text.count(f"with the altered setting {key}={settings[key]}")
    assert 2 == caplog.text.count(f"the broker accepts {effect}")
    assert 2 == caplog.text.count(f"trionet broker --data DIR --delete-altered-setting {key}")


def test_a_start_warns_of_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    static = BrokerConfig.from_settings({"max.connections": 1, "message.max.bytes": 0})
    settings: dict[str, Value] = {
        "max.connections": 2,
        "max.connections.per.ip.overrides": "127.0.0.1:1",
        "message.max.bytes": 61,
        "listener.name.other.max.connections": 1,
    }

    log_lockouts(DynamicConfig(static, own=settings))

    assert "" == caplog.text
