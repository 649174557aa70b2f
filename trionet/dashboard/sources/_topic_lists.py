"""Lists all topics and partitions in slices, from brokers of any version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import attrs
import trio

from ...client.admin._requests import RequestCalls
from ...client.admin.calls._calls import Calls
from ...errors import UnsupportedVersionError
from ...protocol._uuids import uuid_text
from ...protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
)
from ...protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponsePartition as Described,
)
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from ..model._rows import PartitionRow

#: Partitions per response: a few milliseconds of decoding.
PARTITIONS_PER_RESPONSE: Final = 250
#: Topics per request where partitions cannot be limited.
TOPICS_PER_REQUEST: Final = 50


@attrs.frozen
class ListedTopic:
    """A topic, or those of its partitions that are in a slice."""

    name: str
    id: str
    is_internal: bool
    partitions: Sequence[PartitionRow]


Take = Callable[[Iterable[ListedTopic]], Awaitable[None]]
"""Called with each slice; the next is requested when it returns."""


async def list_topics(calls: Calls, take: Take) -> None:
    """List all topics slice by slice, in the order of their names.

    Args:
        calls: sends the requests.
        take: called with each slice.

    Raises:
        TrionetError: the cluster could not be asked.
    """
    try:
        await _with_cursor(calls, take)
    except UnsupportedVersionError:
        await _by_names(calls, take)


async def _with_cursor(calls: Calls, take: Take) -> None:
    """List with DescribeTopicPartitions (KIP-966), of Kafka 3.7 and newer."""
    request = RequestCalls(calls).request
    cursor: RequestCursor | None = None
    await trio.lowlevel.checkpoint()
    while True:
        response: DescribeTopicPartitionsResponse = await request(
            DescribeTopicPartitionsRequest(
                topics=[], response_partition_limit=PARTITIONS_PER_RESPONSE, cursor=cursor
            )
        )
        await take(
            ListedTopic(
                topic.name or "",
                uuid_text(topic.topic_id),
                topic.is_internal,
                [_row(topic.name or "", each) for each in topic.partitions],
            )
            for topic in response.topics
            if not topic.error_code
        )
        if response.next_cursor is None:
            return
        cursor = RequestCursor(
            topic_name=response.next_cursor.topic_name,
            partition_index=response.next_cursor.partition_index,
        )


async def _by_names(calls: Calls, take: Take) -> None:
    # Imported only here: it knows how topics are made, too, and few brokers are so old.
    from ...client.admin.topics._topics import TopicCalls

    request = RequestCalls(calls).request
    names = sorted(await TopicCalls(calls).list_topics(internal=True))
    for first in range(0, len(names), TOPICS_PER_REQUEST):
        part = [MetadataRequestTopic(name=name) for name in names[first:][:TOPICS_PER_REQUEST]]
        response: MetadataResponse = await request(
            MetadataRequest(topics=part, allow_auto_topic_creation=False)
        )
        await take(
            ListedTopic(
                topic.name or "",
                uuid_text(topic.topic_id),
                topic.is_internal,
                [_row(topic.name or "", each) for each in topic.partitions],
            )
            for topic in response.topics
            if not topic.error_code
        )


def _row(topic: str, partition: Described | MetadataResponsePartition) -> PartitionRow:
    return PartitionRow(
        topic,
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )
