"""What one turn makes of responses, Sends and ends that come together, over real sockets."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.network_clients import HEARTBEAT, outcomes, poll_until
from support.raw_node import client_of_raw_node
from support.scripted_node import encoded
from trionet.client.network._responses import ClientResponse
from trionet.errors import DisconnectedError, WireFormatError
from trionet.net.wire._readiness import ReadinessKind
from trionet.protocol import api_keys
from trionet.protocol._codec import schema_versions
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

# More than both sockets take: it is still being sent when the node responds or leaves.
LARGE = SyncGroupRequest(
    assignments=[SyncGroupRequestAssignment(assignment=bytes(8 * 1024 * 1024))]
)

of_both_backends = pytest.mark.parametrize("kind", ["poller", "socket"])


def newest(api_key: int) -> int:
    return schema_versions(api_key)[-1]


def heartbeat_response(correlation_id: int) -> bytes:
    version = newest(api_keys.HEARTBEAT)
    return encoded("Heartbeat", version, correlation_id, HeartbeatResponse(error_code=27))


@of_both_backends
async def test_a_send_that_fails_lets_the_poll_under_way_hand_out_the_responses_before_it(
    kind: ReadinessKind,
) -> None:
    """The socket is watched no more then, and only request.timeout.ms would end the poll."""
    told: list[ClientResponse] = []
    async with (
        client_of_raw_node(kind) as (client, node, peer),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        first = client.send(node, HEARTBEAT, told.append)
        await wait_all_tasks_blocked(0.001)
        peer.send_now(heartbeat_response(first))
        peer.reset()
        client.send(node, HEARTBEAT, told.append)  # before the loop has looked at the socket
        await wait_all_tasks_blocked(0.001)
        nursery.cancel_scope.cancel()

    response, failed = told
    assert 27 == response.body.error_code
    assert isinstance(failed.error, DisconnectedError)


@of_both_backends
async def test_a_response_in_the_poll_that_completes_its_send_is_one(kind: ReadinessKind) -> None:
    """Completed sends come first (Kafka: NetworkClient.poll).

    The other way round the node would seem to respond to what had not left, and would lose its
    connection. It may respond as soon as it has read enough to refuse the request.
    """
    large = SyncGroupRequest(assignments=[SyncGroupRequestAssignment(assignment=bytes(60_000))])
    refusal = SyncGroupResponse(error_code=25)
    async with client_of_raw_node(kind) as (client, node, peer):
        await poll_until(client, lambda: client.is_ready(node))
        request_id = client.send(node, large)
        assert not client.is_ready(node), "its end has not left yet"
        assert len(peer.receive_now()) < 60_000
        peer.send_now(encoded("SyncGroup", newest(api_keys.SYNC_GROUP), request_id, refusal))
        await wait_all_tasks_blocked(0.001)
        [outcome] = await outcomes(client)

        assert outcome.error is None
        assert 25 == outcome.body.error_code
        assert not client.connection_failed(node)


@of_both_backends
async def test_a_response_to_a_request_that_has_not_left_ends_the_connection(
    kind: ReadinessKind,
) -> None:
    """The rest of the request would be read as the beginning of the next."""
    async with client_of_raw_node(kind) as (client, node, peer):
        await poll_until(client, lambda: client.is_ready(node))
        request_id = client.send(node, LARGE)
        early = SyncGroupResponse(error_code=25)
        peer.send_now(encoded("SyncGroup", newest(api_keys.SYNC_GROUP), request_id, early))
        await wait_all_tasks_blocked(0.001)
        [outcome] = await outcomes(client)

        assert isinstance(outcome.error, DisconnectedError)
        assert "before the request was fully sent" in str(outcome.error)
        assert client.connection_failed(node)


@of_both_backends
async def test_a_wrong_response_and_a_reset_in_one_poll_end_the_connection_once(
    kind: ReadinessKind,
) -> None:
    async with client_of_raw_node(kind) as (client, node, peer):
        await poll_until(client, lambda: client.is_ready(node))
        first = client.send(node, HEARTBEAT)
        client.send(node, LARGE)
        peer.send_now(heartbeat_response(first + 100))
        peer.reset()
        await wait_all_tasks_blocked(0.001)
        wrong, lost = await outcomes(client, 2)

        assert isinstance(wrong.error, WireFormatError)
        assert isinstance(lost.error, DisconnectedError)
        assert client.connection_failed(node)
