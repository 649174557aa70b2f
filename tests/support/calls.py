"""The requests that most tests of the broker make, in short; all their other fields are defaults.

A topic is named by its name, or by its id as bytes where the version has ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from support.client import Client
from trionet.broker.model import _topic_registry as topic_registry
from trionet.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from trionet.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import Record

# The last version in which Produce and Fetch name topics by name, and the first with ids.
PRODUCE_BY_NAME, PRODUCE_BY_ID = 12, 13
FETCH_BY_NAME, FETCH_BY_ID = 12, 13

TIMESTAMP = 1_700_000_000_000
"""What records carry if nothing else is said, in milliseconds."""

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def batch(
    *values: bytes, timestamp: int = TIMESTAMP, key: bytes | None = None, **fields: Any
) -> bytes:
    """One batch of records with these values; ``fields`` are those of ``encode_batch``."""
    return encode_batch([(timestamp, key, value, ()) for value in values], **fields)


def bytes_of(data: PartitionData) -> bytes:
    """The records of a response as they came."""
    assert data.records is not None
    return bytes(memoryview(data.records))  # type: ignore[arg-type]


def records_of(data: PartitionData) -> list[Record]:
    """All records of all whole batches in a response."""
    records = bytes_of(data)
    return [
        record
        for position, _ in iter_batches(records)
        for record in decode_batch(records, position)
    ]


def values_of(data: PartitionData) -> list[bytes | None]:
    """The values of all records in a response."""
    return [value for _, _, _, value, _ in records_of(data)]


def produce_request(
    topic: str | bytes, partitions: Mapping[int, bytes | None] | bytes, *, acks: int = -1
) -> ProduceRequest:
    """A Produce to one topic: records by partition, or those of partition 0."""
    if isinstance(partitions, bytes):
        partitions = {0: partitions}
    data = [PartitionProduceData(index=index, records=r) for index, r in partitions.items()]
    wanted = (
        TopicProduceData(topic_id=topic, partition_data=data)
        if isinstance(topic, bytes)
        else TopicProduceData(name=topic, partition_data=data)
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[wanted])


async def produce(
    client: Client,
    topic: str | bytes,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
) -> PartitionProduceResponse:
    """The response for the one partition that something is produced to."""
    if version is None:
        version = PRODUCE_BY_ID if isinstance(topic, bytes) else PRODUCE_BY_NAME
    response = await client.call(produce_request(topic, {partition: records}, acks=acks), version)
    [answered] = response.responses
    [answer] = answered.partition_responses
    assert isinstance(answer, PartitionProduceResponse)
    assert partition == answer.index
    return answer


async def append(client: Client, *values: bytes, topic: str = "t", partition: int = 0) -> None:
    """Produce each value as a batch of its own; nothing may go wrong."""
    for value in values:
        answer = await produce(client, topic, batch(value), partition=partition)
        assert 0 == answer.error_code, answer


def fetch_request(
    topics: Mapping[Any, Mapping[int, int]],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**31 - 1,
    partition_max_bytes: int = 1024 * 1024,
    session: tuple[int, int] = (0, -1),
    forgotten: Mapping[Any, Sequence[int]] | None = None,
    isolation_level: int = 0,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchRequest:
    """A Fetch.

    Args:
        topics: the offset to begin at, by topic and partition.
        max_wait_ms: how long the broker may wait for `min_bytes`.
        min_bytes: what is worth a response.
        max_bytes: of the whole answer.
        partition_max_bytes: of each partition.
        session: id and epoch.
        forgotten: what leaves the session.
        isolation_level: 1 reads committed records only.
        leader_epoch: the current one, as the consumer knows it.
        last_fetched_epoch: that of the record before the offset, as the consumer has read it.
    """
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                **_named(topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in topics.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(**_named(topic), partitions=list(partitions))
            for topic, partitions in (forgotten or {}).items()
        ],
    )


async def fetch(
    client: Client,
    topic: str | bytes,
    offset: int = 0,
    *,
    partition: int = 0,
    version: int | None = None,
    **limits: Any,
) -> PartitionData:
    """The response to a fetch of one partition without a session; by default it does not wait."""
    if version is None:
        version = FETCH_BY_ID if isinstance(topic, bytes) else FETCH_BY_NAME
    response = await client.call(fetch_request({topic: {partition: offset}}, **limits), version)
    assert 0 == response.error_code
    return only_partition(response)


def only_partition(response: Any) -> PartitionData:
    """The one partition that a Fetch response is about."""
    [topic] = response.responses
    [data] = topic.partitions
    assert isinstance(data, PartitionData)
    return data


def _named(topic: str | bytes) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}


async def create_topic(
    client: Client, name: str, partitions: int = 1, **configs: object
) -> CreatableTopicResult:
    """Create a topic that must not fail; its settings with underscores for dots."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ],
    )
    response = await client.call(CreateTopicsRequest(topics=[wanted]), 7)
    [result] = response.topics
    assert isinstance(result, CreatableTopicResult)
    assert (0, None) == (result.error_code, result.error_message)
    return result


async def create_reserved_topic(client: Client, name: str) -> None:
    """Create a topic with the name of one of Kafka's, as versions did that did not reserve them.

    The broker must run in this process.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic_registry, "_INTERNAL", frozenset())
        await create_topic(client, name)


async def delete_topic(client: Client, name: str) -> None:
    """Delete a topic that must be there."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
    [result] = (await client.call(request, 6)).responses
    assert (0, None) == (result.error_code, result.error_message)


async def describe_topics(
    client: Client, *names: str, allow_auto_topic_creation: bool = False
) -> list[MetadataResponseTopic]:
    """Metadata of these topics, or of all of them."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names] if names else None,
        allow_auto_topic_creation=allow_auto_topic_creation,
    )
    topics: list[MetadataResponseTopic] = (await client.call(request, 12)).topics
    return topics


async def list_offset(
    client: Client, topic: str, timestamp: int, *, partition: int = 0, version: int = 11
) -> ListOffsetsPartitionResponse:
    """The offset for a time, or for one of the times that are none."""
    request = list_offsets_request(topic, [(partition, timestamp)])
    [answered] = (await client.call(request, version)).topics
    [answer] = answered.partitions
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer


def list_offsets_request(topic: str, wanted: Iterable[tuple[int, int]]) -> ListOffsetsRequest:
    """A ListOffsets of one topic: partitions and times."""
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                    for index, timestamp in wanted
                ],
            )
        ],
    )
