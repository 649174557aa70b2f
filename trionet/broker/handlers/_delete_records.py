"""DeleteRecords, versions 0 to 2: move the start of partitions forward (KIP-107).

The answer says where the partition starts now, and comes when that is on the disk: a broker that is
killed does not bring deleted records back. (Kafka writes it down once a minute.)
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
    # Removing many segments takes as long as the disk does: not in a handler.
    broker.nursery.start_soon(_answer, broker, request, call, name="delete-records")
    return None


async def _answer(broker: BrokerState, request: DeleteRecordsRequest, call: Call) -> None:
    try:
        call.respond(await _delete_all(broker, request, call))
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)


async def _delete_all(
    broker: BrokerState, request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse:
    # The last one counts of a partition that is named twice, as in Kafka.
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            offsets[each.partition_index] = each.offset
    response = DeleteRecordsResponse()
    deleted: list[tuple[DeleteRecordsPartitionResult, Log]] = []
    for name, offsets in wanted.items():
        results = []
        for index, offset in offsets.items():
            if call.must_pause():
                await call.pause()
            result = DeleteRecordsPartitionResult(partition_index=index)
            try:
                deleted.append((result, await _delete(broker, name, index, offset)))
            except ApiError as error:
                _refuse(result, error)
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
    if deleted:
        await _make_durable(broker, deleted)
    return response


async def _delete(broker: BrokerState, topic: str, partition: int, offset: int) -> Log:
    log = broker.find_log(topic, partition)
    if is_internal(topic):
        raise ApiError(
            error_codes.INVALID_TOPIC_EXCEPTION, f"records of {topic} are the broker's own"
        )
    if not log.config.removes_old_segments:
        raise ApiError(
            error_codes.POLICY_VIOLATION,
            f"cleanup.policy of {topic} is {log.config.cleanup_policy}; records are only deleted"
            " where it says delete",
        )
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise ApiError(error_codes.OFFSET_OUT_OF_RANGE, f"{offset} is no offset")
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
            _refuse(result, error)
    else:
        for result, log in deleted:
            result.low_watermark = log.start_offset


def _refuse(result: DeleteRecordsPartitionResult, error: ApiError) -> None:
    result.error_code = error.error_code
    result.low_watermark = NO_LOW_WATERMARK
