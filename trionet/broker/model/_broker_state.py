"""What the API handlers of one node work on: what the cluster shares, and what is the node's own.

It knows nothing of sockets but the addresses that clients are told.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...errors import ApiError
from ...net.wire._endpoint import Endpoint
from ...protocol import error_codes
from ..config._dynamic_config import DynamicConfig
from ..groups._group_coordinator import GroupCoordinator
from ..log import Log
from ._cluster import Cluster
from ._fetch_sessions import FetchSessionCache
from ._leadership import PartitionRegistration
from ._request_log_topic import OwnTopic


def _operations(*codes: int) -> int:
    """AclOperation numbers as the bit field of KIP-430."""
    return sum(1 << code for code in codes)


# Without an authorizer everybody may do everything (Kafka: AclEntry.supportedOperations).
TOPIC_OPERATIONS = _operations(3, 4, 5, 6, 7, 8, 10, 11)
GROUP_OPERATIONS = _operations(3, 6, 8, 10, 11)
CLUSTER_OPERATIONS = _operations(5, 7, 8, 9, 10, 11, 12)


@attrs.define
class Conversions:
    """How many records a node has converted (Kafka: BrokerTopicMetrics).

    Attributes:
        produced: from message sets to batches.
        fetched: from batches to message sets.
    """

    produced: int = 0
    fetched: int = 0


class BrokerState:
    """One node without its network.

    Args:
        cluster: what it shares with the other nodes.
        settings: its settings in their layers.

    Attributes:
        cluster: as given; topics are created, altered and deleted there.
        settings: as given; see :meth:`use`.
        config: what counts of them.
        topics, folder, database, purgatory, unflushed, nursery: those of the cluster.
        now_ms: the time that records are stamped with, in ms since the epoch.
        fetch_sessions: incremental fetches.
        groups: the groups that this node coordinates.
        conversions: of record formats, for old clients.
        own_topic: the topic of the request log; None without one.
    """

    def __init__(self, cluster: Cluster, settings: DynamicConfig) -> None:
        config = settings.current
        self.cluster = cluster
        self.settings = settings
        self.config = config
        self.topics = cluster.topics
        self.folder = cluster.folder
        self.database = cluster.database
        self.purgatory = cluster.purgatory
        self.unflushed = cluster.unflushed
        self.nursery = cluster.nursery
        self.now_ms = cluster.now_ms
        self.begin_sessions()
        self.node_id = config.node_id
        self.groups = GroupCoordinator(
            config,
            cluster.group_store,
            cluster.now_ms,
            lambda group_id: cluster.coordinator_of(group_id) == config.node_id,
            cluster.network.chance,
            lambda: self.config.integer("message.max.bytes"),
        )
        self.cluster_id = cluster.id
        rack = config["broker.rack"]
        self.rack = rack if isinstance(rack, str) else None
        self.auto_create_topics = config.flag("auto.create.topics.enable")
        self.are_created_topics_ready = config.flag("auto.create.topics.ready.at.once")
        self.fetch_bytes_max = config.integer("fetch.max.bytes")
        self.conversions = Conversions()
        self.has_replicas = len(cluster.leadership.nodes) > 1
        self.is_in_memory = cluster.is_in_memory
        self.own_topic: OwnTopic | None = None
        self._advertised: dict[str, Endpoint] = {}
        self._logs = cluster.folder.logs

    def begin_sessions(self) -> None:
        """Know of no incremental fetches, as a node that has just started."""
        self.fetch_sessions = FetchSessionCache(
            self.config.integer("max.incremental.fetch.session.cache.slots"),
            chance=self.cluster.network.chance,
            elements=self.config.integer("max.incremental.fetch.session.cache.elements"),
        )

    def use(self, settings: DynamicConfig) -> None:
        """Have other settings from now on."""
        self.settings = settings
        self.config = settings.current

    def set_bound(self, endpoints: list[Endpoint]) -> None:
        """Take the addresses that were bound, and so the ones that clients are told."""
        for bound in endpoints:
            advertised = self.config.advertised(bound.listener_name)
            self._advertised[bound.listener_name] = (
                advertised if advertised.port else advertised.with_port(bound.port)
            )

    @property
    def has_addresses(self) -> bool:
        """Whether it has ever listened."""
        return bool(self._advertised)

    def advertised(self, listener_name: str) -> Endpoint:
        """The address that a client of this listener is told."""
        return self._advertised[listener_name]

    def addresses(
        self, listener_name: str, nodes: Iterable[int]
    ) -> list[tuple[BrokerState, Endpoint]]:
        """Those of these nodes that live, and where a client of this listener reaches each."""
        live = self.cluster.live_nodes()
        return [(node, node.advertised(listener_name)) for node in live if node.node_id in nodes]

    # Partitions.

    def get_log(self, topic: str | bytes, partition: int) -> Log | None:
        """The log of a partition of the topic with this name or id, or None."""
        if isinstance(topic, bytes):
            known = self.topics.by_id(topic)
            if known is None:
                return None
            topic = known.name
        return self._logs.get((topic, partition))

    def find_log(self, topic: str | bytes, partition: int, leader_epoch: int = -1) -> Log:
        """The log of a partition that this node leads.

        Args:
            topic: its name or its id.
            partition: its number.
            leader_epoch: the one that the client takes for the present one; -1 if it does not say.

        Raises:
            ApiError: there is no such partition, or another node leads it, or in another epoch.
        """
        log = self.get_log(topic, partition)
        if log is None:
            raise self._unknown(topic)
        if leader_epoch >= 0 and leader_epoch != log.leader_epoch:
            log.check_leader_epoch(leader_epoch)
        if log.leader_id != self.node_id:
            raise ApiError(
                error_codes.NOT_LEADER_OR_FOLLOWER,
                f"node {log.leader_id} leads the partition"
                if log.leader_id >= 0
                else "the partition has no leader",
            )
        return log

    def check_replicas(self, log: Log) -> None:
        """Refuse what all replicas are to have while too few of them run.

        Raises:
            ApiError: NOT_ENOUGH_REPLICAS.
        """
        leadership = self.cluster.leadership
        partition = leadership[log.topic, log.partition]
        running = len(leadership.in_sync(partition))
        # No more than there are at all (Kafka: Partition.effectiveMinIsr).
        needed = min(log.config.min_insync_replicas, len(partition.replicas))
        if running < needed:
            raise ApiError(
                error_codes.NOT_ENOUGH_REPLICAS,
                f"{running} replicas run, and min.insync.replicas asks for {needed}",
            )

    def _unknown(self, topic: str | bytes) -> ApiError:
        if isinstance(topic, bytes) and self.topics.by_id(topic) is None:
            return ApiError(error_codes.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        return ApiError(
            error_codes.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic or partition"
        )

    def leader_of(self, topic: str | bytes, partition: int) -> PartitionRegistration | None:
        """Who leads a partition, to be told to a client that has asked the wrong node (KIP-951)."""
        log = self.get_log(topic, partition)
        return None if log is None else self.cluster.leadership[log.topic, partition]

    def appended(self, log: Log, size: int) -> None:
        """Tell that ``size`` bytes of a log can be read that could not before."""
        self.unflushed[log] = None
        self.purgatory.notify(log, size)
