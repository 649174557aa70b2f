"""Implements the transaction APIs of producers and administrators (KIP-98, KIP-664, KIP-890).

Produce and TxnOffsetCommit, which take part in transactions, are in :mod:`._produce` and
:mod:`._offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    write_txn_markers,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._offsets_partition import OFFSETS_TOPIC, PARTITIONS, partition_of
from ..log import Log
from ..log.state._producer_state import NO_TRANSACTION, ProducerEntry
from ..model._broker_state import BrokerState
from ..model._topic_registry import check_topic_name, is_internal
from ..transactions._id_pattern import IdPattern
from ..transactions._transaction import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_TIME,
    TV1,
    TV2,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
    unknown_id,
)

# Before these versions, clients know only INVALID_PRODUCER_EPOCH (KIP-588).
FENCED_SINCE_INIT: Final = 4
FENCED_SINCE: Final = 2

BATCHED_SINCE: Final = 4
TV2_END_SINCE: Final = 5

# How many steps of an id pattern take as long as one element of a request or response.
STEPS_PER_ELEMENT: Final = 50

# Names that Kafka accepts as filters, although no transaction is ever listed in these states.
_KNOWN_STATES = {each.value for each in TransactionState} | {"PrepareEpochFence", "Dead"}

Partitions = tuple[list[Log], list[int]]
"""The logs, and the partitions of ``__consumer_offsets``, that a request names."""


@serves(api_keys.INIT_PRODUCER_ID, 0, 5)
async def handle_init_producer_id(
    broker: BrokerState, request: init_producer_id.InitProducerIdRequest, call: Call
) -> init_producer_id.InitProducerIdResponse | None:
    """Handle InitProducerId, versions 0 to 5, for idempotent and transactional producers.

    Producer ids are unique, even across restarts.
    """

    def respond(result: ProducerIdAndEpoch | ApiError) -> None:
        call.respond(_initialized(result, call.version))

    id = request.transactional_id
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    coordinator = broker.cluster.transactions
    try:
        if (expected.producer_id == NO_PRODUCER) != (expected.epoch == NO_EPOCH):
            raise ApiError(
                error_codes.INVALID_REQUEST, "a producer id and epoch must be sent together"
            )
        if id is None:
            producer_id = await broker.cluster.next_producer_id()
            return _initialized(ProducerIdAndEpoch(producer_id, 0), call.version)
        timeout_ms = request.transaction_timeout_ms
        max_ms = broker.config.integer("transaction.max.timeout.ms")
        if id and not 0 < timeout_ms <= max_ms:
            raise ApiError(
                error_codes.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms = {timeout_ms}; allowed: 1 to {max_ms}, the broker's"
                " transaction.max.timeout.ms",
            )
        _check_coordinator(broker, id)
        new_producer_id = await coordinator.producer_id_for(id)
        coordinator.initialize(id, timeout_ms, expected, new_producer_id, respond)
    except ApiError as error:
        return _initialized(error, call.version)
    return None


def _initialized(
    result: ProducerIdAndEpoch | ApiError, version: int
) -> init_producer_id.InitProducerIdResponse:
    if isinstance(result, ApiError):
        return init_producer_id.InitProducerIdResponse(
            error_code=_code(result, version, FENCED_SINCE_INIT), producer_epoch=NO_EPOCH
        )
    return init_producer_id.InitProducerIdResponse(
        producer_id=result.producer_id, producer_epoch=result.epoch
    )


@serves(api_keys.ADD_PARTITIONS_TO_TXN, 0, 5)
async def handle_add_partitions_to_txn(
    broker: BrokerState, request: add_partitions_to_txn.AddPartitionsToTxnRequest, call: Call
) -> add_partitions_to_txn.AddPartitionsToTxnResponse | None:
    """Handle AddPartitionsToTxn, versions 0 to 5.

    Clients send versions up to 3, with one transaction. Kafka's brokers send the other ones to each
    other, with many; here they have no need to, but the requests are served all the same.
    """
    if call.version < BATCHED_SINCE:
        transactions = [
            add_partitions_to_txn.AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    else:
        transactions = request.transactions
    topics = [topic for each in transactions for topic in each.topics]
    call.expect(len(topics) + sum(len(topic.partitions) for topic in topics))
    results: list[add_partitions_to_txn.AddPartitionsToTxnResult] = [
        add_partitions_to_txn.AddPartitionsToTxnResult(transactional_id=each.transactional_id)
        for each in transactions
    ]
    missing = len(transactions)

    def added(index: int, codes: Callable[[str, int], int]) -> None:
        nonlocal missing
        topics = transactions[index].topics
        results[index].topic_results = call.elements(
            (_topic_result(topic, codes, call) for topic in topics), len(topics)
        )
        missing -= 1
        if not missing:
            call.respond(_added(results, call.version))

    for index, each in enumerate(transactions):
        if call.must_pause():
            await call.pause()
        await _add_partitions(broker, each, call, partial(added, index))
    return _added([], call.version) if not transactions else None


async def _add_partitions(  # noqa: ASYNC910 - a checkpoint only if there is much to do
    broker: BrokerState,
    request: add_partitions_to_txn.AddPartitionsToTxnTransaction,
    call: Call,
    done: Callable[[Callable[[str, int], int]], None],
) -> None:
    """Add or verify the partitions of one transaction, and then report their error codes."""

    def all_have(error: ApiError | None) -> None:
        code = error_codes.NONE if error is None else _code(error, call.version, FENCED_SINCE)
        done(lambda _topic, _number: code)

    id = request.transactional_id
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        found, failed = await _find_partitions(broker, request, call)
        if failed:
            done(lambda *key: failed.get(key, error_codes.OPERATION_NOT_ATTEMPTED))
            return
        _check_coordinator(broker, id)
        coordinator = broker.cluster.transactions
        if not request.verify_only:
            protocol = TV2 if call.version >= BATCHED_SINCE else TV1
            logs, offsets_partitions = found
            coordinator.add(id, producer, logs, offsets_partitions, protocol, all_have)
            return
        transaction = coordinator.check_added(id, producer)
    except ApiError as error:
        all_have(error)
        return
    belongs = _belongs_to(transaction)
    done(lambda *key: error_codes.NONE if key in belongs else error_codes.TRANSACTION_ABORTABLE)


async def _find_partitions(  # noqa: ASYNC910 - a checkpoint only if there is much to do
    broker: BrokerState,
    request: add_partitions_to_txn.AddPartitionsToTxnTransaction,
    call: Call,
) -> tuple[Partitions, dict[tuple[str, int], int]]:
    """Return the partitions that a request names, and the error codes of those it must not name."""
    logs: list[Log] = []
    offsets_partitions: list[int] = []
    failed: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for number in topic.partitions:
            if call.must_pause():
                await call.pause()
            log = broker.get_log(topic.name, number)
            if topic.name == broker.exclusive_topic or (
                is_internal(topic.name) and call.version < BATCHED_SINCE
            ):
                # A client adds the partition of a group with AddOffsetsToTxn.
                failed[topic.name, number] = error_codes.TOPIC_AUTHORIZATION_FAILED
            elif topic.name == OFFSETS_TOPIC and number in range(PARTITIONS):
                offsets_partitions.append(number)
            elif log is None:
                failed[topic.name, number] = error_codes.UNKNOWN_TOPIC_OR_PARTITION
            else:
                logs.append(log)
    return (logs, offsets_partitions), failed


def _topic_result(
    topic: add_partitions_to_txn.AddPartitionsToTxnTopic,
    codes: Callable[[str, int], int],
    call: Call,
) -> add_partitions_to_txn.AddPartitionsToTxnTopicResult:
    return add_partitions_to_txn.AddPartitionsToTxnTopicResult(
        name=topic.name,
        results_by_partition=call.elements(
            (
                add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=codes(topic.name, number)
                )
                for number in topic.partitions
            ),
            len(topic.partitions),
        ),
    )


def _added(
    results: list[add_partitions_to_txn.AddPartitionsToTxnResult], version: int
) -> add_partitions_to_txn.AddPartitionsToTxnResponse:
    response = add_partitions_to_txn.AddPartitionsToTxnResponse()
    if version < BATCHED_SINCE:
        response.results_by_topic_v3_and_below = results[0].topic_results
    else:
        response.results_by_transaction = results
    return response


@serves(api_keys.ADD_OFFSETS_TO_TXN, 0, 4)
async def handle_add_offsets_to_txn(  # noqa: ASYNC910 - responds when the partition is stored
    broker: BrokerState, request: add_offsets_to_txn.AddOffsetsToTxnRequest, call: Call
) -> None:
    """Handle AddOffsetsToTxn, versions 0 to 4: add a group's offsets to a transaction."""

    def respond(error: ApiError | None) -> None:
        code = error_codes.NONE if error is None else _code(error, call.version, FENCED_SINCE)
        call.respond(add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=code))

    id = request.transactional_id
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        _check_coordinator(broker, id)
        number = partition_of(request.group_id)
        broker.cluster.transactions.add(id, producer, (), [number], TV1, respond)
    except ApiError as error:
        respond(error)


