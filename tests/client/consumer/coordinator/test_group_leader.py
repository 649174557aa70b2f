"""What a group's leader divides, and which topics a pattern takes."""

from __future__ import annotations

import re

import pytest
from trio.testing import MockClock

from support.scripted_node import ScriptedNode
from trionet.client.consumer.assignors import CooperativeStickyAssignor, RangeAssignor
from trionet.client.consumer.assignors._assignor import RebalanceProtocol
from trionet.client.consumer.coordinator._classic_member import ClassicMember, GroupSettings
from trionet.client.consumer.coordinator._group_leader import (
    GroupAssignment,
    GroupLeader,
    rebalance_protocol,
    subscriptions_of,
)
from trionet.client.consumer.state._partition_state import EARLIEST
from trionet.client.consumer.state._subscription_state import SubscriptionState
from trionet.client.network._open_client import open_kafka_client
from trionet.errors import ConfigError
from trionet.protocol.messages.join_group import JoinGroupResponseMember
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.testing import MemoryNetwork


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
