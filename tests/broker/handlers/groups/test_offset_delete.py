from __future__ import annotations

import pytest

from support.brokers import settled
from support.calls import create_topic
from support.client import Client, connect
from support.group_calls import commit, committed, join_alone, join_request
from trionet import Broker
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes
from trionet.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

# The metadata of a consumer that reads topic `t`, in version 1 of its protocol.
READS_T = b"\0\1\0\0\0\1\0\1t\0\0\0\0\0\0\0\0"
UNKNOWN = error_codes.UNKNOWN_TOPIC_OR_PARTITION
SUBSCRIBED = error_codes.GROUP_SUBSCRIBED_TO_TOPIC

Codes = dict[tuple[str, int], int]


async def delete(
    client: Client, *partitions: tuple[str, int], group: str = "g"
) -> tuple[int, Codes]:
    """The error code of the call, and that of each partition."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in partitions
        ],
    )
    response = await client.call(request, 0)
    return response.error_code, {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.fixture
async def topics(client: Client) -> None:
    await create_topic(client, "t", partitions=2)
    await create_topic(client, "u")


async def test_offsets_of_a_group_without_members_go(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5, 1: 6}, "u": {0: 7}})

    assert (0, {("t", 1): 0, ("u", 0): 0}) == await delete(client, ("t", 1), ("u", 0))
    assert {("t", 0): 5} == await committed(client)


async def test_what_was_never_committed_may_go_too(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5}})

    assert (0, {("u", 0): 0}) == await delete(client, ("u", 0))


async def test_a_partition_must_be_there(client: Client, topics: None) -> None:
    await commit(client, {"t": {0: 5}})

    assert (0, {("t", 0): 0, ("t", 7): UNKNOWN, ("v", 0): UNKNOWN}) == await delete(
        client, ("t", 0), ("t", 7), ("v", 0)
    )


async def test_what_members_read_stays(client: Client, topics: None) -> None:
    joined = await join_alone(client, protocols={"range": READS_T})
    await commit(client, {"t": {0: 5}, "u": {0: 6}}, joined=joined)

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): 0, ("v", 0): UNKNOWN}) == await delete(
        client, ("t", 0), ("u", 0), ("v", 0)
    )
    assert {("t", 0): 5} == await committed(client)


async def test_everything_stays_while_it_is_not_known_what_members_read(
    client: Client, topics: None
) -> None:
    joined = await join_alone(client, protocols={"range": b"?"})
    await commit(client, {"t": {0: 5}}, joined=joined)

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): SUBSCRIBED}) == await delete(
        client, ("t", 0), ("u", 0)
    )


async def test_it_is_known_during_a_rebalance(broker: Broker, client: Client, topics: None) -> None:
    joined = await join_alone(client, protocols={"range": READS_T})
    await commit(client, {"t": {0: 5}, "u": {0: 6}}, joined=joined)
    async with connect(broker.bootstrap_servers) as other:
        await other.send(join_request(protocols={"range": READS_T}), 3)
        await settled(broker)

        deleted = await delete(client, ("t", 0), ("u", 0))

    assert (0, {("t", 0): SUBSCRIBED, ("u", 0): 0}) == deleted


async def test_members_that_are_no_consumers_keep_all(client: Client, topics: None) -> None:
    request = join_request(protocol_type="connect")
    await client.call(request, 3)

    assert (error_codes.NON_EMPTY_GROUP, {}) == await delete(client, ("t", 0))


@pytest.mark.parametrize(
    ("group", "expected"),
    [("", error_codes.INVALID_GROUP_ID), ("other", error_codes.GROUP_ID_NOT_FOUND)],
)
async def test_a_group_must_be_there(
    client: Client, topics: None, group: str, expected: int
) -> None:
    await commit(client, {"t": {0: 5}}, group="")

    assert (expected, {}) == await delete(client, ("t", 0), group=group)


async def test_a_group_that_is_being_deleted_is_not_there(
    broker: Broker, client: Client, topics: None
) -> None:
    await commit(client, {"t": {0: 5}})
    broker._state.groups.groups["g"].state = GroupState.DEAD

    assert (error_codes.GROUP_ID_NOT_FOUND, {}) == await delete(client, ("t", 0))


async def test_an_error_of_the_database_is_one_to_try_again_on(
    broker: Broker, client: Client, topics: None
) -> None:
    await commit(client, {"t": {0: 5}})
    await broker._state.database.transaction(
        lambda connection: connection.execute("DROP TABLE committed_offset")
    )

    assert (error_codes.COORDINATOR_NOT_AVAILABLE, {}) == await delete(client, ("t", 0))
