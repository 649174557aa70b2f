"""The registrations of a cluster's nodes, and elections among them.

(Kafka: BrokerRegistration, PartitionLeaderElector, ReplicationControlManager.) An election gives
partitions a new leader, and groups a new coordinator, in the next leader epoch. :mod:`._leadership`
chooses the leaders; this module applies the choices to the logs, the groups and the waiting
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import trio

from ..._util._logging import get_logger
from ...errors import ApiError
from ...net.wire._endpoint import Endpoint
from ..groups._group_coordinator import GroupCoordinator
from ..groups._offsets_partition import partition_of
from ..log import Log
from ._leadership import NO_LEADER, Leadership
from ._purgatory import Purgatory

logger = get_logger("trionet.broker")

ELECTIONS_AT_ONCE: Final = 40
"""How many partitions begin an epoch concurrently; other tasks run between these batches."""


class BrokerRegistration:
    """The part of a node's state that the other nodes use: its id, rack, addresses and groups.

    This class exists so that a cluster does not depend on the :class:`.BrokerState` of its nodes,
    which itself depends on the cluster.

    Args:
        node_id: the id of the node.
        rack: the rack of the node (``broker.rack``).
        groups: the coordinator of the node's groups.

    Attributes:
        advertised: the advertised address of each listener, by its name.
    """

    def __init__(self, node_id: int, rack: str | None, groups: GroupCoordinator) -> None:
        self.node_id = node_id
        self.rack = rack
        self.groups = groups
        self.advertised: dict[str, Endpoint] = {}


class Elections:
    """The elections of a cluster.

    Each election is atomic: once begun, it runs to completion even if cancelled, which takes a few
    fsyncs per batch of partitions.

    Args:
        leadership: the leaders of topic partitions.
        coordinators: the leaders of the partitions of ``__consumer_offsets``.
        transaction_coordinators: the leaders of the partitions of ``__transaction_state``.
        nodes: all nodes, keyed by id.
        logs: the logs of topic partitions.
        purgatory: the requests that are waiting for data.
        changing: the lock that serializes elections and changes to topics.
    """

    def __init__(
        self,
        leadership: Leadership[tuple[str, int]],
        coordinators: Leadership[int],
        transaction_coordinators: Leadership[int],
        nodes: Mapping[int, BrokerRegistration],
        logs: Mapping[tuple[str, int], Log],
        purgatory: Purgatory,
        changing: trio.Lock,
    ) -> None:
        self._leadership = leadership
        self._coordinators = coordinators
        self._transaction_coordinators = transaction_coordinators
        self._nodes = nodes
        self._logs = logs
        self._purgatory = purgatory
        self._changing = changing

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition.

        Raises:
            ValueError: the partition does not exist, or the node cannot become its leader.
        """
        async with self._changing:
            if self._leadership.move((topic, partition), node):
                await self.install_leaders([(topic, partition)])

    async def move_coordinator(self, group_id: str, node: int) -> None:
        """Make a node the coordinator of a group and of all groups in the same partition.

        Raises:
            ValueError: the node does not exist or is stopped.
        """
        async with self._changing:
            self._coordinators.move(partition_of(group_id), node)
            self._hand_over_groups()

    async def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        """Make a node the coordinator of a transactional id, and of all in the same partition.

        Raises:
            ValueError: the node does not exist or is stopped.
        """
        async with self._changing:
            self._transaction_coordinators.move(partition_of(transactional_id), node)

    async def node_started(self, node: int) -> None:
        """Make a node that has started the leader of those of its partitions that have none."""
        async with self._changing:
            self._coordinators.start(node)
            self._transaction_coordinators.start(node)
            self._hand_over_groups()
            await self.install_leaders(self._leadership.start(node))

    async def node_stops(self, node: int) -> None:
        """Elect other leaders for the partitions that a node leads, before it stops listening."""
        async with self._changing:
            self._coordinators.stop(node)
            self._transaction_coordinators.stop(node)
            self._hand_over_groups()
            await self.install_leaders(self._leadership.stop(node))

    async def elect_preferred_leaders(self) -> None:
        """Make the first replica of every partition its leader, if that node is live."""
        async with self._changing:
            self._coordinators.elect_preferred()
            self._transaction_coordinators.elect_preferred()
            self._hand_over_groups()
            await self.install_leaders(self._leadership.elect_preferred())

    def _groups_of(self, group_id: str) -> GroupCoordinator | None:
        """Return a group's GroupCoordinator; None while no node coordinates the group."""
        node = self._nodes.get(self._coordinators[partition_of(group_id)].leader)
        return None if node is None else node.groups

    def _hand_over_groups(self) -> None:
        for node in self._nodes.values():
            node.groups.hand_over(self._groups_of)

    async def install_leaders(self, keys: Iterable[tuple[str, int]]) -> None:
        """Install elected leaders, and complete the requests waiting on their partitions.

        This takes three steps:

        1. No node leads the partitions: appends fail with NOT_LEADER_OR_FOLLOWER.
        2. The new epochs are synced to disk, so that no record is ever written in an epoch that
           could be given to another leader after a power failure.
        3. The new leader accepts requests; requests waiting on the old leader complete with an
           error.

        Steps 2 and 3 run for a batch of partitions at a time. Step 2 is shielded, and there is no
        checkpoint between steps 2 and 3 of a batch.

        The caller must hold the lock.
        """
        logs = {key: log for key in keys if (log := self._logs.get(key)) is not None}
        for log in logs.values():
            log.leader_id = NO_LEADER
        elected = list(logs)
        for first in range(0, len(elected), ELECTIONS_AT_ONCE):
            some = elected[first : first + ELECTIONS_AT_ONCE]
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    for key in some:
                        nursery.start_soon(_begin_epoch, logs[key], self._leadership[key].epoch)
            for key in some:
                logs[key].leader_id = self._leadership[key].leader
                self._purgatory.complete_all(logs[key], logs[key].stable)


async def _begin_epoch(log: Log, epoch: int) -> None:
    try:
        await log.begin_epoch(epoch)
    except ApiError as error:
        logger.warning(
            "%s-%d: could not save leader epoch %d: %s", log.topic, log.partition, epoch, error
        )