@serves(api_keys.END_TXN, 0, 5)
async def handle_end_txn(
    broker: BrokerState, request: end_txn.EndTxnRequest, call: Call
) -> end_txn.EndTxnResponse | None:
    """Handle EndTxn, versions 0 to 5: commit or abort a transaction.

    The response is sent when the decision is stored and, normally, the markers are written. From
    version 5 on, it contains the producer id and epoch of the next transaction (KIP-890).
    """

    def respond(result: ProducerIdAndEpoch | ApiError) -> None:
        call.respond(_ended(result, call.version))

    id = request.transactional_id
    coordinator = broker.cluster.transactions
    try:
        _check_coordinator(broker, id)
        new_producer_id = NO_PRODUCER
        if call.version >= TV2_END_SINCE and id in coordinator.transactions:
            new_producer_id = await coordinator.producer_id_for(id)
        coordinator.end(
            id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            version=TV2 if call.version >= TV2_END_SINCE else TV1,
            new_producer_id=new_producer_id,
            done=respond,
        )
    except ApiError as error:
        return _ended(error, call.version)
    return None


def _ended(result: ProducerIdAndEpoch | ApiError, version: int) -> end_txn.EndTxnResponse:
    if isinstance(result, ApiError):
        return end_txn.EndTxnResponse(error_code=_code(result, version, FENCED_SINCE))
    if version < TV2_END_SINCE:
        return end_txn.EndTxnResponse()
    return end_txn.EndTxnResponse(producer_id=result.producer_id, producer_epoch=result.epoch)


