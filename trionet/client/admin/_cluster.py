"""The cluster: nodes, features (KIP-584), KRaft quorum (KIP-595, KIP-853), log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Final

import attrs

from ... import __version__
from ...errors import UnsupportedVersionError
from ...protocol import _partition_compaction as partition_compaction
from ...protocol import error_codes
from ...protocol._wire import uuid_text
from ...protocol.messages import (
    add_raft_voter,
    alter_replica_log_dirs,
    describe_log_dirs,
    describe_quorum,
)
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ...protocol.messages.metadata import MetadataRequest, MetadataResponse
from ...protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ...protocol.messages.unregister_broker import UnregisterBrokerRequest
from ...protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from .._api_errors import api_error
from .._argument_checks import items, mapping
from .._topic_partition import TopicPartition, by_topic
from ..network._api_versions import SOFTWARE_NAME
from ..network._cluster import Node, nodes_of
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import (
    AclOperation,
    check,
    failure,
    failures,
    id_bytes,
    known,
    operations,
)
from ._nodes import CONTROLLER_CODES

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@attrs.frozen
class ClusterDescription:
    """The description of a cluster.

    Attributes:
        id: the cluster id; None if the broker does not report it.
        controller: the controller, or the broker that forwards to it; None if unknown.
        brokers: the brokers, keyed by id.
        fenced: the ids of fenced brokers; empty unless requested.
        operations: the caller's authorized operations; None if not requested.
    """

    id: str | None
    controller: Node | None
    brokers: dict[int, Node]
    fenced: frozenset[int]
    operations: frozenset[AclOperation] | None


class ClusterCalls(AdminCalls):
    """Admin calls for the cluster as a whole."""

    async def describe(
        self, *, include_operations: bool = False, include_fenced: bool = False
    ) -> ClusterDescription:
        """Describe the cluster or, with ``bootstrap.controllers``, its controllers.

        Args:
            include_operations: whether to include the caller's authorized operations.
            include_fenced: whether to include fenced brokers (KIP-1073).

        Raises:
            TrionetError: the request failed.
        """
        of_controllers = self._nodes.of_controllers
        body = DescribeClusterRequest(
            include_cluster_authorized_operations=include_operations,
            endpoint_type=_CONTROLLERS if of_controllers else _BROKERS,
            include_fenced_brokers=include_fenced,
        )
        version_min = 2 if include_fenced else 1 if of_controllers else 0
        try:
            response: DescribeClusterResponse = await self._calls.call_any(
                body, "the cluster", version_min=version_min
            )
        except UnsupportedVersionError:
            if include_fenced or of_controllers:
                raise
        else:
            brokers = {
                each.broker_id: Node(each.broker_id, each.host, each.port, each.rack)
                for each in response.brokers
            }
            fenced = frozenset(each.broker_id for each in response.brokers if each.is_fenced)
            return _cluster(response, brokers, fenced)
        return await self._describe_by_metadata(include_operations)

    async def _describe_by_metadata(self, include_operations: bool) -> ClusterDescription:
        """Describe the cluster with a Metadata request, for brokers before Kafka 2.8 (KIP-700)."""
        body = MetadataRequest(topics=[], include_cluster_authorized_operations=include_operations)
        response: MetadataResponse = await self._calls.call_any(
            body, "the cluster", version_min=8 if include_operations else 1
        )
        return _cluster(response, nodes_of(response.brokers), frozenset())

    async def unregister_broker(self, broker_id: int) -> None:
        """Unregister a permanently removed broker from the cluster's metadata.

        Args:
            broker_id: the id that the broker had.

        Raises:
            ApiError: the request was rejected, for example with BROKER_ID_NOT_REGISTERED.
            TrionetError: the request failed.

        Cancellation: the broker may have been removed.
        """
        body = UnregisterBrokerRequest(broker_id=broker_id)
        await self._calls.call_controller(body, f"broker {broker_id}")


def _cluster(
    response: DescribeClusterResponse | MetadataResponse,
    brokers: dict[int, Node],
    fenced: frozenset[int],
) -> ClusterDescription:
    return ClusterDescription(
        response.cluster_id,
        brokers.get(response.controller_id),
        brokers,
        fenced,
        operations(response.cluster_authorized_operations),
    )


# Features.


class UpgradeType(IntEnum):
    """The kind of change that an update may make to a feature's version."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
    """Allow a downgrade even if it loses metadata."""


