"""Which node leads which partition, and in which epoch: a state machine without I/O.

(Kafka: ReplicationControlManager, PartitionRegistration.) Leadership is simulated, replication is
not: a replica is a node that may lead the partition, and all of them read and write the same log.
So every replica that lives is in sync, and there is no election that could lose a record.

Keys are whatever is led: partitions of topics, or those of ``__consumer_offsets`` whose leaders
are the coordinators of groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

import attrs

NO_LEADER: Final = -1

Replicas = tuple[tuple[int, ...], ...]
"""The nodes that may lead each partition of a topic, the preferred one first."""

K = TypeVar("K", bound=Hashable)


@attrs.frozen
class PartitionRegistration:
    """Who may lead a partition, and who does.

    Attributes:
        replicas: the nodes that may, the preferred one first.
        leader: the one that does; NO_LEADER while none of them lives.
        epoch: counts the changes of the leader, to none and from none included.
        last_leader: the one that leads, or else led last.
    """

    replicas: tuple[int, ...]
    leader: int
    epoch: int
    last_leader: int


_NOBODY: Final = PartitionRegistration((), NO_LEADER, -1, NO_LEADER)


class Leadership(Generic[K]):
    """The leaders of everything that is led, and the nodes that live.

    Args:
        nodes: the ids of all nodes, which all live.
    """

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes = tuple(nodes)
        self._live = set(self.nodes)
        self._partitions: dict[K, PartitionRegistration] = {}

    # Nodes.

    @property
    def live(self) -> list[int]:
        """The ids of the nodes that live, in rising order."""
        return sorted(self._live)

    @property
    def controller(self) -> int:
        """The node that clients take for the controller: the first that lives."""
        return min(self._live, default=NO_LEADER)

    def is_live(self, node: int) -> bool:
        """Whether a node lives."""
        return node in self._live

    def start(self, node: int) -> list[K]:
        """A node lives from now on; it leads what had no leader.

        Returns:
            Where the leader has changed.
        """
        self._check_node(node)
        self._live.add(node)
        return [
            key
            for key, partition in self._partitions.items()
            if partition.leader == NO_LEADER and self._elect(key, partition)
        ]

    def stop(self, node: int) -> list[K]:
        """A node lives no more; what it led goes to the first replica that does.

        Returns:
            Where the leader has changed.
        """
        self._check_node(node)
        self._live.discard(node)
        return [
            key
            for key, partition in self._partitions.items()
            if partition.leader == node and self._elect(key, partition)
        ]

    # Partitions.

    def __getitem__(self, key: K) -> PartitionRegistration:
        return self._partitions[key]

    def get(self, key: K) -> PartitionRegistration:
        """Who leads a partition; nobody, without replicas, one that is not there."""
        return self._partitions.get(key, _NOBODY)

    def living(self, partition: PartitionRegistration) -> list[int]:
        """The replicas that live."""
        return [node for node in partition.replicas if node in self._live]

    def in_sync(self, partition: PartitionRegistration) -> list[int]:
        """The replicas that live, or else the last leader, which never leaves (Kafka: the ISR)."""
        living = self.living(partition)
        return living if living or not partition.replicas else [partition.last_leader]

    def offline(self, partition: PartitionRegistration) -> list[int]:
        """The replicas that do not."""
        return [node for node in partition.replicas if node not in self._live]

    def replicas_on(self, node: int) -> int:
        """How many partitions a node is a replica of."""
        if len(self.nodes) == 1:
            return len(self._partitions)
        return sum(node in partition.replicas for partition in self._partitions.values())

    def place(self, count: int, replication_factor: int) -> Replicas:
        """Replicas for as many new partitions, so that the nodes lead as many each.

        The leaders follow each other around the ring of those that live, going on where the last
        partition that was placed left off; the other replicas are the next on the ring of all.

        Args:
            count: of the partitions.
            replication_factor: from 1 to the number of nodes.
        """
        nodes = self.nodes
        leaders = [node for node in nodes if node in self._live] or nodes
        first = len(self._partitions)
        return tuple(
            tuple(
                nodes[(nodes.index(leaders[(first + number) % len(leaders)]) + step) % len(nodes)]
                for step in range(replication_factor)
            )
            for number in range(count)
        )

    def add(self, key: K, replicas: Iterable[int], epoch: int = 0) -> None:
        """Lead a partition from now on, by its first replica that lives.

        Args:
            key: of the partition, which is new.
            replicas: nodes that may lead it; those that there are not are left out. If none of
                them is there, or none is named, it is the first of all nodes.
            epoch: its leader epoch.
        """
        assert key not in self._partitions, f"{key} is there already"
        known = tuple(node for node in replicas if node in self.nodes) or self.nodes[:1]
        leader = next((node for node in known if node in self._live), NO_LEADER)
        last = known[0] if leader == NO_LEADER else leader
        self._partitions[key] = PartitionRegistration(known, leader, epoch, last)

    def begin_epoch(self, key: K) -> None:
        """Have another epoch of the same leader."""
        partition = self._partitions[key]
        self._partitions[key] = attrs.evolve(partition, epoch=partition.epoch + 1)

    def remove(self, key: K) -> None:
        """Lead a partition no more; nothing happens if it is not there."""
        self._partitions.pop(key, None)

    def move(self, key: K, node: int) -> bool:
        """Make a node the leader of a partition; False if it was already.

        Raises:
            ValueError: there is no such partition, or the node is no replica of it, or does not
                live.
        """
        partition = self._partitions.get(key)
        if partition is None:
            raise ValueError(f"there is no partition {key}")
        self._check_node(node)
        if node not in partition.replicas:
            raise ValueError(
                f"node {node} is no replica of {key}; allowed: {_listed(partition.replicas)}"
            )
        if node not in self._live:
            raise ValueError(f"node {node} is stopped; allowed: {_listed(self.living(partition))}")
        return self._lead(key, partition, node)

    def prefer(self) -> list[K]:
        """Elect the preferred leader wherever it lives (Kafka: kafka-leader-election.sh).

        Returns:
            Where the leader has changed.
        """
        return [
            key
            for key, partition in self._partitions.items()
            if partition.replicas[0] in self._live
            and self._lead(key, partition, partition.replicas[0])
        ]

    def _elect(self, key: K, partition: PartitionRegistration) -> bool:
        return self._lead(key, partition, next(iter(self.living(partition)), NO_LEADER))

    def _lead(self, key: K, partition: PartitionRegistration, leader: int) -> bool:
        if partition.leader == leader:
            return False
        last = partition.leader if leader == NO_LEADER else leader
        self._partitions[key] = PartitionRegistration(
            partition.replicas, leader, partition.epoch + 1, last
        )
        return True

    def _check_node(self, node: int) -> None:
        if node not in self.nodes:
            raise ValueError(f"there is no node {node}; allowed: {_listed(self.nodes)}")


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"
