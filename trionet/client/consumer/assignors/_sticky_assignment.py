"""The algorithm of the sticky assignors (Kafka: AbstractStickyAssignor).

The goals, in order of priority, are an even assignment, nearby partitions where racks matter, and
as few moves as possible.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription, PartitionsByTopic, member_racks, ordered_members
from ._even_shares import Shares, pools_of
from ._ownership import Claim, Ownership, ownership
from ._racks import Racks


def still_wanted(
    claims: Mapping[str, Claim],
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
) -> Ownership:
    """Resolve the claims, ignoring deleted partitions and topics no longer subscribed to."""
    kept: dict[str, Claim] = {}
    for member, claim in claims.items():
        topics = {
            topic: partitions_by_topic[topic]
            for topic in subscriptions[member].topics
            if topic in partitions_by_topic
        }
        held = [each for each in claim.partitions if each.partition in topics.get(each.topic, ())]
        kept[member] = Claim(held, claim.generation)
    return ownership(kept)


def sticky_assignment(
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
    before: Ownership,
) -> dict[str, list[TopicPartition]]:
    """Return an even assignment that moves as few partitions as possible.

    Args:
        partitions_by_topic: the existing topics.
        subscriptions: the subscriptions of all members.
        before: the owners before the rebalance; see :func:`still_wanted`.
    """
    members = ordered_members(subscriptions)
    pools = pools_of(partitions_by_topic, subscriptions, members)
    shares = Shares(pools, members)
    shares.keep(before.owners)
    shares.fill()
    shares.settle(before.owners, before.earlier)
    racks = Racks(partitions_by_topic, member_racks(subscriptions))
    if racks.matter:
        # The sizes of the shares stay the same, but their partitions may be nearer.
        targets = shares.loads
        near = {
            partition: member
            for partition, member in before.owners.items()
            if not racks.is_far(member, partition)
        }
        shares = Shares(pools, members)
        shares.keep(near, targets)
        racks.fill_near(shares, targets)
        shares.keep(before.owners, targets)
        shares.fill(targets)
        shares.settle(near, before.earlier)
    return shares.assignment()
