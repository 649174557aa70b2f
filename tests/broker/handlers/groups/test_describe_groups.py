from __future__ import annotations

from typing import Any

import pytest

from support.brokers import settled
from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import DESCRIBE, commit, join, join_alone, join_request
from trionet import Broker
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)

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

    assert ("PreparingRebalance", "consumer", "") == (
        group.group_state,
        group.protocol_type,
        group.protocol_data,
    )
    first, second = group.members
    assert (joined.member_id, "test", b"", b"all") == (
        first.member_id,
        first.client_id,
        first.member_metadata,
        first.member_assignment,
    )
    assert ("the other", b"", b"") == (
        second.client_id,
        second.member_metadata,
        second.member_assignment,
    )


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
