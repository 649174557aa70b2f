"""Groups: their coordinator, their members, and their administration."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support.brokers import broker_client, settled
from support.calls import create_topic
from support.client import Client, connect, host_and_port
from support.group_calls import (
    DESCRIBE,
    LEAVE,
    SYNC,
    commit,
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
from trionet.protocol._wire import TEXT_BYTES_MAX
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from trionet.protocol.messages.list_groups import ListGroupsRequest

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.parametrize("version", range(4))
async def test_a_group_is_coordinated_here(broker: Broker, client: Client, version: int) -> None:
    response = await client.call(FindCoordinatorRequest(key="g"), version)

    assert not response.error_message
    assert (error_codes.NONE, 1, *host_and_port(broker.bootstrap_servers)) == attrgetter(
        "error_code", "node_id", "host", "port"
    )(response)


@pytest.mark.parametrize("version", range(4, 7))
async def test_so_is_every_one_of_several_groups(
    broker: Broker, client: Client, version: int
) -> None:
    response = await client.call(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)

    here = (error_codes.NONE, 1, *host_and_port(broker.bootstrap_servers))
    assert [("a", *here), ("b", *here)] == [
        (each.key, each.error_code, each.node_id, each.host, each.port)
        for each in response.coordinators
    ]


async def test_a_client_learns_the_address_of_the_listener_that_it_uses() -> None:
    settings = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    }
    async with open_broker(settings) as broker:
        for endpoint in broker.endpoints:
            async with connect(endpoint.address) as client:
                response = await client.call(FindCoordinatorRequest(key="g"), 3)
                assert endpoint.port == response.port


@pytest.mark.parametrize("version", range(1, 4))
async def test_a_transactional_id_has_a_coordinator(client: Client, version: int) -> None:
    response = await client.call(FindCoordinatorRequest(key="t", key_type=TRANSACTION), version)

    assert (0, 1, "127.0.0.1") == attrgetter("error_code", "node_id", "host")(response)


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_transactional_ids_are_found_at_once(client: Client, version: int) -> None:
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["a", "", "b"])

    response = await client.call(request, version)

    assert [("a", 0, 1), ("", 0, 1), ("b", 0, 1)] == [
        (each.key, each.error_code, each.node_id) for each in response.coordinators
    ]


@pytest.mark.parametrize("key_type", [3, -1])
async def test_an_unknown_kind_of_coordinator_is_an_error(client: Client, key_type: int) -> None:
    one = await client.call(FindCoordinatorRequest(key="g", key_type=key_type), 3)
    several = await client.call(
        FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type), 6
    )

    assert error_codes.INVALID_REQUEST == one.error_code
    assert [error_codes.INVALID_REQUEST] == [each.error_code for each in several.coordinators]
    assert f"coordinator type {key_type}" in one.error_message


async def test_share_groups_are_said_not_to_be_there(client: Client) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["g:t:0"], key_type=SHARE)

    response = await client.call(request, 6)

    assert error_codes.INVALID_REQUEST == response.coordinators[0].error_code
    assert "share groups are not supported" in response.coordinators[0].error_message


DELAY = {"group.initial.rebalance.delay.ms": 3000}


@pytest.mark.parametrize("version", range(4))
async def test_old_clients_become_members_at_once(client: Client, version: int) -> None:
    response = await client.call(join_request(), version)

    assert (0, 1, "range") == attrgetter("error_code", "generation_id", "protocol_name")(response)
    assert response.member_id == response.leader
    assert response.member_id.startswith("test-")
    assert [(response.member_id, b"m")] == [
        (member.member_id, member.metadata) for member in response.members
    ]


@pytest.mark.parametrize("version", range(4, 10))
async def test_newer_ones_are_given_an_id_first(client: Client, version: int) -> None:
    given = await client.call(join_request(), version)
    response = await client.call(join_request(given.member_id), version)

    assert (error_codes.MEMBER_ID_REQUIRED, -1, []) == attrgetter(
        "error_code", "generation_id", "members"
    )(given)
    assert (0, 1, given.member_id, given.member_id) == attrgetter(
        "error_code", "generation_id", "member_id", "leader"
    )(response)


@pytest.mark.parametrize("version", range(10))
async def test_the_protocol_is_reported(client: Client, version: int) -> None:
    response = await join(client, version=version)

    assert ("consumer" if version >= 7 else None, "range") == (
        response.protocol_type,
        response.protocol_name,
    )


@pytest.mark.parametrize("version", range(10))
async def test_a_refused_member_learns_no_protocol(client: Client, version: int) -> None:
    response = await join(client, "nobody", version=version)

    assert (error_codes.UNKNOWN_MEMBER_ID, "nobody", -1, "", []) == attrgetter(
        "error_code", "member_id", "generation_id", "leader", "members"
    )(response)
    # Null is a value of the field from version 7 on.
    assert (None, None if version >= 7 else "") == (
        response.protocol_type,
        response.protocol_name,
    )


@pytest.mark.parametrize("version", range(5, 10))
async def test_static_members_need_no_id_and_are_shown_to_the_leader(
    client: Client, version: int
) -> None:
    response = await client.call(join_request(instance="i"), version)

    assert (0, 1) == (response.error_code, response.generation_id)
    assert response.member_id.startswith("i-")
    assert ["i"] == [member.group_instance_id for member in response.members]


@pytest.mark.parametrize("version", [8, 9])
async def test_a_static_leader_that_is_back_may_skip_the_assignment(
    client: Client, version: int
) -> None:
    first = await join_alone(client, instance="i")

    again = await join(client, instance="i", version=version)

    assert (0, 1) == (again.error_code, again.generation_id)
    assert first.member_id != again.member_id
    if version >= 9:
        assert (again.member_id, True, 1) == (
            again.leader,
            again.skip_assignment,
            len(again.members),
        )
    else:
        assert (first.member_id, 0) == (again.leader, len(again.members))
    assert b"all" == (await sync(client, again, instance="i")).assignment


async def test_in_version_0_a_session_is_also_the_time_to_join_again(
    autojump_clock: MockClock, broker: Broker, client: Client
) -> None:
    await join_alone(client, version=0, session_ms=20_000, rebalance_ms=-1)
    began = trio.current_time()
    async with connect(broker.bootstrap_servers) as other:
        # The first member never joins again; it would be dropped for its silence at that time too.
        response = await join(other, version=0, session_ms=30_000, rebalance_ms=-1)

    assert (0, 2) == (response.error_code, response.generation_id)
    assert 20 == pytest.approx(trio.current_time() - began)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"group": ""}, error_codes.INVALID_GROUP_ID),
        ({"session_ms": 5999}, error_codes.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, error_codes.INVALID_SESSION_TIMEOUT),
        ({"protocols": {}}, error_codes.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, error_codes.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance": "i", "member_id": "x"}, error_codes.UNKNOWN_MEMBER_ID),
    ],
)
async def test_who_cannot_be_a_member_learns_why(
    client: Client, fields: dict[str, object], expected: int
) -> None:
    response = await join(client, **fields)  # type: ignore[arg-type]

    assert expected == response.error_code


async def test_no_more_than_the_broker_allows() -> None:
    async with broker_client(group_max_size=1) as client:
        await join_alone(client)

        assert error_codes.GROUP_MAX_SIZE_REACHED == (await join(client)).error_code


# Waiting.


@pytest.mark.parametrize("version", [3, 4, 9])
async def test_a_client_with_the_longest_id_is_a_member(
    version: int, autojump_clock: MockClock
) -> None:
    async with (
        open_broker(group_initial_rebalance_delay_ms=100) as broker,
        connect(broker.bootstrap_servers, "c" * TEXT_BYTES_MAX) as client,
    ):
        joined = await join(client, version=version)

        assert 0 == joined.error_code
        assert 0 == await heartbeat(client, joined)


async def test_members_that_come_together_are_one_generation(autojump_clock: MockClock) -> None:
    async with open_broker(DELAY) as broker, trio.open_nursery() as nursery:
        generations: list[tuple[int, int]] = []

        async def be_a_member() -> None:
            async with connect(broker.bootstrap_servers) as client:
                joined = await join(client)
                generations.append((joined.generation_id, len(joined.members)))

        for _ in range(3):
            nursery.start_soon(be_a_member)

    assert [(1, 0), (1, 0), (1, 3)] == sorted(generations)


async def test_waiting_holds_no_handler() -> None:
    async with (
        open_broker(DELAY, num_io_threads=1, num_network_threads=1) as broker,
        connect(broker.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        for _ in range(20):
            nursery.start_soon(_join_and_go, broker)
        assert 0 == (await settled(broker)).server.request_queue_size

        assert 0 == (await client.call(ApiVersionsRequest(), 0)).error_code
        nursery.cancel_scope.cancel()


async def _join_and_go(broker: Broker) -> None:
    async with connect(broker.bootstrap_servers) as client:
        await join(client, version=3)


async def test_waiting_holds_no_memory_for_requests() -> None:
    async with (
        open_broker(DELAY, socket_request_max_bytes=6000, queued_max_request_bytes=6000) as broker,
        connect(broker.bootstrap_servers) as first,
        connect(broker.bootstrap_servers) as second,
        connect(broker.bootstrap_servers) as third,
    ):
        large = join_request(protocols={"range": b"m" * 5500})
        for client in (first, second):
            await client.send(large, 3)
            await settled(broker)

        with trio.fail_after(2):
            response = await third.call(join_request("x", protocols={"range": b"m" * 5500}), 3)
        assert error_codes.UNKNOWN_MEMBER_ID == response.error_code


async def test_who_is_gone_when_the_response_comes_is_a_member_until_it_is_silent(
    autojump_clock: MockClock,
) -> None:
    async with open_broker(DELAY) as broker, connect(broker.bootstrap_servers) as client:
        async with connect(broker.bootstrap_servers) as gone:
            await gone.send(join_request(session_ms=6000), 3)
            await settled(broker)
        joined = await join(client, version=3, session_ms=30_000)
        described = await client.call(DescribeGroupsRequest(groups=["g"]), 5)
        assert 2 == len(described.groups[0].members)

        await trio.sleep(5.9)
        before = await heartbeat(client, joined)
        await trio.sleep(0.1)
        after = await heartbeat(client, joined)

        assert (error_codes.NONE, error_codes.REBALANCE_IN_PROGRESS) == (before, after)
        again = await join(client, joined.member_id, session_ms=30_000)
        assert (2, [joined.member_id]) == (
            again.generation_id,
            [member.member_id for member in again.members],
        )


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

    assert (error_codes.ILLEGAL_GENERATION, b"", None, None) == attrgetter(
        "error_code", "assignment", "protocol_type", "protocol_name"
    )(response)


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


@pytest.mark.parametrize("version", range(5))
async def test_a_heartbeat_says_that_all_is_well(client: Client, version: int) -> None:
    joined = await join_alone(client)

    assert error_codes.NONE == await heartbeat(client, joined, version=version)


@pytest.mark.parametrize("version", range(5))
async def test_it_learns_of_a_rebalance(broker: Broker, client: Client, version: int) -> None:
    joined = await join_alone(client)
    async with connect(broker.bootstrap_servers) as other:
        await other.send(join_request(), 3)
        await settled(broker)

        code = await heartbeat(client, joined, version=version)

    assert error_codes.REBALANCE_IN_PROGRESS == code


@pytest.mark.parametrize("version", range(5))
async def test_a_member_of_another_generation_is_rejected(client: Client, version: int) -> None:
    joined = await join_alone(client)
    joined.generation_id += 1

    assert error_codes.ILLEGAL_GENERATION == await heartbeat(client, joined, version=version)


@pytest.mark.parametrize(
    ("group", "expected"),
    [("", error_codes.INVALID_GROUP_ID), ("other", error_codes.UNKNOWN_MEMBER_ID)],
)
async def test_the_group_of_a_heartbeat_must_be_there(
    client: Client, group: str, expected: int
) -> None:
    joined = await join_alone(client)

    assert expected == await heartbeat(client, joined, group=group)


@pytest.mark.parametrize("version", [3, 4])
async def test_a_static_member_that_was_replaced_learns_it_from_a_heartbeat(
    client: Client, version: int
) -> None:
    first = await join_alone(client, instance="i")
    again = await join(client, instance="i")

    assert [error_codes.FENCED_INSTANCE_ID, 0] == [
        await heartbeat(client, each, instance="i", version=version) for each in (first, again)
    ]


UNKNOWN_MEMBER_ID = error_codes.UNKNOWN_MEMBER_ID


async def state(client: Client) -> str:
    [group] = (await client.call(DescribeGroupsRequest(groups=["g"]), 5)).groups
    described: str = group.group_state
    return described


async def leave(
    client: Client, *members: MemberIdentity, group: str = "g", version: int = LEAVE
) -> list[tuple[str, str | None, int]]:
    """Each member's id, instance id and error code; nothing else may be wrong."""
    request = LeaveGroupRequest(group_id=group, members=list(members))
    response = await client.call(request, version)
    assert error_codes.NONE == response.error_code
    return [
        (member.member_id, member.group_instance_id, member.error_code)
        for member in response.members
    ]


