"""Implements DescribeTopicPartitions, version 0, which describes topics in pages (KIP-966).

A page contains as many partitions as the client requests, but at most
``max.request.partition.size.limit``. The cursor in the response marks where the next page starts.
Topics are sorted by name.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import islice

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    RequestCursor,
    ResponseCursor,
    TopicRequest,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import TOPIC_OPERATIONS, BrokerState
from ..model._leadership import NO_LEADER, Leadership
from ..model._topic_registry import check_topic_name, is_internal
from ..model._topic_store import Topic

# Sorting half a million names in one step would take half a second.
_SORTED_AT_ONCE = 2000


@serves(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, only_responds=True)
async def handle(
    broker: BrokerState, request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    call.expect(len(request.topics) or len(broker.topics))
    try:
        names = await _names(broker, request, call)
    except ApiError as error:
        # The response has no top-level error code, so the error is reported for each topic.
        return DescribeTopicPartitionsResponse(
            topics=call.elements(
                (_failed(topic.name, error) for topic in request.topics), len(request.topics)
            ),
            next_cursor=None,
        )
    limit = broker.config.integer("max.request.partition.size.limit")
    left = max(1, min(limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    for name in names:
        if call.must_pause():
            await call.pause()
        if not left:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=0)
            break
        first = _first_partition(request.cursor, name)
        topic = broker.topics.get(name)
        if topic is None:
            response.topics.append(_failed(name, _why_missing(name)))
            continue
        end = min(topic.partitions, first + left)
        response.topics.append(_describe(broker, topic, range(first, end)))
        if end < topic.partitions:
            response.next_cursor = ResponseCursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - first)
    return response


async def _names(
    broker: BrokerState, request: DescribeTopicPartitionsRequest, call: Call
) -> Iterable[str]:
    """Return the sorted names of the requested topics, or of all topics, starting at the cursor.

    Raises:
        ApiError: the cursor does not match the request (INVALID_REQUEST).
    """
    cursor = request.cursor
    start = cursor.topic_name if cursor is not None else ""
    requested: dict[str, None] = {}
    named: Sequence[TopicRequest | Topic] = request.topics or list(broker.topics)
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


def _first_partition(cursor: RequestCursor | None, name: str) -> int:
    return cursor.partition_index if cursor is not None and cursor.topic_name == name else 0


def _why_missing(name: str) -> ApiError:
    try:
        check_topic_name(name)
    except ApiError as error:
        if error.error_code == error_codes.INVALID_TOPIC_EXCEPTION:
            return error
    return ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION)


def _failed(name: str | None, error: ApiError) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=error.error_code,
        is_internal=is_internal(name or ""),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe(
    broker: BrokerState, topic: Topic, partitions: range
) -> DescribeTopicPartitionsResponseTopic:
    leadership = broker.cluster.leadership
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=[_partition(leadership, (topic.name, index)) for index in partitions],
    )


def _partition(
    leadership: Leadership[tuple[str, int]], key: tuple[str, int]
) -> DescribeTopicPartitionsResponsePartition:
    found = leadership.get(key)
    has_leader = found.leader != NO_LEADER
    return DescribeTopicPartitionsResponsePartition(
        error_code=error_codes.NONE if has_leader else error_codes.LEADER_NOT_AVAILABLE,
        partition_index=key[1],
        leader_id=found.leader,
        leader_epoch=found.epoch,
        replica_nodes=list(found.replicas),
        isr_nodes=leadership.in_sync(found),
        offline_replicas=leadership.offline_replicas(found),
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
