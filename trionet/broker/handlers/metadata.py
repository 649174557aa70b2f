"""Metadata, versions 0 to 13: the nodes that run, the topics, and who leads their partitions.

An unknown topic that is asked for by name is created where ``auto.create.topics.enable`` and the
request allow it, and is ready in the same answer (Kafka says LEADER_NOT_AVAILABLE first).
"""

from __future__ import annotations

from ...errors import ApiError
from ...protocol import error_codes
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..call import Call
from ..leadership import NO_LEADER, Leadership
from ..state import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, BrokerState
from ..topic_store import Topic
from ..topics import check_topic_name, is_internal

# The first version in which a topic may be asked for by its id (KIP-516).
BY_ID = 12


async def handle(broker: BrokerState, request: MetadataRequest, call: Call) -> MetadataResponse:
    # Up to version 0 an empty list asks for all topics; later null does.
    if request.topics is None or (call.version == 0 and not request.topics):
        topics = [_describe(broker, topic) for topic in broker.topics]
    else:
        topics = [await _find(broker, request, wanted, call.version) for wanted in request.topics]
    leadership = broker.cluster.leadership
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node.node_id, host=address.host, port=address.port, rack=node.rack
            )
            for node, address in broker.addresses(call.listener_name, leadership.nodes)
        ],
        cluster_id=broker.cluster_id,
        controller_id=leadership.controller,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


async def _find(
    broker: BrokerState, request: MetadataRequest, wanted: MetadataRequestTopic, version: int
) -> MetadataResponseTopic:
    name = wanted.name
    if version < BY_ID and (name is None or any(wanted.topic_id)):
        # The versions that have the fields but not the feature (Kafka: handleTopicMetadataRequest).
        return MetadataResponseTopic(
            name=name or "", topic_id=wanted.topic_id, error_code=error_codes.INVALID_REQUEST
        )
    if name is None or any(wanted.topic_id):
        by_id = broker.topics.by_id(wanted.topic_id)
        if by_id is not None:
            return _describe(broker, by_id)
        return MetadataResponseTopic(
            name=None, topic_id=wanted.topic_id, error_code=error_codes.UNKNOWN_TOPIC_ID
        )
    topic = broker.topics.get(name)
    if topic is not None:
        return _describe(broker, topic)
    try:
        check_topic_name(name)
        if not (request.allow_auto_topic_creation and broker.auto_create_topics):
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION)
        return _describe(broker, await broker.cluster.get_or_create_topic(name))
    except ApiError as error:
        return MetadataResponseTopic(name=name, error_code=error.error_code)


def _describe(broker: BrokerState, topic: Topic) -> MetadataResponseTopic:
    leadership = broker.cluster.leadership
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(leadership, (topic.name, index)) for index in range(topic.partitions)
        ],
    )


def _partition(
    leadership: Leadership[tuple[str, int]], key: tuple[str, int]
) -> MetadataResponsePartition:
    found = leadership.get(key)  # nobody leads it while its log is being made
    has_leader = found.leader != NO_LEADER
    return MetadataResponsePartition(
        error_code=error_codes.NONE if has_leader else error_codes.LEADER_NOT_AVAILABLE,
        partition_index=key[1],
        leader_id=found.leader,
        leader_epoch=found.epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=leadership.in_sync(found),
        offline_replicas=leadership.offline(found),
    )