def _code(error: ApiError, version: int, fenced_since: int) -> int:
    if error.error_code == error_codes.PRODUCER_FENCED and version < fenced_since:
        return error_codes.INVALID_PRODUCER_EPOCH
    return error.error_code


def _check_coordinator(broker: BrokerState, id: str) -> None:
    """Check that this node coordinates a transactional id.

    Raises:
        ApiError: INVALID_REQUEST if the id is empty, or NOT_COORDINATOR.
    """
    if not id:
        raise ApiError(error_codes.INVALID_REQUEST, "the transactional id is empty")
    if broker.cluster.transaction_coordinator_of(id) != broker.node_id:
        raise ApiError(
            error_codes.NOT_COORDINATOR, f"another node coordinates the transactions of {id!r}"
        )


# Administration.


@serves(api_keys.WRITE_TXN_MARKERS, 1, 2)
async def handle_write_txn_markers(
    broker: BrokerState, request: write_txn_markers.WriteTxnMarkersRequest, call: Call
) -> write_txn_markers.WriteTxnMarkersResponse:
    """Handle WriteTxnMarkers, versions 1 and 2, with which administrators end hanging transactions.

    Kafka's coordinators also send it to the leaders of partitions. Here, they write the markers
    themselves.
    """
    topics = [topic for marker in request.markers for topic in marker.topics]
    call.expect(len(topics) + sum(len(topic.partition_indexes) for topic in topics))
    results: dict[int, write_txn_markers.WritableTxnMarkerResult] = {}
    for marker in request.markers:
        if call.must_pause():
            await call.pause()
        result = results.setdefault(
            marker.producer_id,
            write_txn_markers.WritableTxnMarkerResult(producer_id=marker.producer_id),
        )
        for topic in marker.topics:
            if call.must_pause():
                await call.pause()
            partitions = []
            for number in topic.partition_indexes:
                if call.must_pause():
                    await call.pause()
                code = await _write_marker(broker, marker, topic.name, number)
                partitions.append(
                    write_txn_markers.WritableTxnMarkerPartitionResult(
                        partition_index=number, error_code=code
                    )
                )
            result.topics.append(
                write_txn_markers.WritableTxnMarkerTopicResult(
                    name=topic.name, partitions=partitions
                )
            )
    return write_txn_markers.WriteTxnMarkersResponse(markers=list(results.values()))


