"""An even division of partitions in which few partitions move to another member (KIP-54).

Topics with the same subscribers form a pool; most groups have a single pool. A division is even if
no member could take a partition from a member that has at least two more partitions. Even divisions
with fewer moves are preferred: new partitions move before owned partitions, and members do not
exchange partitions needlessly. Where racks matter, members in the rack of a replica are preferred
(KIP-881).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise

import attrs

from ..._topic_partition import TopicPartition
from ._assignor import MemberSubscription, PartitionsByTopic, racks_matter


@attrs.frozen(eq=False)
class Pool:
    """The partitions of all topics with the same subscribers.

    Attributes:
        members: the ids of the members, in order.
        partitions: the partitions, sorted by number, then topic, so that topics are interleaved.
    """

    members: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


def pools_of(
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
    members: Iterable[str],
) -> list[Pool]:
    """Return a group's pools, in increasing order of their number of members.

    Args:
        partitions_by_topic: the existing topics.
        subscriptions: the subscriptions of the members.
        members: the ids of the members, in order.
    """
    subscribers: dict[str, list[str]] = {}
    for member in members:
        for topic in dict.fromkeys(subscriptions[member].topics):
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


class Shares:
    """The shares of the members while partitions are being assigned.

    Args:
        pools: the partitions to divide.
        members: the ids of all members, in order.

    Attributes:
        loads: the number of partitions that each member has.
        free: the unassigned partitions, keyed by pool.
    """

    def __init__(self, pools: Sequence[Pool], members: Sequence[str]) -> None:
        self.loads = dict.fromkeys(members, 0)
        self.free = {pool: dict.fromkeys(pool.partitions) for pool in pools}
        self._places = {member: place for place, member in enumerate(members)}
        self._holders: dict[TopicPartition, str] = {}
        self._pools = {each.topic: pool for pool in pools for each in pool.partitions}
        # A member gives up the last entry of its dict first.
        self._held: dict[Pool, dict[str, dict[TopicPartition, None]]] = {
            pool: {member: {} for member in pool.members} for pool in pools
        }

    def assignment(self) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member, sorted."""
        found: dict[str, list[TopicPartition]] = {member: [] for member in self.loads}
        for partition, member in self._holders.items():
            found[member].append(partition)
        return {member: sorted(held) for member, held in found.items()}

    def give(self, partition: TopicPartition, member: str) -> None:
        """Assign an unassigned partition to a member."""
        pool = self._pools[partition.topic]
        del self.free[pool][partition]
        self._held[pool][member][partition] = None
        self._holders[partition] = member
        self.loads[member] += 1

    def keep(
        self, owners: Mapping[TopicPartition, str], targets: Mapping[str, int] | None = None
    ) -> None:
        """Assign unassigned partitions back to their previous owners.

        Args:
            owners: the previous owner of each partition, which must subscribe to the topic.
            targets: the maximum number of partitions of each member; None for no limit.
        """
        for free in self.free.values():
            for partition in list(free):
                owner = owners.get(partition)
                if owner is not None and (targets is None or self.loads[owner] < targets[owner]):
                    self.give(partition, owner)

    def fill(self, targets: Mapping[str, int] | None = None) -> None:
        """Assign the rest to the members with the fewest partitions or furthest below target."""
        for pool, free in self.free.items():
            heap = [
                (self.loads[each] - (targets[each] if targets else 0), self._places[each], each)
                for each in pool.members
            ]
            heapify(heap)
            for partition in list(free):
                load, place, member = heap[0]
                self.give(partition, member)
                heapreplace(heap, (load + 1, place, member))

    def settle(
        self, owners: Mapping[TopicPartition, str], earlier: Mapping[TopicPartition, str]
    ) -> None:
        """Move partitions until the shares are even and no member has exchanged partitions.

        This terminates: each step makes the loads more even, or reduces the number of moves with
        the same loads.

        Args:
            owners: the owners before the rebalance, which are preferred.
            earlier: the owners before those, which are the second choice.
        """
        is_moving = True
        while is_moving:
            while any(self._even_out(pool, earlier) for pool in self.free):
                pass
            is_moving = self._undo_exchanges(owners)

    def _even_out(self, pool: Pool, earlier: Mapping[TopicPartition, str]) -> bool:
        """Even out the loads of a pool's members, and return whether any partition was moved."""
        loads, held = self.loads, self._held[pool]
        losses = self._losses(pool, earlier)
        fullest = [(-loads[each], self._places[each], each) for each in pool.members]
        emptiest = [(loads[each], self._places[each], each) for each in pool.members]
        heapify(fullest)
        heapify(emptiest)
        has_moved = False
        while True:
            while fullest and (-fullest[0][0] != loads[fullest[0][2]] or not held[fullest[0][2]]):
                heappop(fullest)  # outdated, or nothing left in this pool
            while emptiest[0][0] != loads[emptiest[0][2]]:
                heappop(emptiest)
            if not fullest or -fullest[0][0] - emptiest[0][0] <= 1:
                return has_moved
            giver, taker = fullest[0][2], emptiest[0][2]
            self._move(self._least_kept(pool, giver, losses.get((giver, taker))), taker)
            has_moved = True
            for member in (giver, taker):
                heappush(fullest, (-loads[member], self._places[member], member))
                heappush(emptiest, (loads[member], self._places[member], member))

    def _losses(
        self, pool: Pool, earlier: Mapping[TopicPartition, str]
    ) -> dict[tuple[str, str], list[TopicPartition]]:
        """Return the partitions that earlier owners lost, keyed by current and earlier owner."""
        found: dict[tuple[str, str], list[TopicPartition]] = {}
        for partition, member in earlier.items():
            if self._pools.get(partition.topic) is pool and member in self._held[pool]:
                found.setdefault((self._holders[partition], member), []).append(partition)
        return found

    def _least_kept(
        self, pool: Pool, giver: str, lost: list[TopicPartition] | None
    ) -> TopicPartition:
        """Return the partition to move: one that the taker had earlier, or else the newest."""
        while lost:
            partition = lost.pop()
            if self._holders[partition] == giver:
                return partition
        return next(reversed(self._held[pool][giver]))

    def _move(self, partition: TopicPartition, taker: str) -> None:
        held = self._held[self._pools[partition.topic]]
        giver = self._holders[partition]
        del held[giver][partition]
        held[taker][partition] = None
        self._holders[partition] = taker
        self.loads[giver] -= 1
        self.loads[taker] += 1

    def _undo_exchanges(self, owners: Mapping[TopicPartition, str]) -> bool:
        """Undo moves that form a cycle of members, and return whether there were any."""
        moved: dict[tuple[str, str], list[TopicPartition]] = {}
        givers: dict[str, dict[str, None]] = {}
        for partition, taker in self._holders.items():
            giver = owners.get(partition, taker)
            if giver != taker:
                moved.setdefault((giver, taker), []).append(partition)
                givers.setdefault(taker, {})[giver] = None
        has_undone = False
        while circle := _circle(givers):
            has_undone = True
            for giver, taker in pairwise(circle):
                self._move(moved[giver, taker].pop(), giver)
                if not moved[giver, taker]:
                    del givers[taker][giver]
        return has_undone


