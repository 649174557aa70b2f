"""Implements CreateTopics, versions 0 to 7, which creates and describes topics (KIP-4, KIP-525)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..config._alterations import check_operation_count
from ..config._describe import describe_topic
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_partition_count
from ..model._topic_store import Topic


@serves(api_keys.CREATE_TOPICS, 0, 7)
async def handle(
    broker: BrokerState, request: CreateTopicsRequest, call: Call
) -> CreateTopicsResponse:
    call.expect(len(request.topics))
    names = Counter(topic.name for topic in request.topics)
    results = []
    for name, requested in {topic.name: topic for topic in request.topics}.items():
        if call.must_pause():
            await call.pause()
        result = CreatableTopicResult(name=name, error_message=None, configs=None)
        try:
            if names[name] > 1:
                raise ApiError(
                    error_codes.INVALID_REQUEST, f"topic {name!r} is in the request more than once"
                )
            settings = _settings(requested)
            if request.validate_only:
                topic = broker.topics.check(name, **settings)
            else:
                topic = await broker.cluster.create_topic(name, **settings)
                result.topic_id = topic.id
            _describe(broker, topic, result)
        except ApiError as error:
            result.error_code = error.error_code
            result.error_message = error.message or None
        results.append(result)
    return CreateTopicsResponse(topics=results)


def _settings(requested: CreatableTopic) -> dict[str, Any]:
    check_partition_count(len(requested.assignments))
    check_operation_count(len(requested.configs))
    return {
        "partitions": requested.num_partitions,
        "replication_factor": requested.replication_factor,
        "assignments": tuple(
            (assignment.partition_index, tuple(assignment.broker_ids))
            for assignment in requested.assignments
        ),
        "configs": tuple((config.name, config.value) for config in requested.configs),
    }


def _describe(broker: BrokerState, topic: Topic, result: CreatableTopicResult) -> None:
    result.num_partitions = topic.partitions
    result.replication_factor = topic.replication_factor
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(broker.settings, topic.configs)
    ]
