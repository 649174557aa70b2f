"""What a new member of a group does not wait for, on a real broker in virtual time."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import GroupMember, open_member
from trionet import Broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.testing import BrokerControl, MemoryNetwork

ONE_WAY_SECONDS = 0.01
T0 = TopicPartition("t", 0)


@pytest.fixture
def network() -> MemoryNetwork:
    made = MemoryNetwork()
    made.faults.delay_seconds = (ONE_WAY_SECONDS, ONE_WAY_SECONDS)
    return made


def begins(member: GroupMember) -> bool:
    return bool(member.has and not member.subscription.assignment.initializing())


def came_at(kit: BrokerControl, api: str) -> list[int]:
    """When requests came, in milliseconds; all of the same client."""
    return [each.time_ms for each in kit.requests(api, group="readers")]


async def test_the_coordinator_is_looked_for_while_metadata_are_under_way(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    kit.forget_requests()
    async with open_member(broker, network) as member:
        await member.read(lambda: begins(member))

    [polled_at] = came_at(kit, "FindCoordinator")
    assert polled_at == kit.requests("Metadata")[0].time_ms


async def test_a_leader_asks_for_committed_offsets_right_after_its_sync(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: begins(member))

    assert came_at(kit, "SyncGroup") == came_at(kit, "OffsetFetch")


async def test_who_commits_before_it_begins_does_so_where_it_has_committed(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.ask()
        await trio.sleep(1)  # it is in the group, and its user has not asked for a record again
        await member.coordinator.commit({T0: OffsetAndMetadata(7)})

        await member.read(lambda: begins(member))
        position = member.subscription.assignment.position(T0)

    assert position is not None
    assert 7 == position.offset


async def test_a_member_of_a_single_broker_has_two_connections(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """One of them is the coordinator's alone: no heartbeat waits behind a Fetch."""
    kit.forget_requests()
    async with open_member(broker, network) as member:
        await member.read(lambda: begins(member))
        connections = {each.connection for each in kit.requests()}

    assert 2 == len(connections)
