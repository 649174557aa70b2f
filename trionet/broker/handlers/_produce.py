"""Implements Produce, versions 0 to 13.

The problem: a request takes 20 µs if its batches are appended unchanged, and much longer if they
must be converted, recompressed or flushed. A slow request must not occupy a handler, and the
requests of a connection must be processed in order.

The choice: :class:`_Produce`, which is structured like Fetch, performs fast steps in the handler
and slow steps in one task. The steps are always the same: convert, append, check records and
recompress where that is slow, flush if required, respond. The order of requests is kept, since a
connection has only one request in progress. A task per request was rejected, since starting a task
takes as long as an append.

* The response is sent once the batches are in the log, and on disk if ``flush.messages``
  requires it. All replicas share one log, so ``acks=all`` is the same as ``acks=1``, except that it
  is rejected while too few replicas are live (``min.insync.replicas``).
* A request with ``acks=0`` has no response. As in Kafka, an error closes the connection, since
  there is no other way to inform the client.
* A records field must contain exactly one batch.
* Versions 0 to 2 contain message sets, which are converted to batches before they are stored.
* A batch whose codec is not the topic's ``compression.type`` is recompressed.
* A topic with the name of one of Kafka's internal topics takes no records.
* A batch is rejected as a whole if any of its records has an invalid timestamp or, in a compacted
  topic, no key; the response lists these records (KIP-467).
* A transactional batch is appended only if the transaction coordinator allows it, which is a plain
  call. From version 12 on, that also adds the partition to the transaction (KIP-890).
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import trio

from ..._util._raising import raise_from
from ..._util.files._log_file import Buffer
from ...errors import ApiError, WireFormatError
from ...net.wire._close_reason import CloseReason
from ...protocol import api_keys, error_codes
from ...protocol._wire import new
from ...protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ...protocol.records._batch import PREFIX_SIZE, BatchHeader, iter_batches, read_header
from ...protocol.records.compression._codecs import ZSTD
from ...server._request_channel import NO_OP, CloseConnection, NoOp
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Appended, Log
from ..log.validation._recompression import must_recompress, recompress
from ..log.validation._record_checks import (
    RecordsRejectedError,
    check_records_in_steps,
    has_invalid_timestamp,
    must_check_before,
)
from ..model._broker_state import BrokerState
from ..model._purgatory import AT_ONCE_MAX
from ..model._topic_registry import check_not_internal
from ..storage._record_conversion import is_message_set, to_batches
from ._current_leader import CurrentLeaders, error_code_for, has_current_leader

ALL: Final = -1
# A request with more partitions is read in steps, since a partition takes ten times as long as most
# other elements.
QUICK_PARTITIONS: Final = 400
# Before this version, a records field contains a message set or batches; Kafka accepts both.
BATCHES_SINCE: Final = 3
ZSTD_SINCE: Final = 7
# From this version on, a transactional batch adds its partition to the transaction (KIP-890).
ADDING_SINCE: Final = 12
# Before this version, producers do not know TRANSACTION_ABORTABLE.
ABORTABLE_SINCE: Final = 11
NO_TRANSACTION_VERSION: Final = -1
TOPIC_ID_SINCE: Final = 13

_unpack_length: Final = struct.Struct(">8xi").unpack_from

_Append = tuple[PartitionProduceResponse, Log, Appended]
# A batch whose records must be checked in steps, or that must be recompressed, or both.
_Delayed = tuple[PartitionProduceResponse, TopicProduceData, PartitionProduceData]


@serves(api_keys.PRODUCE, 0, 13, never_waits=True, quick_elements=QUICK_PARTITIONS)
async def handle_produce(
    broker: BrokerState, request: ProduceRequest, call: Call
) -> ProduceResponse | NoOp | CloseConnection | None:
    produced = _Produce(broker, request, call)
    if call.version < BATCHES_SINCE and _has_message_sets(request):
        if call.is_long:
            await produced.convert_and_respond()
            return None
        broker.nursery.start_soon(produced.convert_and_respond, name="produce-convert")
        return None
    if call.is_long:
        await produced.append_paused()
    else:
        produced.append()
    if produced.delayed:
        broker.nursery.start_soon(produced.append_delayed_and_respond, name="produce-delayed")
        return None
    return produced.finish()


class _Produce:
    """A Produce call: its results, its appends, and the batches to append later.

    Attributes:
        delayed: the batches whose records must be checked, or that must be recompressed, before
            they are appended, which takes too long for a handler.
    """

    __slots__ = (
        "_appends",
        "_broker",
        "_call",
        "_has_one_producer",
        "_request",
        "_topics",
        "delayed",
    )

    def __init__(self, broker: BrokerState, request: ProduceRequest, call: Call) -> None:
        self._broker = broker
        self._request = request
        self._call = call
        self._topics: list[TopicProduceResponse] = []
        self._appends: list[_Append] = []
        self._has_one_producer = True
        self.delayed: list[_Delayed] = []

    # Slow steps, which run in tasks.

    async def convert_and_respond(self) -> None:
        """Convert message sets to batches, append the batches and respond."""
        call = self._call
        try:
            rejected = await self._convert()
            if call.is_long:
                await self.append_paused()
            else:
                self.append()
            for topic_index, result in rejected:
                self._topics[topic_index].partition_responses.append(result)
        except Exception as error:  # boundary: one call, in a task of its own
            call.fail(error)
        else:
            await self.append_delayed_and_respond()

    async def append_delayed_and_respond(self) -> None:
        """Check, recompress and append the remaining batches, then respond."""
        call = self._call
        try:
            for entry in self.delayed:
                await self._append_delayed(entry)
            response = self.finish()
            if response is not None:
                _respond(call, response)
        except Exception as error:  # boundary: one call, in a task of its own
            call.fail(error)

    async def _flush_and_respond(self, response: ProduceResponse, unflushed: list[_Append]) -> None:
        call = self._call
        try:
            async with trio.open_nursery() as nursery:
                for entry in unflushed:
                    nursery.start_soon(self._flush, entry)
            _respond(call, self._response_or_none(response))
        except Exception as error:  # boundary: one call, in a task of its own
            call.fail(error)

    # Converting.

    async def _convert(self) -> list[tuple[int, PartitionProduceResponse]]:
        """Replace the request with an equivalent one with batches instead of message sets.

        Returns:
            For each partition to which nothing is appended, the index of its topic and its result.
        """
        broker, call, request = self._broker, self._call, self._request
        results: list[tuple[int, PartitionProduceResponse]] = []
        topics: list[TopicProduceData] = []
        for topic in request.topic_data:
            partitions = []
            for partition in topic.partition_data:
                if call.must_pause():
                    await call.pause()
                result = PartitionProduceResponse(index=partition.index, base_offset=-1)
                log = broker.get_log(topic.name, partition.index)
                if log is None or partition.records is None:
                    partitions.append(partition)  # rejected as in any version
                    continue
                try:
                    batches, count = await to_batches(partition.records, log.config)
                except ApiError as error:
                    self._fail(result, error)
                    results.append((len(topics), result))
                    continue
                if not batches:  # Kafka appends nothing, and reports success
                    results.append((len(topics), result))
                    continue
                broker.conversions.produced += count
                partitions.append(PartitionProduceData(index=partition.index, records=batches))
            topics.append(TopicProduceData(name=topic.name, partition_data=partitions))
        self._request = ProduceRequest(
            acks=request.acks, timeout_ms=request.timeout_ms, topic_data=topics
        )
        return results

    # Appending.

    def append(self) -> None:
        """Append all batches except :attr:`delayed` ones, which this finds."""
        if self._request.transactional_id is not None:
            producers = set(_transactional_producers(self._request)) - {None}
            self._has_one_producer = len(producers) <= 1
        for topic in self._request.topic_data:
            results = [
                self._append_partition(topic, partition) for partition in topic.partition_data
            ]
            self._topics.append(_topic_response(topic, results))

    async def append_paused(self) -> None:
        """Do the same as :meth:`append`, but with pauses, for a large number of partitions."""
        call = self._call
        if self._request.transactional_id is not None:
            producers: set[tuple[int, int]] = set()
            for producer in _transactional_producers(self._request):
                if call.must_pause():
                    await call.pause()
                if producer is not None:
                    producers.add(producer)
            self._has_one_producer = len(producers) <= 1
        unflushed: list[_Append] = []
        for topic in self._request.topic_data:
            results: list[PartitionProduceResponse] = []
            for partition in topic.partition_data:
                if call.must_pause():
                    # Consumers need not wait for the rest of the request.
                    unflushed += self._notify()
                    self._appends = []
                    await call.pause()
                results.append(self._append_partition(topic, partition))
            self._topics.append(_topic_response(topic, results))
        self._appends = unflushed + self._appends

    def _append_partition(
        self, topic: TopicProduceData, partition: PartitionProduceData
    ) -> PartitionProduceResponse:
        broker, call, request = self._broker, self._call, self._request
        result = _partition_response(partition.index)
        try:
            _check_request(request)
            log = self._find_log(topic, partition)
            check_not_internal(log.topic)
            broker.check_not_exclusive(log.topic)
            records = partition.records
            if records is None:
                raise ApiError(error_codes.INVALID_RECORD, "the records are null")
            if not isinstance(records, bytes):  # bytes were converted, perhaps to several batches
                _check_single(records)
            if call.version < ZSTD_SINCE:
                _check_codecs(records)
            if broker.has_replicas and request.acks == ALL:
                broker.check_replicas(log)
            if (log.config.checks_records and must_check_before(records)) or (
                log.config.recompresses and must_recompress(records, log.config)
            ):
                self.delayed.append((result, topic, partition))
            else:
                self._append(result, log, records)
        except ApiError as error:
            if error.error_code == error_codes.INVALID_TIMESTAMP and not isinstance(
                error, RecordsRejectedError
            ):
                self.delayed.append((result, topic, partition))  # to find out which records
            else:
                self._fail(result, error)
        return result

    async def _append_delayed(self, entry: _Delayed) -> None:
        result, topic, partition = entry
        broker = self._broker
        records: Buffer = partition.records or b""
        try:
            log = self._find_log(topic, partition)
            # Whether the transaction takes the batch is checked when it is appended.
            version = NO_TRANSACTION_VERSION if self._request.transactional_id is None else 0
            config, now_ms = log.config, broker.now_ms()
            if config.checks_records or has_invalid_timestamp(records, config, now_ms):
                name = f"{log.topic}-{log.partition}"
                await check_records_in_steps(records, config, log.directory, name, now_ms, version)
            if config.recompresses and must_recompress(records, config):
                records = await recompress(records, config, log.directory, now_ms, version)
            # Looked up again, since the topic or its leader may have changed.
            log = self._find_log(topic, partition)
            if broker.has_replicas and self._request.acks == ALL:
                broker.check_replicas(log)
            self._append(result, log, records, records_are_checked=log.config is config)
        except ApiError as error:
            self._fail(result, error)

    def _find_log(self, topic: TopicProduceData, partition: PartitionProduceData) -> Log:
        name = topic.topic_id if self._call.version >= TOPIC_ID_SINCE else topic.name
        return self._broker.find_log(name, partition.index)

    def _append(
        self,
        result: PartitionProduceResponse,
        log: Log,
        records: Buffer,
        *,
        records_are_checked: bool = False,
    ) -> None:
        version = NO_TRANSACTION_VERSION
        if self._request.transactional_id is not None:
            version = self._check_transaction(log, records)
        appended = log.append(
            records, self._broker.now_ms(), version, records_are_checked=records_are_checked
        )
        result.base_offset = appended.first_offset
        result.log_append_time_ms = appended.log_append_time_ms
        result.log_start_offset = appended.log_start_offset
        self._appends.append((result, log, appended))

    def _check_transaction(self, log: Log, records: Buffer) -> int:
        """Return the protocol of the transaction that a batch belongs to; -1 if it has none.

        Raises:
            ApiError: the coordinator does not allow the batch.
        """
        header = _transactional_header(records)
        if header is None:
            return NO_TRANSACTION_VERSION
        if not self._has_one_producer:
            raise ApiError(
                error_codes.INVALID_PRODUCER_ID_MAPPING,
                "the transactional batches of one request must have the same producer id and epoch",
            )
        broker, version = self._broker, self._call.version
        if version < ADDING_SINCE and not broker.config.flag(
            "transaction.partition.verification.enable"
        ):
            return 0
        try:
            checked: int = broker.cluster.transactions.check_batch(
                self._request.transactional_id or "",
                header.producer_id,
                header.producer_epoch,
                log,
                adds_partition=version >= ADDING_SINCE,
            )
        except ApiError as error:
            raise_from(ApiError(transaction_error(error.error_code, version), error.message), error)
        return checked

    # Responding.

    def _fail(self, result: PartitionProduceResponse, error: ApiError) -> None:
        self._call.has_errors = True
        result.error_code = error_code_for(self._call, error.error_code)
        result.error_message = error.message or None
        result.base_offset = -1
        result.log_append_time_ms = -1
        result.log_start_offset = -1
        if isinstance(error, RecordsRejectedError):
            self._broker.records_without_key += error.without_key
            result.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in error.records.items()
            ]

    def finish(self) -> ProduceResponse | NoOp | CloseConnection | None:
        """Return the response, or None if a task sends it after a flush."""
        call = self._call
        response = _response(self._topics)
        if call.has_errors and has_current_leader(call):
            self._add_current_leaders(response)
        unflushed = self._notify()
        if unflushed:
            # The disk may be slow, so the response waits for the flush but the handler does not.
            self._broker.nursery.start_soon(
                self._flush_and_respond, response, unflushed, name="produce-flush"
            )
            return None
        return self._response_or_none(response)

    def _notify(self) -> list[_Append]:
        """Wake fetches that can read the records, and return the appends to flush first."""
        broker = self._broker
        unflushed: list[_Append] = []
        broker.purgatory.allowance = AT_ONCE_MAX
        for append in self._appends:
            _, log, appended = append
            if log.must_flush:
                unflushed.append(append)
            elif appended.size:
                broker.appended(log, appended.size)
        return unflushed

    async def _flush(self, entry: _Append) -> None:
        result, log, appended = entry
        try:
            await log.flush(appended.last_offset + 1)
        except ApiError as error:
            self._fail(result, error)
            return
        if appended.size:
            self._broker.appended(log, appended.size)

    def _add_current_leaders(self, response: ProduceResponse) -> None:
        call = self._call
        leaders = CurrentLeaders(self._broker, call)
        for topic in response.responses:
            name = topic.topic_id if call.version >= TOPIC_ID_SINCE else topic.name
            for result in topic.partition_responses:
                result.current_leader = leaders.find(
                    name, result.index, result.error_code, LeaderIdAndEpoch
                )
        response.node_endpoints = leaders.endpoints(NodeEndpoint)

    def _response_or_none(
        self, response: ProduceResponse
    ) -> ProduceResponse | NoOp | CloseConnection:
        """Return the response; with acks=0, a no-op or, after an error, CloseConnection."""
        if self._request.acks:
            return response
        for name, failed in _failures(response):
            return CloseConnection(
                CloseReason.CLOSE_RESPONSE,
                f"a Produce request with acks=0 to {name}-{failed.index} failed: "
                f"{error_codes.name_of(failed.error_code)} {failed.error_message or ''}".strip(),
            )
        return NO_OP


def _respond(call: Call, response: ProduceResponse | NoOp | CloseConnection) -> None:
    if isinstance(response, ProduceResponse):
        call.respond(response)
    else:
        call.end(response)


# Fields are assigned, since a constructor with keyword arguments takes longer than a small append.


def _response(topics: list[TopicProduceResponse]) -> ProduceResponse:
    response = new(ProduceResponse)
    response.responses = topics
    response.throttle_time_ms = 0
    response.node_endpoints = []
    response.unknown_tags = ()
    return response


def _topic_response(
    topic: TopicProduceData, results: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    response = new(TopicProduceResponse)
    response.name = topic.name
    response.topic_id = topic.topic_id
    response.partition_responses = results
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


def _failures(response: ProduceResponse) -> Iterator[tuple[str, PartitionProduceResponse]]:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                yield topic.name or topic.topic_id.hex(), partition


# Checks.


def _has_message_sets(request: ProduceRequest) -> bool:
    return any(
        is_message_set(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    )


def _check_request(request: ProduceRequest) -> None:
    if request.acks not in (-1, 0, 1):
        raise ApiError(
            error_codes.INVALID_REQUIRED_ACKS, f"invalid acks={request.acks}; allowed: -1, 0, 1"
        )


def transaction_error(error_code: int, version: int) -> int:
    """Return the error code with which Produce reports that a transaction is refused.

    (Kafka: AddPartitionsToTxnManager.) Producers abort after INVALID_PRODUCER_EPOCH, but stop after
    PRODUCER_FENCED. Producers that do not expect CONCURRENT_TRANSACTIONS retry NOT_ENOUGH_REPLICAS,
    without asking for new metadata.

    Args:
        error_code: the error code of the transaction's coordinator.
        version: the version of the request.
    """
    if error_code == error_codes.PRODUCER_FENCED:
        return error_codes.INVALID_PRODUCER_EPOCH
    if error_code == error_codes.CONCURRENT_TRANSACTIONS and version < ADDING_SINCE:
        return error_codes.NOT_ENOUGH_REPLICAS
    if error_code == error_codes.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return error_codes.INVALID_TXN_STATE
    return error_code


def _transactional_header(records: Buffer | None) -> BatchHeader | None:
    """Return the header of the batch if it is transactional; None if not, or if it is invalid."""
    if records is None:
        return None
    try:
        header = read_header(records)
    except WireFormatError:
        return None  # the log reports the error
    return header if header.is_transactional else None


def _transactional_producers(request: ProduceRequest) -> Iterator[tuple[int, int] | None]:
    """Yield the producer id and epoch of each batch that is transactional, and None for others."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            header = _transactional_header(partition.records)
            yield None if header is None else (header.producer_id, header.producer_epoch)


def _check_single(records: memoryview | bytes | bytearray) -> None:
    """Reject a records field with several batches (Kafka: ProduceRequest.validateRecords).

    A field of 100 MB could contain a million batches, which would all have to be validated before
    the first append.
    """
    rest = len(records) - 2 * PREFIX_SIZE
    if rest < 0:
        return
    (length,) = _unpack_length(records)
    # The log reports the error if the length is negative or too large.
    if 0 < length <= rest:
        raise ApiError(
            error_codes.INVALID_RECORD,
            "the records field contains a second batch; it must contain exactly one",
        )


def _check_codecs(records: memoryview | bytes | bytearray) -> None:
    """Reject zstd, which consumers as old as this producer cannot read (KIP-110)."""
    try:
        has_zstd = any(header.codec == ZSTD for _, header in iter_batches(records))
    except WireFormatError:
        return  # not batches; the log reports the error
    if has_zstd:
        raise ApiError(
            error_codes.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd requires Produce version {ZSTD_SINCE} or newer",
        )
