"""How a task waits for the outcome of a request."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.network_clients import HEARTBEAT, NODE
from support.scripted_node import Hangup, ScriptedNode
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.errors import DisconnectedError
from trionet.testing import MemoryNetwork


async def test_error_of_many_requests_is_each_ones_own(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: Hangup()
    failures: list[DisconnectedError] = []

    async def ask(client: NetworkClient, number: int) -> None:
        try:
            raise KeyError(number)
        except KeyError:
            with pytest.raises(DisconnectedError) as raised:
                await client.request(NODE, HEARTBEAT)
        failures.append(raised.value)

    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_ready(NODE)
        async with trio.open_nursery() as askers:
            for number in range(3):
                askers.start_soon(ask, client, number)
        nursery.cancel_scope.cancel()

    assert ["0", "1", "2"] == sorted(str(each.__context__) for each in failures)
