"""The messages of the codec benchmark: what brokers and clients exchange most, in usual sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from trionet.protocol import api_keys
from trionet.protocol._wire import Message
from trionet.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from trionet.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

MEGABYTE: Final = 1 << 20
_TOPIC: Final = "benchmark"
_TOPIC_ID: Final = bytes(range(1, 17))
_GROUP: Final = "benchmark-group"
_MEMBER: Final = "consumer-1-7f3c2a54-09d2-4c7b-8a53-6a0d3f1b9e21"
_RECORDS: Final = bytes(MEGABYTE)


@attrs.frozen
class Case:
    """One message at one version.

    Attributes:
        title: as it stands in the table.
        api_key: of its API.
        version: of the message.
        side: "request" or "response".
        message: the values.
        is_large: whether it carries a megabyte of records.
    """

    title: str
    api_key: int
    version: int
    side: str
    message: Message
    is_large: bool = False


def cases() -> Iterator[Case]:
    """Every message of the benchmark."""
    for version in (9, 11):
        name = f"Produce v{version} request, 1 MB"
        yield Case(name, api_keys.PRODUCE, version, "request", produce(_RECORDS), is_large=True)
    yield Case("Produce v9 response", api_keys.PRODUCE, 9, "response", _produced())
    yield Case("Fetch v12 request", api_keys.FETCH, 12, "request", fetch(topic=_TOPIC))
    yield Case("Fetch v13 request", api_keys.FETCH, 13, "request", fetch(topic_id=_TOPIC_ID))
    for version, names in ((12, {"topic": _TOPIC}), (13, {"topic_id": _TOPIC_ID})):
        response = _fetched(**names)
        name = f"Fetch v{version} response, 1 MB"
        yield Case(name, api_keys.FETCH, version, "response", response, is_large=True)
    for version in (9, 12):
        name = f"Metadata v{version} response, 100 x 3"
        yield Case(name, api_keys.METADATA, version, "response", _metadata(version))
    versions_request = ApiVersionsRequest(
        client_software_name="librdkafka", client_software_version="2.16.0"
    )
    yield Case("ApiVersions v3 request", api_keys.API_VERSIONS, 3, "request", versions_request)
    yield Case("ApiVersions v3 response, 60", api_keys.API_VERSIONS, 3, "response", _versions())
    for version in (5, 9):
        name = f"JoinGroup v{version} request"
        yield Case(name, api_keys.JOIN_GROUP, version, "request", _join(version))
    yield Case("JoinGroup v9 response, 10", api_keys.JOIN_GROUP, 9, "response", _joined())
    yield Case("Heartbeat v4 request", api_keys.HEARTBEAT, 4, "request", heartbeat())
    yield Case("OffsetCommit v8 request, 10", api_keys.OFFSET_COMMIT, 8, "request", _commit())


def produce(records: bytes) -> ProduceRequest:
    """Records for one partition."""
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name=_TOPIC, partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _produced() -> ProduceResponse:
    partition = PartitionProduceResponse(index=0, base_offset=123_456, log_start_offset=0)
    topic = TopicProduceResponse(name=_TOPIC, partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def fetch(topic: str = "", topic_id: bytes = bytes(16), partitions: int = 1) -> FetchRequest:
    """A request for some partitions of one topic."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=123_456, partition_max_bytes=MEGABYTE)
        for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * MEGABYTE,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)],
    )


def _fetched(topic: str = "", topic_id: bytes = bytes(16)) -> FetchResponse:
    partition = PartitionData(
        partition_index=0,
        high_watermark=200_000,
        last_stable_offset=200_000,
        log_start_offset=0,
        aborted_transactions=None,
        records=_RECORDS,
    )
    found = FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[partition])
    return FetchResponse(responses=[found])


def _metadata(version: int) -> MetadataResponse:
    brokers = [
        MetadataResponseBroker(node_id=node, host=f"broker-{node}.example.org", port=9092)
        for node in range(3)
    ]
    topics = [
        MetadataResponseTopic(
            name=f"some-topic-of-the-benchmark-{number:03}",
            topic_id=number.to_bytes(16, "big") if version >= 10 else bytes(16),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index,
                    leader_epoch=7,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
                for index in range(3)
            ],
        )
        for number in range(1, 101)
    ]
    return MetadataResponse(
        brokers=brokers, cluster_id="bX6zQ1v4SvqkP0hGkA8c2w", controller_id=1, topics=topics
    )


def _versions() -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(60)]
    return ApiVersionsResponse(api_keys=keys)


def _subscription() -> bytes:
    return b"".join((b"\0\3\0\0\0\1\0\x09", _TOPIC.encode(), bytes(100)))


def _join(version: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=_GROUP,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id=_MEMBER,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=_subscription())
            for name in ("range", "cooperative-sticky")
        ],
        reason="rebalance enforced by user" if version >= 8 else None,
    )


def _joined() -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=7,
        protocol_type="consumer",
        protocol_name="range",
        leader=_MEMBER,
        member_id=_MEMBER,
        members=[
            JoinGroupResponseMember(member_id=f"{_MEMBER}{number}", metadata=_subscription())
            for number in range(10)
        ],
    )


def heartbeat() -> HeartbeatRequest:
    """What every member sends every three seconds."""
    return HeartbeatRequest(group_id=_GROUP, generation_id=7, member_id=_MEMBER)


def _commit() -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=123_456 + index, committed_leader_epoch=3
        )
        for index in range(10)
    ]
    return OffsetCommitRequest(
        group_id=_GROUP,
        generation_id_or_member_epoch=7,
        member_id=_MEMBER,
        topics=[OffsetCommitRequestTopic(name=_TOPIC, partitions=partitions)],
    )
