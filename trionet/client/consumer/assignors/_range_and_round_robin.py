"""The range and round-robin assignors, which keep nothing from one rebalance to the next.

(Kafka: RangeAssignor, RoundRobinAssignor.) The range assignor assigns consecutive partitions of
each topic. Topics with the same partitions and members are divided in the same way. A member then
gets the same partition numbers in each topic, which joining topics requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from ..._topic_partition import TopicPartition
from ._assignor import (
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    member_racks,
    ordered_members,
    racks_matter,
)


class _EagerAssignor:
    """The base of assignors that need no user data, and revoke all partitions first."""

    protocols: Final = (RebalanceProtocol.EAGER,)

    def user_data(
        self,
        topics: Sequence[str],  # noqa: ARG002 - the subscription is enough
        assigned: Sequence[TopicPartition] | None,  # noqa: ARG002
        generation: int,  # noqa: ARG002
    ) -> bytes | None:
        """Return None, since this assignor needs no user data."""
        return None


class RangeAssignor(_EagerAssignor):
    """Assigns ranges, balanced first, then preferring replicas in the member's rack (KIP-881)."""

    name: Final = "range"

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`."""
        racks = member_racks(subscriptions_by_member_id)
        topics = _divisions(partitions_by_topic, subscriptions_by_member_id, racks)
        if any(topic.racks_matter for topic in topics):
            for alike in _divided_alike(topics):
                if len(alike) > 1:
                    _assign_alike(alike)
                elif alike[0].racks_matter:
                    alike[0].assign_ranges(near_only=True)
        assignment: dict[str, list[TopicPartition]] = {
            each: [] for each in subscriptions_by_member_id
        }
        for topic in topics:
            topic.assign_ranges()
            for member, partitions in topic.assigned.items():
                assignment[member] += (TopicPartition(topic.name, n) for n in sorted(partitions))
        return assignment


class _Division:
    """The division of one topic among the members that subscribe to it.

    Args:
        name: the name of the topic.
        racks_by_partition: the racks of each partition's replicas, keyed by partition number.
        members: the ids of the members that subscribe to the topic, in order.
        member_racks: the racks of the members that have a rack.
    """

    def __init__(
        self,
        name: str,
        racks_by_partition: Mapping[int, frozenset[str]],
        members: tuple[str, ...],
        member_racks: Mapping[str, str],
    ) -> None:
        self.name = name
        self.members = members
        self.partitions = tuple(sorted(racks_by_partition))
        self.assigned: dict[str, list[int]] = {member: [] for member in members}
        self._racks_by_partition = racks_by_partition
        self._member_racks = member_racks
        self._free = dict.fromkeys(self.partitions)
        self._share, self._larger_shares = divmod(len(self.partitions), len(members))
        racks = {member_racks[each] for each in members if each in member_racks}
        self.racks_matter = racks_matter(racks, racks_by_partition.values())

    def racks_of(self, partition: int) -> frozenset[str]:
        """Return the racks of a partition's replicas."""
        return self._racks_by_partition[partition]

    def is_near(self, member: str, racks: frozenset[str]) -> bool:
        """Whether the member has no rack, or its rack is one of these."""
        rack = self._member_racks.get(member)
        return rack is None or rack in racks

    def room(self, member: str) -> int:
        """Return the number of partitions that a member may still get."""
        share = self._share + (self._larger_shares > 0)
        return max(0, share - len(self.assigned[member]))

    def give(self, member: str, partitions: Sequence[int]) -> None:
        """Assign unassigned partitions to a member, at most as many as :meth:`room` returns."""
        held = self.assigned[member]
        if len(held) <= self._share < len(held) + len(partitions):
            self._larger_shares -= 1
        held += partitions
        for partition in partitions:
            del self._free[partition]

    def assign_ranges(self, *, near_only: bool = False) -> None:
        """Assign the first unassigned (and near) partitions to each member, up to its share."""
        for member in self.members:
            if not self._free:
                break
            candidates = (
                n for n in self._free if not near_only or self.is_near(member, self.racks_of(n))
            )
            self.give(member, list(islice(candidates, self.room(member))))


def _divisions(
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
    racks: Mapping[str, str],
) -> list[_Division]:
    members_by_topic: dict[str, list[str]] = {}
    for member in ordered_members(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            members_by_topic.setdefault(topic, []).append(member)
    return [
        _Division(topic, partitions_by_topic[topic], tuple(members_by_topic[topic]), racks)
        for topic in sorted(partitions_by_topic)
        if topic in members_by_topic
    ]


def _divided_alike(topics: Sequence[_Division]) -> list[list[_Division]]:
    """Group topics by their members and partition numbers."""
    found: dict[tuple[tuple[str, ...], tuple[int, ...]], list[_Division]] = {}
    for topic in topics:
        found.setdefault((topic.members, topic.partitions), []).append(topic)
    return list(found.values())


def _assign_alike(topics: Sequence[_Division]) -> None:
    """Assign each partition number, in all topics, to a member near in all of them, if any."""
    first = topics[0]
    candidates = list(first.members)
    for partition in first.partitions:
        racks = frozenset.intersection(*(each.racks_of(partition) for each in topics))
        for member in tuple(candidates):
            if not first.room(member):
                candidates.remove(member)
            elif first.is_near(member, racks):
                for topic in topics:
                    topic.give(member, (partition,))
                break


class RoundRobinAssignor(_EagerAssignor):
    """Assigns partitions in turn to the members that subscribe to the topic."""

    name: Final = "roundrobin"

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """See :meth:`.Assignor.assign`."""
        members = ordered_members(subscriptions_by_member_id)
        topics_of = [frozenset(subscriptions_by_member_id[each].topics) for each in members]
        subscribed = frozenset().union(*topics_of)
        assignment: dict[str, list[TopicPartition]] = {each: [] for each in members}
        turn = 0
        for topic in sorted(subscribed.intersection(partitions_by_topic)):
            for partition in sorted(partitions_by_topic[topic]):
                while topic not in topics_of[turn]:
                    turn = (turn + 1) % len(members)
                assignment[members[turn]].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(members)
        return assignment
