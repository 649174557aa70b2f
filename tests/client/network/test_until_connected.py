"""Where nothing listens, a program may end at once, and otherwise waits as long as it likes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import trionet
from support.scripted_node import ScriptedNode
from trionet.client.network._open_client import REFUSED_SECONDS
from trionet.errors import DisconnectedError
from trionet.testing import MemoryNetwork

ADDRESS, ADVERTISED = "10.0.0.9:9092", "10.0.0.7:9092"

Open = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture(params=[trionet.open_admin, trionet.open_producer, trionet.open_consumer])
def opened(request: pytest.FixtureRequest, network: MemoryNetwork) -> Open:
    """Opens a client of each kind."""

    def open(servers: str = ADDRESS) -> AbstractAsyncContextManager[Any]:
        found: AbstractAsyncContextManager[Any] = request.param(servers, network=network)
        return found

    return open


async def serve(network: MemoryNetwork, after: float = 0.0, advertised: str = ADDRESS) -> None:
    await trio.sleep(after)
    settings = {
        "listeners": f"PLAINTEXT://{ADDRESS}",
        "advertised.listeners": f"PLAINTEXT://{advertised}",
    }
    async with trionet.open_broker(settings, network=network):
        await trio.sleep_forever()


async def test_nothing_that_listens_is_said_after_two_seconds(
    opened: Open, autojump_clock: MockClock
) -> None:
    async with opened() as client:
        with pytest.raises(DisconnectedError) as raised:
            await client.until_connected()
        ended_at = trio.current_time()

    assert 2 == pytest.approx(ended_at) == REFUSED_SECONDS
    assert "nothing listens at 10.0.0.9:9092 (connection refused); gave up after 2 s" == str(
        raised.value
    )
    assert "could not connect to 10.0.0.9:9092 (bootstrap): " in str(raised.value.__cause__)


async def test_all_servers_are_named_as_typed(opened: Open, autojump_clock: MockClock) -> None:
    async with opened(f"{ADDRESS},10.0.0.8:9") as client:
        with pytest.raises(DisconnectedError, match=r"at 10\.0\.0\.9:9092 or 10\.0\.0\.8:9 \("):
            await client.until_connected()


async def test_an_advertised_address_where_nothing_listens_is_named_after_two_seconds(
    opened: Open, network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, network, 0.0, ADVERTISED)
        async with opened() as client:
            with pytest.raises(DisconnectedError) as raised:
                await client.until_connected()
            ended_at = trio.current_time()
        nursery.cancel_scope.cancel()

    assert 2 == pytest.approx(ended_at)
    assert (
        "10.0.0.9:9092 responded, and says that the broker is at 10.0.0.7:9092, where nothing"
        " listens (connection refused): set advertised.listeners; gave up after 2 s"
    ) == str(raised.value)


async def test_a_broker_may_start_beside_the_program(
    opened: Open, network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, network, REFUSED_SECONDS / 2)
        async with opened() as client:
            await client.until_connected()
            assert trio.current_time() < REFUSED_SECONDS
        nursery.cancel_scope.cancel()


async def test_a_server_that_is_silent_is_waited_for(
    opened: Open, network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    silent = ScriptedNode(network, 9, "10.0.0.9")
    replies, silent.replies = silent.replies, {}
    async with silent.listening(), opened() as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.until_connected)
        await trio.sleep(100)
        assert nursery.child_tasks
        silent.replies = replies
