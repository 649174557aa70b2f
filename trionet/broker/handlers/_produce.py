"""Produce, versions 0 to 13: append records to partitions.

The answer leaves when the batches are in the log, and on the disk where ``flush.messages`` says so.
All replicas are one log: ``acks=all`` differs from ``acks=1`` only in that it is refused while too
few of them run (``min.insync.replicas``). ``acks=0`` has no answer; an error closes the connection,
as Kafka does, since nothing else could tell the client. A field holds one batch. Versions 0 to 2
bring message sets, which are converted to batches before they are stored. Batches in another
codec than the topic's ``compression.type`` are compressed anew. Gap: no transactions.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import trio

from ...errors import ApiError, WireFormatError
from ...net.wire._close_reason import CloseReason
from ...protocol import api_keys, error_codes
from ...protocol._wire import new
from ...protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ...protocol.records._batch import PREFIX_SIZE, iter_batches
from ...protocol.records.compression._codecs import ZSTD
from ...server._request_channel import NO_OP, CloseConnection, NoOp
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Appended, Log
from ..log._recompression import must_recompress, recompress
from ..log.files._directory import Buffer
from ..model._broker_state import BrokerState
from ..model._purgatory import AT_ONCE_MAX
from ..storage._record_conversion import batches_of, is_message_set

ALL: Final = -1
# A request with more is read in steps: a partition takes ten times as long as most elements.
QUICK_PARTITIONS: Final = 400
# Before, a field holds a message set, or batches all the same: Kafka takes both.
BATCHES_SINCE: Final = 3
# Before, clients do not know KAFKA_STORAGE_ERROR, and try again with the other (KIP-112).
STORAGE_ERROR_SINCE: Final = 4
ZSTD_SINCE: Final = 7
# Who has asked the wrong node is told the right one (KIP-951).
LEADER_SINCE: Final = 10

_unpack_length: Final = struct.Struct(">8xi").unpack_from

_Append = tuple[PartitionProduceResponse, Log, Appended]
# What is answered without an append, and the place of its topic in the request.
_Settled = tuple[int, PartitionProduceResponse]
# What has another codec than its topic's.
_Unlike = tuple[PartitionProduceResponse, TopicProduceData, PartitionProduceData]


@serves(api_keys.PRODUCE, 0, 13, never_waits=True, quick_elements=QUICK_PARTITIONS)
async def handle(
    broker: BrokerState, request: ProduceRequest, call: Call
) -> ProduceResponse | NoOp | CloseConnection | None:
    if call.version < BATCHES_SINCE and _has_message_sets(request):
        if call.is_long:
            await _produce_converted(broker, request, call)
            return None
        broker.nursery.start_soon(_produce_converted, broker, request, call, name="produce-convert")
        return None
    if call.is_long:
        response, appends, unlike = await _produce_paused(broker, request, call)
    else:
        response, appends, unlike = _produce_all(broker, request, call)
    if unlike:
        broker.nursery.start_soon(
            _produce_unlike, broker, request, call, response, appends, unlike, name="produce-codec"
        )
        return None
    return _finish(broker, request, call, response, appends)


# What takes its time is done in a task of its own, as a handler has others to answer. The order of
# a connection's requests stays, since it has only one of them out.


async def _produce_converted(broker: BrokerState, request: ProduceRequest, call: Call) -> None:
    try:
        settled: list[_Settled] = []
        request = await _with_batches(broker, request, call, settled)
        if call.is_long:
            response, appends, unlike = await _produce_paused(broker, request, call)
        else:
            response, appends, unlike = _produce_all(broker, request, call)
        for topic_index, answer in settled:
            response.responses[topic_index].partition_responses.append(answer)
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)
    else:
        await _produce_unlike(broker, request, call, response, appends, unlike)


async def _produce_unlike(
    broker: BrokerState,
    request: ProduceRequest,
    call: Call,
    response: ProduceResponse,
    appends: list[_Append],
    unlike: list[_Unlike],
) -> None:
    try:
        for entry in unlike:
            await _produce_recompressed(broker, request, call, entry, appends)
        answer = _finish(broker, request, call, response, appends)
        if answer is not None:
            _end(call, answer)
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)


def _produce_all(
    broker: BrokerState, request: ProduceRequest, call: Call
) -> tuple[ProduceResponse, list[_Append], list[_Unlike]]:
    """Append what can be appended as it is; what else there is to append is given back."""
    appends: list[_Append] = []
    unlike: list[_Unlike] = []
    topics: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        answers = [
            _produce(broker, request, call, topic, partition, appends, unlike)
            for partition in topic.partition_data
        ]
        topics.append(_topic_response(topic, answers))
    return _response(topics), appends, unlike


async def _produce_paused(
    broker: BrokerState, request: ProduceRequest, call: Call
) -> tuple[ProduceResponse, list[_Append], list[_Unlike]]:
    """The same for very many partitions; those are not given back that can be read already."""
    appends: list[_Append] = []
    unflushed: list[_Append] = []
    unlike: list[_Unlike] = []
    topics: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        answers: list[PartitionProduceResponse] = []
        for partition in topic.partition_data:
            if call.must_pause():
                unflushed += _tell_appended(broker, appends)
                appends.clear()
                await call.pause()
            answers.append(_produce(broker, request, call, topic, partition, appends, unlike))
        topics.append(_topic_response(topic, answers))
    return _response(topics), unflushed + appends, unlike


# Assigned: constructors take arguments by name, which takes longer than a small append.


def _response(topics: list[TopicProduceResponse]) -> ProduceResponse:
    response = new(ProduceResponse)
    response.responses = topics
    response.throttle_time_ms = 0
    response.node_endpoints = []
    response.unknown_tags = ()
    return response


def _topic_response(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    response = new(TopicProduceResponse)
    response.name = topic.name
    response.topic_id = topic.topic_id
    response.partition_responses = answers
    response.unknown_tags = ()
    return response


def _partition_response(index: int) -> PartitionProduceResponse:
    response = new(PartitionProduceResponse)
    response.index = index
    response.error_code = 0
    response.base_offset = -1
    response.log_append_time_ms = -1
    response.log_start_offset = -1
    response.record_errors = []
    response.error_message = None
    response.current_leader = None
    response.unknown_tags = ()
    return response


def _finish(
    broker: BrokerState,
    request: ProduceRequest,
    call: Call,
    response: ProduceResponse,
    appends: list[_Append],
) -> ProduceResponse | NoOp | CloseConnection | None:
    if call.has_errors and call.version >= LEADER_SINCE:
        _tell_leaders(broker, call, response)
    unflushed = _tell_appended(broker, appends)
    if unflushed:
        # A disk may take its time: the answer waits for it, the handler does not.
        broker.nursery.start_soon(
            _answer_when_flushed, broker, request, call, response, unflushed, name="produce-flush"
        )
        return None
    return _answer(request, response)


def _tell_appended(broker: BrokerState, appends: list[_Append]) -> list[_Append]:
    """Tell of what can be read now; the others are to be flushed before."""
    unflushed: list[_Append] = []
    broker.purgatory.allowance = AT_ONCE_MAX
    for append in appends:
        _, log, appended = append
        if log.must_flush:
            unflushed.append(append)
        elif appended.size:
            broker.appended(log, appended.size)
    return unflushed


def _has_message_sets(request: ProduceRequest) -> bool:
    return any(
        is_message_set(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    )


async def _with_batches(
    broker: BrokerState, request: ProduceRequest, call: Call, settled: list[_Settled]
) -> ProduceRequest:
    """The request as a newer client would have made it; what cannot be converted is settled."""
    topics: list[TopicProduceData] = []
    for topic in request.topic_data:
        partitions = []
        for partition in topic.partition_data:
            if call.must_pause():
                await call.pause()
            answer = PartitionProduceResponse(index=partition.index, base_offset=-1)
            log = broker.get_log(topic.name, partition.index)
            if log is None or partition.records is None:
                partitions.append(partition)  # is refused as in any version
                continue
            try:
                batches, count = await batches_of(partition.records, log.config)
            except ApiError as error:
                _refuse(call, answer, error)
                settled.append((len(topics), answer))
                continue
            if not batches:  # Kafka stores nothing, and calls it a success
                settled.append((len(topics), answer))
                continue
            broker.conversions.produced += count
            partitions.append(PartitionProduceData(index=partition.index, records=batches))
        topics.append(TopicProduceData(name=topic.name, partition_data=partitions))
    return ProduceRequest(acks=request.acks, timeout_ms=request.timeout_ms, topic_data=topics)


async def _answer_when_flushed(
    broker: BrokerState,
    request: ProduceRequest,
    call: Call,
    response: ProduceResponse,
    unflushed: list[_Append],
) -> None:
    try:
        async with trio.open_nursery() as nursery:
            for entry in unflushed:
                nursery.start_soon(_flush, broker, call, entry)
        _end(call, _answer(request, response))
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)


async def _flush(broker: BrokerState, call: Call, entry: _Append) -> None:
    answer, log, appended = entry
    try:
        await log.flush(appended.last_offset + 1)
    except ApiError as error:
        _refuse(call, answer, error)
        return
    if appended.size:
        broker.appended(log, appended.size)


def _end(call: Call, answer: ProduceResponse | NoOp | CloseConnection) -> None:
    if isinstance(answer, ProduceResponse):
        call.respond(answer)
    else:
        call.end(answer)


def _answer(
    request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse | NoOp | CloseConnection:
    return response if request.acks else _without_answer(response)


def _produce(
    broker: BrokerState,
    request: ProduceRequest,
    call: Call,
    topic: TopicProduceData,
    partition: PartitionProduceData,
    appends: list[_Append],
    unlike: list[_Unlike],
) -> PartitionProduceResponse:
    answer = _partition_response(partition.index)
    try:
        _check_request(request)
        log = _find_log(broker, call, topic, partition)
        records = partition.records
        if records is None:
            raise ApiError(error_codes.INVALID_RECORD, "the records are null")
        if not isinstance(records, bytes):  # else it was converted, perhaps to several
            _check_single(records)
        if call.version < ZSTD_SINCE:
            _check_codecs(records)
        if broker.has_replicas and request.acks == ALL:
            broker.check_replicas(log)
        if log.config.recompresses and must_recompress(records, log.config):
            unlike.append((answer, topic, partition))
        else:
            _append(broker, answer, log, records, appends)
    except ApiError as error:
        _refuse(call, answer, error)
    return answer


async def _produce_recompressed(
    broker: BrokerState,
    request: ProduceRequest,
    call: Call,
    unlike: _Unlike,
    appends: list[_Append],
) -> None:
    """In order, and before the answer: a connection has one request out."""
    answer, topic, partition = unlike
    try:
        log = _find_log(broker, call, topic, partition)
        records = await recompress(partition.records or b"", log, broker.now_ms())
        # Meanwhile the topic may be gone, or another node its leader.
        log = _find_log(broker, call, topic, partition)
        if broker.has_replicas and request.acks == ALL:
            broker.check_replicas(log)
        _append(broker, answer, log, records, appends)
    except ApiError as error:
        _refuse(call, answer, error)


def _find_log(
    broker: BrokerState, call: Call, topic: TopicProduceData, partition: PartitionProduceData
) -> Log:
    return broker.find_log(topic.topic_id if call.version >= 13 else topic.name, partition.index)


def _append(
    broker: BrokerState,
    answer: PartitionProduceResponse,
    log: Log,
    records: Buffer,
    appends: list[_Append],
) -> None:
    appended = log.append(records, broker.now_ms())
    answer.base_offset = appended.first_offset
    answer.log_append_time_ms = appended.log_append_time_ms
    answer.log_start_offset = appended.log_start_offset
    appends.append((answer, log, appended))


def _check_request(request: ProduceRequest) -> None:
    if request.acks not in (-1, 0, 1):
        raise ApiError(
            error_codes.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; -1, 0 and 1 are allowed"
        )
    if request.transactional_id is not None:
        raise ApiError(
            error_codes.INVALID_TXN_STATE, "transactions are not supported by this broker"
        )


def _check_single(records: memoryview | bytes | bytearray) -> None:
    """Refuse a second batch, as Kafka does (ProduceRequest.validateRecords).

    A field of 100 MB could hold a million, each of them to be checked before the first is stored.
    """
    behind = len(records) - 2 * PREFIX_SIZE
    if behind < 0:
        return
    (length,) = _unpack_length(records)
    # What is wrong with a negative length, or one beyond the end, is found by the log.
    if 0 < length <= behind:
        raise ApiError(
            error_codes.INVALID_RECORD,
            "there is a second batch; allowed: one for each partition of a request",
        )


def _check_codecs(records: memoryview | bytes | bytearray) -> None:
    """Refuse what a client of this version could not read back (KIP-110)."""
    try:
        has_zstd = any(header.codec == ZSTD for _, header in iter_batches(records))
    except WireFormatError:
        return  # no batches: the log says what is wrong with them
    if has_zstd:
        raise ApiError(
            error_codes.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce version {ZSTD_SINCE} or newer",
        )


def _refuse(call: Call, answer: PartitionProduceResponse, error: ApiError) -> None:
    call.has_errors = True
    code = error.error_code
    if code == error_codes.KAFKA_STORAGE_ERROR and call.version < STORAGE_ERROR_SINCE:
        code = error_codes.NOT_LEADER_OR_FOLLOWER
    answer.error_code = code
    answer.error_message = error.message or None
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1


def _tell_leaders(broker: BrokerState, call: Call, response: ProduceResponse) -> None:
    leaders = set()
    for topic in response.responses:
        name = topic.topic_id if call.version >= 13 else topic.name
        for answer in topic.partition_responses:
            if answer.error_code != error_codes.NOT_LEADER_OR_FOLLOWER:
                continue
            found = broker.leader_of(name, answer.index)
            if found is not None:
                answer.current_leader = LeaderIdAndEpoch(
                    leader_id=found.leader, leader_epoch=found.epoch
                )
                leaders.add(found.leader)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=address.host, port=address.port, rack=node.rack)
        for node, address in broker.addresses(call.listener_name, leaders)
    ]


def _without_answer(response: ProduceResponse) -> NoOp | CloseConnection:
    for name, failed in _failures(response):
        return CloseConnection(
            CloseReason.CLOSE_RESPONSE,
            f"a produce without answer (acks=0) to {name}-{failed.index} failed: "
            f"{error_codes.name_of(failed.error_code)} {failed.error_message or ''}".strip(),
        )
    return NO_OP


def _failures(response: ProduceResponse) -> Iterator[tuple[str, PartitionProduceResponse]]:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                yield topic.name or topic.topic_id.hex(), partition