@attrs.frozen
class FeatureUpdate:
    """A change of a feature's version.

    Attributes:
        version: the new version level; 0 to disable the feature.
        upgrade_type: the kind of change that the update may make.
    """

    version: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@attrs.frozen
class Features:
    """The features of a cluster.

    Attributes:
        finalized: the finalized version level of each feature.
        finalized_epoch: the epoch of the finalized features; None if unknown.
        supported: the minimum and maximum version level of each feature on the broker.
    """

    finalized: dict[str, int]
    finalized_epoch: int | None
    supported: dict[str, tuple[int, int]]


class FeatureCalls(AdminCalls):
    """Admin calls for features."""

    async def describe(self, broker_id: int | None = None) -> Features:
        """Return the cluster's features.

        Args:
            broker_id: the broker to send the request to; None for any.

        Raises:
            TrionetError: the request failed.
        """
        body = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        response: ApiVersionsResponse = await self._calls.call_any(
            body, "the features", broker_id=broker_id, version_min=3
        )
        return Features(
            {each.name: each.max_version_level for each in response.finalized_features},
            known(response.finalized_features_epoch),
            {
                each.name: (each.min_version, each.max_version)
                for each in response.supported_features
            },
        )

    async def update(
        self, features: Mapping[str, FeatureUpdate | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Change the finalized versions of features, either all of them or none.

        Args:
            features: the new version level of each feature.
            validate_only: whether to validate the update without making it.

        Returns:
            For each feature, None on success or the error. Newer brokers report an error only for
            the update as a whole.

        Raises:
            ApiError: the whole update was rejected.
            TrionetError: the request failed.

        Cancellation: features may have been updated.
        """
        features = mapping(features, str, int, FeatureUpdate)
        body = UpdateFeaturesRequest(
            timeout_ms=self._calls.timeout_ms,
            feature_updates=[_update(name, to) for name, to in features.items()],
            validate_only=validate_only,
        )
        response: UpdateFeaturesResponse = await self._calls.call_controller(
            body, "the features", version_min=1
        )
        results: Results[str, None] = Results(dict.fromkeys(features))
        results.update((each.feature, failure(each, each.feature)) for each in response.results)
        return results


def _update(name: str, to: FeatureUpdate | int) -> FeatureUpdateKey:
    update = FeatureUpdate(to) if isinstance(to, int) else to
    return FeatureUpdateKey(
        feature=name, max_version_level=update.version, upgrade_type=update.upgrade_type
    )


# The quorum.

_TOPIC: Final = "__cluster_metadata"


@attrs.frozen
class RaftEndpoint:
    """A listener of a controller.

    Attributes:
        listener: the name of the listener.
        host: the host.
        port: the port.
    """

    listener: str
    host: str
    port: int


@attrs.frozen
class QuorumReplica:
    """A replica of the metadata log.

    Attributes:
        id: the node id.
        directory_id: the metadata directory's id; None if not reported.
        log_end_offset: the log end offset; -1 if unknown.
        fetched_ms: when the replica last fetched, in ms since the epoch; None if unknown.
        caught_up_ms: when the replica was last caught up, in ms since the epoch; None if unknown.
    """

    id: int
    directory_id: str | None
    log_end_offset: int
    fetched_ms: int | None
    caught_up_ms: int | None


@attrs.frozen
class MetadataQuorum:
    """The KRaft quorum.

    Attributes:
        leader: the leader's node id.
        leader_epoch: the leader epoch.
        high_watermark: the high watermark of the metadata log.
        voters: the voters.
        observers: the observers, such as brokers.
        endpoints: the voters' listeners, keyed by node id; empty if not reported.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[RaftEndpoint, ...]]


class QuorumCalls(AdminCalls):
    """Admin calls for the KRaft quorum."""

    async def describe(self) -> MetadataQuorum:
        """Describe the quorum.

        Raises:
            TrionetError: the request failed.
        """
        topic = describe_quorum.RequestTopicData(
            topic_name=_TOPIC, partitions=[describe_quorum.RequestPartitionData()]
        )
        body = describe_quorum.DescribeQuorumRequest(topics=[topic])

        async def send() -> MetadataQuorum:
            return _quorum(await self._request(await self._nodes.controller(), body))

        # The partition in the response has an error code as well, to be retried in the same way.
        return await self._calls.retry(send, CONTROLLER_CODES)

    async def add_voter(
        self,
        id: int,
        directory_id: str,
        endpoints: Iterable[RaftEndpoint],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Promote a controller from observer to voter.

        Args:
            id: the node id.
            directory_id: the metadata directory's id, from ``meta.properties``.
            endpoints: the listeners of the controller.
            cluster_id: the expected cluster id; None to skip the check.

        Raises:
            ApiError: the request was rejected, for example with DUPLICATE_VOTER.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is invalid.

        Cancellation: the voter may have been added.
        """
        body = add_raft_voter.AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._calls.timeout_ms,
            voter_id=id,
            voter_directory_id=id_bytes(directory_id),
            listeners=[
                add_raft_voter.Listener(name=each.listener, host=each.host, port=each.port)
                for each in items(endpoints, RaftEndpoint)
            ],
        )
        await self._calls.call_controller(body, f"node {id}")

    async def remove_voter(
        self, id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """Remove a voter from the quorum.

        Args:
            id: the node id.
            directory_id: the metadata directory's id.
            cluster_id: the expected cluster id; None to skip the check.

        Raises:
            ApiError: the request was rejected, for example with VOTER_NOT_FOUND.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is invalid.

        Cancellation: the voter may have been removed.
        """
        body = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=id, voter_directory_id=id_bytes(directory_id)
        )
        await self._calls.call_controller(body, f"node {id}")


def _quorum(response: describe_quorum.DescribeQuorumResponse) -> MetadataQuorum:
    check(response, "the controllers")
    partitions = [each for topic in response.topics for each in topic.partitions]
    if not partitions:
        code = error_codes.UNKNOWN_SERVER_ERROR
        raise api_error(code, "the quorum", "missing from the response")
    found = partitions[0]
    check(found, "the controllers")
    return MetadataQuorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        tuple(map(_replica, found.current_voters)),
        tuple(map(_replica, found.observers)),
        {
            node.node_id: tuple(
                RaftEndpoint(each.name, each.host, each.port) for each in node.listeners
            )
            for node in response.nodes
        },
    )


def _replica(state: describe_quorum.ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        uuid_text(state.replica_directory_id) if any(state.replica_directory_id) else None,
        state.log_end_offset,
        known(state.last_fetch_timestamp),
        known(state.last_caught_up_timestamp),
    )


# Log directories.


@attrs.frozen
class Replica:
    """A replica of a partition.

    Attributes:
        partition: the partition.
        broker: the broker id.
    """

    partition: TopicPartition
    broker: int


@attrs.frozen
class Compaction:
    """How a partition of a compacted topic is cleaned; from trionet brokers only.

    Attributes:
        dirty_ratio: the share of the log that the next cleaning would find dirty, from 0 to 1.
        cleaned_ms: the time when the last cleaning ended, in milliseconds since the epoch; None if
            there was none since the broker has started.
        cleaning_seconds: the duration of that cleaning.
        bytes_before: the size of what it has cleaned, before.
        bytes_after: the size of what it has cleaned, afterwards.
        records_before: the number of records in that, before.
        records_after: the number of records in that, afterwards.
        uncleanable: why the partition is not cleaned any more; None if it is.
    """

    dirty_ratio: float
    cleaned_ms: int | None
    cleaning_seconds: float
    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int
    uncleanable: str | None


@attrs.frozen
class ReplicaInfo:
    """A replica in a log directory.

    Attributes:
        bytes: the size of the replica in bytes.
        offset_lag: the number of offsets from the log end offset to the high watermark, or, for a
            future replica, to the log end offset of the current replica.
        is_future: whether the replica is being moved to this directory from another one.
        compaction: how the partition is cleaned; None if its topic is not compacted, and from other
            brokers than trionet's.
    """

    bytes: int
    offset_lag: int
    is_future: bool
    compaction: Compaction | None = None


@attrs.frozen
class LogDir:
    """A log directory of a broker.

    Attributes:
        replicas: the replicas in the directory, keyed by partition.
        total_bytes: the size of the directory's volume; None if not reported.
        usable_bytes: the free space on that volume; None if not reported.
    """

    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None


LogDirs = Results[str, LogDir]
"""The log directories of a broker, or their errors, keyed by path."""


class LogDirCalls(AdminCalls):
    """Admin calls for the log directories of brokers."""

    async def describe(
        self,
        broker_ids: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Results[int, LogDirs]:
        """Describe the log directories of brokers.

        Args:
            broker_ids: the brokers; None for all.
            partitions: only these partitions; None for all.

        Returns:
            For each broker, the log directories or the error.

        Raises:
            TrionetError: no broker could be reached.
        """
        topics = None
        if partitions is not None:
            topics = [
                describe_log_dirs.DescribableLogDirTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ]
        body = describe_log_dirs.DescribeLogDirsRequest(topics=topics)

        async def send(node: Node, keys: Sequence[int]) -> Outcomes[int, LogDirs]:
            response: describe_log_dirs.DescribeLogDirsResponse = await self._request(
                node, body, version_min=1
            )
            check(response, f"the log directories of {node}")
            found = {
                each.log_dir: failure(each, each.log_dir) or _log_dir(each)
                for each in response.results
            }
            return dict.fromkeys(keys, LogDirs(found))

        if broker_ids is None:
            broker_ids = await self._calls.retry(self._nodes.all)
        return await self._calls.for_each(items(broker_ids, int), self._nodes.at_brokers(int), send)

    async def alter_replicas(self, replicas: Mapping[Replica, str]) -> Results[Replica, None]:
        """Move replicas to other log directories on the same brokers.

        Args:
            replicas: the path of the log directory to which to move each replica.

        Returns:
            For each replica, None if the move has started, or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: moves may have started.
        """
        replicas = mapping(replicas, Replica, str)

        async def send(node: Node, keys: Sequence[Replica]) -> Outcomes[Replica, None]:
            by_path: dict[str, list[TopicPartition]] = {}
            for key in keys:
                by_path.setdefault(replicas[key], []).append(key.partition)
            body = alter_replica_log_dirs.AlterReplicaLogDirsRequest(
                dirs=[
                    alter_replica_log_dirs.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            alter_replica_log_dirs.AlterReplicaLogDirTopic(
                                name=topic, partitions=numbers
                            )
                            for topic, numbers in by_topic(partitions).items()
                        ],
                    )
                    for path, partitions in by_path.items()
                ]
            )
            response: alter_replica_log_dirs.AlterReplicaLogDirsResponse = await self._request(
                node, body
            )
            found = failures(response.results)
            return {Replica(partition, node.id): error for partition, error in found.items()}

        place = self._nodes.at_brokers(attrgetter("broker"))
        return await self._calls.for_each(replicas, place, send)


def _log_dir(result: describe_log_dirs.DescribeLogDirsResult) -> LogDir:
    return LogDir(
        {
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                each.partition_size,
                each.offset_lag,
                each.is_future_key,
                _compaction(each.unknown_tags),
            )
            for topic in result.topics
            for each in topic.partitions
        },
        known(result.total_bytes),
        known(result.usable_bytes),
    )


def _compaction(tags: tuple[tuple[int, bytes], ...]) -> Compaction | None:
    found = partition_compaction.decode_tags(tags)
    if found is None:
        return None
    return Compaction(
        found.dirty_ratio,
        known(found.cleaned_ms),
        found.cleaning_ms / 1000,
        found.bytes_read,
        found.bytes_written,
        found.records_read,
        found.records_written,
        found.uncleanable,
    )
