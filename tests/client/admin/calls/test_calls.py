"""Asking until there is a response: nodes that respond as a test says, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

import trionet
from support.admin_answers import coordinated_by, leading, offset_of, one_by_one
from support.admin_errors import code_of
from support.scripted_node import Hangup, Reply, ScriptedNode, Seen
from trionet import Admin, ApiError, CallTimedOutError, UnsupportedVersionError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import AdminSettings, ConfigResourceType, OffsetSpec
from trionet.protocol import error_codes
from trionet.protocol.api_keys import (
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LIST_CONFIG_RESOURCES,
    METADATA,
    OFFSET_FETCH,
)
from trionet.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from trionet.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from trionet.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from trionet.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from trionet.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from trionet.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from trionet.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from trionet.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from trionet.protocol.messages.offset_fetch import OffsetFetchResponse
from trionet.testing import MemoryNetwork

A0 = TopicPartition("a", 0)


@pytest.fixture
async def admin(network: MemoryNetwork, node: ScriptedNode) -> AsyncIterator[Admin]:
    async with trionet.open_admin(node.address, network=network) as admin:
        yield admin


def created(seen: Seen, **codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=each.name, error_code=codes.get(each.name, 0))
            for each in seen.body.topics
        ]
    )


async def test_what_has_moved_is_asked_for_again_and_the_rest_is_not(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = one_by_one(
        lambda seen: created(seen, b=error_codes.NOT_CONTROLLER, c=error_codes.POLICY_VIOLATION),
        created,
    )

    results = await admin.create_topics(["a", "b", "c"])

    assert ["a", "b", "c"] == list(results)
    assert {"c": "POLICY_VIOLATION"} == {key: code_of(each) for key, each in results.errors.items()}
    asked = [seen.body.topics for seen in node.seen if seen.name == "CreateTopics"]
    assert [["a", "b", "c"], ["b"]] == [[each.name for each in topics] for topics in asked]
    # Between the two it was asked who is the controller now.
    assert "Metadata" in node.names()[node.names().index("CreateTopics") :]


async def test_lost_response_is_asked_for_again(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = one_by_one(lambda _: Hangup(), created)

    results = await admin.create_topics(["a"])

    assert not results.errors
    assert 2 == node.names().count("CreateTopics")


async def test_item_that_the_response_leaves_out_is_an_error(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = lambda seen: CreateTopicsResponse(
        topics=created(seen).topics[1:]
    )

    results = await admin.create_topics(["a", "b"])

    assert ["a"] == list(results.errors)
    assert "UNKNOWN_SERVER_ERROR" == code_of(results["a"])


async def test_call_without_a_response_ends_in_time_and_says_what_was_wrong(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = lambda _: Hangup()
    began_at = trio.current_time()

    with pytest.raises(CallTimedOutError, match=r"default\.api\.timeout\.ms") as raised:
        await admin.create_topics(["a"])

    assert isinstance(raised.value.__cause__, trionet.DisconnectedError)
    assert 60.0 == pytest.approx(trio.current_time() - began_at)


async def test_a_list_is_made_anew_when_one_broker_has_not_responded(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """What the broker coordinates may have moved to one that has responded before."""
    async with two_nodes(network) as (first, second):
        first.replies["ListGroups"] = one_by_one(lambda _: groups(), lambda _: groups("moved"))
        second.replies["ListGroups"] = one_by_one(lambda _: Hangup(), lambda _: groups())

        async with trionet.open_admin(first.address, network=network) as admin:
            found = await admin.list_groups()

    assert ["moved"] == list(found)


def groups(*names: str) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in names])


async def test_the_response_of_one_broker_stays_when_the_time_of_another_is_up(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with two_nodes(network) as (first, second):
        for node in (first, second):
            node.replies["FindCoordinator"] = one_to_each(g=first, h=second)
        first.replies["DeleteGroups"] = deleted()
        second.replies["DeleteGroups"] = lambda _: None

        async with trionet.open_admin(
            first.address, network=network, default_api_timeout_ms=5000
        ) as admin:
            results = await admin.delete_groups(["g", "h"])

    assert results["g"] is None
    assert isinstance(results["h"], CallTimedOutError)


async def test_broker_that_has_just_come_is_asked_with_the_others(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with two_nodes(network) as (first, second):
        first.brokers = [(1, first.host)]
        for node, group in ((first, "g"), (second, "h")):
            node.replies["ListGroups"] = listing(group)

        async with trionet.open_admin(first.address, network=network) as admin:
            assert ["g"] == list(await admin.list_groups())
            first.brokers = second.brokers
            await trio.sleep(60)
            assert ["g", "h"] == sorted(await admin.list_groups())


async def test_single_response_that_does_not_come_ends_in_time_too(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["DescribeCluster"] = lambda _: Hangup()

    with pytest.raises(CallTimedOutError) as raised:
        await admin.describe_cluster()

    assert isinstance(raised.value.__cause__, trionet.DisconnectedError)


async def test_quorum_of_a_former_controller_is_asked_for_again(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    def quorum(error_code: int = 0) -> Reply:
        partition = ResponsePartitionData(error_code=error_code, leader_id=3)
        return lambda _: DescribeQuorumResponse(topics=[ResponseTopicData(partitions=[partition])])

    node.replies["DescribeQuorum"] = one_by_one(quorum(error_codes.NOT_CONTROLLER), quorum())

    assert 3 == (await admin.describe_metadata_quorum()).leader


async def test_cluster_without_brokers_is_not_waited_for_longer(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trionet.open_admin(
        "10.0.0.9:9092", network=network, default_api_timeout_ms=3000
    ) as admin:
        began_at = trio.current_time()
        cause = r"no bootstrap broker could be reached \(10.0.0.9:9092: connection refused\)"

        for call in (
            lambda: admin.describe_topics(["a"]),
            admin.list_groups,
            admin.nodes,
            lambda: admin.request(DescribeClusterRequest()),
        ):
            with pytest.raises(CallTimedOutError, match=cause) as raised:
                await call()
            assert isinstance(raised.value.__cause__, trionet.DisconnectedError)

        assert 12.0 == pytest.approx(trio.current_time() - began_at)


async def test_attempts_are_counted(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = lambda _: Hangup()

    async with trionet.open_admin(node.address, network=network, retries=2) as admin:
        with pytest.raises(trionet.DisconnectedError):
            await admin.create_topics(["a"])

    assert 3 == node.names().count("CreateTopics")


async def test_error_that_does_not_pass_is_reported_at_once(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["DescribeCluster"] = lambda _: DescribeClusterResponse(
        error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message="not you"
    )

    with pytest.raises(ApiError, match="not you"):
        await admin.describe_cluster()

    assert 1 == node.names().count("DescribeCluster")


async def test_numbers_that_are_newer_than_we_are_known_to_be_unknown(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["DescribeAcls"] = lambda _: DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=99,
                resource_name="r",
                pattern_type=98,
                acls=[AclDescription(principal="p", host="*", operation=97, permission_type=96)],
            )
        ]
    )

    (found,) = await admin.describe_acls()

    assert [0, 0, 0, 0] == [
        found.resource_type,
        found.pattern_type,
        found.operation,
        found.permission,
    ]


# Coordinators.


def one_to_each(**nodes: ScriptedNode) -> Reply:
    """Groups with these coordinators."""

    def reply(seen: Seen) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=nodes[key].node_id, host=nodes[key].host, port=9092)
                for key in seen.body.coordinator_keys
            ]
        )

    return reply


def listing(group: str) -> Reply:
    return lambda _: ListGroupsResponse(groups=[ListedGroup(group_id=group)])


def deleted(error_code: int = 0) -> Reply:
    def reply(seen: Seen) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group, error_code=error_code)
                for group in seen.body.groups_names
            ]
        )

    return reply


async def test_coordinator_is_looked_for_again_when_it_has_moved(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["FindCoordinator"] = one_by_one(
        coordinated_by(node, error_codes.COORDINATOR_NOT_AVAILABLE), coordinated_by(node)
    )
    node.replies["DeleteGroups"] = one_by_one(deleted(error_codes.NOT_COORDINATOR), deleted())

    assert {"g": None} == await admin.delete_groups(["g"])

    assert 3 == node.names().count("FindCoordinator")
    assert 2 == node.names().count("DeleteGroups")


async def test_who_is_asked_again_is_asked_about_the_same(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["FindCoordinator"] = coordinated_by(node)
    node.replies["OffsetFetch"] = one_by_one(lambda _: Hangup(), lambda _: OffsetFetchResponse())

    await admin.list_group_offsets({"g": (TopicPartition("a", n) for n in range(2))})

    asked = [seen.body.groups[0] for seen in node.seen if seen.name == "OffsetFetch"]
    assert [[("a", [0, 1])]] * 2 == [
        [(topic.name, list(topic.partition_indexes)) for topic in each.topics] for each in asked
    ]


async def test_group_that_the_response_leaves_out_is_looked_for_again(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["FindCoordinator"] = one_by_one(
        lambda _: FindCoordinatorResponse(), coordinated_by(node)
    )
    node.replies["DeleteGroups"] = deleted()

    assert {"g": None} == await admin.delete_groups(["g"])


async def test_old_brokers_are_asked_for_one_group_at_a_time(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.ranges[FIND_COORDINATOR] = (0, 3)
    node.ranges[OFFSET_FETCH] = (1, 7)
    node.replies["FindCoordinator"] = lambda _: FindCoordinatorResponse(
        node_id=node.node_id, host=node.host, port=9092
    )
    node.replies["OffsetFetch"] = lambda _: OffsetFetchResponse()

    found = await admin.list_group_offsets(["g", "h"])

    assert {"g": {}, "h": {}} == found
    asked = [seen.body for seen in node.seen if seen.name in {"FindCoordinator", "OffsetFetch"}]
    assert ["g", "h"] == [each.key for each in asked[:2]]
    assert ["g", "h"] == [each.group_id for each in asked[2:]]


@pytest.mark.parametrize(
    ("missing", "call"),
    [
        (DELETE_TOPICS, lambda admin: admin.delete_topics(["a"])),
        (FIND_COORDINATOR, lambda admin: admin.delete_groups(["g"])),
        (
            LIST_CONFIG_RESOURCES,
            lambda admin: admin.list_config_resources([ConfigResourceType.CLIENT_METRICS]),
        ),
        (OFFSET_FETCH, lambda admin: admin.list_group_offsets(["g"])),
    ],
)
async def test_broker_that_is_too_old_for_the_fallback_too_is_reported_once(
    admin: Admin,
    node: ScriptedNode,
    autojump_clock: MockClock,
    missing: int,
    call: Callable[[Admin], Awaitable[object]],
) -> None:
    node.replies["FindCoordinator"] = coordinated_by(node)
    del node.ranges[missing]

    with pytest.raises(UnsupportedVersionError) as raised:
        await call(admin)

    assert raised.value.__context__ is None


async def test_old_broker_that_cannot_tell_what_is_allowed_is_reported_once(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    del node.ranges[DESCRIBE_CLUSTER]
    node.ranges[METADATA] = (0, 7)

    with pytest.raises(UnsupportedVersionError, match="Metadata") as raised:
        await admin.describe_cluster(include_operations=True)

    assert raised.value.__context__ is None


# Leaders.


@asynccontextmanager
async def two_nodes(network: MemoryNetwork) -> AsyncIterator[tuple[ScriptedNode, ScriptedNode]]:
    brokers = [(1, "10.0.0.1"), (2, "10.0.0.2")]
    first = ScriptedNode(network, 1, "10.0.0.1", brokers)
    second = ScriptedNode(network, 2, "10.0.0.2", brokers)
    async with first.listening(), second.listening():
        yield first, second


async def test_leader_is_looked_for_again_when_it_has_moved(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with (
        two_nodes(network) as (first, second),
        trionet.open_admin(first.address, network=network) as admin,
    ):
        for each in (first, second):
            each.replies["Metadata"] = one_by_one(
                leading(each), leading(each, -1), leading(each, 1), leading(each, 2)
            )
        first.replies["ListOffsets"] = offset_of(-1, error_codes.NOT_LEADER_OR_FOLLOWER)
        second.replies["ListOffsets"] = offset_of(7)

        found = (await admin.list_offsets({A0: OffsetSpec.LATEST})).checked()

        assert 7 == found[A0].offset


async def test_broker_that_is_down_takes_only_its_own_items_with_it(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with (
        two_nodes(network) as (first, second),
        trionet.open_admin(first.address, network=network, default_api_timeout_ms=3000) as admin,
    ):
        for each in (first, second):
            each.replies["Metadata"] = leading(each, 1, 2)
        first.replies["ListOffsets"] = offset_of(7)
        second.replies["ListOffsets"] = lambda _: Hangup()
        a1 = TopicPartition("a", 1)

        found = await admin.list_offsets(dict.fromkeys([A0, a1], OffsetSpec.LATEST))

        assert [a1] == list(found.errors)
        assert isinstance(found[a1], CallTimedOutError)


async def test_a_broker_that_the_caller_chose_is_not_asked_again_when_it_is_no_replica(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    """As in Kafka, since nothing would change: no other broker is looked for."""
    code = error_codes.NOT_LEADER_OR_FOLLOWER
    partitions = [PartitionResponse(partition_index=0, error_code=code)]
    node.replies["DescribeProducers"] = lambda _: DescribeProducersResponse(
        topics=[TopicResponse(name="a", partitions=partitions)]
    )

    found = await admin.describe_producers([A0], broker_id=node.node_id)

    assert "NOT_LEADER_OR_FOLLOWER" == code_of(found[A0])
    assert 1 == node.names().count("DescribeProducers")


async def test_unknown_topic_is_asked_for_again_for_a_while_only(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["Metadata"] = leading(node, error_code=error_codes.UNKNOWN_TOPIC_OR_PARTITION)
    settings = attrs.evolve(AdminSettings(), unknown_topic_seconds=2.0)

    async with trionet.open_admin(node.address, settings, network=network) as admin:
        began_at = trio.current_time()
        found = await admin.list_offsets({A0: OffsetSpec.LATEST})
        waited = trio.current_time() - began_at

    assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(found[A0])
    assert 2.0 <= waited < 4.0


# The rest.


async def test_metadata_that_a_broker_refuses_is_no_empty_list_of_topics(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    """KIP-1102."""
    await admin.nodes()
    node.replies["Metadata"] = lambda _: node.metadata(error_codes.REBOOTSTRAP_REQUIRED)

    with pytest.raises(ApiError, match="the topics: REBOOTSTRAP_REQUIRED"):
        await admin.list_topics()


async def test_api_that_no_broker_has_is_an_error_at_once(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    del node.ranges[FIND_COORDINATOR]

    with pytest.raises(UnsupportedVersionError, match="FindCoordinator"):
        await admin.delete_groups(["g"])


async def test_call_about_nothing_asks_no_broker_and_can_be_cancelled(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    with trio.testing.assert_checkpoints():
        assert {} == await admin.create_topics([])
    assert [] == node.names()


async def test_cancelled_call_leaves_an_admin_client_that_works(
    admin: Admin, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = one_by_one(lambda _: None, created)

    with trio.move_on_after(1) as scope:
        await admin.create_topics(["a"])
    results = await admin.create_topics(["a"])

    assert scope.cancelled_caught
    assert not results.errors


async def test_error_of_the_block_leaves_it_as_it_is(network: MemoryNetwork) -> None:
    with pytest.raises(KeyError):
        async with trionet.open_admin("10.0.0.1:9092", network=network):
            raise KeyError
