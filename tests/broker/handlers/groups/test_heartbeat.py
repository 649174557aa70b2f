from __future__ import annotations

import pytest

from support.brokers import settled
from support.client import Client, connect
from support.group_calls import heartbeat, join, join_alone, join_request
from trionet import Broker
from trionet.protocol import error_codes


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
async def test_a_group_must_be_there(client: Client, group: str, expected: int) -> None:
    joined = await join_alone(client)

    assert expected == await heartbeat(client, joined, group=group)


@pytest.mark.parametrize("version", [3, 4])
async def test_a_static_member_that_was_replaced_is_fenced(client: Client, version: int) -> None:
    first = await join_alone(client, instance="i")
    again = await join(client, instance="i")

    assert [error_codes.FENCED_INSTANCE_ID, 0] == [
        await heartbeat(client, each, instance="i", version=version) for each in (first, again)
    ]
