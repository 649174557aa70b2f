"""What a group's leader divides, and which topics a pattern takes."""

from __future__ import annotations

import re

import pytest
import trio
from trio.testing import MockClock

from support.scripted_node import ScriptedNode, Seen
from trionet import open_broker, open_consumer
from trionet.client.consumer.assignors import CooperativeStickyAssignor, RangeAssignor
from trionet.client.consumer.assignors._assignor import RebalanceProtocol
from trionet.client.consumer.coordinator._classic_member import ClassicMember, GroupSettings
from trionet.client.consumer.coordinator._group_leader import (
    GroupAssignment,
    GroupLeader,
    rebalance_protocol,
    subscriptions_of,
)
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.client.consumer.state._subscription_state import SubscriptionState
from trionet.client.network._open_client import open_kafka_client
from trionet.errors import ConfigError
from trionet.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.testing import MemoryNetwork, control


def described(node: ScriptedNode, **topics: bool) -> MetadataResponse:
    """Topics of one partition, and whether each is Kafka's own."""
    answer = node.metadata()
    answer.topics = [
        MetadataResponseTopic(
            name=name,
            is_internal=is_internal,
            partitions=[MetadataResponsePartition(partition_index=0, leader_id=1)],
        )
        for name, is_internal in topics.items()
    ]
    return answer


@pytest.mark.parametrize(
    ("excludes", "expected"), [(True, {"orders"}), (False, {"orders", "__offsets"})]
)
async def test_a_pattern_takes_kafkas_own_topics_only_if_asked_to(
    autojump_clock: MockClock, network: MemoryNetwork, excludes: bool, expected: set[str]
) -> None:
    node = ScriptedNode(network)
    settings = GroupSettings(group_id="g", exclude_internal_topics=excludes)
    subscription = SubscriptionState(EARLIEST)
    subscription.subscribe_pattern(re.compile(".*"))
    node.replies["Metadata"] = lambda _: described(node, orders=False, __offsets=True)
    async with node.listening(), open_kafka_client(node.address, network=network) as client:
        assignment = GroupAssignment(settings.assignors, None)
        leader = GroupLeader(client, subscription, ClassicMember(settings), assignment, settings)
        client.metadata.set_topics(None)
        while not client.metadata.updates:
            await client.poll()
        await leader.until_topics_known()

        assert expected == subscription.topics


@pytest.mark.parametrize("before", ["orders", re.compile("orders")])
async def test_a_pattern_after_another_subscription_waits_for_all_topics(
    autojump_clock: MockClock, network: MemoryNetwork, before: str | re.Pattern[str]
) -> None:
    """The metadata of the topics that were subscribed to before does not suffice."""
    node = ScriptedNode(network)
    settings = GroupSettings(group_id="g")
    subscription = SubscriptionState(EARLIEST)
    node.replies["Metadata"] = lambda seen: (
        described(node, orders=False)
        if seen.body.topics
        else described(node, orders=False, users=False)
    )
    async with (
        node.listening(),
        open_kafka_client(node.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        assignment = GroupAssignment(settings.assignors, None)
        leader = GroupLeader(client, subscription, ClassicMember(settings), assignment, settings)
        if isinstance(before, str):
            subscription.subscribe([before])
        else:
            subscription.subscribe_pattern(before)
        await leader.until_topics_known()
        await client.until_updated()
        leader.check_metadata()
        subscription.unsubscribe()
        subscription.subscribe_pattern(re.compile("users"))
        await leader.until_topics_known()

        assert {"users"} == subscription.topics
        nursery.cancel_scope.cancel()


async def test_a_leader_with_a_pattern_learns_of_new_topics_from_other_members(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """A topic that any member has seen soon has an owner, though the leader's metadata is old."""
    has_come = trio.Event()
    async with (
        open_broker({"group.initial.rebalance.delay.ms": "0"}, network=network) as broker,
        trio.open_nursery() as nursery,
    ):

        async def read(age_ms: int) -> None:
            async with open_consumer(
                broker.bootstrap_servers,
                topics=re.compile("a.*"),
                group_id="g",
                auto_offset_reset="earliest",
                metadata_max_age_ms=age_ms,
                network=network,
            ) as consumer:
                async for record in consumer:
                    if record.topic == "a2":
                        has_come.set()

        kit = control(broker)
        await kit.seed("a1", [b"x"])
        nursery.start_soon(read, 300_000)
        await trio.sleep(5)
        nursery.start_soon(read, 10_000)
        await trio.sleep(20)
        await kit.seed("a2", [b"y"])
        with trio.fail_after(15):
            await has_come.wait()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("rack", "rejoins"), [(None, False), ("a", True)])
async def test_a_broker_that_goes_down_matters_only_to_a_member_with_a_rack(
    autojump_clock: MockClock, network: MemoryNetwork, rack: str | None, rejoins: bool
) -> None:
    """The racks of partitions are those of the brokers that are up."""
    node = ScriptedNode(network, brokers=[(1, "10.0.0.1"), (2, "10.0.0.2")])
    up = [1, 2]

    def metadata(_: Seen) -> MetadataResponse:
        answer = described(node, t=False)
        answer.topics[0].partitions[0].replica_nodes = [1, 2]
        answer.brokers = [each for each in answer.brokers if each.node_id in up]
        for broker in answer.brokers:
            broker.rack = "ab"[broker.node_id - 1]
        return answer

    node.replies["Metadata"] = metadata
    settings = GroupSettings(group_id="g", rack_id=rack)
    subscription = SubscriptionState(EARLIEST)
    subscription.subscribe(["t"])
    async with node.listening(), open_kafka_client(node.address, network=network) as client:
        assignment = GroupAssignment(settings.assignors, rack)
        member = ClassicMember(settings)
        leader = GroupLeader(client, subscription, member, assignment, settings)
        client.metadata.set_topics(frozenset({"t"}))
        while not client.metadata.updates:
            await client.poll()
        [(name, subscribed), *_] = assignment.protocols(["t"], [])
        me = JoinGroupResponseMember(member_id="m", metadata=subscribed)
        await leader.assignments(
            JoinGroupResponse(protocol_name=name, leader="m", member_id="m", members=[me])
        )
        member.rejoin_reason = None
        up.remove(2)
        updates = client.metadata.request_update()
        while client.metadata.updates == updates:
            await client.poll()
        leader.check_metadata()

        assert rejoins == (member.rejoin_reason is not None)


def test_the_protocol_is_the_highest_that_all_assignors_have() -> None:
    both = (RangeAssignor(), CooperativeStickyAssignor())

    assert RebalanceProtocol.EAGER == rebalance_protocol(both)
    assert RebalanceProtocol.COOPERATIVE == rebalance_protocol(both[1:])


def test_no_assignor_or_the_same_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="must list one or more"):
        rebalance_protocol(())
    with pytest.raises(ConfigError, match="range, range"):
        rebalance_protocol((RangeAssignor(), RangeAssignor()))


def test_a_member_with_a_malformed_subscription_wants_nothing() -> None:
    found = subscriptions_of([JoinGroupResponseMember(member_id="m", metadata=b"\x00")])

    assert () == found["m"].topics
