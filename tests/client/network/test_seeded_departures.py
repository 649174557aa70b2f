"""Nodes that leave while a request is still on its way to them, at any moment, drawn from a seed.

Every response that was whole in the client's kernel when its node left reaches its request. With
``python3 tests fuzz -k departures`` there are a thousand seeds.
"""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.departing import DEPARTURES, Departing, pause
from support.network_clients import poll_until
from support.raw_node import client_of_raw_node
from support.scripted_node import encoded
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._responses import ClientResponse
from trionet.errors import DisconnectedError
from trionet.net.wire._readiness import ReadinessKind
from trionet.protocol import api_keys
from trionet.protocol._codec import schema_versions
from trionet.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

SMALL_MAX = 6
VERSION = schema_versions(api_keys.SYNC_GROUP)[-1]
# More than both sockets take: it is still being sent when the node leaves.
LARGE = SyncGroupRequest(
    group_id="large", assignments=[SyncGroupRequestAssignment(assignment=bytes(8 * 1024 * 1024))]
)


def response_to(correlation_id: int, rng: random.Random) -> bytes:
    """The frame of a response of any size, which holds its id."""
    size = rng.choice([0, 1, 10, 1000, 4060, 4090, 9000, 100_000])
    body = SyncGroupResponse(assignment=b"%d|" % correlation_id + bytes(size))
    return encoded("SyncGroup", VERSION, correlation_id, body)[4:]


async def send_small(
    client: NetworkClient, node: Node, count: int, told: list[ClientResponse]
) -> list[int]:
    """Send requests that leave at once; returns their ids."""
    ids = []
    for number in range(count):
        await poll_until(client, lambda: client.is_ready(node))
        ids.append(client.send(node, SyncGroupRequest(group_id=f"{number}"), told.append))
    return ids


async def leave_at_any_moment(kind: ReadinessKind, seed: int) -> None:
    rng = random.Random(seed)
    told: list[ClientResponse] = []
    async with (
        client_of_raw_node(kind, in_flight_max=SMALL_MAX + 1) as (client, node, peer),
        trio.open_nursery() as polling,
    ):
        ids = await send_small(client, node, rng.randrange(1, SMALL_MAX), told)
        departing = Departing(peer, [response_to(each, rng) for each in ids])

        async def send_large() -> None:
            await pause(rng)
            if client.is_ready(node):
                ids.append(client.send(node, LARGE, told.append))

        polling.start_soon(client.run)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_large)
            await departing.send(rng)
            await pause(rng)
            departure = rng.choice(DEPARTURES)
            arrived = departing.leave(departure)
        while len(told) < len(ids):
            await wait_all_tasks_blocked(0.001)
        polling.cancel_scope.cancel()

    responses = [each for each in told if each.error is None]
    assert ids == [each.correlation_id for each in told], seed
    assert told[: len(responses)] == responses, seed
    assert arrived <= len(responses) <= departing.written, (seed, departure)
    for each in responses:
        assert each.body.assignment.startswith(b"%d|" % each.correlation_id), seed
    for each in told[len(responses) :]:
        assert isinstance(each.error, DisconnectedError), seed


@pytest.mark.parametrize("kind", ["poller", "socket"])
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(200), id="few", marks=pytest.mark.slow),
        pytest.param(range(200, 1000), id="more", marks=pytest.mark.fuzz),
    ],
)
async def test_responses_that_arrived_before_any_departure_reach_their_requests(
    kind: ReadinessKind, seeds: range
) -> None:
    """A Send that fails loses no response before it (Kafka: Selector.pollSelectionKeys)."""
    for seed in seeds:
        await leave_at_any_moment(kind, seed)