async def _write_marker(
    broker: BrokerState, marker: write_txn_markers.WritableTxnMarker, topic: str, number: int
) -> int:
    try:
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise ApiError(error_codes.INVALID_REQUEST, "a marker needs a producer id and epoch")
        log = broker.find_log(topic, number)
        broker.check_not_exclusive(topic)
        appended = log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            is_commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            now_ms=broker.now_ms(),
        )
        if log.must_flush:
            await log.flush(appended.last_offset + 1)
    except ApiError as error:
        return error.error_code
    broker.appended(log, appended.size)
    return error_codes.NONE


@serves(api_keys.DESCRIBE_TRANSACTIONS, 0, 0, only_responds=True)
async def handle_describe_transactions(
    broker: BrokerState, request: describe_transactions.DescribeTransactionsRequest, call: Call
) -> describe_transactions.DescribeTransactionsResponse:
    """Handle DescribeTransactions, version 0 (KIP-664).

    An id that is named twice is described once.
    """
    ids = list(dict.fromkeys(request.transactional_ids))
    transactions = broker.cluster.transactions.transactions
    found = [transactions[id] for id in ids if id in transactions]
    call.expect(len(ids) + sum(len(each.partitions) for each in found))
    described = []
    for id in ids:
        if call.must_pause():
            await call.pause()
        described.append(_describe(broker, id))
    return describe_transactions.DescribeTransactionsResponse(transaction_states=described)


def _describe(broker: BrokerState, id: str) -> describe_transactions.TransactionState:
    try:
        _check_coordinator(broker, id)
        transaction = broker.cluster.transactions.transactions.get(id)
        if transaction is None or transaction.current is None:
            raise ApiError(error_codes.TRANSACTIONAL_ID_NOT_FOUND, unknown_id(id).message)
    except ApiError as error:
        return describe_transactions.TransactionState(
            transactional_id=id, error_code=error.error_code
        )
    current = transaction.current
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(_belongs_to(transaction)):
        topics.setdefault(topic, []).append(number)
    return describe_transactions.TransactionState(
        transactional_id=id,
        transaction_state=current.state.value,
        transaction_timeout_ms=current.timeout_ms,
        transaction_start_time_ms=current.started_at_ms,
        producer_id=current.shown.producer_id,
        producer_epoch=current.shown.epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=numbers)
            for topic, numbers in topics.items()
        ],
    )


def _belongs_to(transaction: Transaction[Log]) -> set[tuple[str, int]]:
    belongs = {(log.topic, log.partition) for log in transaction.partitions}
    return belongs | {(OFFSETS_TOPIC, number) for number in transaction.offsets_partitions}


