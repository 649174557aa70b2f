"""What a client knows of its cluster, and when it asks again."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from support.network_clients import poll_until
from support.scripted_node import ScriptedNode
from trionet.client._network_settings import MetadataTimes
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import Node
from trionet.client.network._metadata import Metadata
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.errors import DisconnectedError
from trionet.protocol import api_keys, error_codes
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

    assert {-2: Node(-2, "a", 1), -3: Node(-3, "b", 2)} == known.cluster.nodes
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
        known.request(0.0)
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
    known.update_leaders(told, {third.id: third})

    assert [3, 1, 1] == [known.cluster.topics["t"].partitions[each].leader for each in range(3)]
    assert third == known.cluster.leader("t", 0)
    assert {"t"} == set(known.cluster.topics)


def test_leaders_of_several_partitions_of_a_topic_may_move_at_the_same_time() -> None:
    known = metadata()
    known.update(answer({0: (1, 5), 1: (1, 6), 2: (1, 7)}), 0.0)

    known.update_leaders({TopicPartition("t", 2): (2, 8), TopicPartition("t", 0): (2, 6)}, {})

    partitions = known.cluster.topics["t"].partitions
    assert {0: (2, 6), 1: (1, 6), 2: (2, 8)} == {
        each.index: (each.leader, each.leader_epoch) for each in partitions.values()
    }
    assert frozenset({"t"}) == known.cluster.changed_topics


def test_address_of_a_leader_that_is_not_newer_is_as_old_as_that() -> None:
    """A broker that has not heard of the leader has not heard where it has moved to, either."""
    known = metadata()
    known.update(answer({0: (2, 5), 1: (1, 5)}), 0.0)
    nodes = dict(known.cluster.nodes)
    told = {TopicPartition("t", 0): (2, 4)}

    known.update_leaders(told, {2: Node(2, "10.0.0.7", 9092), 3: Node(3, "10.0.0.3", 9092)})

    assert nodes == known.cluster.nodes


def test_what_no_request_can_name_is_left_out() -> None:
    known, nameless = metadata(), MetadataResponseTopic(name="")
    response = answer({0: (1, 3), -5: (1, 3), 2**31 - 1: (2, 3)})
    response.topics.append(nameless)

    known.update(response, 1.0)

    assert ["t"] == list(known.cluster.topics)
    assert [0, 2**31 - 1] == list(known.cluster.topics["t"].partitions)


def test_topic_that_was_made_anew_begins_with_new_epochs() -> None:
    known = metadata()
    known.update(answer({0: (1, 5)}), 0.0)
    known.update(answer({0: (2, 0)}, OTHER_ID), 1.0)

    assert 2 == known.cluster.topics["t"].partitions[0].leader


def asked(known: Metadata, now: float) -> list[str | None] | None:
    """The topics of the next request."""
    topics = known.request(now).topics
    return None if topics is None else [each.name for each in topics]


def test_topics_in_use_are_asked_for_at_once_if_any_is_new() -> None:
    known = metadata()
    assert [] == asked(known, 0.0)
    known.update(answer(), 0.0)
    known.set_topics({"t", "s"})

    assert 0 == known.time_to_next_update(0.0)
    assert ["s", "t"] == asked(known, 1.0)
    known.update(answer(), 1.0)
    known.set_topics({"t"})
    assert known.time_to_next_update(1.0) > 100
    known.set_topics(None)
    assert 0 == known.time_to_next_update(1.0)
    assert asked(known, 1.0) is None


def test_topic_that_is_new_while_a_response_is_on_its_way_is_asked_for_next() -> None:
    known = metadata()
    known.request(0.0)
    known.set_topics({"t"})
    known.update(answer(), 0.1)
    assert known.time_to_next_update(0.1) < 1
    known.request(1.0)
    known.update(answer(), 1.1)

    assert 299 <= known.time_to_next_update(1.1) <= 300


def described(*names: str, code: int = 0) -> MetadataResponse:
    """A response about topics of one partition each."""
    response = answer({0: (1, 5)})
    response.topics = [
        MetadataResponseTopic(
            name=name,
            error_code=code,
            topic_id=ID,
            partitions=[] if code else response.topics[0].partitions,
        )
        for name in names
    ]
    return response


def using(*names: str) -> Metadata:
    """Metadata that know these topics since time 0."""
    known = metadata()
    known.set_topics(set(names))
    known.request(0.0)
    known.update(described(*names), 0.0)
    return known


def test_added_topic_is_asked_for_alone_and_the_others_stay_as_they_are() -> None:
    known = using("a", "b")
    known.add_topics(["b", "c"])

    assert 0 == known.time_to_next_update(0.01)
    assert ["c"] == asked(known, 0.01)
    known.update(described("c"), 0.02)
    assert ["a", "b", "c"] == sorted(known.cluster.topics)
    assert all(known.cluster.leader(name, 0) for name in "abc")
    # The age is that of the oldest topic.
    assert 300 == pytest.approx(known.time_to_next_update(0.02), abs=0.1)
    assert ["a", "b", "c"] == asked(known, 300.1)


def test_error_of_a_topic_is_forgotten_when_the_topic_is_used_again() -> None:
    known = using("a")
    known.add_topics(["b"])
    known.request(0.01)
    known.update(described("b", code=error_codes.UNKNOWN_TOPIC_OR_PARTITION), 0.02)
    known.remove_topics(["b"])
    before = known.cluster
    assert ["a", "b"] == sorted(before.topics)
    known.add_topics(["b"])

    assert ["a"] == sorted(known.cluster.topics)
    assert (frozenset({"b"}), 1) == (
        known.cluster.changed_topics,
        known.cluster.number - before.number,
    )
    assert ["b"] == asked(known, 0.03)


def test_cost_of_an_added_topic_does_not_grow_with_those_in_use() -> None:
    """Counted are the names that are asked for."""
    known = using()
    names = [f"t{number}" for number in range(1000)]
    count = 0
    for name in names:
        known.add_topics([name])
        count += len(asked(known, 0.01) or ())
        known.update(described(name), 0.01)

    assert len(names) == count == len(known.cluster.topics)


def test_topics_that_are_set_are_asked_for_alone_if_they_are_new() -> None:
    known = using("a", "b")
    for now, more in ((0.01, "c"), (1.0, "d")):
        known.set_topics({*known.cluster.topics, more})
        assert 0 == known.time_to_next_update(now)
        assert [more] == asked(known, now)
        known.update(described(more), now)

    assert ["a", "b", "c", "d"] == sorted(known.cluster.topics)
    assert known.time_to_next_update(1.0) > 100


def test_full_update_forgets_topics_that_are_no_longer_in_use() -> None:
    known = using("a", "b")
    known.remove_topics(["a"])
    known.add_topics(["c"])
    known.request(0.01)
    known.update(described("c"), 0.01)
    assert ["a", "b", "c"] == sorted(known.cluster.topics)
    known.request_update()

    assert ["b", "c"] == asked(known, 1.0)
    known.update(described("b", "c"), 1.0)
    assert ["b", "c"] == sorted(known.cluster.topics)


def test_update_after_topics_were_replaced_by_fewer_is_a_full_one() -> None:
    known = using("a", "b")
    known.set_topics({"b"})
    known.request_topics(["b"])

    assert ["b"] == asked(known, 1.0)
    known.update(described("b"), 1.0)
    assert ["b"] == sorted(known.cluster.topics)


def test_update_after_topics_were_dropped_while_a_response_was_on_its_way_is_a_full_one() -> None:
    known = using("a", "b")
    known.request_update()
    known.request(1.0)
    known.set_topics({"b"})
    known.update(described("a", "b"), 1.1)
    known.request_topics(["b"])

    assert ["b"] == asked(known, 2.0)
    known.update(described("b"), 2.0)
    assert ["b"] == sorted(known.cluster.topics)


def test_topic_with_a_gap_is_asked_for_again_alone_after_the_backoff() -> None:
    known = using("a", "b")
    known.add_topics(["c"])
    known.request(0.2)
    known.update(described("c", code=error_codes.LEADER_NOT_AVAILABLE), 0.2)

    assert 0.08 <= known.time_to_next_update(0.2) <= 0.12
    assert ["c"] == asked(known, 0.4)
    known.update(described("c"), 0.4)
    assert known.time_to_next_update(0.4) > 100


def test_new_topic_does_not_wait_for_others_and_does_not_ask_for_them() -> None:
    known = using("a")
    known.add_topics(["b"])
    known.request(0.2)
    known.update(described("b", code=error_codes.LEADER_NOT_AVAILABLE), 0.2)
    known.add_topics(["c"])

    assert ["c"] == asked(known, 0.21)
    known.update(described("c"), 0.21)
    assert 0.07 <= known.time_to_next_update(0.21) <= 0.11
    assert ["b"] == asked(known, 0.4)


def test_known_topic_is_asked_for_again_after_the_backoff_if_it_is_in_use() -> None:
    known = using("a", "b")
    known.request_topics(["b", "unused"])

    assert 0.08 <= known.time_to_next_update(0.0) <= 0.12
    assert ["b"] == asked(known, 0.2)
    known.update(described("b"), 0.2)
    assert known.time_to_next_update(0.2) > 100


def test_topics_of_a_request_that_failed_are_asked_for_again_with_all_others() -> None:
    known = using("a")
    known.add_topics(["b"])
    known.request(0.2)
    known.failed(0.2, DisconnectedError("gone"))

    assert 0.08 <= known.time_to_next_update(0.2) <= 0.12
    assert ["a", "b"] == asked(known, 0.4)


def test_snapshot_stays_as_it_is_and_says_what_has_changed_in_the_next() -> None:
    known = using("a", "b")
    before = known.cluster
    known.add_topics(["c"])
    known.request(0.01)
    known.update(described("c"), 0.01)
    after = known.cluster
    known.update_leaders({TopicPartition("b", 0): (2, 6)}, {})

    assert ["a", "b"] == sorted(before.topics)
    assert (frozenset({"c"}), 1) == (after.changed_topics, after.number - before.number)
    assert (1, 2) == tuple(each.topics["b"].partitions[0].leader for each in (after, known.cluster))
    assert frozenset({"b"}) == known.cluster.changed_topics
    known.request_update()
    known.request(1.0)
    known.update(described("a"), 1.0)
    assert known.cluster.changed_topics is None


@pytest.mark.parametrize("of_topic", [True, False])
def test_what_is_missing_for_now_is_asked_for_again_ever_later(of_topic: bool) -> None:
    """Kafka: Metadata.handleMetadataResponse, equivalentResponseCount."""
    known = using("t")
    missing = answer({0: (-1, 0)})
    known.request(10.0)
    each = missing.topics[0] if of_topic else missing.topics[0].partitions[0]
    each.error_code = error_codes.LEADER_NOT_AVAILABLE
    for expected in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        known.update(missing, 0.0)
        assert expected * 0.8 <= known.time_to_next_update(0.0) <= expected * 1.2
        known.request(10.0)
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
    known.update(answer({0: (1, 5), 1: (-1, 5)}), 0.0)
    known.attempt_started(10.0)
    known.failed(40.0)
    assert not known.needs_rebootstrap(70.0)
    assert known.needs_rebootstrap(70.1)

    known.rebootstrap(70.1)

    assert known.cluster.is_bootstrap
    assert {-2, -3} == set(known.cluster.nodes)
    assert "t" in known.cluster.topics
    assert known.cluster.leader("t", 0) is None
    assert known.cluster.leader("t", 1) is None
    assert 0 == known.time_to_next_update(70.1)
    assert not known.needs_rebootstrap(130.0)


@pytest.mark.parametrize(("version", "epoch"), [(8, -1), (9, 5)])
async def test_epochs_of_brokers_that_may_hold_old_ones_are_not_used(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode, version: int, epoch: int
) -> None:
    """KAFKA-9212: such a broker goes on to describe the epoch from before a reassignment."""
    node.ranges[api_keys.METADATA] = (0, version)
    node.replies["Metadata"] = lambda _: answer({0: (1, 5)})
    client.metadata.add_topics(["t"])

    await poll_until(client, lambda: client.metadata.updates)

    partition = client.metadata.cluster.topics["t"].partitions[0]
    assert (1, epoch) == (partition.leader, partition.leader_epoch)


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
