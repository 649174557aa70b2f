"""From Kafka's keys to what a running broker does with connections."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.brokers import close_reasons
from support.client import Client, connect
from support.wire import Peer
from trionet import Broker, ConfigError, open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.run._server_settings import connections_max, server_config
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.server._connection_quotas import UNLIMITED, ListenerLimits
from trionet.server._server_config import ServerConfig

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
