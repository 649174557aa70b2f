"""What a client knows of its cluster, and when it asks again."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from support.scripted_node import ScriptedNode
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import Node
from trionet.client.network._metadata import Metadata, MetadataTimes
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.errors import DisconnectedError
from trionet.protocol import error_codes
from trionet.protocol._wire import NO_UUID
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.testing import MemoryNetwork

ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"


def metadata(times: MetadataTimes | None = None) -> Metadata:
    return Metadata([("a", 1), ("b", 2)], times or MetadataTimes(), random.Random(0))


def answer(
    leaders: Mapping[int, tuple[int, int]] | None = None, topic_id: bytes = ID
) -> MetadataResponse:
    """Leader and epoch by partition of topic t."""
    partitions = [
        MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch)
        for index, (leader, epoch) in (leaders or {}).items()
    ]
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=partitions)
    brokers = [
        MetadataResponseBroker(node_id=number, host=f"10.0.0.{number}", port=9092, rack="r")
        for number in (1, 2)
    ]
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=[topic])


def test_beginning_knows_the_bootstrap_servers_and_asks_at_once() -> None:
    known = metadata()

    assert {-1: Node(-1, "a", 1), -2: Node(-2, "b", 2)} == known.cluster.nodes
    assert known.cluster.is_bootstrap
    assert 0 == known.time_to_next_update(0.0)


def test_response_describes_the_cluster() -> None:
    known = metadata()
    known.update(answer({0: (1, 5), 1: (-1, 6)}), 0.0)
    cluster = known.cluster

    assert ("c", 2, False) == (cluster.id, cluster.controller, cluster.is_bootstrap)
    assert Node(1, "10.0.0.1", 9092, "r") == cluster.leader("t", 0)
    assert cluster.leader("t", 1) is None
    assert cluster.leader("t", 2) is None
    assert cluster.leader("u", 0) is None
    assert 300 == known.time_to_next_update(0.0)
    assert 1 == known.updates


def test_wanted_update_waits_for_the_time_after_the_last() -> None:
    known = metadata()
    known.update(answer(), 10.0)
    assert 1 == known.request_update()

    assert 0.08 <= known.time_to_next_update(10.0) <= 0.12
    assert 0 == known.time_to_next_update(10.2)


def test_wait_grows_while_no_broker_responds() -> None:
    known = metadata()
    for expected in (0.1, 0.2, 0.4, 0.8, 1.0):
        known.request_sent(0.0)
        known.failed(0.0, DisconnectedError("gone"))

        assert expected * 0.8 <= known.time_to_next_update(0.0) <= expected * 1.2


def test_response_without_brokers_is_a_failure() -> None:
    known = metadata()
    known.update(MetadataResponse(), 0.0)

    assert known.cluster.is_bootstrap
    assert 0 == known.updates
    assert known.time_to_next_update(0.0) > 0


def test_leader_of_an_older_epoch_is_not_believed() -> None:
    """KIP-320"""
    known = metadata()
    known.update(answer({0: (1, 5)}), 0.0)
    known.update(answer({0: (2, 4)}), 1.0)
    assert 1 == known.cluster.topics["t"].partitions[0].leader
    known.update(answer({0: (2, 6)}), 2.0)
    assert 2 == known.cluster.topics["t"].partitions[0].leader
    known.update(answer({0: (1, -1)}), 3.0)  # a broker that tells no epochs
    assert 1 == known.cluster.topics["t"].partitions[0].leader


def test_leader_that_another_response_named_is_taken_if_it_is_newer() -> None:
    """A leader whose node nobody knows is no help, and an older one is the past (KIP-951)."""
    known = metadata()
    known.update(answer({0: (1, 5), 1: (1, 5), 2: (1, 5)}), 0.0)
    third = Node(3, "10.0.0.3", 9092)
    told = {
        TopicPartition("t", 0): (3, 6),
        TopicPartition("t", 1): (2, 5),
        TopicPartition("t", 2): (4, 6),
        TopicPartition("t", 9): (2, 6),
        TopicPartition("u", 0): (2, 6),
    }
    known.update_leaders(told, [third])

    assert [3, 1, 1] == [known.cluster.topics["t"].partitions[each].leader for each in range(3)]
    assert third == known.cluster.leader("t", 0)
    assert {"t"} == set(known.cluster.topics)


def test_topic_that_was_made_anew_begins_with_new_epochs() -> None:
    known = metadata()
    known.update(answer({0: (1, 5)}), 0.0)
    known.update(answer({0: (2, 0)}, OTHER_ID), 1.0)

    assert 2 == known.cluster.topics["t"].partitions[0].leader


def test_new_topic_is_asked_for_at_once() -> None:
    known = metadata()
    assert [] == known.request().topics
    known.update(answer(), 0.0)
    known.set_topics(frozenset({"t", "s"}))

    assert 0 == known.time_to_next_update(0.0)
    assert known.request().topics is not None
    assert ["s", "t"] == [each.name for each in known.request().topics or ()]
    known.request_sent(1.0)
    known.update(answer(), 1.0)
    known.set_topics(frozenset({"t"}))
    assert known.time_to_next_update(1.0) > 100
    known.set_topics(None)
    assert known.request().topics is None
    assert 0 == known.time_to_next_update(1.0)


def test_topic_that_is_new_while_a_response_is_on_its_way_is_asked_for_next() -> None:
    known = metadata()
    known.request_sent(0.0)
    known.set_topics(frozenset({"t"}))
    known.update(answer(), 0.1)
    assert known.time_to_next_update(0.1) < 1
    known.request_sent(1.0)
    known.update(answer(), 1.1)

    assert 300 == known.time_to_next_update(1.1)


@pytest.mark.parametrize("of_topic", [True, False])
def test_what_is_missing_for_now_is_asked_for_again_ever_later(of_topic: bool) -> None:
    """Kafka: Metadata.handleMetadataResponse, equivalentResponseCount."""
    known = metadata()
    missing = answer({0: (-1, 0)})
    each = missing.topics[0] if of_topic else missing.topics[0].partitions[0]
    each.error_code = error_codes.LEADER_NOT_AVAILABLE
    for expected in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        known.update(missing, 0.0)
        assert expected * 0.8 <= known.time_to_next_update(0.0) <= expected * 1.2
    each.error_code = error_codes.TOPIC_AUTHORIZATION_FAILED
    known.update(missing, 0.0)

    assert 300 == known.time_to_next_update(0.0)


def test_leader_of_an_older_epoch_is_not_believed_without_topic_ids() -> None:
    known = metadata()
    known.update(answer({0: (1, 5)}), 0.0)
    known.update(answer({0: (2, 4)}, NO_UUID), 1.0)

    assert 1 == known.cluster.topics["t"].partitions[0].leader


def test_brokers_that_describe_nothing_for_long_are_given_up() -> None:
    """KIP-1102"""
    known = metadata(MetadataTimes(rebootstrap_seconds=60.0))
    known.update(answer({0: (1, 5)}), 0.0)
    known.attempt_started(10.0)
    known.failed(40.0)
    assert not known.needs_rebootstrap(70.0)
    assert known.needs_rebootstrap(70.1)

    known.rebootstrap(70.1)

    assert known.cluster.is_bootstrap
    assert {-1, -2} == set(known.cluster.nodes)
    assert "t" in known.cluster.topics
    assert 0 == known.time_to_next_update(70.1)
    assert not known.needs_rebootstrap(130.0)


async def test_client_comes_back_by_its_bootstrap_servers_when_all_brokers_have_moved(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """KIP-899"""
    first = ScriptedNode(network, 1, "10.0.0.1", [(1, "10.0.0.7")])
    moved = ScriptedNode(network, 1, "10.0.0.7")
    async with (
        first.listening(),
        open_network_client(first.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        async with moved.listening():
            await client.until_updated()
            await client.until_ready(client.metadata.cluster.nodes[1])
        network.kill_host("10.0.0.7")
        first.brokers = [(1, "10.0.0.8")]
        async with ScriptedNode(network, 1, "10.0.0.8").listening():
            while "10.0.0.8" not in {each.host for each in client.metadata.cluster.nodes.values()}:
                await client.until_updated(client.metadata.updates)
            await client.until_ready(client.metadata.cluster.nodes[1])
        nursery.cancel_scope.cancel()


async def test_client_that_may_not_start_again_stays_with_the_brokers_it_knows(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """metadata.recovery.strategy=none"""
    first = ScriptedNode(network, 1, "10.0.0.1", [(1, "10.0.0.7")])
    settings = ClientSettings(metadata=MetadataTimes(rebootstrap_seconds=math.inf))
    async with (
        first.listening(),
        open_network_client(first.address, settings, network=network) as client,
    ):
        with trio.move_on_after(60):
            await client.run()

        assert {1} == set(client.metadata.cluster.nodes)
    assert 1 == first.names().count("Metadata")


async def test_broker_may_ask_a_client_to_start_again(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """KIP-1102"""
    brokers = [(1, "10.0.0.1"), (2, "10.0.0.2")]
    one = ScriptedNode(network, 1, "10.0.0.1", brokers)
    async with (
        one.listening(),
        open_network_client(one.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        await client.until_ready(client.metadata.cluster.nodes[1])
        one.replies["Metadata"] = lambda _: one.metadata(
            error_code=error_codes.REBOOTSTRAP_REQUIRED
        )
        client.metadata.request_update()
        with trio.move_on_after(1):
            await client.until_updated(1)

        assert client.metadata.cluster.is_bootstrap
        assert client.connection_failed(Node(1, "10.0.0.1", 9092))
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seconds", [400])
async def test_old_metadata_are_asked_for_again(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode, seconds: int
) -> None:
    with trio.move_on_after(seconds):
        await client.run()

    assert 2 == node.names().count("Metadata")
