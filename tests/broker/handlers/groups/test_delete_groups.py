from __future__ import annotations

import pytest

from support.calls import create_topic
from support.client import Client
from support.group_calls import commit, committed, join_alone
from trionet import Broker
from trionet.protocol import error_codes
from trionet.protocol.messages.delete_groups import DeleteGroupsRequest
from trionet.protocol.messages.list_groups import ListGroupsRequest

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
