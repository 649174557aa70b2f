"""Nobody waits for ever because of what another task does."""

from __future__ import annotations

import socket
import struct
import traceback

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import (
    HEARTBEAT,
    NODE,
    SETTINGS,
    become_ready,
    outcomes,
    with_requests,
)
from support.scripted_node import NamedNetwork, ScriptedNode
from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client.network._cluster import Node
from trionet.client.network._connections import LOOKUPS_MAX
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.client.network._responses import ClientResponse
from trionet.errors import DisconnectedError
from trionet.net.wire._connecting import Address
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.produce import ProduceRequest
from trionet.testing import MemoryNetwork


async def test_awaited_request_ends_when_its_node_is_closed(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)

        async def close() -> None:
            await trio.sleep(1)
            client.close(NODE)

        nursery.start_soon(close)
        with pytest.raises(DisconnectedError, match="node 1: the client closed the connection"):
            await client.request(NODE, HEARTBEAT)
        assert trio.current_time() < 2
        nursery.cancel_scope.cancel()


async def test_who_waits_for_a_node_that_is_closed_begins_anew(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_ready(NODE)
        discover, node.replies["ApiVersions"] = node.replies["ApiVersions"], lambda _: None
        client.close(NODE)
        nursery.start_soon(client.until_ready, NODE)
        await trio.sleep(1)
        node.replies["ApiVersions"] = discover
        client.close(NODE)

        with trio.fail_after(1):
            await client.until_ready(NODE)
        nursery.cancel_scope.cancel()


async def test_an_advertised_host_forges_no_line_of_a_log_or_an_error(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "trionet")
    forged = "kafka\r\nERROR forged\x1b]52;c;eA==\x07"
    shown = r"kafka\r\nERROR forged\x1b]52;c;eA==\x07"
    network = MemoryNetwork()
    node = ScriptedNode(network, brokers=[(1, "10.0.0.1"), (2, forged)])
    async with (
        node.listening(),
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_ready(NODE)
        await trio.sleep(1)  # until there is metadata
        with pytest.raises(DisconnectedError) as refused:
            await client.until_ready(client.metadata.cluster.nodes[2])
        nursery.cancel_scope.cancel()

    assert f"could not connect to {shown}:9092 (node 2)" in str(refused.value)
    assert shown in caplog.text
    assert [] == [each for each in caplog.messages if not each.isprintable()]
    assert "\nERROR forged" not in "".join(traceback.format_exception(refused.value))


async def test_failed_look_up_of_a_node_that_is_closed_is_forgotten(
    autojump_clock: MockClock,
) -> None:
    nowhere = Node(3, "nowhere", 9092)
    async with open_network_client("10.0.0.1:9092", network=NamedNetwork()) as client:
        client.ready(nowhere)
        await trio.sleep(1)
        client.close(nowhere)
        await client.poll(0.01)

        assert not client.connection_failed(nowhere)


async def test_send_that_fails_at_once_ends_the_poll_under_way() -> None:
    """The reset is in the kernel, and the loop has not seen it yet."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=5)
    port = listeners[0].socket.getsockname()[1]
    settings = with_requests(discover_versions=False)
    ended: list[ClientResponse] = []
    has_ended = trio.Event()

    def on_response(response: ClientResponse) -> None:
        ended.append(response)
        has_ended.set()

    async with (
        open_network_client(f"127.0.0.1:{port}", settings) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        first = await listeners[0].accept()  # which is asked for metadata
        assert await first.receive_some()
        other = Node(2, "127.0.0.1", port)
        with trio.fail_after(20):
            await client.until_ready(other)
            stream = await listeners[0].accept()
            await wait_all_tasks_blocked()
            linger = struct.pack("ii", 1, 0)
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            stream.socket.close()
            client.send(other, HEARTBEAT, on_response)
            await has_ended.wait()

        assert isinstance(ended[0].error, DisconnectedError)
        nursery.cancel_scope.cancel()
    await first.aclose()
    await listeners[0].aclose()


@pytest.mark.parametrize("seconds", [0, 1])
async def test_poll_of_another_task_ends_with_the_client(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode, seconds: int
) -> None:
    ended: list[BaseException] = []

    async def poll(client: NetworkClient) -> None:
        try:
            await client.run()
        except trio.ClosedResourceError as error:
            ended.append(error)

    with trio.fail_after(5):
        async with (
            trio.open_nursery() as outer,
            open_network_client(node.address, network=network) as client,
        ):
            outer.start_soon(poll, client)
            await trio.sleep(seconds)
    assert 1 == len(ended)


async def test_poll_on_real_sockets_ends_with_the_client() -> None:
    ended: list[BaseException] = []

    async def poll(client: NetworkClient) -> None:
        with pytest.raises(trio.ClosedResourceError) as caught:
            await client.run()
        ended.append(caught.value)

    with trio.fail_after(20):
        async with trio.open_nursery() as outer, open_network_client("127.0.0.1:9") as client:
            outer.start_soon(poll, client)
            await wait_all_tasks_blocked()
    assert 1 == len(ended)


async def test_response_before_the_request_has_left_ends_that_connection_alone(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    await become_ready(client)
    client.send(NODE, HEARTBEAT)
    await outcomes(client)
    correlation_id = client.send(NODE, HEARTBEAT)
    client._client._exchange.in_flight.oldest(NODE.id).is_sent = False
    [outcome] = await outcomes(client)

    assert correlation_id == outcome.correlation_id
    assert "before the request was fully sent" in str(outcome.error)
    await become_ready(client)


async def test_request_without_a_response_waits_for_none(
    autojump_clock: MockClock, running: NetworkClient
) -> None:
    assert await running.request(NODE, ProduceRequest(acks=0)) is None
    assert trio.current_time() < 1


async def test_who_waits_for_a_throttled_node_goes_on_when_it_may(
    autojump_clock: MockClock, running: NetworkClient, node: ScriptedNode
) -> None:
    """KAFKA-17455."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse(throttle_time_ms=5000)
    await running.request(NODE, HEARTBEAT)
    began = trio.current_time()

    await running.until_ready(NODE)

    assert 5.0 <= trio.current_time() - began < 5.1


class HangingNetwork(MemoryNetwork):
    """Names that take long to be looked up.

    Attributes:
        lookups: the names that are being looked up now.
        most: the most that there were at a time.
        answers: lets all of them end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lookups: list[str] = []
        self.most = 0
        self.answers = trio.Event()

    async def resolve(self, host: str, port: int) -> list[Address]:
        self.lookups.append(host)
        self.most = max(self.most, len(self.lookups))
        await self.answers.wait()
        self.lookups.remove(host)
        return await super().resolve("10.0.0.1", port)


async def test_a_name_whose_look_up_hangs_is_looked_up_once(autojump_clock: MockClock) -> None:
    """However many attempts to connect it outlives; and it serves the last of them."""
    network = HangingNetwork()
    node = ScriptedNode(network)
    async with (
        node.listening(),
        open_network_client("named:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with trio.move_on_after(100):
            await client.until_updated()
        assert ["named"] == network.lookups
        network.answers.set()

        with trio.fail_after(40):
            await client.until_updated()
        nursery.cancel_scope.cancel()


async def test_look_ups_that_hang_do_not_take_all_threads(autojump_clock: MockClock) -> None:
    network = HangingNetwork()
    async with (
        open_network_client("10.0.0.9:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        for number in range(20):
            client.ready(Node(number, f"host{number}", 9092))
        await trio.sleep(1)

        assert LOOKUPS_MAX == network.most
        nursery.cancel_scope.cancel()


async def test_a_wait_for_a_node_ends_with_why_it_cannot_be_reached(
    autojump_clock: MockClock,
) -> None:
    network = NamedNetwork(**{"10.0.0.1": ["10.0.0.1"]})
    async with (
        open_network_client("10.0.0.9:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with pytest.raises(DisconnectedError) as refused:
            await client.until_ready(NODE)
        with pytest.raises(DisconnectedError) as unknown:
            await client.until_ready(Node(3, "nowhere", 9092))
        nursery.cancel_scope.cancel()

    assert "could not connect to 10.0.0.1:9092 (node 1): connection refused" == str(refused.value)
    cause = "name does not resolve (nowhere has no address)"
    assert f"could not connect to nowhere:9092 (node 3): {cause}" == str(unknown.value)


@pytest.mark.parametrize("backoff_seconds", [0.0, 0.05])
async def test_a_wait_for_a_node_ends_with_its_first_failure_however_soon_the_next_attempt_is(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode, backoff_seconds: float
) -> None:
    network.faults.delay_seconds = (0.001, 0.001)
    times = ConnectionTimes(reconnect=ExponentialBackoff(backoff_seconds, backoff_seconds))
    settings = attrs.evolve(SETTINGS, times=times)
    async with (
        open_network_client(node.address, settings, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        with trio.fail_after(1), pytest.raises(DisconnectedError, match="connection refused"):
            await client.until_ready(Node(2, "10.0.0.2", 9092))
        nursery.cancel_scope.cancel()
