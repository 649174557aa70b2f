"""Consumer groups on several nodes: each has a coordinator, and goes on with the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from support.brokers import settled
from support.calls import create_topic
from support.client import Client, host_and_port
from support.group_calls import (
    COMMIT_BY_NAME,
    DESCRIBE,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    commit,
    commit_request,
    committed,
    heartbeat,
    join,
    join_alone,
    join_request,
    sync,
    sync_request,
)
from support.nodes import address, connect_to
from trionet import Broker, open_broker
from trionet.broker.groups._offsets_partition import partition_of
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from trionet.protocol.messages.list_groups import ListGroupsRequest
from trionet.protocol.messages.offset_delete import OffsetDeleteRequest
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)

NOT_COORDINATOR = error_codes.NOT_COORDINATOR
NODES = [1, 2, 3]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(brokers=3) as broker:
        yield broker


@pytest.fixture
async def clients(broker: Broker) -> AsyncIterator[dict[int, Client]]:
    """A connection to each node, a topic `t`, and group `g` coordinated by node 1."""
    async with connect_to(broker, *NODES) as connected:
        await create_topic(connected[0], "t")
        await broker.move_coordinator("g", 1)
        yield dict(zip(NODES, connected, strict=True))


async def find(client: Client, *groups: str) -> list[tuple[int, int, str, int]]:
    request = FindCoordinatorRequest(coordinator_keys=list(groups))
    response = await client.call(request, 6)
    return [(each.error_code, each.node_id, each.host, each.port) for each in response.coordinators]


async def test_groups_are_spread_over_the_nodes_by_their_hash(
    broker: Broker, clients: dict[int, Client]
) -> None:
    groups = [f"group-{number}" for number in range(30)]
    found = {node: await find(client, *groups) for node, client in clients.items()}

    assert found[1] == found[2] == found[3]
    expected = [broker.coordinator(group) for group in groups]
    assert expected == [NODES[partition_of(group) % 3] for group in groups]
    assert [(0, node, *host_and_port(address(broker, node))) for node in expected] == found[1]
    assert set(NODES) == set(expected)


async def test_every_call_about_a_group_is_for_its_coordinator(clients: dict[int, Client]) -> None:
    joined = await join_alone(clients[1])
    other = clients[2]

    async def code(request: Any, version: int, *path: str) -> int:
        answer = await other.call(request, version)
        for name in path:
            [answer] = getattr(answer, name)
        return int(answer.error_code)

    member = MemberIdentity(member_id=joined.member_id)
    beat = HeartbeatRequest(
        group_id="g", member_id=joined.member_id, generation_id=joined.generation_id
    )
    asked = OffsetFetchRequestGroup(group_id="g", topics=None)
    codes = {
        "join": await code(join_request(), JOIN),
        "sync": await code(sync_request(joined), SYNC),
        "heartbeat": await code(beat, HEARTBEAT),
        "leave": await code(LeaveGroupRequest(group_id="g", members=[member]), LEAVE),
        "commit": await code(
            commit_request({"t": {0: 5}}),
            COMMIT_BY_NAME,
            "topics",
            "partitions",
        ),
        "fetch": await code(OffsetFetchRequest(groups=[asked]), 8, "groups"),
        "fetch of one": await code(OffsetFetchRequest(group_id="g", topics=None), 7),
        "fetch of old": await code(
            OffsetFetchRequest(
                group_id="g",
                topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
            ),
            1,
            "topics",
            "partitions",
        ),
        "describe": await code(DescribeGroupsRequest(groups=["g"]), DESCRIBE, "groups"),
        "delete": await code(DeleteGroupsRequest(groups_names=["g"]), 2, "results"),
        "delete offsets": await code(OffsetDeleteRequest(group_id="g"), 0),
    }

    assert dict.fromkeys(codes, NOT_COORDINATOR) == codes
    assert 0 == await heartbeat(clients[1], joined)
    listed = {
        node: [each.group_id for each in (await client.call(ListGroupsRequest(), 5)).groups]
        for node, client in clients.items()
    }
    assert {1: ["g"], 2: [], 3: []} == listed


async def test_members_go_on_in_their_generation_with_the_next_coordinator(
    broker: Broker, clients: dict[int, Client]
) -> None:
    joined = await join_alone(clients[1])
    assert {("t", 0): 0} == await commit(clients[1], {"t": {0: 5}}, joined=joined)

    await broker.stop(1)
    coordinator = broker.coordinator("g")
    client = clients[coordinator]

    assert coordinator in (2, 3)
    assert [(0, coordinator, *host_and_port(address(broker, coordinator)))] == await find(
        clients[2], "g"
    )
    assert 0 == await heartbeat(client, joined)
    assert {("t", 0): 5} == await committed(client)
    assert {("t", 0): 0} == await commit(client, {"t": {0: 7}}, joined=joined)
    synced = await sync(client, joined)
    assert (0, b"all") == (synced.error_code, bytes(synced.assignment))


async def test_calls_that_wait_are_turned_away_and_the_rebalance_begins_anew(
    broker: Broker, clients: dict[int, Client]
) -> None:
    first = await join_alone(clients[1])
    async with connect_to(broker, 1) as [second]:
        id = (await second.call(join_request(), JOIN)).member_id
        await second.send(join_request(id), JOIN)
        await settled(broker)

        await broker.move_coordinator("g", 2)

        assert NOT_COORDINATOR == (await second.receive()).error_code
    assert error_codes.REBALANCE_IN_PROGRESS == await heartbeat(clients[2], first)
    async with connect_to(broker, 2) as [again]:
        # Nobody there knows who had not seen a generation.
        unknown = await again.call(join_request(id), JOIN)
        assert error_codes.UNKNOWN_MEMBER_ID == unknown.error_code
        id = (await again.call(join_request(), JOIN)).member_id
        await clients[2].send(join_request(first.member_id), JOIN)
        await again.send(join_request(id), JOIN)
        answers = [await client.receive() for client in (clients[2], again)]

    assert [(0, first.generation_id + 1)] * 2 == [
        (each.error_code, each.generation_id) for each in answers
    ]
    assert [0, 2] == sorted(len(each.members) for each in answers)


async def test_a_generation_that_no_member_has_heard_all_of_is_given_up(
    broker: Broker, clients: dict[int, Client]
) -> None:
    joined = await join(clients[1])
    await broker.move_coordinator("g", 3)

    refused = await clients[3].call(sync_request(joined, {joined.member_id: b"a"}), SYNC)
    again = await join(clients[3], joined.member_id)

    assert error_codes.REBALANCE_IN_PROGRESS == refused.error_code
    assert (0, joined.generation_id + 1) == (again.error_code, again.generation_id)


async def test_a_member_that_is_not_heard_of_again_is_dropped_by_the_next_coordinator(
    broker: Broker, clients: dict[int, Client]
) -> None:
    joined = await join_alone(clients[1])
    await broker.move_coordinator("g", 2)
    groups = broker._cluster.nodes[2].groups
    [member] = groups.groups["g"].members

    assert joined.member_id == member.id
    assert {} == broker._cluster.nodes[1].groups.groups
    assert trio.current_time() < member.expires_at <= trio.current_time() + 10
    assert member.expires_at == groups.groups["g"].timeouts.wake_at


async def test_groups_wait_for_a_coordinator_while_there_is_none() -> None:
    async with open_broker() as broker:
        async with connect_to(broker, 1) as [client]:
            await create_topic(client, "t")
            joined = await join_alone(client)
            assert {("t", 0): 0} == await commit(client, {"t": {0: 5}}, joined=joined)
        await broker.stop(1)
        await broker.start(1)

        async with connect_to(broker, 1) as [client]:
            assert 0 == await heartbeat(client, joined)
            assert {("t", 0): 5} == await committed(client)


async def test_there_is_no_coordinator_while_its_node_has_not_started(
    broker: Broker, clients: dict[int, Client]
) -> None:
    for node in (1, 2, 3):
        await broker.stop(node)
    assert -1 == broker.coordinator("g")

    await broker.start(2)

    assert 2 == broker.coordinator("g")
    with pytest.raises(ValueError, match="node 3 is stopped; allowed: 2"):
        await broker.move_coordinator("g", 3)


async def test_what_moved_is_there_after_a_restart_too(tmp_path: Path) -> None:
    async with open_broker(brokers=2, log_dirs=str(tmp_path)) as broker:
        coordinator = broker.coordinator("g")
        other = 3 - coordinator
        async with connect_to(broker, coordinator, other) as [here, there]:
            await create_topic(here, "t")
            joined = await join_alone(here)
            await broker.move_coordinator("g", other)
            assert {("t", 0): 0} == await commit(there, {"t": {0: 5}}, joined=joined)

    async with (
        open_broker(brokers=2, log_dirs=str(tmp_path)) as broker,
        connect_to(broker, broker.coordinator("g")) as [client],
    ):
        assert 0 == await heartbeat(client, joined)
        assert {("t", 0): 5} == await committed(client)


async def test_a_deleted_topics_offsets_go_wherever_they_are(
    broker: Broker, clients: dict[int, Client]
) -> None:
    for node in NODES:
        group = next(g for g in map(str, range(99)) if broker.coordinator(g) == node)
        assert {("t", 0): 0} == await commit(clients[node], {"t": {0: 5}}, group=group)
    topic = broker._cluster.topics.get("t")
    assert topic is not None
    await broker._cluster.delete_topic(topic)
    await broker._cluster.writes.flush()

    assert {} == broker._cluster.group_store.offsets._groups
