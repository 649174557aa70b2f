"""The loads of the members in the most balanced assignments.

An assignment is most balanced if no chain of members could pass on partitions, from each to the
next, so that a member ends with one partition less and another, which had at least two less, with
one more. No assignment then has a smaller difference between any two loads, in total. In all of
them each member has the same load, or one of the same two adjacent loads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace

import attrs

from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription, PartitionsByTopic


@attrs.frozen(eq=False)
class Pool:
    """The partitions of all topics with the same subscribers.

    Attributes:
        members: the ids of the members, in order.
        partitions: the partitions, sorted by number, then topic.
    """

    members: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


def pools_of(
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
) -> list[Pool]:
    """Return a group's pools, in increasing order of their number of members.

    Args:
        partitions_by_topic: the existing topics.
        subscriptions: the subscriptions of the members, in order.
    """
    subscribers: dict[str, list[str]] = {}
    for member, subscription in subscriptions.items():
        for topic in dict.fromkeys(subscription.topics):
            subscribers.setdefault(topic, []).append(member)
    pooled: dict[tuple[str, ...], list[TopicPartition]] = {}
    for topic in sorted(partitions_by_topic.keys() & subscribers.keys()):
        held = pooled.setdefault(tuple(subscribers[topic]), [])
        held += (TopicPartition(topic, number) for number in partitions_by_topic[topic])
    pools = [
        Pool(who, tuple(sorted(held, key=lambda each: (each.partition, each.topic))))
        for who, held in pooled.items()
    ]
    return sorted(pools, key=lambda pool: len(pool.members))


def least_loads(pools: Sequence[Pool], members: Sequence[str]) -> dict[str, int]:
    """Return the smallest load of each member in any most balanced assignment.

    Its load in any of them is that, or one more. The partitions of a pool go only to the members of
    the pool whose smallest load is lowest.

    Args:
        pools: the partitions to assign.
        members: the ids of all members.
    """
    loads = dict.fromkeys(members, 0)
    shares = _deal(pools, loads)
    pools_by_member: dict[str, list[Pool]] = {member: [] for member in members}
    for pool in pools:
        for member in pool.members:
            pools_by_member[member].append(pool)
    least: dict[str, int] = {}
    while remaining := loads.keys() - least.keys():
        taker = min(remaining, key=lambda member: loads[member])
        ways = _ways_to(taker, pools_by_member, shares, loads, least)
        giver = next(reversed(ways))
        if loads[giver] - loads[taker] > 1:
            _pass_on(giver, taker, ways, shares, loads)
        else:
            # No member outside can give partitions to these, so that their loads are final.
            least |= dict.fromkeys(ways, loads[taker])
    return least


def _deal(pools: Iterable[Pool], loads: dict[str, int]) -> dict[Pool, dict[str, int]]:
    """Assign each partition to a member with the smallest load, and return the counts."""
    shares: dict[Pool, dict[str, int]] = {}
    for pool in pools:
        heap = [(loads[member], place) for place, member in enumerate(pool.members)]
        heapify(heap)
        for _ in pool.partitions:
            load, place = heap[0]
            heapreplace(heap, (load + 1, place))
        after = {pool.members[place]: load for load, place in heap}
        shares[pool] = {member: load - loads[member] for member, load in after.items()}
        loads |= after
    return shares


_Ways = dict[str, tuple[Pool, str] | None]
"""For each member, a pool of which it can give a partition to which other member."""


def _ways_to(
    taker: str,
    pools_by_member: Mapping[str, Iterable[Pool]],
    shares: Mapping[Pool, Mapping[str, int]],
    loads: Mapping[str, int],
    least: Mapping[str, int],
) -> _Ways:
    """Return the members that can give to a member, directly or by way of others.

    The search ends early at a member whose load is more than one larger, which is then the last.
    """
    ways: _Ways = {taker: None}
    queue = [taker]
    seen: set[Pool] = set()
    for member in queue:
        for pool in pools_by_member[member]:
            if pool in seen:
                continue
            seen.add(pool)
            for giver, count in shares[pool].items():
                if count and giver not in ways and giver not in least:
                    ways[giver] = pool, member
                    queue.append(giver)
                    if loads[giver] - loads[taker] > 1:
                        return ways
    return ways


def _pass_on(
    giver: str,
    taker: str,
    ways: _Ways,
    shares: Mapping[Pool, dict[str, int]],
    loads: dict[str, int],
) -> None:
    """Move as many partitions along the way from one member to another as even out their loads."""
    steps: list[tuple[Pool, str, str]] = []
    member = giver
    while way := ways[member]:
        pool, following = way
        steps.append((pool, member, following))
        member = following
    count = min((loads[giver] - loads[taker]) // 2, *(shares[p][each] for p, each, _ in steps))
    for pool, source, target in steps:
        shares[pool][source] -= count
        shares[pool][target] += count
    loads[giver] -= count
    loads[taker] += count