@pytest.mark.parametrize("version", range(3))
async def test_old_clients_leave_one_at_a_time(client: Client, version: int) -> None:
    joined = await join_alone(client)
    request = LeaveGroupRequest(group_id="g", member_id=joined.member_id)

    first = await client.call(request, version)
    second = await client.call(request, version)

    assert [0, UNKNOWN_MEMBER_ID] == [first.error_code, second.error_code]
    assert "Empty" == await state(client)


@pytest.mark.parametrize("version", range(3, 6))
async def test_newer_ones_several_at_a_time(client: Client, version: int) -> None:
    joined = await join_alone(client)
    members = [MemberIdentity(member_id="nobody"), MemberIdentity(member_id=joined.member_id)]

    left = await leave(client, *members, version=version)

    assert [("nobody", None, UNKNOWN_MEMBER_ID), (joined.member_id, None, 0)] == left
    assert "Empty" == await state(client)


@pytest.mark.parametrize("version", range(3, 6))
async def test_static_members_are_removed_by_what_they_are_called(
    client: Client, version: int
) -> None:
    await join_alone(client, instance="i")
    members = [MemberIdentity(group_instance_id=name) for name in ("j", "i")]

    left = await leave(client, *members, version=version)

    assert [("", "j", UNKNOWN_MEMBER_ID), ("", "i", 0)] == left
    assert "Empty" == await state(client)


