"""Which versions a node serves, and what a client makes of its responses and its silence."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.network_clients import (
    HEARTBEAT,
    NODE,
    be_able_to_send,
    become_ready,
    outcomes,
    poll_until,
    with_requests,
)
from support.scripted_node import Answer, Hangup, ScriptedNode, Seen
from trionet import __version__
from trionet.client.network._connection_states import ConnectionState
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.errors import UnsupportedVersionError
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.testing import MemoryNetwork


async def test_new_connection_is_asked_for_its_versions(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """N6."""
    node.ranges[api_keys.HEARTBEAT] = (0, 3)
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    assert client.versions(NODE) is None
    await become_ready(client)
    client.send(NODE, HEARTBEAT)
    await outcomes(client)

    versions = client.versions(NODE)
    assert versions is not None
    assert range(4) == versions.versions(api_keys.HEARTBEAT)
    assert 3 == node.last("Heartbeat").version
    asked = node.last("ApiVersions").body
    assert ("trionet", __version__) == (
        asked.client_software_name,
        asked.client_software_version,
    )


async def test_other_errors_to_the_question_end_the_connection(
    autojump_clock: MockClock,
    client: NetworkClient,
    node: ScriptedNode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """N7."""
    node.replies["ApiVersions"] = lambda _: node.api_versions(error_codes.INVALID_REQUEST)
    client.ready(NODE)
    await poll_until(client, lambda: client.connection_failed(NODE))

    assert not client.is_ready(NODE)
    assert "ApiVersions failed: INVALID_REQUEST" in caplog.text


@pytest.mark.parametrize(("told", "expected"), [(2, [4, 2]), (None, [4, 0])])
async def test_older_broker_is_asked_again_in_a_version_it_knows(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    node: ScriptedNode,
    told: int | None,
    expected: list[int],
) -> None:
    """N8, KIP-511."""

    def reply(seen: Seen) -> ApiVersionsResponse | Answer:
        if seen.version == expected[-1]:
            return node.api_versions()
        known = ApiVersion(api_key=api_keys.API_VERSIONS, max_version=told or 0)
        keys = [] if told is None else [known]
        error = error_codes.UNSUPPORTED_VERSION
        return Answer(ApiVersionsResponse(error_code=error, api_keys=keys), 0)

    node.replies["ApiVersions"] = reply
    async with open_network_client("10.0.0.9:9092", network=network) as client:
        await trio.lowlevel.checkpoint()
        client._client._states.connecting(-2, "10.0.0.9", 0.0)  # nobody else connects meanwhile
        while client._client._states.of(NODE.id).state is not ConnectionState.READY:
            client.ready(NODE)
            await client.poll()

    assert expected == [each.version for each in node.seen if each.name == "ApiVersions"]


async def test_broker_that_refuses_every_version_is_asked_no_further(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    error = error_codes.UNSUPPORTED_VERSION
    node.replies["ApiVersions"] = lambda _: Answer(ApiVersionsResponse(error_code=error), 0)
    client.ready(NODE)
    await poll_until(client, lambda: client.connection_failed(NODE))

    asked = [each.version for each in node.seen if each.stream is node.seen[0].stream]
    assert [4, 0] == asked


async def test_version_that_no_side_shares_is_an_outcome(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.ranges[api_keys.HEARTBEAT] = (7, 9)
    del node.ranges[api_keys.PRODUCE]
    await become_ready(client)
    correlation_id = client.send(NODE, HEARTBEAT)
    [outcome] = await client.poll()

    assert isinstance(outcome.error, UnsupportedVersionError)
    assert "supports versions 7 to 9; this request needs 0 to 4" in str(outcome.error)
    assert correlation_id == outcome.correlation_id
    assert client.is_ready(NODE)


async def test_metadata_that_cannot_be_asked_for_are_an_error_of_who_waits(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N5."""
    del node.ranges[api_keys.METADATA]
    async with (
        open_network_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with pytest.raises(UnsupportedVersionError, match="the broker does not support Metadata"):
            await client.until_updated()
        nursery.cancel_scope.cancel()


async def test_node_that_hangs_up_on_the_question_is_tried_again_ever_later(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N23: nothing of it surfaces."""
    node.replies["ApiVersions"] = lambda _: Hangup()
    async with open_network_client("10.0.0.9:9092", network=network) as client:
        for expected in (0.05, 0.1, 0.2, 0.4):
            client.ready(NODE)
            while not client.connection_failed(NODE):
                assert [] == await client.poll()

            assert expected * 0.7 <= client.connection_delay(NODE) <= expected * 1.2
            await trio.sleep(client.connection_delay(NODE))


async def test_connection_that_the_client_ends_during_the_question_surfaces_nowhere(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """N24."""
    node.replies["ApiVersions"] = lambda _: None
    client.ready(NODE)
    await poll_until(client, lambda: client.in_flight_count(NODE))

    client.disconnect(NODE)

    assert 0 == client.in_flight_count(NODE)
    assert client.connection_failed(NODE)
    assert [] == await client.poll(0)


async def test_silence_to_the_question_is_as_late_as_any_other(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N32."""
    node.replies["ApiVersions"] = lambda _: None
    settings = with_requests(timeout_seconds=5.0)
    async with open_network_client("10.0.0.9:9092", settings, network=network) as client:
        client.ready(NODE)
        await poll_until(client, lambda: client.connection_failed(NODE))

        assert 5.0 <= trio.current_time() < 5.5


async def test_throttled_node_is_left_alone(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N13, N19."""
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse(throttle_time_ms=100)
    async with open_network_client("10.0.0.9:9092", network=network) as client:
        await be_able_to_send(client)
        client.send(NODE, HEARTBEAT)
        await outcomes(client)

        assert not client.can_send(NODE.id, trio.current_time())
        assert 0.1 == pytest.approx(client.poll_delay(NODE))
        await trio.sleep(0.05)
        assert 0.05 == pytest.approx(client.poll_delay(NODE))
        await trio.sleep(0.05)
        assert client.can_send(NODE.id, trio.current_time())


async def test_old_version_does_not_throttle(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N14: brokers of that time answered late instead."""
    node.ranges[api_keys.HEARTBEAT] = (0, 1)
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse(throttle_time_ms=100)
    async with open_network_client("10.0.0.9:9092", network=network) as client:
        await be_able_to_send(client)
        client.send(NODE, HEARTBEAT)
        await outcomes(client)

        assert client.can_send(NODE.id, trio.current_time())
