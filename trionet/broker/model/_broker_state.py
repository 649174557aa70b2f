"""The state used by the API handlers of one node, partly shared with the other nodes.

It does not depend on the network, except for the advertised addresses.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import trio

from ...errors import ApiError
from ...net.wire._endpoint import Endpoint
from ...protocol import error_codes
from ..config._broker_config import BrokerConfig
from ..config._dynamic_config import DynamicConfig
from ..groups._group_coordinator import GroupCoordinator
from ..log import Log, LogFolder
from ..storage._database import Database
from ._cluster import Cluster
from ._elections import BrokerRegistration
from ._fetch_sessions import FetchSessionCache
from ._leadership import PartitionRegistration
from ._purgatory import Purgatory
from ._request_log_topic import RequestLogTopic
from ._topic_registry import TopicRegistry


def _operations(*codes: int) -> int:
    """Encode AclOperation numbers as the bit field of KIP-430."""
    return sum(1 << code for code in codes)


# Without an authorizer all operations are allowed (Kafka: AclEntry.supportedOperations).
TOPIC_OPERATIONS = _operations(3, 4, 5, 6, 7, 8, 10, 11)
GROUP_OPERATIONS = _operations(3, 6, 8, 10, 11)
CLUSTER_OPERATIONS = _operations(5, 7, 8, 9, 10, 11, 12)


@attrs.define(eq=False)
class Conversions:
    """Counts of converted records (Kafka: BrokerTopicMetrics).

    Attributes:
        produced: the number of records converted from message sets to batches.
        fetched: the number of records converted from batches to message sets.
    """

    produced: int = 0
    fetched: int = 0


class BrokerState:
    """The state of one node, without its network.

    Args:
        cluster: the state shared with the other nodes.
        settings: the layered settings of the node.

    Attributes:
        cluster: the shared state, which creates, alters and deletes topics.
        settings: the layered settings of the node; see :meth:`reconfigure`.
        config: the effective settings.
        topics, folder, database, purgatory, unflushed, nursery: the cluster's attributes of the
            same names.
        now_ms: returns the time for record timestamps, in ms since the epoch.
        fetch_sessions: the incremental fetch sessions.
        groups: coordinates the groups that are assigned to this node.
        registration: what the other nodes know about this node.
        conversions: the counts of converted records.
        records_without_key: the number of records without a key that compacted topics rejected.
        request_log_topic: the topic of the request log; None if requests are not logged to a topic.
        exclusive_topic: the topic that only the broker writes to; None if there is none.
        streams, orders: further lists and actions for the metrics listener, by name and by path;
            for packages above this one, such as that of fault injection.
    """

    def __init__(self, cluster: Cluster, settings: DynamicConfig) -> None:
        config = settings.current
        self.cluster: Cluster = cluster
        self.settings: DynamicConfig = settings
        self.config: BrokerConfig = config
        self.topics: TopicRegistry = cluster.topics
        self.folder: LogFolder = cluster.folder
        self.database: Database = cluster.database
        self.purgatory: Purgatory = cluster.purgatory
        self.unflushed: dict[Log, None] = cluster.unflushed
        self.nursery: trio.Nursery = cluster.nursery
        self.now_ms: Callable[[], int] = cluster.now_ms
        self.reset_fetch_sessions()
        self.node_id: int = config.node_id
        self.groups: GroupCoordinator = GroupCoordinator(
            config,
            cluster.group_store,
            cluster.now_ms,
            lambda group_id: cluster.coordinator_of(group_id) == config.node_id,
            cluster.network.rng,
            lambda: self.config.integer("message.max.bytes"),
        )
        self.cluster_id: str = cluster.id
        rack = config["broker.rack"]
        self.rack: str | None = rack if isinstance(rack, str) else None
        self.auto_create_topics: bool = config.flag("auto.create.topics.enable")
        self.are_created_topics_ready: bool = config.flag("auto.create.topics.ready.at.once")
        self.fetch_bytes_max: int = config.integer("fetch.max.bytes")
        self.conversions: Conversions = Conversions()
        self.records_without_key: int = 0
        self.has_replicas: bool = len(cluster.leadership.nodes) > 1
        self.is_in_memory: bool = cluster.is_in_memory
        self.request_log_topic: RequestLogTopic | None = None
        self.exclusive_topic: str | None = None
        self.streams: dict[str, Callable[[Mapping[str, str]], Any]] = {}
        self.orders: dict[str, Callable[[Mapping[str, str]], object]] = {}
        self.registration: BrokerRegistration = BrokerRegistration(
            self.node_id, self.rack, self.groups
        )
        self._logs = cluster.folder.logs

    def reset_fetch_sessions(self) -> None:
        """Replace the cache of fetch sessions with an empty one."""
        self.fetch_sessions: FetchSessionCache = FetchSessionCache(
            self.config.integer("max.incremental.fetch.session.cache.slots"),
            rng=self.cluster.network.rng,
            elements=self.config.integer("max.incremental.fetch.session.cache.elements"),
        )

    def reconfigure(self, settings: DynamicConfig) -> None:
        """Switch to new settings."""
        self.settings = settings
        self.config = settings.current

    def set_bound(self, endpoints: list[Endpoint]) -> None:
        """Register the advertised addresses, taking unspecified ports from the bound addresses."""
        for bound in endpoints:
            advertised = self.config.advertised(bound.listener_name)
            self.registration.advertised[bound.listener_name] = (
                advertised if advertised.port else advertised.with_port(bound.port)
            )

    def addresses(
        self, listener_name: str, nodes: Iterable[int]
    ) -> list[tuple[BrokerRegistration, Endpoint]]:
        """Return the live nodes among ``nodes``, with their advertised addresses for a listener."""
        live = self.cluster.live_nodes()
        return [(node, node.advertised[listener_name]) for node in live if node.node_id in nodes]

    # Partitions.

    def get_log(self, topic: str | bytes, partition: int) -> Log | None:
        """Return the log of a partition by topic name or id; None if there is no such partition."""
        if isinstance(topic, bytes):
            known = self.topics.by_id(topic)
            if known is None:
                return None
            topic = known.name
        return self._logs.get((topic, partition))

    def find_log(self, topic: str | bytes, partition: int, leader_epoch: int = -1) -> Log:
        """Return the log of a partition that this node leads.

        Args:
            topic: the topic's name or id.
            partition: the partition's number.
            leader_epoch: the leader epoch known to the client; -1 if unknown.

        Raises:
            ApiError: the partition does not exist, this node is not its leader, or ``leader_epoch``
                is not current.
        """
        log = self.get_log(topic, partition)
        if log is None:
            raise self._unknown(topic)
        if leader_epoch >= 0 and leader_epoch != log.leader_epoch:
            log.check_leader_epoch(leader_epoch)
        if log.leader_id != self.node_id:
            raise ApiError(
                error_codes.NOT_LEADER_OR_FOLLOWER,
                f"the leader of the partition is node {log.leader_id}"
                if log.leader_id >= 0
                else "the partition has no leader",
            )
        return log

    def check_not_exclusive(self, topic: str) -> None:
        """Reject a client's change of the records of a topic that only the broker writes to.

        Raises:
            ApiError: INVALID_TOPIC_EXCEPTION, as Kafka responds for its internal topics.
        """
        if topic == self.exclusive_topic:
            raise ApiError(
                error_codes.INVALID_TOPIC_EXCEPTION,
                f"only the broker writes to topic {topic}, because request.log.exclusive is true;"
                " clients can neither delete it nor its records",
            )

    def check_replicas(self, log: Log) -> None:
        """Reject a request with ``acks=all`` if too few replicas are in sync.

        Raises:
            ApiError: NOT_ENOUGH_REPLICAS.
        """
        leadership = self.cluster.leadership
        partition = leadership[log.topic, log.partition]
        running = len(leadership.in_sync(partition))
        # At most the number of replicas (Kafka: Partition.effectiveMinIsr).
        needed = min(log.config.min_insync_replicas, len(partition.replicas))
        if running < needed:
            raise ApiError(
                error_codes.NOT_ENOUGH_REPLICAS,
                f"{running} of {len(partition.replicas)} replicas are in sync, but"
                f" min.insync.replicas requires {needed}",
            )

    def _unknown(self, topic: str | bytes) -> ApiError:
        if isinstance(topic, bytes) and self.topics.by_id(topic) is None:
            return ApiError(error_codes.UNKNOWN_TOPIC_ID, "no topic has this id")
        return ApiError(
            error_codes.UNKNOWN_TOPIC_OR_PARTITION, "the topic or partition does not exist"
        )

    def leader_of(self, topic: str | bytes, partition: int) -> PartitionRegistration | None:
        """Return the registration that names a partition's current leader (KIP-951), or None."""
        log = self.get_log(topic, partition)
        return None if log is None else self.cluster.leadership[log.topic, partition]

    def appended(self, log: Log, size: int) -> None:
        """Mark a log as unflushed, and complete fetches that ``size`` appended bytes satisfy.

        Fetches with ``read_committed`` are satisfied by what has become stable instead: records of
        an open transaction do not complete them, and its marker does (Kafka: DelayedFetch).
        """
        self.unflushed[log] = None
        self.purgatory.notify(log, size)
        stable_bytes = log.take_stable_bytes()
        if stable_bytes:
            self.purgatory.notify(log.stable, stable_bytes)
