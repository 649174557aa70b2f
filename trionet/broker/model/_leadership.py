"""The leader and leader epoch of each partition: a state machine without I/O.

(Kafka: ReplicationControlManager, PartitionRegistration.) Leadership is simulated; replication is
not. A replica is a node that may lead the partition, and all replicas read and write the same log.
Therefore every live replica is in sync, and no election can lose a record.

Keys are topic partitions, or partitions of ``__consumer_offsets``, whose leaders coordinate groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

import attrs

NO_LEADER: Final = -1

Replicas = tuple[tuple[int, ...], ...]
"""The replicas of each partition of a topic, the preferred leader first."""

K = TypeVar("K", bound=Hashable)


@attrs.frozen
class PartitionRegistration:
    """The replicas and the leader of a partition.

    Attributes:
        replicas: the nodes that may lead the partition, starting with the preferred leader.
        leader: the current leader; NO_LEADER while no replica is live.
        epoch: the leader epoch, which also increases on changes to and from NO_LEADER.
        last_leader: the current leader or, while no replica is live, the previous leader.
    """

    replicas: tuple[int, ...]
    leader: int
    epoch: int
    last_leader: int


_UNREGISTERED: Final = PartitionRegistration((), NO_LEADER, -1, NO_LEADER)


class Leadership(Generic[K]):
    """The leaders of all partitions, and the live nodes.

    Args:
        nodes: the ids of all nodes, all of which are initially live.
    """

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes: tuple[int, ...] = tuple(nodes)
        self._live = set(self.nodes)
        self._partitions: dict[K, PartitionRegistration] = {}

    # Nodes.

    @property
    def live(self) -> list[int]:
        """The ids of the live nodes, in ascending order."""
        return sorted(self._live)

    @property
    def controller(self) -> int:
        """The node advertised as the controller: the live node with the lowest id."""
        return min(self._live, default=NO_LEADER)

    def is_live(self, node: int) -> bool:
        """Return whether a node is live."""
        return node in self._live

    def start(self, node: int) -> list[K]:
        """Mark a node as live, and make it the leader of those of its partitions that have none.

        Returns:
            The partitions whose leader has changed.
        """
        self._check_node(node)
        self._live.add(node)
        return [
            key
            for key, partition in self._partitions.items()
            if partition.leader == NO_LEADER and self._elect(key, partition)
        ]

    def stop(self, node: int) -> list[K]:
        """Mark a node as not live, and elect the first live replica of each partition that it led.

        Returns:
            The partitions whose leader has changed.
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
        """Return a partition's registration, without replicas if there is no such partition."""
        return self._partitions.get(key, _UNREGISTERED)

    def live_replicas(self, partition: PartitionRegistration) -> list[int]:
        """Return the live replicas of a partition."""
        return [node for node in partition.replicas if node in self._live]

    def in_sync(self, partition: PartitionRegistration) -> list[int]:
        """Return the in-sync replicas (ISR): the live replicas or, without any, the last leader."""
        live = self.live_replicas(partition)
        return live if live or not partition.replicas else [partition.last_leader]

    def offline_replicas(self, partition: PartitionRegistration) -> list[int]:
        """Return the replicas of a partition that are not live."""
        return [node for node in partition.replicas if node not in self._live]

    def replicas_on(self, node: int) -> int:
        """Return the number of partitions that have a replica on a node."""
        if len(self.nodes) == 1:
            return len(self._partitions)
        return sum(node in partition.replicas for partition in self._partitions.values())

    def place(self, count: int, replication_factor: int) -> Replicas:
        """Assign replicas to new partitions, distributing leaders evenly.

        Leaders are assigned round-robin to the live nodes, continuing after the existing
        partitions. The other replicas are the nodes after the leader in the ring of all nodes.

        Args:
            count: the number of new partitions.
            replication_factor: the number of replicas, from 1 to the number of nodes.
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
        """Register a new partition, led by its first live replica.

        Args:
            key: identifies the partition.
            replicas: the nodes that have a replica. Unknown nodes are dropped; if no node is left,
                the first node of the cluster becomes the only replica.
            epoch: the leader epoch.
        """
        assert key not in self._partitions, f"{key} is registered already"
        known = tuple(node for node in replicas if node in self.nodes) or self.nodes[:1]
        leader = next((node for node in known if node in self._live), NO_LEADER)
        last = known[0] if leader == NO_LEADER else leader
        self._partitions[key] = PartitionRegistration(known, leader, epoch, last)

    def begin_epoch(self, key: K) -> None:
        """Start a new leader epoch without changing the leader."""
        partition = self._partitions[key]
        self._partitions[key] = attrs.evolve(partition, epoch=partition.epoch + 1)

    def remove(self, key: K) -> None:
        """Remove a partition, if it is registered."""
        self._partitions.pop(key, None)

    def move(self, key: K, node: int) -> bool:
        """Make a node the leader of a partition; return False if it already was.

        Raises:
            ValueError: the partition does not exist, or the node is not one of its live replicas.
        """
        partition = self._partitions.get(key)
        if partition is None:
            raise ValueError(f"partition {_shown(key)} does not exist")
        self._check_node(node)
        if node not in partition.replicas:
            raise ValueError(
                f"node {node} is not a replica of partition {_shown(key)}; allowed:"
                f" {_listed(partition.replicas)}"
            )
        if node not in self._live:
            raise ValueError(
                f"node {node} is stopped; allowed: {_listed(self.live_replicas(partition))}"
            )
        return self._lead(key, partition, node)

    def elect_preferred(self) -> list[K]:
        """Elect the preferred leader of each partition, if it is live.

        This corresponds to Kafka's ``kafka-leader-election.sh``.

        Returns:
            The partitions whose leader has changed.
        """
        return [
            key
            for key, partition in self._partitions.items()
            if partition.replicas[0] in self._live
            and self._lead(key, partition, partition.replicas[0])
        ]

    def _elect(self, key: K, partition: PartitionRegistration) -> bool:
        return self._lead(key, partition, next(iter(self.live_replicas(partition)), NO_LEADER))

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
            raise ValueError(f"node {node} does not exist; allowed: {_listed(self.nodes)}")


def _shown(key: object) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"
