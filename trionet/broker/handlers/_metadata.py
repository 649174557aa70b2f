"""Implements Metadata, DescribeTopicPartitions and DescribeCluster, which describe the cluster."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from ..._util._logging import get_logger
from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages import describe_cluster, metadata
from ...protocol.messages import describe_topic_partitions as pages
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, BrokerState
from ..model._leadership import NO_LEADER, Leadership
from ..model._topic_registry import check_not_internal, check_topic_name, is_internal
from ..model._topic_store import Topic

logger = get_logger("trionet.broker")

# The first version in which a topic may be requested by its id (KIP-516).
BY_ID = 12
# The value if operations were not requested (KIP-430).
NO_OPERATIONS = -(2**31)
# Sorting half a million names in one step would take half a second.
_SORTED_AT_ONCE = 2000
BROKERS = 1
CONTROLLERS = 2

P = TypeVar("P")


@serves(api_keys.METADATA, 0, 13, only_responds=True)
async def handle_metadata(
    broker: BrokerState, request: metadata.MetadataRequest, call: Call
) -> metadata.MetadataResponse | None:
    """Handle Metadata, versions 0 to 13, which lists live nodes, topics, partitions and leaders.

    An unknown topic that is requested by name is created if ``auto.create.topics.enable`` and the
    request allow it, and the response contains its partitions. Without
    ``auto.create.topics.ready.at.once``, its error is UNKNOWN_TOPIC_OR_PARTITION, as with Apache
    Kafka 4.3.1 in all versions, and only the next response contains them.
    """
    # An empty list requests all topics in version 0. In later versions, null does.
    found: list[Topic | metadata.MetadataResponseTopic]
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
    request: metadata.MetadataRequest,
    call: Call,
    found: list[Topic | metadata.MetadataResponseTopic],
) -> metadata.MetadataResponse:
    leadership = broker.cluster.leadership
    operations = NO_OPERATIONS
    if request.include_topic_authorized_operations:
        operations = TOPIC_OPERATIONS
    response = metadata.MetadataResponse(
        brokers=[
            metadata.MetadataResponseBroker(
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
    broker: BrokerState, request: metadata.MetadataRequest, call: Call
) -> list[Topic | metadata.MetadataResponseTopic]:
    """Find or create the requested topics; return them without duplicates, as Kafka does."""
    found: dict[tuple[str | None, bytes], Topic | metadata.MetadataResponseTopic] = {}
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
    broker: BrokerState, requested: metadata.MetadataRequestTopic, version: int
) -> Topic | metadata.MetadataResponseTopic | None:
    """Return the topic or an error response; None if the named topic does not exist."""
    name = requested.name
    if version < BY_ID and (name is None or any(requested.topic_id)):
        # Versions 10 and 11 have the fields but not the feature (Kafka:
        # handleTopicMetadataRequest).
        return metadata.MetadataResponseTopic(
            name=name or "", topic_id=requested.topic_id, error_code=error_codes.INVALID_REQUEST
        )
    if name is not None and not any(requested.topic_id):
        return broker.topics.get(name)
    by_id = broker.topics.by_id(requested.topic_id)
    if by_id is not None:
        return by_id
    return metadata.MetadataResponseTopic(
        name=None, topic_id=requested.topic_id, error_code=error_codes.UNKNOWN_TOPIC_ID
    )


async def _create(
    broker: BrokerState, request: metadata.MetadataRequest, name: str
) -> Topic | metadata.MetadataResponseTopic:
    """Create a topic if allowed; return it, or the error that Kafka returns during creation."""
    may_create = request.allow_auto_topic_creation and broker.auto_create_topics
    try:
        check_topic_name(name)
        if may_create:
            check_not_internal(name)
    except ApiError as error:
        return metadata.MetadataResponseTopic(name=name, error_code=error.error_code)
    error_code = error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if may_create:
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
    return metadata.MetadataResponseTopic(name=name, error_code=error_code)


def _describe(
    broker: BrokerState, call: Call, operations: int, topic: Topic | metadata.MetadataResponseTopic
) -> metadata.MetadataResponseTopic:
    if isinstance(topic, metadata.MetadataResponseTopic):
        return topic  # already a response with an error
    leadership, kind = broker.cluster.leadership, metadata.MetadataResponsePartition
    describe = _partition if call.version else _partition_of_live_replicas
    return metadata.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=operations,
        partitions=call.elements(
            map(partial(describe, kind, leadership, topic.name), range(topic.partitions)),
            topic.partitions,
        ),
    )


def _partition_of_live_replicas(
    kind: type[metadata.MetadataResponsePartition],
    leadership: Leadership[tuple[str, int]],
    topic: str,
    index: int,
) -> metadata.MetadataResponsePartition:
    """Describe a partition to clients of version 0, which look up every replica's address.

    As in Kafka, replicas that are not live are left out, and are an error.
    """
    partition = _partition(kind, leadership, topic, index)
    offline = partition.offline_replicas
    if offline:
        partition.replica_nodes = [each for each in partition.replica_nodes if each not in offline]
        partition.isr_nodes = [each for each in partition.isr_nodes if each not in offline]
        partition.error_code = partition.error_code or error_codes.REPLICA_NOT_AVAILABLE
    return partition


def _partition(
    kind: Callable[..., P], leadership: Leadership[tuple[str, int]], topic: str, index: int
) -> P:
    """Describe a partition with the class of an API's response."""
    found = leadership.get((topic, index))  # without a leader while its log is being created
    has_leader = found.leader != NO_LEADER
    return kind(
        error_code=error_codes.NONE if has_leader else error_codes.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=found.leader,
        leader_epoch=found.epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=leadership.in_sync(found),
        offline_replicas=leadership.offline_replicas(found),
    )


