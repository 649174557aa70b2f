"""Topics, partition by partition (KIP-966 where the broker has it)."""

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
from ..._node import Node
from ..access._acl_operation import AclOperation
from ..calls._argument_checks import names
from ..calls._conversions import AdminCalls, id_bytes, operations
from ..calls._results import Results

PARTITIONS_PER_ANSWER: Final = 2000
"""How many partitions an answer may describe (Kafka: DescribeTopicsOptions)."""

_WITH_OPERATIONS_VERSION: Final = 8  # KIP-430
_WITH_IDS_VERSION: Final = 10  # KIP-516


@attrs.frozen
class PartitionDescription:
    """A partition of a topic.

    Attributes:
        number: its number.
        leader: the id of the broker that leads; -1 for none.
        leader_epoch: counts its leaders; -1 where it is not known.
        replicas: the brokers that have it; the first is the preferred leader.
        in_sync: those that have all of it.
        offline: those that are gone.
        eligible_leaders: those out of sync that may lead all the same; None where it is not told.
        last_known_leaders: who led or might have led at last; None where it is not told.
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
    """A topic.

    Attributes:
        name: of the topic.
        id: its id.
        is_internal: it is Kafka's own.
        partitions: by number.
        operations: what the caller may do with it; None if that was not asked for.
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
            topics: their names.
            ids: the ids of others.
            include_operations: tell, too, what the caller may do with them.

        Returns:
            By name or id, the topic or why it is not described.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is none.
        """

        async def ask(
            node: Node, keys: Sequence[str]
        ) -> dict[str, TopicDescription | TrionetError]:
            try:
                return await self._with_cursor(node, keys, include_operations)
            except UnsupportedVersionError:
                wanted = [MetadataRequestTopic(name=key) for key in keys]
                return await self._by_metadata(node, wanted, 4, include_operations)

        async def ask_ids(
            node: Node, keys: Sequence[str]
        ) -> dict[str, TopicDescription | TrionetError]:
            wanted = [MetadataRequestTopic(topic_id=id_bytes(key), name=None) for key in keys]
            found = await self._by_metadata(node, wanted, _WITH_IDS_VERSION, include_operations)
            by_id = {each.id: each for each in found.values() if isinstance(each, TopicDescription)}
            return {key: by_id.get(key) or found[key] for key in keys}

        results = await self._calls.each(names(topics), self._calls.at_any, ask)
        results.update(await self._calls.each(names(ids), self._calls.at_any, ask_ids))
        return results

    async def _with_cursor(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> dict[str, TopicDescription | TrionetError]:
        found: dict[str, TopicDescription | TrionetError] = {}
        cursor: RequestCursor | None = None
        left = sorted(keys)
        await trio.lowlevel.checkpoint()
        while left:
            answer: DescribeTopicPartitionsResponse = await self._calls.client.request(
                node,
                DescribeTopicPartitionsRequest(
                    topics=[TopicRequest(name=name) for name in left],
                    response_partition_limit=PARTITIONS_PER_ANSWER,
                    cursor=cursor,
                ),
            )
            for topic in answer.topics:
                _add(found, topic, include_operations)
            following = answer.next_cursor
            if following is None:
                break
            # A topic that began in this answer may go on in the next one.
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
        answer: MetadataResponse = await self._calls.client.request(
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
            for each in answer.topics
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