async def test_who_has_another_id_than_its_instance_is_fenced(client: Client) -> None:
    await join_alone(client, instance="i")

    left = await leave(client, MemberIdentity(member_id="old", group_instance_id="i"))

    assert [("old", "i", error_codes.FENCED_INSTANCE_ID)] == left
    assert "Stable" == await state(client)


async def test_no_member_may_leave(client: Client) -> None:
    await join_alone(client)

    assert [] == await leave(client)
    assert "Stable" == await state(client)


@pytest.mark.parametrize("version", range(6))
async def test_a_group_must_have_a_name(client: Client, version: int) -> None:
    response = await client.call(LeaveGroupRequest(group_id=""), version)

    assert (error_codes.INVALID_GROUP_ID, []) == (response.error_code, response.members)


@pytest.mark.parametrize("version", range(6))
async def test_a_group_that_is_not_there_has_no_members(client: Client, version: int) -> None:
    if version < 3:
        request = LeaveGroupRequest(group_id="other", member_id="a")
        assert UNKNOWN_MEMBER_ID == (await client.call(request, version)).error_code
    else:
        members = [MemberIdentity(member_id="a"), MemberIdentity(member_id="b")]
        left = await leave(client, *members, group="other", version=version)
        assert [("a", None, UNKNOWN_MEMBER_ID), ("b", None, UNKNOWN_MEMBER_ID)] == left


