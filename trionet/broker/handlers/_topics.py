"""Implements CreateTopics, CreatePartitions and DeleteTopics.

(Kafka: ControllerApis.) An error with one topic of a request does not affect the others.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages import create_partitions, create_topics, delete_topics
from ..api._call import Call
from ..api._dispatch import serves
from ..config._alterations import check_operation_count
from ..config._describe import describe_topic
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_partition_count
from ..model._topic_store import Topic


@serves(api_keys.CREATE_TOPICS, 0, 7)
async def handle_create_topics(
    broker: BrokerState, request: create_topics.CreateTopicsRequest, call: Call
) -> create_topics.CreateTopicsResponse:
    """Handle CreateTopics, versions 0 to 7: create and describe topics (KIP-4, KIP-525)."""
    call.expect(len(request.topics))
    names = Counter(topic.name for topic in request.topics)
    results = []
    for name, requested in {topic.name: topic for topic in request.topics}.items():
        if call.must_pause():
            await call.pause()
        result = create_topics.CreatableTopicResult(name=name, error_message=None, configs=None)
        try:
            _check_once(name, names)
            settings = _settings(requested)
            if request.validate_only:
                topic = broker.topics.check(name, **settings)
            else:
                topic = await broker.cluster.create_topic(name, **settings)
                result.topic_id = topic.id
            result.num_partitions = topic.partitions
            result.replication_factor = topic.replication_factor
            result.configs = _configs(broker, topic)
        except ApiError as error:
            _fail(result, error)
        results.append(result)
    return create_topics.CreateTopicsResponse(topics=results)


def _settings(requested: create_topics.CreatableTopic) -> dict[str, Any]:
    check_partition_count(len(requested.assignments))
    check_operation_count(len(requested.configs))
    return {
        "partitions": requested.num_partitions,
        "replication_factor": requested.replication_factor,
        "assignments": tuple(
            (each.partition_index, tuple(each.broker_ids)) for each in requested.assignments
        ),
        "configs": tuple((config.name, config.value) for config in requested.configs),
    }


def _configs(broker: BrokerState, topic: Topic) -> list[create_topics.CreatableTopicConfigs]:
    return [
        create_topics.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(broker.settings, topic.configs)
    ]


@serves(api_keys.CREATE_PARTITIONS, 0, 3)
async def handle_create_partitions(
    broker: BrokerState, request: create_partitions.CreatePartitionsRequest, call: Call
) -> create_partitions.CreatePartitionsResponse:
    """Handle CreatePartitions, versions 0 to 3: add partitions to topics (KIP-195)."""
    call.expect(len(request.topics))
    names = Counter(topic.name for topic in request.topics)
    results = []
    for name, requested in {topic.name: topic for topic in request.topics}.items():
        if call.must_pause():
            await call.pause()
        result = create_partitions.CreatePartitionsTopicResult(name=name)
        try:
            _check_once(name, names)
            assignments = requested.assignments
            check_partition_count(len(assignments or ()))
            brokers = None if assignments is None else [each.broker_ids for each in assignments]
            if request.validate_only:
                broker.topics.check_growth(name, requested.count, brokers)
            else:
                await broker.cluster.create_partitions(name, requested.count, brokers)
        except ApiError as error:
            _fail(result, error)
        results.append(result)
    return create_partitions.CreatePartitionsResponse(results=results)


@serves(api_keys.DELETE_TOPICS, 0, 6)
async def handle_delete_topics(
    broker: BrokerState, request: delete_topics.DeleteTopicsRequest, call: Call
) -> delete_topics.DeleteTopicsResponse:
    """Handle DeleteTopics, versions 0 to 6; version 6 also supports topic ids (KIP-516)."""
    call.expect(len(request.topics) + len(request.topic_names))
    found: list[tuple[delete_topics.DeleteTopicState, Topic | None]] = []
    named: Counter[bytes] = Counter()
    for each in request.topics or request.topic_names:
        if call.must_pause():
            await call.pause()
        state = delete_topics.DeleteTopicState(name=each) if isinstance(each, str) else each
        topics = broker.topics
        topic = topics.by_id(state.topic_id) if state.name is None else topics.get(state.name)
        found.append((state, topic))
        if topic is not None:
            named[topic.id] += 1
    results = []
    for state, topic in found:
        if call.must_pause():
            await call.pause()
        result = delete_topics.DeletableTopicResult(name=state.name, topic_id=state.topic_id)
        try:
            topic = _deletable(broker, call, state, topic, named)
            result.name, result.topic_id = topic.name, topic.id
            broker.check_not_exclusive(topic.name)
            await broker.cluster.delete_topic(topic)
        except ApiError as error:
            _fail(result, error)
        results.append(result)
    return delete_topics.DeleteTopicsResponse(responses=results)


def _deletable(
    broker: BrokerState,
    call: Call,
    state: delete_topics.DeleteTopicState,
    topic: Topic | None,
    named: Counter[bytes],
) -> Topic:
    """Return the topic to delete, or reject the entry (Kafka: ControllerApis.deleteTopics)."""
    if not broker.config.flag("delete.topic.enable"):
        raise ApiError(
            error_codes.INVALID_REQUEST
            if call.version < 3
            else error_codes.TOPIC_DELETION_DISABLED,
            "delete.topic.enable is false on this broker",
        )
    has_id = any(state.topic_id)
    if state.name is None and not has_id:
        raise ApiError(error_codes.INVALID_REQUEST, "neither name nor id is set; set one of them")
    if state.name is not None and has_id:
        raise ApiError(error_codes.INVALID_REQUEST, "both name and id are set; set one of them")
    if topic is None:
        raise ApiError(
            error_codes.UNKNOWN_TOPIC_ID if has_id else error_codes.UNKNOWN_TOPIC_OR_PARTITION,
            "the topic does not exist",
        )
    if named[topic.id] > 1:
        raise ApiError(error_codes.INVALID_REQUEST, "the topic is in the request more than once")
    return topic


def _check_once(name: str, names: Counter[str]) -> None:
    if names[name] > 1:
        raise ApiError(
            error_codes.INVALID_REQUEST, f"topic {name!r} is in the request more than once"
        )


def _fail(
    result: create_topics.CreatableTopicResult
    | create_partitions.CreatePartitionsTopicResult
    | delete_topics.DeletableTopicResult,
    error: ApiError,
) -> None:
    result.error_code = error.error_code
    result.error_message = error.message or None