def _circle(givers: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a cycle of members, with the first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(givers).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


class Racks:
    """The racks of members and replicas.

    Args:
        partitions_by_topic: the racks of the replicas of each partition.
        members: the racks of the members that have a rack.

    Attributes:
        matter: whether racks affect the choice of a member; see :func:`.racks_matter`.
    """

    def __init__(self, partitions_by_topic: PartitionsByTopic, members: Mapping[str, str]) -> None:
        self._replicas = partitions_by_topic
        self._members = members
        self.matter = racks_matter(
            set(members.values()),
            [racks for topic in partitions_by_topic.values() for racks in topic.values()],
        )

    def is_far(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack that contains no replica of the partition."""
        rack = self._members.get(member)
        return rack is not None and rack not in self.of(partition)

    def of(self, partition: TopicPartition) -> frozenset[str]:
        """Return the racks of the replicas of a partition."""
        return self._replicas[partition.topic][partition.partition]

    def fill_near(self, shares: Shares, targets: Mapping[str, int]) -> None:
        """Assign unassigned partitions to members in the rack of a replica, up to their targets.

        Partitions with the fewest candidates are assigned first.
        """
        for pool, free in shares.free.items():
            rooms = self._rooms(pool, shares, targets)
            choices = {rack: len(heap) for rack, heap in rooms.items()}
            order = sorted(free, key=lambda each: sum(choices.get(r, 0) for r in self.of(each)))
            for partition in order:
                member = _roomiest([rooms[r] for r in sorted(self.of(partition)) if r in rooms])
                if member is not None:
                    shares.give(partition, member)

    def _rooms(
        self, pool: Pool, shares: Shares, targets: Mapping[str, int]
    ) -> dict[str, list[tuple[int, int, str]]]:
        """Return the members below target, in one heap per rack with the furthest below first."""
        rooms: dict[str, list[tuple[int, int, str]]] = {}
        for place, member in enumerate(pool.members):
            room = targets[member] - shares.loads[member]
            if member in self._members and room > 0:
                rooms.setdefault(self._members[member], []).append((-room, place, member))
        for heap in rooms.values():
            heapify(heap)
        return rooms


def _roomiest(heaps: list[list[tuple[int, int, str]]]) -> str | None:
    """Return the member furthest below its target, and count a partition towards the target."""
    heap = min((each for each in heaps if each), key=lambda each: each[0], default=None)
    if heap is None:
        return None
    room, place, member = heappop(heap)
    if room + 1 < 0:
        heappush(heap, (room + 1, place, member))
    return member