ALL = {"simple", "completing", "stable", "preparing", "connect"}


async def some_groups(broker: Broker, client: Client, other: Client) -> None:
    """One in each state; the response that `other` waits for never comes."""
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="simple")
    await join(client, group="completing")
    await join_alone(client, group="stable")
    await join(client, group="connect", protocol_type="connect")
    await join_alone(client, group="preparing")
    await other.send(join_request(group="preparing"), 3)
    await settled(broker)


async def listed(
    broker: Broker,
    client: Client,
    version: int,
    states: Sequence[str] = (),
    types: Sequence[str] = (),
) -> dict[str, tuple[str, str, str]]:
    async with connect(broker.bootstrap_servers) as other:
        await some_groups(broker, client, other)
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        response = await client.call(request, version)
    assert 0 == response.error_code
    assert len(response.groups) == len({group.group_id for group in response.groups})
    return {
        group.group_id: (group.protocol_type, group.group_state, group.group_type)
        for group in response.groups
    }


@pytest.mark.parametrize("version", range(6))
async def test_all_groups_are_listed(broker: Broker, client: Client, version: int) -> None:
    groups = await listed(broker, client, version)

    expected = {
        "simple": ("", "Empty", "classic"),
        "completing": ("consumer", "CompletingRebalance", "classic"),
        "stable": ("consumer", "Stable", "classic"),
        "preparing": ("consumer", "PreparingRebalance", "classic"),
        "connect": ("connect", "CompletingRebalance", "classic"),
    }
    assert {
        id: (kind, state if version >= 4 else "", type_ if version >= 5 else "")
        for id, (kind, state, type_) in expected.items()
    } == groups


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["Stable"], {"stable"}),
        (["stable", "EMPTY"], {"stable", "simple"}),
        ([" PreparingRebalance "], {"preparing"}),
        (["CompletingRebalance"], {"completing", "connect"}),
        (["Dead"], set()),
        (["no such state"], set()),
        ([], ALL),
    ],
)
async def test_those_in_some_states_are(
    broker: Broker, client: Client, version: int, states: list[str], expected: set[str]
) -> None:
    groups = await listed(broker, client, version, states)

    assert expected == groups.keys()


