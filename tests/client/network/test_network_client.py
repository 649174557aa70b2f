"""Requests and responses, on one node that does what it is told."""

from __future__ import annotations

import logging

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from support.network_clients import (
    HEARTBEAT,
    NODE,
    SETTINGS,
    be_able_to_send,
    become_ready,
    outcomes,
    poll_until,
    with_requests,
)
from support.scripted_node import Answer, Hangup, ScriptedNode
from trionet.client._backoff import ExponentialBackoff
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.client.network._responses import ClientResponse
from trionet.errors import (
    DisconnectedError,
    LocalProtocolError,
    RequestTimedOutError,
    WireFormatError,
)
from trionet.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.protocol.messages.produce import ProduceRequest
from trionet.testing import MemoryNetwork


@pytest.mark.parametrize("discover_versions", [True, False])
async def test_request_is_sent_and_gets_its_response(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode, discover_versions: bool
) -> None:
    """N2."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse(error_code=27)
    settings = with_requests(discover_versions=discover_versions, client_id="me")
    told: list[ClientResponse] = []
    async with open_network_client("10.0.0.9:9092", settings, network=network) as client:
        await be_able_to_send(client)
        correlation_id = client.send(NODE, HEARTBEAT, told.append)
        assert 1 == client.in_flight_count(NODE)
        [outcome] = await outcomes(client)

        assert told == [outcome]
        assert correlation_id == outcome.correlation_id == node.seen[-1].correlation_id
        assert "me" == node.seen[-1].client_id
        assert 27 == outcome.body.error_code
        assert outcome.request is HEARTBEAT
        assert outcome.error is None
        assert 0 == client.in_flight_count(NODE)
    assert discover_versions == ("ApiVersions" in node.names())


async def test_nothing_can_be_sent_to_a_node_that_is_not_ready(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """N1."""
    with pytest.raises(LocalProtocolError, match="not ready for a request; call ready"):
        client.send(NODE, HEARTBEAT)
    await become_ready(client)
    with pytest.raises(ValueError, match="HeartbeatResponse is not a request"):
        client.send(NODE, HeartbeatResponse())


async def test_close_forgets_a_node_and_what_is_in_flight(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """N4."""
    told: list[ClientResponse] = []
    await become_ready(client)
    client.send(NODE, HEARTBEAT, told.append)
    assert 1 == client.in_flight_count(NODE)

    client.close(NODE)

    assert 0 == client.in_flight_count(NODE)
    assert not client.is_ready(NODE)
    assert not client.connection_failed(NODE)
    assert [] == await client.poll(0)
    assert [] == told


async def test_response_that_is_late_ends_the_connection(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N9, X17."""
    async with open_network_client(
        node.address, with_requests(timeout_seconds=5.0), network=network
    ) as client:
        await become_ready(client)
        updates = client.metadata.updates
        began = trio.current_time()
        client.send(NODE, HEARTBEAT)
        [outcome] = await outcomes(client)

        assert isinstance(outcome.error, RequestTimedOutError)
        assert outcome.body is None
        assert client.connection_failed(NODE)
        await poll_until(client, lambda: client.metadata.updates > updates)
        assert began + 5 <= trio.current_time() < began + 6


