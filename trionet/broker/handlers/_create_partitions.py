"""Implements CreatePartitions, versions 0 to 3, which adds partitions to topics (KIP-195)."""

from __future__ import annotations

from collections import Counter

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_partition_count


@serves(api_keys.CREATE_PARTITIONS, 0, 3)
async def handle(
    broker: BrokerState, request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsResponse:
    call.expect(len(request.topics))
    names = Counter(topic.name for topic in request.topics)
    results = []
    for name, requested in {topic.name: topic for topic in request.topics}.items():
        if call.must_pause():
            await call.pause()
        result = CreatePartitionsTopicResult(name=name)
        try:
            if names[name] > 1:
                raise ApiError(
                    error_codes.INVALID_REQUEST, f"topic {name!r} is in the request more than once"
                )
            await _create(broker, requested, validate_only=request.validate_only)
        except ApiError as error:
            result.error_code = error.error_code
            result.error_message = error.message or None
        results.append(result)
    return CreatePartitionsResponse(results=results)


async def _create(
    broker: BrokerState, requested: CreatePartitionsTopic, *, validate_only: bool
) -> None:
    assignments = requested.assignments
    check_partition_count(len(assignments or ()))
    brokers = None if assignments is None else [each.broker_ids for each in assignments]
    if validate_only:
        broker.topics.check_growth(requested.name, requested.count, brokers)
    else:
        await broker.cluster.create_partitions(requested.name, requested.count, brokers)