@pytest.mark.parametrize(
    ("types", "states", "expected"),
    [
        (["classic"], [], ALL),
        (["Classic", "share"], [], ALL),
        (["consumer"], [], set()),
        (["unheard of"], [], set()),
        (["classic"], ["Stable"], {"stable"}),
    ],
)
async def test_those_of_some_types_are(
    broker: Broker, client: Client, types: list[str], states: list[str], expected: set[str]
) -> None:
    groups = await listed(broker, client, 5, states, types)

    assert expected == groups.keys()


@pytest.mark.parametrize("version", range(6))
async def test_there_are_none_at_first(client: Client, version: int) -> None:
    assert [] == (await client.call(ListGroupsRequest(), version)).groups


NOT_TOLD = -(2**31)


async def describe(client: Client, *groups: str, version: int = DESCRIBE) -> list[Any]:
    response = await client.call(DescribeGroupsRequest(groups=list(groups)), version)
    described: list[Any] = response.groups
    return described


@pytest.mark.parametrize("version", range(7))
async def test_a_stable_group_is_described_with_its_members(client: Client, version: int) -> None:
    joined = await join_alone(client, protocols={"range": b"topics"}, instance="i")

    assert [
        DescribedGroup(
            group_id="g",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                DescribedGroupMember(
                    member_id=joined.member_id,
                    group_instance_id="i" if version >= 4 else None,
                    client_id="test",
                    client_host="/127.0.0.1",
                    member_metadata=b"topics",
                    member_assignment=b"all",
                )
            ],
        )
    ] == await describe(client, "g", version=version)


async def test_in_a_rebalance_it_has_its_last_assignments_and_no_protocol(
    broker: Broker, client: Client
) -> None:
    joined = await join_alone(client)
    async with connect(broker.bootstrap_servers, "the other") as other:
        await other.send(join_request(), 3)
        await settled(broker)

        [group] = await describe(client, "g")

    assert ("PreparingRebalance", "consumer", "") == attrgetter(
        "group_state", "protocol_type", "protocol_data"
    )(group)
    first, second = group.members
    assert (joined.member_id, "test", b"", b"all") == attrgetter(
        "member_id", "client_id", "member_metadata", "member_assignment"
    )(first)
    assert ("the other", b"", b"") == attrgetter(
        "client_id", "member_metadata", "member_assignment"
    )(second)


async def test_so_it_is_while_assignments_are_made(client: Client) -> None:
    await join(client)

    [group] = await describe(client, "g")

    assert ("CompletingRebalance", "", b"", b"") == (
        group.group_state,
        group.protocol_data,
        group.members[0].member_metadata,
        group.members[0].member_assignment,
    )


async def test_a_group_of_offsets_has_no_members(client: Client) -> None:
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="g")
    await commit(client, {"t": {0: 5}}, group="")

    assert [
        DescribedGroup(group_id="g", group_state="Empty"),
        DescribedGroup(group_id="", group_state="Empty"),
    ] == await describe(client, "g", "")


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("group", ["g", ""])
async def test_a_group_that_is_not_there_is_dead(client: Client, group: str, version: int) -> None:
    assert [DescribedGroup(group_id=group, group_state="Dead")] == await describe(
        client, group, version=version
    )


