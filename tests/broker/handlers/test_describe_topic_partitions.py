from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.calls import create_topic
from support.client import Client, connect
from trionet import open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)

Page = tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]


async def ask(
    client: Client,
    topics: Sequence[str] = (),
    *,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else RequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = await client.call(request, 0)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def page(response: DescribeTopicPartitionsResponse) -> Page:
    """The partitions of each topic, and where the next page begins."""
    cursor = response.next_cursor
    return (
        [
            (topic.name, [each.partition_index for each in topic.partitions])
            for topic in response.topics
        ],
        None if cursor is None else (cursor.topic_name, cursor.partition_index),
    )


async def three_topics(client: Client) -> None:
    for name, partitions in (("b", 3), ("c", 1), ("a", 2)):
        await create_topic(client, name, partitions=partitions)


async def test_a_topic_and_its_partitions(client: Client) -> None:
    topic_id = (await create_topic(client, "t")).topic_id

    [topic] = (await ask(client, ["t"])).topics

    [partition] = topic.partitions
    assert (0, "t", topic_id, False) == (
        topic.error_code,
        topic.name,
        topic.topic_id,
        topic.is_internal,
    )
    assert (0, 0, 1, 0, [1], [1], [], [], []) == (
        partition.error_code,
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        partition.replica_nodes,
        partition.isr_nodes,
        partition.eligible_leader_replicas,
        partition.last_known_elr,
        partition.offline_replicas,
    )
    assert 0 < topic.topic_authorized_operations


async def test_without_names_all_topics_come_in_the_order_of_their_names(client: Client) -> None:
    await three_topics(client)

    assert ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None) == page(await ask(client))


async def test_named_topics_come_in_that_order_and_once(client: Client) -> None:
    await three_topics(client)

    assert ([("a", [0, 1]), ("c", [0])], None) == page(await ask(client, ["c", "a", "c"]))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, ([("a", [0])], ("a", 1))),  # at least one
        (1, ([("a", [0])], ("a", 1))),
        (2, ([("a", [0, 1])], ("b", 0))),
        (4, ([("a", [0, 1]), ("b", [0, 1])], ("b", 2))),
        (5, ([("a", [0, 1]), ("b", [0, 1, 2])], ("c", 0))),
        (6, ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)),
    ],
)
async def test_a_full_page_says_where_the_next_one_begins(
    client: Client, limit: int, expected: Page
) -> None:
    await three_topics(client)

    assert expected == page(await ask(client, limit=limit))


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_page_by_page_everything_comes_once(client: Client, limit: int) -> None:
    await three_topics(client)
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        topics, cursor = page(await ask(client, limit=limit, cursor=cursor))
        seen += [(name, index) for name, partitions in topics for index in partitions]
        if cursor is None:
            break

    assert [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)] == seen


async def test_the_broker_has_a_limit_of_its_own() -> None:
    async with (
        open_broker(max_request_partition_size_limit=2) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", partitions=3)

        assert ([("t", [0, 1])], ("t", 2)) == page(await ask(client))


async def test_a_cursor_may_be_after_the_last_partition(client: Client) -> None:
    await three_topics(client)

    assert ([("a", []), ("b", [0, 1, 2])], ("c", 0)) == page(
        await ask(client, cursor=("a", 9), limit=3)
    )


async def test_the_topic_of_a_cursor_may_be_gone(client: Client) -> None:
    await three_topics(client)

    assert ([("b", [0, 1, 2]), ("c", [0])], None) == page(await ask(client, cursor=("aa", 1)))


async def test_what_is_not_there_is_an_error_of_its_own(client: Client) -> None:
    await three_topics(client)

    response = await ask(client, ["c", "missing", "not a name", "__cluster_metadata"])

    assert {
        "c": 0,
        "missing": error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        "not a name": error_codes.INVALID_TOPIC_EXCEPTION,
        "__cluster_metadata": error_codes.UNKNOWN_TOPIC_OR_PARTITION,
    } == {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
async def test_a_cursor_that_is_none_of_the_request_is_refused(
    client: Client, cursor: tuple[str, int]
) -> None:
    await three_topics(client)

    response = await ask(client, ["a", "c"], cursor=cursor)

    assert [("a", error_codes.INVALID_REQUEST), ("c", error_codes.INVALID_REQUEST)] == [
        (topic.name, topic.error_code) for topic in response.topics
    ]
