"""Consumer groups of a whole broker: its stop, its next start, and its upkeep."""

from __future__ import annotations

import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from support.brokers import broker_and_client, settled
from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import (
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
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from trionet.protocol.messages.list_groups import ListGroupsRequest

NOT_AVAILABLE = error_codes.COORDINATOR_NOT_AVAILABLE
DELAY = {"group.initial.rebalance.delay.ms": 60_000}


async def client_of(broker: Broker, outside: AsyncExitStack) -> Client:
    """A connection that outlives the broker."""
    return await outside.enter_async_context(connect(broker.bootstrap_servers))


# The stop.


async def test_a_waiting_join_ends_with_the_stop() -> None:
    async with AsyncExitStack() as outside:
        with trio.fail_after(3):
            async with open_broker(DELAY) as broker:
                clients = [await client_of(broker, outside) for _ in range(3)]
                for client in clients:
                    await client.send(join_request(), 3)
                await settled(broker)

        for client in clients:
            assert NOT_AVAILABLE == (await client.receive()).error_code
            assert b"" == await client.receive_to_end()


async def test_so_is_who_waits_for_its_assignment() -> None:
    async with AsyncExitStack() as outside:
        with trio.fail_after(3):
            async with open_broker() as broker:
                leader, follower = [await client_of(broker, outside) for _ in range(2)]
                first = await join_alone(leader)
                await follower.send(join_request(), 3)
                await settled(broker)
                await leader.call(join_request(first.member_id), 3)
                joined = await follower.receive()
                await follower.send(sync_request(joined), 5)
                await settled(broker)

        assert NOT_AVAILABLE == (await follower.receive()).error_code


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_commits_that_are_being_stored_are_still_acknowledged(
    kind: str, tmp_path: Path
) -> None:
    settings = {"log.dirs": str(tmp_path)} if kind == "file" else {}
    async with AsyncExitStack() as outside:
        async with open_broker(settings) as broker:
            clients = [await client_of(broker, outside) for _ in range(20)]
            await create_topic(clients[0], "t", partitions=20)
            for number, client in enumerate(clients):
                await client.send(commit_request({"t": {number: 5}}), 9)
            await settled(broker)

        for client in clients:
            assert 0 == (await client.receive()).topics[0].partitions[0].error_code


async def test_a_broker_that_is_cancelled_sends_no_responses() -> None:
    async with AsyncExitStack() as outside:
        with trio.CancelScope() as scope:
            async with open_broker(DELAY) as broker:
                client = await client_of(broker, outside)
                await client.send(join_request(), 3)
                await settled(broker)
                scope.cancel()
                await trio.sleep_forever()

        assert b"" == await client.receive_to_end()


# The next start.


async def test_a_restart_keeps_members_and_offsets(tmp_path: Path) -> None:
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await create_topic(client, "t", partitions=2)
        joined = await join_alone(client, instance="i")
        again = await join(client, instance="i")
        await commit(client, {"t": {0: 5}}, joined=again, instance="i", metadata="m")
        await commit(client, {"t": {1: 6}}, group="simple")

    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        assert [error_codes.FENCED_INSTANCE_ID, 0] == [
            await heartbeat(client, each, instance="i") for each in (joined, again)
        ]
        assert b"all" == (await sync(client, again, instance="i")).assignment
        assert {("t", 0): 5} == await committed(client)
        assert {("t", 1): 6} == await committed(client, group="simple")
        listed = (await client.call(ListGroupsRequest(), 5)).groups
        assert {("g", "Stable"), ("simple", "Empty")} == {
            (group.group_id, group.group_state) for group in listed
        }


async def test_who_has_left_before_a_stop_is_not_waited_for_after_it(tmp_path: Path) -> None:
    """Although the disk was slow: here it goes on when all connections are closed."""
    are_closed = threading.Event()
    async with (
        trio.open_nursery() as nursery,
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):

        async def release_the_disk() -> None:
            await broker._server._stopped.wait()
            are_closed.set()

        joined = await join_alone(client)
        nursery.start_soon(release_the_disk)
        transaction = broker._state.database.transaction
        nursery.start_soon(transaction, lambda _: are_closed.wait())
        await settled(broker)
        members = [MemberIdentity(member_id=joined.member_id)]
        await client.call(LeaveGroupRequest(group_id="g", members=members), 5)

    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        with trio.fail_after(3):
            assert 3 == (await join_alone(client)).generation_id


async def test_a_member_that_was_killed_with_the_broker_is_dropped(tmp_path: Path) -> None:
    async with broker_and_client(log_dirs=str(tmp_path), group_min_session_timeout_ms=1) as (
        _,
        client,
    ):
        await join_alone(client, session_ms=100)

    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        with trio.fail_after(5):
            joined = await join(client)

    assert (0, 1) == (joined.error_code, len(joined.members))


# Upkeep.


async def test_offsets_expire_as_the_settings_say(autojump_clock: MockClock) -> None:
    settings = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 10_000}
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t")
        await commit(client, {"t": {0: 5}})
        await commit(client, {"t": {0: 5}}, retention_ms=0, version=4, group="short")
        kept = broker._state.groups

        await trio.sleep(9)
        assert {"g", "short"} == kept.groups.keys()
        await trio.sleep(2)
        await settled(broker)

        # The clock of records is the real one: only what needs no time is over.
        assert {"g"} == kept.groups.keys()
        assert {("t", 0): 5} == await committed(client)


async def test_groups_are_described_as_their_clients_come_and_go(autojump_clock: MockClock) -> None:
    async with broker_and_client() as (_, client):
        await join_alone(client, session_ms=6000)

        async def state() -> str:
            described = await client.call(DescribeGroupsRequest(groups=["g"]), 6)
            found: str = described.groups[0].group_state
            return found

        before = await state()
        await trio.sleep(6)

        assert ("Stable", "Empty") == (before, await state())