@pytest.mark.parametrize("group", ["g", ""])
async def test_from_version_6_on_it_is_not_found(client: Client, group: str) -> None:
    assert [
        DescribedGroup(
            group_id=group,
            group_state="Dead",
            error_code=error_codes.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group} not found.",
        )
    ] == await describe(client, group)


async def test_the_one_with_the_longest_id_is_not_found_either(client: Client) -> None:
    [described] = await describe(client, "g" * TEXT_BYTES_MAX)

    assert error_codes.GROUP_ID_NOT_FOUND == described.error_code
    assert "Group ggg" == described.error_message[:9]


async def test_each_is_described_once_in_the_order_in_which_they_are_named(client: Client) -> None:
    for group in ("b", "a"):
        await join_alone(client, group=group)

    described = await describe(client, "a", "x", "b", "a")

    assert ["a", "x", "b"] == [group.group_id for group in described]
    assert [] == await describe(client)


@pytest.mark.parametrize("version", range(3, 7))
async def test_what_a_client_may_do_is_reported_if_it_asks(client: Client, version: int) -> None:
    await join_alone(client)
    request = DescribeGroupsRequest(groups=["g", "x"], include_authorized_operations=True)

    here, missing = (await client.call(request, version)).groups
    [unasked] = await describe(client, "g", version=version)

    # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS.
    operations = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert (operations, NOT_TOLD) == (
        here.authorized_operations,
        unasked.authorized_operations,
    )
    assert (operations if version < 6 else NOT_TOLD) == missing.authorized_operations


NOT_FOUND = error_codes.GROUP_ID_NOT_FOUND


async def delete(client: Client, *groups: str, version: int = 2) -> list[tuple[str, int]]:
    response = await client.call(DeleteGroupsRequest(groups_names=list(groups)), version)
    return [(result.group_id, result.error_code) for result in response.results]


async def groups(client: Client) -> set[str]:
    return {group.group_id for group in (await client.call(ListGroupsRequest(), 5)).groups}


@pytest.mark.parametrize("version", range(3))
async def test_groups_without_members_go_with_their_offsets(client: Client, version: int) -> None:
    await create_topic(client, "t")
    for group in ("a", "b", "c"):
        await commit(client, {"t": {0: 5}}, group=group)

    deleted = await delete(client, "b", "a", version=version)

    assert [("b", 0), ("a", 0)] == deleted
    assert {"c"} == await groups(client)
    assert [{}, {}, {("t", 0): 5}] == [await committed(client, group=each) for each in "abc"]


@pytest.mark.parametrize("version", range(3))
async def test_each_has_its_own_error(client: Client, version: int) -> None:
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="simple")
    await join_alone(client, group="alive")

    deleted = await delete(client, "alive", "nobody's", "simple", "", version=version)

    assert {
        "alive": error_codes.NON_EMPTY_GROUP,
        "nobody's": NOT_FOUND,
        "simple": 0,
        "": NOT_FOUND,
    } == dict(deleted)
    assert {"alive"} == await groups(client)


async def test_the_group_without_a_name_can_be_deleted(client: Client) -> None:
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="")

    assert [("", 0)] == await delete(client, "")


async def test_one_that_is_named_twice_is_deleted_once(client: Client) -> None:
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="a")

    assert [("a", 0), ("x", NOT_FOUND)] == await delete(client, "a", "x", "a", "x")


@pytest.mark.parametrize("version", range(3))
async def test_none_may_be_named(client: Client, version: int) -> None:
    assert [] == await delete(client, version=version)


async def test_an_error_of_the_database_is_one_to_try_again_on(
    broker: Broker, client: Client
) -> None:
    await create_topic(client, "t")
    await commit(client, {"t": {0: 5}}, group="a")
    await broker._state.database.transaction(
        lambda connection: connection.execute("DROP TABLE committed_offset")
    )

    assert [("a", error_codes.COORDINATOR_NOT_AVAILABLE)] == await delete(client, "a")
    assert {"a"} == await groups(client)
