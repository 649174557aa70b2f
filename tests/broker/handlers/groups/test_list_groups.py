from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.brokers import settled
from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import commit, join, join_alone, join_request
from trionet import Broker
from trionet.protocol.messages.list_groups import ListGroupsRequest

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
