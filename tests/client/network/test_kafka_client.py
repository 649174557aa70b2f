"""A poll under way ends when another task, or a look-up, gives it something to hand out."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import HEARTBEAT, NODE, SETTINGS, become_ready
from support.scripted_node import ScriptedNode
from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.client.network._responses import ClientResponse
from trionet.errors import DisconnectedError, RequestTimedOutError
from trionet.net.wire._connecting import Address
from trionet.testing import MemoryNetwork

NAMED = Node(3, "named", 9092)


class SlowNames(MemoryNetwork):
    """Names that do not resolve, which is known after a while.

    Args:
        seconds: how long a look-up takes.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def resolve(self, host: str, port: int) -> list[Address]:
        await trio.sleep(self._seconds)
        raise OSError(f"{host} has no address")


async def failed_after(client: NetworkClient) -> float:
    """Connect to the node with a name while a poll is under way; when that fails."""
    await wait_all_tasks_blocked()
    began = trio.current_time()
    assert not client.ready(NAMED)
    while not client.connection_failed(NAMED):
        await client._client.until_polled()
    return trio.current_time() - began


async def test_it_ends_when_a_node_is_disconnected(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    told: list[ClientResponse] = []
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        await become_ready(client)
        nursery.start_soon(client.run)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        client.send(NODE, HEARTBEAT, told.append)
        client.disconnect(NODE)
        await wait_all_tasks_blocked()

        assert began == trio.current_time()
        assert [DisconnectedError] == [type(each.error) for each in told]
        nursery.cancel_scope.cancel()


async def test_it_ends_when_a_request_is_late_that_was_sent_meanwhile(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    ended = trio.Event()
    told: list[ClientResponse] = []

    def on_response(response: ClientResponse) -> None:
        told.append(response)
        ended.set()

    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        await become_ready(client)
        nursery.start_soon(client.run)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        client.send(NODE, HEARTBEAT, on_response, timeout_seconds=1)
        await ended.wait()

        assert 1 <= trio.current_time() - began < 1.1
        assert isinstance(told[0].error, RequestTimedOutError)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("lookup_seconds", "setup_seconds", "expected"), [(1, 20, 1), (20, 1, 1)])
async def test_it_ends_when_a_connect_fails_that_was_begun_meanwhile(
    autojump_clock: MockClock, lookup_seconds: float, setup_seconds: float, expected: float
) -> None:
    """Because its name does not resolve, or because that takes too long."""
    network = SlowNames(lookup_seconds)
    node = ScriptedNode(network)
    setup = ExponentialBackoff(setup_seconds, setup_seconds)
    settings = attrs.evolve(SETTINGS, times=ConnectionTimes(setup=setup))
    async with (
        node.listening(),
        open_network_client(node.address, settings, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        await become_ready(client)
        nursery.start_soon(client.run)

        assert expected <= await failed_after(client) < expected + 0.1
        nursery.cancel_scope.cancel()


async def test_a_name_that_does_not_resolve_fails_one_attempt(autojump_clock: MockClock) -> None:
    """And not once more in each poll, which would put off the next attempt for ever."""
    network = SlowNames(1)
    node = ScriptedNode(network)
    async with (
        node.listening(),
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        await become_ready(client)
        nursery.start_soon(client.run)
        await failed_after(client)
        delay = client.connection_delay(NAMED)
        await trio.sleep(delay / 2)
        client.wakeup()
        await wait_all_tasks_blocked()

        assert client.connection_delay(NAMED) < delay
        nursery.cancel_scope.cancel()