@serves(api_keys.LIST_TRANSACTIONS, 0, 2, only_responds=True)
async def handle_list_transactions(
    broker: BrokerState, request: list_transactions.ListTransactionsRequest, call: Call
) -> list_transactions.ListTransactionsResponse:
    """Handle ListTransactions, versions 0 to 2: the transactional ids that this node coordinates.

    They can be filtered by state, producer id, duration (KIP-994) and pattern (KIP-1152).
    """
    transactions = broker.cluster.transactions.transactions
    text = request.transactional_id_pattern
    try:
        pattern = IdPattern(text) if text else None
    except ValueError:
        return list_transactions.ListTransactionsResponse(
            error_code=error_codes.INVALID_REGULAR_EXPRESSION
        )
    steps = 0 if pattern is None else sum(map(len, transactions)) * pattern.size
    call.expect(len(transactions) + steps // STEPS_PER_ELEMENT)
    states, ids = set(request.state_filters), set(request.producer_id_filters)
    now_ms = broker.now_ms()
    listed = []
    for transaction in list(transactions.values()):
        if call.must_pause():
            await call.pause()
        current = transaction.current
        if (
            current is not None
            and (not states or current.state.value in states)
            and (not ids or current.shown.producer_id in ids)
            and _has_lasted(current.started_at_ms, now_ms, request.duration_filter)
            and broker.cluster.transaction_coordinator_of(transaction.id) == broker.node_id
            and (pattern is None or await call.run_with_pauses(pattern.steps(transaction.id)))
        ):
            listed.append(
                list_transactions.TransactionState(
                    transactional_id=transaction.id,
                    producer_id=current.shown.producer_id,
                    transaction_state=current.state.value,
                )
            )
    return list_transactions.ListTransactionsResponse(
        unknown_state_filters=[each for each in request.state_filters if each not in _KNOWN_STATES],
        transaction_states=call.elements(iter(listed), len(listed)),
    )


def _has_lasted(started_at_ms: int, now_ms: int, duration_ms: int) -> bool:
    """Return whether a transaction passes the duration filter, as all do that never began."""
    return duration_ms < 0 or started_at_ms == NO_TIME or now_ms - started_at_ms > duration_ms


@serves(api_keys.DESCRIBE_PRODUCERS, 0, 0, only_responds=True)
async def handle_describe_producers(
    broker: BrokerState, request: describe_producers.DescribeProducersRequest, call: Call
) -> describe_producers.DescribeProducersResponse:
    """Handle DescribeProducers, version 0: the producers that wrote to partitions (KIP-664).

    A partition that is named twice is described once.
    """
    keys = [(topic.name, number) for topic in request.topics for number in topic.partition_indexes]
    logs = {broker.get_log(*key) for key in keys}
    call.expect(len(keys) + sum(len(log.producers) for log in logs if log is not None))
    topics: dict[str, list[describe_producers.PartitionResponse]] = {}
    for topic, number in dict.fromkeys(keys):
        if call.must_pause():
            await call.pause()
        described = _describe_partition(broker, topic, number, call)
        topics.setdefault(topic, []).append(described)
    return describe_producers.DescribeProducersResponse(
        topics=[
            describe_producers.TopicResponse(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )


def _describe_partition(
    broker: BrokerState, topic: str, number: int, call: Call
) -> describe_producers.PartitionResponse:
    try:
        check_topic_name(topic)
        log = _find_replica(broker, topic, number)
    except ApiError as error:
        return describe_producers.PartitionResponse(
            partition_index=number, error_code=error.error_code, error_message=error.message
        )
    producers = dict(log.producers)
    return describe_producers.PartitionResponse(
        partition_index=number,
        active_producers=call.elements(_producers_of(log, producers), len(producers)),
    )


def _find_replica(broker: BrokerState, topic: str, number: int) -> Log:
    """Return the log of a partition of which this node has a replica, even if it does not lead.

    Raises:
        ApiError: there is no such partition, or this node has no replica.
    """
    log = broker.get_log(topic, number)
    if log is None or broker.node_id not in broker.cluster.leadership[topic, number].replicas:
        return broker.find_log(topic, number)  # which raises the error
    return log


def _producers_of(
    log: Log, producers: Mapping[int, ProducerEntry]
) -> Iterator[describe_producers.ProducerState]:
    open_transactions = dict(log.open_transactions)
    for producer_id, entry in producers.items():
        yield describe_producers.ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=open_transactions.get(producer_id, NO_TRANSACTION),
        )
