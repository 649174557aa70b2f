"""DeleteTopics, versions 1 to 6: by name, from version 6 on also by topic id (KIP-516)."""

from __future__ import annotations

from ...errors import ApiError
from ...protocol import error_codes
from ...protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..call import Call
from ..state import BrokerState


async def handle(
    broker: BrokerState, request: DeleteTopicsRequest, call: Call
) -> DeleteTopicsResponse:
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[await _delete(broker, state) for state in wanted])


async def _delete(broker: BrokerState, state: DeleteTopicState) -> DeletableTopicResult:
    result = DeletableTopicResult(name=state.name, topic_id=state.topic_id)
    try:
        if not broker.config.flag("delete.topic.enable"):
            raise ApiError(
                error_codes.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this broker"
            )
        if state.name is not None:
            topic = broker.topics.get(state.name)
            missing = error_codes.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic = broker.topics.by_id(state.topic_id)
            missing = error_codes.UNKNOWN_TOPIC_ID
        if topic is None:
            raise ApiError(missing, "there is no such topic")
        result.name, result.topic_id = topic.name, topic.id
        await broker.delete_topic(topic)
    except ApiError as error:
        result.error_code = error.error_code
        result.error_message = error.message or None
    return result
