"""Implements DeleteRecords, versions 0 to 2, which advances log start offsets (KIP-107).

The response contains the new log start offset. It is sent only once that offset has been written to
disk, so that deleted records do not reappear if the broker is killed. (Kafka writes the offset once
per minute.)
"""

from __future__ import annotations

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Log
from ..model._broker_state import BrokerState
from ..model._topic_registry import is_internal
from ..storage._storage_errors import storage_errors

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


@serves(api_keys.DELETE_RECORDS, 0, 2)
async def handle(
    broker: BrokerState, request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse | None:
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    if call.is_long:
        return await _delete_all(broker, request, call)
    # Removing many segments takes time and must not occupy a handler.
    broker.nursery.start_soon(_respond, broker, request, call, name="delete-records")
    return None


async def _respond(broker: BrokerState, request: DeleteRecordsRequest, call: Call) -> None:
    try:
        call.respond(await _delete_all(broker, request, call))
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)


async def _delete_all(
    broker: BrokerState, request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse:
    # If a partition is repeated, the last offset is used, as in Kafka.
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = requested.setdefault(topic.name, {})
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            offsets[each.partition_index] = each.offset
    response = DeleteRecordsResponse()
    deleted: list[tuple[DeleteRecordsPartitionResult, Log]] = []
    for name, offsets in requested.items():
        results = []
        for index, offset in offsets.items():
            if call.must_pause():
                await call.pause()
            result = DeleteRecordsPartitionResult(partition_index=index)
            try:
                deleted.append((result, await _delete(broker, name, index, offset)))
            except ApiError as error:
                _fail(result, error)
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    if deleted:
        await _make_durable(broker, deleted)
    return response


async def _delete(broker: BrokerState, topic: str, partition: int, offset: int) -> Log:
    log = broker.find_log(topic, partition)
    if is_internal(topic):
        raise ApiError(
            error_codes.INVALID_TOPIC_EXCEPTION,
            f"records of the internal topic {topic} cannot be deleted",
        )
    if not log.config.removes_old_segments:
        raise ApiError(
            error_codes.POLICY_VIOLATION,
            f"cleanup.policy of {topic} is {log.config.cleanup_policy}; records can only be deleted"
            " if it contains delete",
        )
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise ApiError(error_codes.OFFSET_OUT_OF_RANGE, f"invalid offset {offset}")
    with storage_errors():
        await broker.cluster.delete_records(log, offset)
    return log


async def _make_durable(
    broker: BrokerState, deleted: list[tuple[DeleteRecordsPartitionResult, Log]]
) -> None:
    try:
        with storage_errors():
            await broker.folder.write_start_offsets()
    except ApiError as error:
        for result, _ in deleted:
            _fail(result, error)
    else:
        for result, log in deleted:
            result.low_watermark = log.start_offset


def _fail(result: DeleteRecordsPartitionResult, error: ApiError) -> None:
    result.error_code = error.error_code
    result.low_watermark = NO_LOW_WATERMARK
