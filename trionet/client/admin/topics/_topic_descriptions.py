"""Describe topics with their partitions (with KIP-966 if the broker supports it)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import trio

from ....errors import TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol._uuids import uuid_text
from ....protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    RequestCursor,
    TopicRequest,
)
from ....protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..._api_errors import api_error
from ..._argument_checks import names
from ..._node import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import id_bytes
from ..calls._enums import AclOperation, operations

PARTITIONS_PER_ANSWER: Final = 2000
"""The maximum number of partitions per response (Kafka: DescribeTopicsOptions)."""

_WITH_OPERATIONS_VERSION: Final = 8  # KIP-430
_WITH_IDS_VERSION: Final = 10  # KIP-516


@attrs.frozen
class PartitionDescription:
    """A partition of a topic.

    Attributes:
        number: the partition number.
        leader: the broker id of the leader; -1 for none.
        leader_epoch: the leader epoch; -1 if it is not known.
        replicas: the broker ids of the replicas; the first is the preferred leader.
        in_sync: the broker ids of the in-sync replicas.
        offline: the broker ids of the offline replicas.
        eligible_leaders: the eligible leader replicas (ELR) outside the in-sync ones; None if the
            broker does not report them.
        last_known_leaders: the last known ELR; None if the broker does not report them.
    """

    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_leaders: tuple[int, ...] | None = None


@attrs.frozen
class TopicDescription:
    """A topic with its partitions.

    Attributes:
        name: the topic's name.
        id: the topic id.
        is_internal: whether it is one of Kafka's internal topics.
        partitions: the partitions by number.
        operations: the operations permitted to the caller; None if not requested.
    """

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, PartitionDescription]
    operations: frozenset[AclOperation] | None


class TopicDescriptionCalls(AdminCalls):
    """Calls that describe topics."""

    async def describe_topics(
        self,
        topics: Iterable[str] = (),
        *,
        ids: Iterable[str] = (),
        include_operations: bool = False,
    ) -> Results[str, TopicDescription]:
        """Describe topics.

        Args:
            topics: topic names.
            ids: topic ids.
            include_operations: whether to include the operations permitted to the caller.

        Returns:
            The topic or the error by name or id.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is invalid.
        """

        async def send(
            node: Node, keys: Sequence[str]
        ) -> dict[str, TopicDescription | TrionetError]:
            try:
                return await self._with_cursor(node, keys, include_operations)
            except UnsupportedVersionError:
                wanted = [MetadataRequestTopic(name=key) for key in keys]
                return await self._by_metadata(node, wanted, 4, include_operations)

        async def send_ids(
            node: Node, keys: Sequence[str]
        ) -> dict[str, TopicDescription | TrionetError]:
            wanted = [MetadataRequestTopic(topic_id=id_bytes(key), name=None) for key in keys]
            found = await self._by_metadata(node, wanted, _WITH_IDS_VERSION, include_operations)
            by_id = {each.id: each for each in found.values() if isinstance(each, TopicDescription)}
            return {key: by_id.get(key) or found[key] for key in keys}

        results = await self._calls.for_each(names(topics), self._calls.at_any, send)
        results.update(await self._calls.for_each(names(ids), self._calls.at_any, send_ids))
        return results

    async def _with_cursor(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> dict[str, TopicDescription | TrionetError]:
        found: dict[str, TopicDescription | TrionetError] = {}
        cursor: RequestCursor | None = None
        left = sorted(keys)
        await trio.lowlevel.checkpoint()
        while left:
            response: DescribeTopicPartitionsResponse = await self._calls.client.request(
                node,
                DescribeTopicPartitionsRequest(
                    topics=[TopicRequest(name=name) for name in left],
                    response_partition_limit=PARTITIONS_PER_ANSWER,
                    cursor=cursor,
                ),
            )
            for topic in response.topics:
                _add(found, topic, include_operations)
            following = response.next_cursor
            if following is None:
                break
            # The last topic of this response may continue in the next one.
            left = [name for name in left if name >= following.topic_name]
            cursor = RequestCursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )
        return found

    async def _by_metadata(
        self,
        node: Node,
        topics: list[MetadataRequestTopic],
        version_min: int,
        include_operations: bool,
    ) -> dict[str, TopicDescription | TrionetError]:
        response: MetadataResponse = await self._calls.client.request(
            node,
            MetadataRequest(
                topics=topics,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=include_operations,
            ),
            version_min=_WITH_OPERATIONS_VERSION if include_operations else version_min,
        )
        return {
            each.name or uuid_text(each.topic_id): _described(each, include_operations)
            for each in response.topics
        }


def _add(
    found: dict[str, TopicDescription | TrionetError],
    topic: DescribeTopicPartitionsResponseTopic,
    include_operations: bool,
) -> None:
    assert topic.name is not None
    before = found.get(topic.name)
    after = _described(topic, include_operations)
    if isinstance(before, TopicDescription) and isinstance(after, TopicDescription):
        before.partitions.update(after.partitions)
    else:
        found[topic.name] = after


def _described(
    topic: DescribeTopicPartitionsResponseTopic | MetadataResponseTopic, include_operations: bool
) -> TopicDescription | TrionetError:
    id = uuid_text(topic.topic_id)
    if topic.error_code and topic.error_code != error_codes.LEADER_NOT_AVAILABLE:
        return api_error(topic.error_code, f"topic {topic.name or id}")
    return TopicDescription(
        topic.name or "",
        id,
        topic.is_internal,
        {each.partition_index: _partition(each) for each in topic.partitions},
        operations(topic.topic_authorized_operations) if include_operations else None,
    )


def _partition(
    partition: DescribeTopicPartitionsResponsePartition | MetadataResponsePartition,
) -> PartitionDescription:
    eligible = last_known = None
    if isinstance(partition, DescribeTopicPartitionsResponsePartition):
        eligible, last_known = partition.eligible_leader_replicas, partition.last_known_elr
    return PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        None if eligible is None else tuple(eligible),
        None if last_known is None else tuple(last_known),
    )
