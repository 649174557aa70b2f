"""Implements Metadata, versions 0 to 13, which lists live nodes, topics, partitions and leaders.

An unknown topic that is requested by name is created if ``auto.create.topics.enable`` and the
request allow it. The topic's error is then UNKNOWN_TOPIC_OR_PARTITION, as with Apache Kafka 4.3.1
in all versions, and the next response contains its partitions. With
``auto.create.topics.ready.at.once``, the first response already contains them.
"""

from __future__ import annotations

import logging
from functools import partial

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, BrokerState
from ..model._leadership import NO_LEADER, Leadership
from ..model._topic_registry import check_topic_name, is_internal
from ..model._topic_store import Topic

logger = logging.getLogger("trionet.broker")

# The first version in which a topic may be requested by its id (KIP-516).
BY_ID = 12
# The value if operations were not requested (KIP-430).
NO_OPERATIONS = -(2**31)


@serves(api_keys.METADATA, 0, 13, only_responds=True)
async def handle(
    broker: BrokerState, request: MetadataRequest, call: Call
) -> MetadataResponse | None:
    # An empty list requests all topics in version 0. In later versions, null does.
    found: list[Topic | MetadataResponseTopic]
    if request.topics is None or (call.version == 0 and not request.topics):
        found = list(broker.topics)
    else:
        found = await _find_all(broker, request, call)
    partitions = sum(each.partitions for each in found if isinstance(each, Topic))
    if call.must_be_long(len(found) + partitions):
        # Calling the handler again would not report topics that were just created as new.
        call.continue_as_long_call(partial(_respond, broker, request, call, found))
        return None
    return await _respond(broker, request, call, found)


async def _respond(
    broker: BrokerState,
    request: MetadataRequest,
    call: Call,
    found: list[Topic | MetadataResponseTopic],
) -> MetadataResponse:
    leadership = broker.cluster.leadership
    operations = NO_OPERATIONS
    if request.include_topic_authorized_operations:
        operations = TOPIC_OPERATIONS
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node.node_id, host=address.host, port=address.port, rack=node.rack
            )
            for node, address in broker.addresses(call.listener_name, leadership.nodes)
        ],
        cluster_id=broker.cluster_id,
        controller_id=leadership.controller,
        topics=call.elements(map(partial(_describe, broker, call, operations), found), len(found)),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


async def _find_all(
    broker: BrokerState, request: MetadataRequest, call: Call
) -> list[Topic | MetadataResponseTopic]:
    """Find or create the requested topics; return them without duplicates, as Kafka does."""
    found: dict[tuple[str | None, bytes], Topic | MetadataResponseTopic] = {}
    only_responds = call.only_responds
    if request.allow_auto_topic_creation and broker.auto_create_topics:
        call.only_responds = False  # topics are created even if the client has disconnected
    for requested in request.topics or ():
        if call.must_pause():
            await call.pause()
        each = _find(broker, requested, call.version)
        if each is None:
            each = await _create(broker, request, requested.name or "")
        found.setdefault((each.name, each.id if isinstance(each, Topic) else each.topic_id), each)
    call.only_responds = only_responds
    return list(found.values())


def _find(
    broker: BrokerState, requested: MetadataRequestTopic, version: int
) -> Topic | MetadataResponseTopic | None:
    """Return the topic or an error response; None if the named topic does not exist."""
    name = requested.name
    if version < BY_ID and (name is None or any(requested.topic_id)):
        # Versions 10 and 11 have the fields but not the feature (Kafka:
        # handleTopicMetadataRequest).
        return MetadataResponseTopic(
            name=name or "", topic_id=requested.topic_id, error_code=error_codes.INVALID_REQUEST
        )
    if name is not None and not any(requested.topic_id):
        return broker.topics.get(name)
    by_id = broker.topics.by_id(requested.topic_id)
    if by_id is not None:
        return by_id
    return MetadataResponseTopic(
        name=None, topic_id=requested.topic_id, error_code=error_codes.UNKNOWN_TOPIC_ID
    )


async def _create(
    broker: BrokerState, request: MetadataRequest, name: str
) -> Topic | MetadataResponseTopic:
    """Create a topic if allowed; return it, or the error that Kafka returns during creation."""
    try:
        check_topic_name(name)
    except ApiError as error:
        return MetadataResponseTopic(name=name, error_code=error.error_code)
    error_code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if request.allow_auto_topic_creation and broker.auto_create_topics:
        try:
            created = await broker.cluster.get_or_create_topic(name)
        except ApiError as error:
            if broker.are_created_topics_ready:
                error_code = error.error_code
            else:
                logger.info("cannot create the topic %r requested by a client: %s", name, error)
        else:
            if broker.are_created_topics_ready:
                return created
    return MetadataResponseTopic(name=name, error_code=error_code)


def _describe(
    broker: BrokerState, call: Call, operations: int, topic: Topic | MetadataResponseTopic
) -> MetadataResponseTopic:
    if isinstance(topic, MetadataResponseTopic):
        return topic  # already a response with an error
    leadership = broker.cluster.leadership
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=operations,
        partitions=call.elements(
            map(partial(_partition, leadership, topic.name), range(topic.partitions)),
            topic.partitions,
        ),
    )


def _partition(
    leadership: Leadership[tuple[str, int]], topic: str, index: int
) -> MetadataResponsePartition:
    found = leadership.get((topic, index))  # without a leader while its log is being created
    has_leader = found.leader != NO_LEADER
    return MetadataResponsePartition(
        error_code=error_codes.NONE if has_leader else error_codes.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=found.leader,
        leader_epoch=found.epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=leadership.in_sync(found),
        offline_replicas=leadership.offline_replicas(found),
    )