@serves(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, only_responds=True)
async def handle_describe_topic_partitions(
    broker: BrokerState,
    request: pages.DescribeTopicPartitionsRequest,
    call: Call,
) -> pages.DescribeTopicPartitionsResponse:
    """Handle DescribeTopicPartitions, version 0, which describes topics in pages (KIP-966).

    A page contains as many partitions as the client requests, but at most
    ``max.request.partition.size.limit``. The cursor in the response marks where the next page
    starts. Topics are sorted by name.
    """
    call.expect(len(request.topics) or len(broker.topics))
    try:
        names = await _names(broker, request, call)
    except ApiError as error:
        # The response has no top-level error code, so the error is reported for each topic.
        return pages.DescribeTopicPartitionsResponse(
            topics=call.elements(
                (_failed(topic.name, error) for topic in request.topics), len(request.topics)
            ),
            next_cursor=None,
        )
    limit = broker.config.integer("max.request.partition.size.limit")
    left = max(1, min(limit, request.response_partition_limit))
    response = pages.DescribeTopicPartitionsResponse(next_cursor=None)
    cursor = request.cursor
    for name in names:
        if call.must_pause():
            await call.pause()
        if not left:
            response.next_cursor = pages.ResponseCursor(topic_name=name, partition_index=0)
            break
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        topic = broker.topics.get(name)
        if topic is None:
            response.topics.append(_failed(name, _why_missing(name)))
            continue
        end = min(topic.partitions, first + left)
        response.topics.append(_described_topic(broker, topic, range(first, end)))
        if end < topic.partitions:
            response.next_cursor = pages.ResponseCursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - first)
    return response


async def _names(
    broker: BrokerState,
    request: pages.DescribeTopicPartitionsRequest,
    call: Call,
) -> Iterable[str]:
    """Return the sorted names of the requested topics, or of all topics, starting at the cursor.

    Raises:
        ApiError: the cursor does not match the request (INVALID_REQUEST).
    """
    cursor = request.cursor
    start = cursor.topic_name if cursor is not None else ""
    requested: dict[str, None] = {}
    named: Sequence[pages.TopicRequest | Topic] = request.topics or list(broker.topics)
    for topic in named:
        if call.must_pause():
            await call.pause()
        requested[topic.name] = None
    if cursor is not None and request.topics and start not in requested:
        raise ApiError(
            error_codes.INVALID_REQUEST, f"the cursor's topic {start!r} is not requested"
        )
    if cursor is not None and cursor.partition_index < 0:
        raise ApiError(
            error_codes.INVALID_REQUEST,
            f"invalid partition {cursor.partition_index} in the cursor",
        )
    names = iter(requested)
    runs = []
    while some := list(islice(names, _SORTED_AT_ONCE)):
        runs.append(sorted(name for name in some if name >= start))
        if call.must_pause():
            await call.pause()
    return heapq.merge(*runs)


def _why_missing(name: str) -> ApiError:
    try:
        check_topic_name(name)
    except ApiError as error:
        if error.error_code == error_codes.INVALID_TOPIC_EXCEPTION:
            return error
    return ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION)


def _failed(name: str | None, error: ApiError) -> pages.DescribeTopicPartitionsResponseTopic:
    return pages.DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=error.error_code,
        is_internal=is_internal(name or ""),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described_topic(
    broker: BrokerState, topic: Topic, partitions: range
) -> pages.DescribeTopicPartitionsResponseTopic:
    leadership = broker.cluster.leadership
    kind = partial(
        pages.DescribeTopicPartitionsResponsePartition,
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
    return pages.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=[_partition(kind, leadership, topic.name, index) for index in partitions],
    )


@serves(api_keys.DESCRIBE_CLUSTER, 0, 2, only_responds=True)
async def handle_describe_cluster(
    broker: BrokerState, request: describe_cluster.DescribeClusterRequest, call: Call
) -> describe_cluster.DescribeClusterResponse:
    """Handle DescribeCluster, versions 0 to 2, for brokers (KIP-700), not controllers (KIP-919)."""
    if request.endpoint_type != BROKERS:
        is_known = request.endpoint_type == CONTROLLERS
        return describe_cluster.DescribeClusterResponse(
            error_code=error_codes.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else error_codes.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is not supported;"
            " allowed: 1 (brokers)",
        )
    leadership = broker.cluster.leadership
    nodes = broker.cluster.live_nodes()
    if request.include_fenced_brokers:
        all_nodes = broker.cluster.nodes.values()
        nodes += [node for node in all_nodes if not leadership.is_live(node.node_id)]
    response = describe_cluster.DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=leadership.controller,
        brokers=[
            describe_cluster.DescribeClusterBroker(
                broker_id=node.node_id,
                host=address.host,
                port=address.port,
                rack=node.rack,
                is_fenced=not leadership.is_live(node.node_id),
            )
            for node in nodes
            for address in [node.advertised[call.listener_name]]
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
