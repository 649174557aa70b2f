"""The log directories of brokers, and the replicas in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from ....errors import TrionetError
from ....protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ....protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ..._api_errors import api_error
from ..._argument_checks import items, mapping
from ..._topic_partition import TopicPartition, by_topic
from ...network._cluster import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure


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
class ReplicaInfo:
    """A replica in a log directory.

    Attributes:
        bytes: the size of the replica in bytes.
        offset_lag: the number of offsets from the log end offset to the high watermark, or, for a
            future replica, to the log end offset of the current replica.
        is_future: whether the replica is being moved to this directory from another one.
    """

    bytes: int
    offset_lag: int
    is_future: bool


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
                DescribableLogDirTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ]

        async def send(node: Node, keys: Sequence[int]) -> dict[int, LogDirs | TrionetError]:
            response: DescribeLogDirsResponse = await self._calls.client.request(
                node, DescribeLogDirsRequest(topics=topics), version_min=1
            )
            check(response.error_code, f"the log directories of {node}")
            return dict.fromkeys(
                keys, LogDirs({each.log_dir: _log_dir(each) for each in response.results})
            )

        if broker_ids is None:
            broker_ids = await self._calls.retry(self._calls.nodes.all)
        return await self._calls.for_each(items(broker_ids, int), self._calls.at_themselves, send)

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

        async def send(node: Node, keys: Sequence[Replica]) -> dict[Replica, TrionetError | None]:
            by_path: dict[str, list[TopicPartition]] = {}
            for key in keys:
                by_path.setdefault(replicas[key], []).append(key.partition)
            response: AlterReplicaLogDirsResponse = await self._calls.client.request(
                node,
                AlterReplicaLogDirsRequest(
                    dirs=[
                        AlterReplicaLogDir(
                            path=path,
                            topics=[
                                AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                                for topic, numbers in by_topic(partitions).items()
                            ],
                        )
                        for path, partitions in by_path.items()
                    ]
                ),
            )
            found: dict[Replica, TrionetError | None] = {}
            for topic in response.results:
                for each in topic.partitions:
                    partition = TopicPartition(topic.topic_name, each.partition_index)
                    found[Replica(partition, node.id)] = failure(each.error_code, str(partition))
            return found

        lookup = self._calls.at_brokers(_broker_of)
        return await self._calls.for_each(replicas, lookup, send)


def _broker_of(replica: Replica) -> int:
    return replica.broker


def _log_dir(result: DescribeLogDirsResult) -> LogDir | TrionetError:
    if result.error_code:
        return api_error(result.error_code, result.log_dir)
    return LogDir(
        {
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in result.topics
            for each in topic.partitions
        },
        None if result.total_bytes < 0 else result.total_bytes,
        None if result.usable_bytes < 0 else result.usable_bytes,
    )
