"""Implements DeleteTopics, versions 0 to 6; version 6 also supports topic ids (KIP-516)."""

from __future__ import annotations

from collections import Counter

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState
from ..model._topic_store import Topic


@serves(api_keys.DELETE_TOPICS, 0, 6)
async def handle(
    broker: BrokerState, request: DeleteTopicsRequest, call: Call
) -> DeleteTopicsResponse:
    call.expect(len(request.topics) + len(request.topic_names))
    found: list[tuple[DeleteTopicState, Topic | None]] = []
    named: Counter[bytes] = Counter()
    for each in request.topics or request.topic_names:
        if call.must_pause():
            await call.pause()
        state = DeleteTopicState(name=each) if isinstance(each, str) else each
        topic = _find(broker, state)
        found.append((state, topic))
        if topic is not None:
            named[topic.id] += 1
    return DeleteTopicsResponse(
        responses=[await _delete(broker, call, state, topic, named) for state, topic in found]
    )


def _find(broker: BrokerState, state: DeleteTopicState) -> Topic | None:
    if state.name is not None:
        return broker.topics.get(state.name)
    return broker.topics.by_id(state.topic_id)


async def _delete(
    broker: BrokerState,
    call: Call,
    state: DeleteTopicState,
    topic: Topic | None,
    named: Counter[bytes],
) -> DeletableTopicResult:
    if call.must_pause():
        await call.pause()
    result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
    try:
        _check(broker, call, state, topic, named)
        if topic is None:
            raise ApiError(
                error_codes.UNKNOWN_TOPIC_ID
                if state.name is None
                else error_codes.UNKNOWN_TOPIC_OR_PARTITION,
                "the topic does not exist",
            )
        result.name, result.topic_id = topic.name, topic.id
        await broker.cluster.delete_topic(topic)
    except ApiError as error:
        result.error_code = error.error_code
        result.error_message = error.message or None
    return result


def _check(
    broker: BrokerState,
    call: Call,
    state: DeleteTopicState,
    topic: Topic | None,
    named: Counter[bytes],
) -> None:
    """Reject an invalid entry of the request (Kafka: ControllerApis.deleteTopics)."""
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
    if topic is not None and named[topic.id] > 1:
        raise ApiError(error_codes.INVALID_REQUEST, "the topic is in the request more than once")
