from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.brokers import settled
from support.client import Client, connect
from support.group_calls import heartbeat, join, join_alone, join_request, sync
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest

DELAY = {"group.initial.rebalance.delay.ms": 3000}


@pytest.mark.parametrize("version", range(4))
async def test_old_clients_become_members_at_once(client: Client, version: int) -> None:
    response = await client.call(join_request(), version)

    assert (0, 1, "range") == (
        response.error_code,
        response.generation_id,
        response.protocol_name,
    )
    assert response.member_id == response.leader
    assert response.member_id.startswith("test-")
    assert [(response.member_id, b"m")] == [
        (member.member_id, member.metadata) for member in response.members
    ]


@pytest.mark.parametrize("version", range(4, 10))
async def test_newer_ones_are_given_an_id_first(client: Client, version: int) -> None:
    given = await client.call(join_request(), version)
    response = await client.call(join_request(given.member_id), version)

    assert (error_codes.MEMBER_ID_REQUIRED, -1, []) == (
        given.error_code,
        given.generation_id,
        given.members,
    )
    assert (0, 1, given.member_id, given.member_id) == (
        response.error_code,
        response.generation_id,
        response.member_id,
        response.leader,
    )


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

    assert (error_codes.UNKNOWN_MEMBER_ID, "nobody", -1, "", []) == (
        response.error_code,
        response.member_id,
        response.generation_id,
        response.leader,
        response.members,
    )
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
    async with (
        open_broker(group_max_size=1) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await join_alone(client)

        assert error_codes.GROUP_MAX_SIZE_REACHED == (await join(client)).error_code


# Waiting.


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
