"""Rack-aware assignment, which prefers members in the rack of a replica (KIP-881)."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from ..._topic_partition import TopicPartition
from ._assignor import PartitionsByTopic, racks_matter
from ._even_shares import Pool, Shares


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
