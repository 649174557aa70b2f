"""The cheapest of the most balanced assignments: a minimum-cost flow from partitions to members.

A partition costs most if its member is far from its replicas, then if it moves to another member.
The total cost is the smallest possible, so that assignments settle. If nothing has changed, an
assignment is its own successor, since any other one costs additional moves. When the partitions
that move have been revoked, the next assignment assigns them and moves no other partitions.

Partitions with the same costs form a lot, since only their number matters. The lots are the sources
of the flow. It may pass through members, which then give up partitions of other lots, and it ends
at members that have room. The primal-dual algorithm finds it: the reduced cost of an edge is its
cost plus the potential of its start, minus the potential of its end. It is never negative, and zero
on the cheapest paths. Edges with a reduced cost of zero are tight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import inf
from operator import itemgetter
from typing import TypeAlias

import attrs

from ..._topic_partition import TopicPartition
from ._assignor import (
    MemberSubscription,
    PartitionsByTopic,
    member_racks,
    ordered_members,
    racks_matter,
)
from ._balanced_loads import Pool, least_loads, pools_of


@attrs.define(eq=False)
class _Member:
    """A member.

    Attributes:
        rack: the rack of the member; None if it has no rack, or if racks do not matter.
        room: the number of partitions that the member may still get.
        held: the number of partitions that the member has of each lot, at least one. The edges to
            these lots are tight.
    """

    number: int
    id: str
    rack: str | None
    room: int
    held: dict[_Lot, int] = attrs.field(factory=dict)
    potential: int = 0


@attrs.define(eq=False)
class _Zone:
    """The members of one rack that may get partitions of a pool.

    Attributes:
        ways: the members; these edges have no cost.
    """

    number: int
    ways: list[tuple[_Member, int]]
    potential: int = 0


@attrs.define(eq=False)
class _Lot:
    """Partitions of a pool with the same costs.

    Attributes:
        owner: the owner before the rebalance; None if there is none.
        ways: the members and zones that may get the partitions, with the cost of each partition.
        partitions: the partitions, sorted by number, then topic.
        unplaced: the number of partitions that have no member yet.
    """

    number: int
    owner: str | None
    ways: list[tuple[_Member | _Zone, int]]
    partitions: list[TopicPartition] = attrs.field(factory=list)
    unplaced: int = 0
    potential: int = 0


_Node: TypeAlias = _Member | _Zone | _Lot


def cheapest_assignment(
    partitions_by_topic: PartitionsByTopic,
    subscriptions: Mapping[str, MemberSubscription],
    owners: Mapping[TopicPartition, str],
    earlier: Mapping[TopicPartition, str],
) -> dict[str, list[TopicPartition]]:
    """Return a balanced assignment: with the fewest far partitions, then with the fewest moves.

    Args:
        partitions_by_topic: the existing topics.
        subscriptions: the subscriptions of all members.
        owners: the owners before the rebalance, which must subscribe to the topics.
        earlier: the owners before those, which are the second choice.
    """
    subscriptions = {id: subscriptions[id] for id in ordered_members(subscriptions)}
    racks = member_racks(subscriptions)
    all_racks = [racks for topic in partitions_by_topic.values() for racks in topic.values()]
    if not racks_matter(set(racks.values()), all_racks):
        racks = {}
    pools = pools_of(partitions_by_topic, subscriptions)
    least = least_loads(pools, list(subscriptions))
    members = {
        id: _Member(number, id, racks.get(id), least[id]) for number, id in enumerate(subscriptions)
    }
    lots = _Lots(partitions_by_topic, members, owners, earlier)
    for pool in pools:
        lowest = min(least[id] for id in pool.members)
        lots.add(pool, [members[id] for id in pool.members if least[id] == lowest])
    _Flow(lots.found, list(members.values())).place_all()
    return _divided(lots.found, members.values())


class _Lots:
    """Divides pools into lots.

    Args:
        partitions_by_topic: the racks of the replicas.
        members: the members, keyed by id.
        owners: the owners before the rebalance.
        earlier: the owners before those.

    Attributes:
        found: the lots of all pools so far.
    """

    def __init__(
        self,
        partitions_by_topic: PartitionsByTopic,
        members: Mapping[str, _Member],
        owners: Mapping[TopicPartition, str],
        earlier: Mapping[TopicPartition, str],
    ) -> None:
        self.found: list[_Lot] = []
        self._replicas = partitions_by_topic
        self._members = members
        self._owners = owners
        self._earlier = earlier
        self._racks = frozenset(each.rack for each in members.values() if each.rack is not None)
        self._numbers = count(len(members))
        # A far partition costs more than any number of moves, and a move more than the one that is
        # saved for each partition that returns to its earlier owner.
        self._move_cost = 1 + sum(map(len, partitions_by_topic.values()))
        self._far_cost = self._move_cost**2

    def add(self, pool: Pool, takers: Sequence[_Member]) -> None:
        """Add the partitions of a pool, which may go to these members."""
        by_rack: dict[str | None, list[tuple[_Member, int]]] = {}
        for member in takers:
            by_rack.setdefault(member.rack, []).append((member, 0))
        zones = {rack: _Zone(next(self._numbers), ways) for rack, ways in by_rack.items()}
        by_id = {member.id: member for member in takers}
        lots: dict[tuple[frozenset[str], str | None, str | None], _Lot] = {}
        for each in pool.partitions:
            racks = self._racks & self._replicas[each.topic][each.partition]
            key = racks, self._owners.get(each), self._earlier.get(each)
            lot = lots.get(key)
            if lot is None:
                ways = self._ways(*key, zones, by_id)
                lot = lots[key] = _Lot(next(self._numbers), key[1], ways)
            lot.partitions.append(each)
            lot.unplaced += 1
        self.found += lots.values()

    def _ways(
        self,
        racks: frozenset[str],
        owner: str | None,
        earlier: str | None,
        zones: Mapping[str | None, _Zone],
        takers: Mapping[str, _Member],
    ) -> list[tuple[_Member | _Zone, int]]:
        """Return the edges of a lot, with their costs."""
        move_cost = 0 if owner is None else self._move_cost
        ways: list[tuple[_Member | _Zone, int]] = []
        for id, cost in ((owner, 0), (earlier, move_cost)):
            if id is not None and (member := takers.get(id)) is not None:
                ways.append((member, cost + self._cost_of_rack(member.rack, racks)))
        other_cost = 0 if owner is None and earlier is None else move_cost + 1
        for rack, zone in zones.items():
            ways.append((zone, other_cost + self._cost_of_rack(rack, racks)))
        return ways

    def _cost_of_rack(self, rack: str | None, racks: frozenset[str]) -> int:
        return 0 if rack is None or rack in racks else self._far_cost


class _Flow:
    """Places lots on members.

    Args:
        lots: the lots.
        members: the members, with room for their smallest loads.
    """

    def __init__(self, lots: Iterable[_Lot], members: Sequence[_Member]) -> None:
        # Lots with an owner have fewer choices.
        self._lots = sorted(lots, key=lambda lot: lot.owner is None)
        self._members = members
        self._source_potential = 0
        self._sink_potential = 0

    def place_all(self) -> None:
        """Place all lots: up to the smallest load of each member, then one more on some members."""
        for _ in range(2):
            while self._make_paths_tight():
                self._place()
            for member in self._members:
                member.room += 1

    def _make_paths_tight(self) -> bool:
        """Change potentials so that the cheapest paths are tight (Dijkstra's algorithm).

        Returns:
            Whether there are paths from unplaced lots to members that have room.
        """
        sink = min((each.potential for each in self._members if each.room), default=0)
        costs: dict[_Node, int] = {
            lot: self._source_potential - lot.potential for lot in self._lots if lot.unplaced
        }
        heap = [(cost, node.number, node) for node, cost in costs.items()]
        heapify(heap)
        path_cost: float = inf
        while heap and heap[0][0] < path_cost:
            cost, _, node = heappop(heap)
            if cost > costs[node]:
                continue  # A cheaper path was found after this one.
            if isinstance(node, _Member) and node.room:
                path_cost = min(path_cost, cost + node.potential - sink)
            for end, end_cost in _edges(node, cost):
                if end_cost < path_cost and end_cost < costs.get(end, inf):
                    costs[end] = end_cost
                    heappush(heap, (end_cost, end.number, end))
        if not isinstance(path_cost, int):
            return False
        for node, cost in costs.items():
            if cost < path_cost:
                node.potential -= path_cost - cost
        self._source_potential -= path_cost
        self._sink_potential = sink
        return True

    def _place(self) -> None:
        """Place lots along tight paths."""
        search = _TightPaths(self._sink_potential)
        for lot in self._lots:
            if lot.unplaced and lot.potential == self._source_potential:
                if lot.owner is None:
                    self._spread(lot)
                while lot.unplaced and (path := search.path_from(lot)):
                    _send(path, lot.unplaced)

    def _spread(self, lot: _Lot) -> None:
        """Place a lot on the members that its tight edges lead to, those with most room first."""
        heap = [
            (-member.room, member.number, member)
            for way, cost in lot.ways
            if lot.potential + cost == way.potential == self._sink_potential
            for member, _ in ([(way, 0)] if isinstance(way, _Member) else way.ways)
            if member.room and member.potential == self._sink_potential
        ]
        heapify(heap)
        while heap and lot.unplaced:
            room, number, member = heap[0]
            _send((lot, member), 1)
            if member.room:
                heapreplace(heap, (room + 1, number, member))
            else:
                heappop(heap)


def _edges(node: _Node, cost: int) -> Iterable[tuple[_Node, int]]:
    """Return the ends of a node's edges, with the reduced costs of paths with these edges.

    Args:
        node: the node.
        cost: the reduced cost of a path to the node.
    """
    if isinstance(node, _Member):
        return [(lot, cost) for lot in node.held]
    cost += node.potential
    return [(end, cost + edge_cost - end.potential) for end, edge_cost in node.ways]


class _TightPaths:
    """A depth-first search for tight paths to members that have room.

    Args:
        sink_potential: the potential of members at which paths end.
    """

    def __init__(self, sink_potential: int) -> None:
        self._sink_potential = sink_potential
        # Nodes of the current path, and nodes from which no path leads to the end.
        self._seen: set[_Node] = set()
        # The last edge is tried first, and removed only once it has failed.
        self._untried: dict[_Node, list[_Node]] = {}

    def path_from(self, lot: _Lot) -> list[_Node]:
        """Return a path; empty if there is none."""
        path: list[_Node] = [lot]
        self._seen.add(lot)
        while path:
            end = self._next_after(path[-1])
            if end is None:
                path.pop()
                continue
            path.append(end)
            if isinstance(end, _Member) and end.room and end.potential == self._sink_potential:
                break
            self._seen.add(end)
        self._seen.difference_update(path)
        return path

    def _next_after(self, node: _Node) -> _Node | None:
        """Return the next node to try."""
        untried = self._untried.get(node)
        if untried is None:
            untried = self._untried[node] = _tight_ends(node)
            untried.reverse()
        while untried:
            end = untried[-1]
            # A member may have given up a lot since the search began.
            if end not in self._seen and (not isinstance(node, _Member) or end in node.held):
                return end
            untried.pop()
        return None


def _tight_ends(node: _Node) -> list[_Node]:
    """Return the ends of a node's tight edges."""
    if isinstance(node, _Member):
        return list(node.held)
    return [end for end, cost in node.ways if node.potential + cost == end.potential]


def _send(path: Sequence[_Node], most: int) -> None:
    """Place partitions of the first lot of a path, as many as its nodes allow.

    The last member gets more partitions. The others give up partitions of the lot that follows.

    Args:
        path: the path.
        most: the maximum number of partitions.
    """
    lots = [node for node in path if isinstance(node, _Lot)]
    takers = [node for node in path if isinstance(node, _Member)]
    exchanged = list(zip(takers, lots[1:], strict=False))
    number = min(most, takers[-1].room, *(member.held[lot] for member, lot in exchanged))
    lots[0].unplaced -= number
    takers[-1].room -= number
    for lot, member in zip(lots, takers, strict=True):
        member.held[lot] = member.held.get(lot, 0) + number
    for member, lot in exchanged:
        member.held[lot] -= number
        if not member.held[lot]:
            del member.held[lot]


def _divided(lots: Iterable[_Lot], members: Iterable[_Member]) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member, sorted.

    Owners keep the first partitions of a lot. The rest is dealt by topic, so that no member gets a
    whole topic needlessly.
    """
    assignment: dict[str, list[TopicPartition]] = {member.id: [] for member in members}
    takers: dict[_Lot, dict[str, int]] = {lot: {} for lot in lots}
    for member in members:
        for lot, number in member.held.items():
            takers[lot][member.id] = number
    for lot, numbers in takers.items():
        partitions = lot.partitions
        if lot.owner is not None:
            kept = numbers.pop(lot.owner, 0)
            assignment[lot.owner] += partitions[:kept]
            partitions = partitions[kept:]
        turns = ((turn, id) for id, number in numbers.items() for turn in range(number))
        for partition, (_, id) in zip(
            sorted(partitions), sorted(turns, key=itemgetter(0)), strict=True
        ):
            assignment[id].append(partition)
    return {id: sorted(held) for id, held in assignment.items()}
