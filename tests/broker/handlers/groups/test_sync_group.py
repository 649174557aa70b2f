from __future__ import annotations

import pytest
import trio

from support.brokers import settled
from support.client import Client, connect
from support.group_calls import SYNC, join, join_alone, join_request, sync, sync_request
from trionet import Broker
from trionet.protocol import error_codes
from trionet.protocol.messages.join_group import JoinGroupResponse


@pytest.mark.parametrize("version", range(6))
async def test_the_leader_hands_in_the_assignments(client: Client, version: int) -> None:
    joined = await join(client)

    response = await sync(client, joined, {joined.member_id: b"all"}, version=version)

    assert (0, b"all") == (response.error_code, response.assignment)
    expected = ("consumer", "range") if version >= 5 else (None, None)
    assert expected == (response.protocol_type, response.protocol_name)


@pytest.mark.parametrize("version", range(6))
async def test_followers_wait_for_theirs(broker: Broker, client: Client, version: int) -> None:
    async with connect(broker.bootstrap_servers) as other:
        leader, follower = await two_members(client, other)
        await other.send(sync_request(follower, version=version), version)
        await settled(broker)

        given = {leader.member_id: b"left", follower.member_id: b"right"}
        own = await sync(client, leader, given)
        response = await other.receive()

        assert [b"left", b"right"] == [own.assignment, response.assignment]
        assert [0, 0] == [own.error_code, response.error_code]


async def two_members(client: Client, other: Client) -> tuple[JoinGroupResponse, JoinGroupResponse]:
    """The responses of a generation with two members: of the leader and of the other one."""
    first = await join_alone(client)
    given = await other.call(join_request(), 9)
    with trio.fail_after(5):
        await other.send(join_request(given.member_id), 9)
        await client.send(join_request(first.member_id), 9)
        leader, follower = await client.receive(), await other.receive()
    assert [2, 2] == [leader.generation_id, follower.generation_id]
    assert first.member_id == follower.leader
    return leader, follower


async def test_a_rebalance_ends_the_wait(broker: Broker, client: Client) -> None:
    async with (
        connect(broker.bootstrap_servers) as other,
        connect(broker.bootstrap_servers) as third,
    ):
        _, follower = await two_members(client, other)
        await other.send(sync_request(follower), SYNC)
        await settled(broker)

        await third.send(join_request(), 3)

        assert error_codes.REBALANCE_IN_PROGRESS == (await other.receive()).error_code


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
async def test_from_version_5_on_the_protocol_must_be_named(client: Client, missing: str) -> None:
    joined = await join(client)
    request = sync_request(joined)
    setattr(request, missing, None)

    response = await client.call(request, 5)

    assert error_codes.INCONSISTENT_GROUP_PROTOCOL == response.error_code


async def test_it_must_be_the_right_one(client: Client) -> None:
    joined = await join(client)
    joined.protocol_name = "sticky"

    response = await sync(client, joined)

    assert error_codes.INCONSISTENT_GROUP_PROTOCOL == response.error_code


@pytest.mark.parametrize("version", range(6))
async def test_who_is_refused_gets_nothing(client: Client, version: int) -> None:
    joined = await join_alone(client)
    joined.generation_id = 7

    response = await sync(client, joined, version=version)

    assert (error_codes.ILLEGAL_GENERATION, b"", None, None) == (
        response.error_code,
        response.assignment,
        response.protocol_type,
        response.protocol_name,
    )


@pytest.mark.parametrize(
    ("group", "expected"),
    [("", error_codes.INVALID_GROUP_ID), ("other", error_codes.UNKNOWN_MEMBER_ID)],
)
async def test_a_group_must_be_there(client: Client, group: str, expected: int) -> None:
    joined = await join_alone(client)

    assert expected == (await sync(client, joined, group=group)).error_code


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_static_member_that_was_replaced_is_fenced(client: Client, version: int) -> None:
    first = await join_alone(client, instance="i")
    await join(client, instance="i")

    response = await sync(client, first, instance="i", version=version)

    assert error_codes.FENCED_INSTANCE_ID == response.error_code
