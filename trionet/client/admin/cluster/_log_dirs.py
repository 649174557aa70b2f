"""The folders of brokers, and what is in them."""

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
from ..._node import Node
from ..._topic_partition import TopicPartition
from ..calls._argument_checks import items, mapping
from ..calls._conversions import AdminCalls, by_topic, check, failure
from ..calls._results import Results


@attrs.frozen
class Replica:
    """A partition's replica on one broker.

    Attributes:
        partition: of which partition.
        broker: on which broker.
    """

    partition: TopicPartition
    broker: int


@attrs.frozen
class ReplicaInfo:
    """What a folder holds of a replica.

    Attributes:
        bytes: how much.
        offset_lag: how many records it lacks; of a future replica, of the current one.
        is_future: it is being moved here from another folder.
    """

    bytes: int
    offset_lag: int
    is_future: bool


@attrs.frozen
class LogDir:
    """A folder of a broker.

    Attributes:
        replicas: what is in it.
        total_bytes: the size of its disk; None where it is not told.
        usable_bytes: what is free of that; None where it is not told.
    """

    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None


LogDirs = Results[str, LogDir]
"""The folders of a broker by path, or why one cannot be used."""


class LogDirCalls(AdminCalls):
    """Calls about the folders of brokers."""

    async def describe_log_dirs(
        self,
        broker_ids: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> Results[int, LogDirs]:
        """What the folders of brokers hold.

        Args:
            broker_ids: None for all brokers.
            partitions: these only; None for all.

        Returns:
            By broker, its folders or why they are not known.

        Raises:
            TrionetError: nobody could be asked.
        """
        topics = None
        if partitions is not None:
            topics = [
                DescribableLogDirTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(items(partitions, TopicPartition)).items()
            ]

        async def ask(node: Node, keys: Sequence[int]) -> dict[int, LogDirs | TrionetError]:
            answer: DescribeLogDirsResponse = await self._calls.client.request(
                node, DescribeLogDirsRequest(topics=topics), version_min=1
            )
            check(answer.error_code, f"the folders of {node}")
            return dict.fromkeys(
                keys, LogDirs({each.log_dir: _log_dir(each) for each in answer.results})
            )

        if broker_ids is None:
            broker_ids = await self._calls.once(self._calls.nodes.all)
        return await self._calls.each(items(broker_ids, int), self._calls.at_themselves, ask)

    async def alter_replica_log_dirs(
        self, replicas: Mapping[Replica, str]
    ) -> Results[Replica, None]:
        """Move replicas to other folders of their brokers.

        Args:
            replicas: the path of the folder by replica.

        Returns:
            By replica, None when the move has begun, or why it has not.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: replicas may be moved.
        """
        replicas = mapping(replicas, Replica, str)

        async def ask(node: Node, keys: Sequence[Replica]) -> dict[Replica, TrionetError | None]:
            by_path: dict[str, list[TopicPartition]] = {}
            for key in keys:
                by_path.setdefault(replicas[key], []).append(key.partition)
            answer: AlterReplicaLogDirsResponse = await self._calls.client.request(
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
            for topic in answer.results:
                for each in topic.partitions:
                    partition = TopicPartition(topic.topic_name, each.partition_index)
                    found[Replica(partition, node.id)] = failure(each.error_code, str(partition))
            return found

        place = self._calls.at_brokers(_broker_of)
        return await self._calls.each(replicas, place, ask)


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
