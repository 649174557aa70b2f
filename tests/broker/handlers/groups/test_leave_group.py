from __future__ import annotations

import pytest

from support.client import Client
from support.group_calls import LEAVE, join_alone
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

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
