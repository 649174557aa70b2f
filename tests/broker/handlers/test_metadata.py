"""The cluster, its topics and its partitions are described."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pytest
import trio

from support.brokers import broker_client
from support.calls import (
    batch,
    create_reserved_topic,
    create_topic,
    describe_topics,
    produce,
)
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NEVER_SEEN = b"\x01" * 16
# AclOperation numbers as bits: what may be done without an authorizer (KIP-430).
ALL_OF_A_TOPIC = 0b1101_1111_1000
ALL_OF_A_CLUSTER = 0b1_1111_1010_0000
NOT_ASKED_FOR = -(2**31)


def asks_for(*names: str, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


@pytest.mark.parametrize("version", range(14))
async def test_the_broker_the_topic_and_its_partitions(
    broker: Broker, client: Client, version: int
) -> None:
    topic_id = (await create_topic(client, "t", partitions=2)).topic_id
    await create_topic(client, "other")

    response = await client.call(asks_for("t"), version)

    [node] = response.brokers
    assert broker.bootstrap_servers == f"{node.host}:{node.port}"
    assert (1, None) == (node.node_id, node.rack)
    assert (1 if version >= 1 else -1) == response.controller_id
    assert (broker.cluster_id if version >= 2 else None) == response.cluster_id
    [topic] = response.topics
    assert (0, "t", False) == (topic.error_code, topic.name, topic.is_internal)
    assert (topic_id if version >= 10 else bytes(16)) == topic.topic_id
    assert [(0, index, 1, 0 if version >= 7 else -1, [1], [1], []) for index in range(2)] == [
        attrgetter(
            "error_code",
            "partition_index",
            "leader_id",
            "leader_epoch",
            "replica_nodes",
            "isr_nodes",
            "offline_replicas",
        )(partition)
        for partition in topic.partitions
    ]


async def test_null_asks_for_all_topics_and_an_empty_list_for_none(client: Client) -> None:
    for name in ("b", "a", "c"):
        await create_topic(client, name)

    everything = await client.call(MetadataRequest(topics=None), 12)
    nothing = await client.call(MetadataRequest(topics=[]), 12)

    assert ["b", "a", "c"] == [topic.name for topic in everything.topics]
    assert [] == nothing.topics


async def test_in_version_0_an_empty_list_asks_for_all_topics(client: Client) -> None:
    await create_topic(client, "a")

    response = await client.call(MetadataRequest(topics=[]), 0)

    assert ["a"] == [topic.name for topic in response.topics]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("name", [None, "", "another name"])
async def test_a_topic_is_found_by_its_id(client: Client, version: int, name: str | None) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic_id)])

    [topic] = (await client.call(request, version)).topics

    assert (0, "t", topic_id) == (topic.error_code, topic.name, topic.topic_id)


@pytest.mark.parametrize("topic_id", [NEVER_SEEN, bytes(16)])
async def test_an_unknown_id_is_an_error(client: Client, topic_id: bytes) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])

    [topic] = (await client.call(request, 12)).topics

    assert (error_codes.UNKNOWN_TOPIC_ID, None, topic_id) == attrgetter(
        "error_code", "name", "topic_id"
    )(topic)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("name", [None, "t"])
async def test_ids_cannot_be_asked_for_before_version_12(
    client: Client, version: int, name: str | None
) -> None:
    topic_id = (await create_topic(client, "t")).topic_id
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic_id)])

    [topic] = (await client.call(request, version)).topics

    assert (error_codes.INVALID_REQUEST, name or "") == (topic.error_code, topic.name)


@pytest.mark.parametrize("version", range(14))
async def test_an_unknown_topic_is_created_after_an_error_as_by_kafka(version: int) -> None:
    """A real Apache Kafka 4.3.1 responds so in all versions."""
    settings = {"auto.create.topics.ready.at.once": "false"}
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        [topic] = (await client.call(asks_for("new"), version)).topics
        assert (error_codes.UNKNOWN_TOPIC_OR_PARTITION, "new", bytes(16), []) == attrgetter(
            "error_code", "name", "topic_id", "partitions"
        )(topic)

        [topic] = (await client.call(asks_for("new"), version)).topics
        assert (0, 1) == (topic.error_code, len(topic.partitions))


async def test_a_topic_that_cannot_be_created_is_unknown_to_a_kafka_and_so_here() -> None:
    settings = {"auto.create.topics.ready.at.once": "false"}
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "a.b")
        for _ in range(2):
            [topic] = await describe_topics(client, "a_b", allow_auto_topic_creation=True)
            assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == topic.error_code


def test_new_topics_are_ready_at_once_by_default() -> None:
    assert BrokerConfig({}).flag("auto.create.topics.ready.at.once")


@pytest.mark.parametrize("version", [0, 3, 4, 13])
async def test_an_unknown_topic_is_created_and_ready_at_once(client: Client, version: int) -> None:
    [topic] = (await client.call(asks_for("new"), version)).topics

    answer = await produce(client, "new", batch(b"a"))

    assert (0, 1) == (topic.error_code, len(topic.partitions))
    assert 0 == answer.error_code


async def test_a_created_topic_has_the_brokers_defaults() -> None:
    async with broker_client(num_partitions=3) as client:
        [topic] = await describe_topics(client, "new", allow_auto_topic_creation=True)

        assert 3 == len(topic.partitions)


async def test_nothing_is_created_where_the_request_does_not_want_it(client: Client) -> None:
    [topic] = await describe_topics(client, "new", allow_auto_topic_creation=False)

    assert (error_codes.UNKNOWN_TOPIC_OR_PARTITION, []) == (topic.error_code, topic.partitions)
    assert [] == await describe_topics(client)


async def test_nothing_is_created_where_the_broker_does_not_want_it() -> None:
    async with broker_client(auto_create_topics_enable=False) as client:
        [topic] = await describe_topics(client, "new", allow_auto_topic_creation=True)

        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == topic.error_code
        assert [] == await describe_topics(client)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
@pytest.mark.parametrize("create", [False, True])
async def test_an_illegal_name_is_said_to_be_one(client: Client, name: str, create: bool) -> None:
    [topic] = await describe_topics(client, name, allow_auto_topic_creation=create)

    assert (error_codes.INVALID_TOPIC_EXCEPTION, name) == (topic.error_code, topic.name)
    assert [] == await describe_topics(client)


async def test_a_name_that_collides_with_anothers_metrics_is_not_created(client: Client) -> None:
    await create_topic(client, "a.b")

    [topic] = await describe_topics(client, "a_b", allow_auto_topic_creation=True)

    assert error_codes.INVALID_TOPIC_EXCEPTION == topic.error_code


async def test_each_topic_has_a_response_of_its_own(client: Client) -> None:
    await create_topic(client, "t")

    topics = await describe_topics(client, "missing", "t", "a b")

    assert [
        ("missing", error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", error_codes.NONE),
        ("a b", error_codes.INVALID_TOPIC_EXCEPTION),
    ] == [(topic.name, topic.error_code) for topic in topics]


async def test_many_who_want_the_same_new_topic_get_the_same_one(broker: Broker) -> None:
    ids: list[bytes] = []

    async def ask() -> None:
        async with connect(broker.bootstrap_servers) as each:
            [topic] = await describe_topics(each, "new", allow_auto_topic_creation=True)
            assert 0 == topic.error_code
            ids.append(topic.topic_id)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)

    assert (20, 1) == (len(ids), len(set(ids)))


RESERVED = pytest.mark.parametrize(
    "name", ["__consumer_offsets", "__transaction_state", "__share_group_state"]
)


@RESERVED
async def test_topics_of_kafkas_own_are_said_to_be_internal(client: Client, name: str) -> None:
    await create_reserved_topic(client, name)

    [topic] = await describe_topics(client, name)

    assert topic.is_internal


@RESERVED
@pytest.mark.parametrize("is_ready_at_once", [False, True])
async def test_kafkas_own_topics_are_absent_and_not_created(
    name: str, is_ready_at_once: bool
) -> None:
    """An ordinary topic of that name would look like one of Kafka's without any content."""
    async with broker_client(auto_create_topics_ready_at_once=is_ready_at_once) as client:
        [read] = await describe_topics(client, name)
        [wanted] = await describe_topics(client, name, allow_auto_topic_creation=True)

        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == read.error_code
        assert error_codes.INVALID_TOPIC_EXCEPTION == wanted.error_code
        assert [] == await describe_topics(client)


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_what_may_be_done_is_reported_where_it_is_asked_for(
    client: Client, version: int
) -> None:
    await create_topic(client, "t")

    without = await client.call(asks_for("t"), version)
    asked = asks_for(
        "t",
        "missing",
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    with_them = await client.call(asked, version)

    assert NOT_ASKED_FOR == without.cluster_authorized_operations
    assert NOT_ASKED_FOR == without.topics[0].topic_authorized_operations
    assert ALL_OF_A_CLUSTER == with_them.cluster_authorized_operations
    assert [ALL_OF_A_TOPIC, NOT_ASKED_FOR] == [
        topic.topic_authorized_operations for topic in with_them.topics
    ]


async def test_what_may_be_done_with_a_topic_is_reported_in_the_newest_version_too(
    client: Client,
) -> None:
    await create_topic(client, "t")

    response = await client.call(asks_for("t", include_topic_authorized_operations=True), 13)

    assert ALL_OF_A_TOPIC == response.topics[0].topic_authorized_operations


async def test_the_rack_and_the_advertised_address_are_those_of_the_settings() -> None:
    settings = {
        "broker.rack": "rack-a",
        "node.id": 7,
        "advertised.listeners": "PLAINTEXT://kafka.example.org:9999",
    }
    async with open_broker(settings) as broker:
        port = broker.endpoints[0].port
        async with connect(f"127.0.0.1:{port}") as client:
            response = await client.call(asks_for(), 12)

    [node] = response.brokers
    assert (7, "kafka.example.org", 9999, "rack-a") == attrgetter(
        "node_id", "host", "port", "rack"
    )(node)
    assert 7 == response.controller_id


async def test_clients_learn_the_address_of_the_listener_they_came_by() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    async with open_broker(settings) as broker:
        for endpoint in broker.endpoints:
            async with connect(endpoint.address) as client:
                [node] = (await client.call(asks_for(), 12)).brokers

                assert endpoint.address == f"{node.host}:{node.port}"


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
    assert (0, "t", topic_id, False) == attrgetter("error_code", "name", "topic_id", "is_internal")(
        topic
    )
    assert (0, 0, 1, 0, [1], [1], [], [], []) == attrgetter(
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )(partition)
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
    async with broker_client(max_request_partition_size_limit=2) as client:
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


# AclOperation numbers as bits: what may be done without an authorizer (KIP-430).


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_one_broker(broker: Broker, client: Client, version: int) -> None:
    response = await client.call(DescribeClusterRequest(), version)

    [node] = response.brokers
    assert (0, None, 1) == (response.error_code, response.error_message, response.endpoint_type)
    assert (broker.cluster_id, 1) == (response.cluster_id, response.controller_id)
    assert broker.bootstrap_servers == f"{node.host}:{node.port}"
    assert (1, None, False) == (node.broker_id, node.rack, node.is_fenced)
    assert NOT_ASKED_FOR == response.cluster_authorized_operations


async def test_what_may_be_done_with_the_cluster_is_reported_where_it_is_asked_for(
    client: Client,
) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    response = await client.call(request, 2)

    assert ALL_OF_A_CLUSTER == response.cluster_authorized_operations


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (0, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
        (3, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_only_brokers_can_be_described(client: Client, endpoint_type: int, code: int) -> None:
    response = await client.call(DescribeClusterRequest(endpoint_type=endpoint_type), 2)

    assert (code, []) == (response.error_code, response.brokers)
    assert f"endpoint type {endpoint_type}" in response.error_message


async def test_the_rack_and_the_id_are_those_of_the_settings() -> None:
    async with broker_client(broker_rack="rack-a", node_id=7) as client:
        response = await client.call(DescribeClusterRequest(), 2)

    assert (7, [(7, "rack-a")]) == (
        response.controller_id,
        [(node.broker_id, node.rack) for node in response.brokers],
    )