async def test_response_in_time_asks_for_no_metadata(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()  # N9
    await become_ready(client)
    await poll_until(client, lambda: client.metadata.updates)
    client.send(NODE, HEARTBEAT)
    await outcomes(client)

    assert 250 < client.metadata.time_to_next_update(trio.current_time())


async def test_request_may_have_a_time_of_its_own(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N10."""
    async with open_network_client(
        node.address, with_requests(timeout_seconds=5.0), network=network
    ) as client:
        await become_ready(client)
        client.send(NODE, HEARTBEAT, timeout_seconds=60.0)
        began = trio.current_time()
        [outcome] = await outcomes(client)

        assert isinstance(outcome.error, RequestTimedOutError)
        assert 60 <= trio.current_time() - began < 61


async def test_user_hears_of_metadata_request_in_flight_at_disconnection(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """N22, KAFKA-4098."""
    await become_ready(client)
    node.replies["Metadata"] = lambda _: Hangup()
    request = MetadataRequest(topics=None)
    client.send(NODE, request)
    [outcome] = await outcomes(client)

    assert outcome.request is request
    assert isinstance(outcome.error, DisconnectedError)
    assert not isinstance(outcome.error, RequestTimedOutError)


async def test_correlation_ids_are_unique_and_leave_kafkas_alone(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """N27."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    await become_ready(client)
    ids = []
    for _ in range(100):
        ids.append(client.send(NODE, HEARTBEAT))
        await outcomes(client)
    client._client._exchange._last_correlation_id = 2**31 - 1 - 9
    for _ in range(3):
        ids.append(client.send(NODE, HEARTBEAT))
        await outcomes(client)

    assert 100 == len(set(ids[:100]))
    assert [2**31 - 1 - 8, 0, 1] == ids[100:]


async def test_five_requests_may_be_under_way_and_not_six(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """X13."""
    await become_ready(client)
    for _ in range(5):
        assert client.is_ready(NODE)
        client.send(NODE, HEARTBEAT)

    assert not client.ready(NODE)
    with pytest.raises(LocalProtocolError):
        client.send(NODE, HEARTBEAT)


async def test_no_request_follows_one_whose_bytes_have_not_all_left(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """X13."""
    large = HeartbeatRequest(group_id="g" * 30_000, member_id="m")
    async with open_network_client(
        node.address, with_requests(in_flight_max=1000), network=network
    ) as client:
        await become_ready(client)
        sent = 0
        while client.is_ready(NODE):  # nobody reads what is sent in between
            client.send(NODE, large)
            sent += 1
        assert 1 < sent < 1000
        await poll_until(client, lambda: client.is_ready(NODE))

        assert sent == client.in_flight_count(NODE)


async def test_callback_that_fails_stops_no_other(
    autojump_clock: MockClock,
    client: NetworkClient,
    node: ScriptedNode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """X14."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    told: list[ClientResponse] = []

    def fail(_: ClientResponse) -> None:
        raise RuntimeError("no")

    await become_ready(client)
    client.send(NODE, HEARTBEAT, fail)
    client.send(NODE, HEARTBEAT, told.append)
    found = await outcomes(client, 2)

    assert [found[1]] == told
    assert [None, None] == [each.error for each in found]
    assert "the callback of a request to node 1 failed" in caplog.text


async def test_response_to_another_request_ends_the_connection(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """X15: the peer's fault, so its connection ends, and no other."""
    node.replies["Heartbeat"] = lambda seen: Answer(HeartbeatResponse(), seen.version, 12345)
    await become_ready(client)
    correlation_id = client.send(NODE, HEARTBEAT)
    [outcome] = await outcomes(client)

    assert isinstance(outcome.error, WireFormatError)
    assert f"request 12345, expected {correlation_id}" in str(outcome.error)
    assert client.connection_failed(NODE)
    await become_ready(client)


async def test_response_to_nothing_ends_the_connection(
    autojump_clock: MockClock,
    client: NetworkClient,
    node: ScriptedNode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    await become_ready(client)
    client.send(NODE, HEARTBEAT)
    await outcomes(client)
    await node.last("Heartbeat").stream.send_all(b"\0\0\0\4abcd")
    await poll_until(client, lambda: client.connection_failed(NODE))

    assert (
        "closing the connection to 10.0.0.1:9092 (node 1): received a response with no request"
        in caplog.text
    )


async def test_response_that_does_not_decode_ends_the_connection(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda seen: (
        b"\0\0\0\6" + seen.correlation_id.to_bytes(4, "big") + b"\0\1"
    )
    await become_ready(client)
    client.send(NODE, HEARTBEAT)
    client.send(NODE, HEARTBEAT)
    found = await outcomes(client, 2)

    assert [WireFormatError, DisconnectedError] == [type(each.error) for each in found]


async def test_request_without_a_response_is_complete_when_it_has_left(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    await become_ready(client)
    client.send(NODE, ProduceRequest(acks=0))
    [outcome] = await client.poll()

    assert (None, None) == (outcome.body, outcome.error)
    assert 0 == client.in_flight_count(NODE)


async def test_second_task_may_not_poll(autojump_clock: MockClock, running: NetworkClient) -> None:
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(trio.BusyResourceError, match="another task is polling"):
        await running.poll()


async def test_poll_waits_no_longer_than_asked(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """X7."""
    with trio.move_on_after(1):
        await client.run()
    began = trio.current_time()
    while trio.current_time() < began + 2.5:
        assert [] == await client.poll(2.5)

    assert began + 2.5 == trio.current_time()
    with pytest.raises(ValueError, match="timeout_seconds = -1"):
        await client.poll(-1)


async def test_any_number_of_tasks_await_responses(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda seen: HeartbeatResponse(error_code=int(seen.body.member_id))
    answers: dict[int, int] = {}

    async def ask(client: NetworkClient, number: int) -> None:
        body = HeartbeatRequest(group_id="g", member_id=str(number))
        answers[number] = (await client.request(NODE, body)).error_code

    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        async with trio.open_nursery() as askers:
            for number in range(50):
                askers.start_soon(ask, client, number)
        nursery.cancel_scope.cancel()

    assert {number: number for number in range(50)} == answers


async def test_response_comes_with_the_correlation_id_of_its_request(
    autojump_clock: MockClock, running: NetworkClient, node: ScriptedNode
) -> None:
    """C16."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    assert HeartbeatResponse() == await running.request(NODE, HEARTBEAT)
    node.replies["Heartbeat"] = lambda _: Hangup()

    with pytest.raises(DisconnectedError, match="the peer closed the connection"):
        await running.request(NODE, HEARTBEAT)


async def test_wait_for_a_node_is_ended_by_a_cancel_scope(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """C15."""
    node.replies["ApiVersions"] = lambda _: None
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with trio.move_on_after(3) as scope:
            await client.request(NODE, HEARTBEAT)

        assert scope.cancelled_caught
        assert 3 == trio.current_time()
        nursery.cancel_scope.cancel()


async def test_node_that_refuses_connections_is_an_error(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """C15."""
    async with (
        open_network_client("10.0.0.9:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with pytest.raises(DisconnectedError, match=r"\(node 1\): connection refused"):
            await client.until_ready(NODE)
        nursery.cancel_scope.cancel()


async def test_lost_connection_is_made_again_when_its_wait_is_over(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    settings = attrs.evolve(
        SETTINGS,
        times=attrs.evolve(SETTINGS.times, reconnect=ExponentialBackoff(2.0, 2.0)),
    )
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    async with (
        open_network_client(node.address, settings, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_ready(NODE)
        client.disconnect(NODE)
        began = trio.current_time()

        assert HeartbeatResponse() == await client.request(NODE, HEARTBEAT)
        assert 2.0 <= trio.current_time() - began < 2.2
        nursery.cancel_scope.cancel()


async def test_cancelled_request_leaves_the_connection_in_order(
    autojump_clock: MockClock, running: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: None
    with trio.move_on_after(1) as scope:
        await running.request(NODE, HEARTBEAT)
    assert scope.cancelled_caught
    asked = node.last("Heartbeat")
    late = b"\0\0\0\x0c" + asked.correlation_id.to_bytes(4, "big") + b"\0" * 8
    await asked.stream.send_all(late)

    assert 1 == len((await running.request(NODE, MetadataRequest(topics=[]))).brokers)


async def test_end_of_the_client_ends_every_wait(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    failures: list[BaseException] = []

    async def ask(client: NetworkClient, to: Node) -> None:
        try:
            await client.request(to, HEARTBEAT)
        except (DisconnectedError, trio.ClosedResourceError) as error:
            failures.append(error)

    async with (
        trio.open_nursery() as askers,
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_ready(NODE)
        node.replies["ApiVersions"] = lambda _: None
        askers.start_soon(ask, client, NODE)
        askers.start_soon(ask, client, Node(7, "10.0.0.1", 9092))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()

    assert {"the client is closed", "this client is closed"} == {str(each) for each in failures}
    with pytest.raises(trio.ClosedResourceError):
        await client.poll()
    with pytest.raises(trio.ClosedResourceError):
        client.ready(NODE)
    assert [] == [sock for sock in network.open_sockets if sock.peer is None]


async def test_idle_client_does_not_spin(
    autojump_clock: MockClock, client: NetworkClient, network: MemoryNetwork
) -> None:
    """KAFKA-1642: with everything lost, time passes in waits and not in turns."""
    await become_ready(client)
    network.kill_host("10.0.0.1")
    polls = 0
    while trio.current_time() < 60:
        await client.poll()
        polls += 1

    assert polls < 60 * 10


async def test_errors_of_the_log_name_the_node(
    autojump_clock: MockClock, network: MemoryNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trionet.client"):
        async with open_network_client("10.0.0.9:9092", network=network) as client:
            with trio.move_on_after(1):
                await client.run()

    assert "could not connect to 10.0.0.9:9092 (bootstrap): connection refused" in caplog.text
