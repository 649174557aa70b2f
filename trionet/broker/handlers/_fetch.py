"""Implements Fetch, versions 0 to 18, which reads records and waits if there are too few.

The problem: most fetches wait, and a waiting fetch must cost almost nothing. A read must neither
block the event loop nor copy records, and a fetch of thousands of partitions must not block the
event loop either.

The choice: :class:`Fetch`, which is structured like Produce, reads in the handler. If it reads
fewer than ``min_bytes``, it becomes a delayed operation in the purgatory until enough records are
appended or ``max_wait_ms`` has passed. Meanwhile it occupies no handler and no buffers, and it
reads again when the operation completes. Records are file ranges, which are sent with ``sendfile``.
Records outside the page cache are first read by a worker thread. A large number of partitions is
read in steps. A task per waiting fetch was rejected, because a thousand idle consumers would need a
thousand tasks, which every append would wake.

* The first partition with data returns at least one complete batch, even beyond the limits
  (KIP-74).
* Fetch sessions are supported (KIP-227).
* For versions 0 to 3, batches are converted to message sets.

Gap: no followers; replica ids other than a consumer's are rejected.
"""

# Compiled by mypyc.

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Final, cast

import trio

from ...errors import ApiError
from ...net.wire._transmission import FileRange
from ...protocol import api_keys, error_codes
from ...protocol._wire import new
from ...protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Log, LogRead
from ..model._broker_state import BrokerState
from ..model._fetch_sessions import Client, FetchContext, FetchedPartition, client_of
from ..storage._record_conversion import to_message_set
from ..storage._storage_errors import storage_errors
from ._current_leader import CurrentLeaders, error_code_for, has_current_leader

READ_COMMITTED: Final = 1
# Before this version, batches are converted to messages of format 1 (format 0 up to version 1).
BATCHES_SINCE: Final = 4
FORMAT_1_SINCE: Final = 2
# Before this version, messages are truncated at the limit of the partition (KIP-74). Batches are
# always read completely, since they must be converted.
WHOLE_MESSAGE_SINCE: Final = 3
# Ranges up to this size are read and sent with the rest of the response. This takes a system call
# but saves a packet and a sendfile call, which takes as long as five other system calls.
COPIED_BYTES_MAX: Final = 16 * 1024
# A fetch of more partitions is served in steps, since each partition takes 5 µs or more.
QUICK_PARTITIONS: Final = 400
# How often a long fetch reads changed partitions again if it still has too few bytes. Then it
# responds anyway, since a wait would miss the records appended during the last read.
READS_MAX: Final = 3
# How many partitions are read, or added to the response, in one step.
READ_AT_ONCE: Final = 100


@serves(api_keys.FETCH, 0, 18, only_responds=True, quick_elements=QUICK_PARTITIONS)
async def handle_fetch(
    broker: BrokerState, request: FetchRequest, call: Call
) -> FetchResponse | None:
    now = trio.current_time()
    sessions = broker.fetch_sessions
    try:
        if not call.is_long:
            context = sessions.open(request, call.version, now)
        else:
            context = await call.run_with_pauses(sessions.open_in_steps(request, call.version, now))
    except ApiError as error:
        call.has_errors = True
        return FetchResponse(error_code=error.error_code)
    session = context.session
    if session is not None and not context.is_incremental:
        session.client = client_of(call.client_id, call.request.peer_address)
    log_topic = broker.request_log_topic
    if log_topic is not None and log_topic.is_read_by(context):
        call.request.is_left_out = True
    fetch = Fetch(broker, request, call, context)
    if fetch.is_long:
        call.continue_as_long_call(fetch.read_in_steps)
        return None
    fetch.read()
    if fetch.must_wait:
        fetch.wait()
        return None
    if call.version < BATCHES_SINCE:
        # Converting takes time and must not occupy a handler.
        broker.nursery.start_soon(fetch.respond_later, name="fetch-convert")
        return None
    if fetch.reader.cold_partitions:
        await fetch.reader.finish()
    return fetch.response()


class _Reader:
    """A single read of partitions within the limits of a request.

    Attributes:
        results: the results by partition, in the order in which the partitions were read.
        size: the total size of the records, in bytes.
        has_error: whether a partition has an error.
        has_diverged: whether the client has read records of a partition that the log has lost.
        reads_old_segments: whether records are from a segment before the active one, so that more
            follow without any append.
        cold_partitions: the partitions whose records are not in the page cache, with their logs.
    """

    __slots__ = (
        "_broker",
        "_call",
        "_request",
        "cold_partitions",
        "has_diverged",
        "has_error",
        "reads_old_segments",
        "results",
        "size",
    )

    def __init__(self, broker: BrokerState, request: FetchRequest, call: Call) -> None:
        self._broker = broker
        self._request = request
        self._call = call
        self.results: dict[FetchedPartition, PartitionData] = {}
        self.size = 0
        self.has_error = False
        self.has_diverged = False
        self.reads_old_segments = False
        self.cold_partitions: list[tuple[FetchedPartition, Log]] = []

    def read(self, partitions: list[FetchedPartition]) -> None:
        """Read the given partitions in order."""
        for partition in partitions:
            data = self.results[partition] = _partition_data(partition.key[1])
            try:
                topic, index = partition.key
                log = self._broker.find_log(topic, index, partition.current_leader_epoch)
                self._check_replica()
                with storage_errors():
                    self._read(partition, log, data)
            except ApiError as error:
                self._fail(partition, error.error_code)

    async def finish(self) -> None:
        """Read the cold partitions, and convert batches for old clients."""
        if self.cold_partitions:
            await self._read_cold_partitions()
        if self._call.version < BATCHES_SINCE:
            await self._convert()

    async def _read_cold_partitions(self) -> None:
        """Read the cold partitions in a worker thread."""
        for partition, log in self.cold_partitions:
            data = self.results[partition]
            try:
                with storage_errors():
                    read = await self._read_warm(partition, log, data)
                if partition.fetch_offset < log.start_offset:
                    # Together with its segment, the index of its aborted transactions has gone.
                    raise ApiError(
                        error_codes.OFFSET_OUT_OF_RANGE,
                        f"offset {partition.fetch_offset} was deleted while it was read",
                    )
            except ApiError as error:
                self._fail(partition, error.error_code)
                continue
            data.records = read.records
            self.size += len(read.records)
            self._add_aborted(partition, log, read, data)

    async def _read_warm(
        self, partition: FetchedPartition, log: Log, data: PartitionData
    ) -> LogRead:
        while True:
            # Updated, so that the offsets match the records in the response.
            self._describe(log, data)
            read = await log.directory.in_thread(
                partial(
                    log.read_warm,
                    partition.fetch_offset,
                    self._limit(partition),
                    not self.size or self._call.version < WHOLE_MESSAGE_SINCE,
                    self._up_to(data),
                )
            )
            # Compaction takes the index entries of aborted transactions away together with their
            # records, which this range may still have.
            if data.aborted_transactions is None or not read.segment.is_replaced:
                return read

    async def _convert(self) -> None:
        """Convert batches to message sets (Kafka: KafkaApis.maybeConvertFetchedData)."""
        self.size = 0
        for partition, data in self.results.items():
            if not data.records:
                continue
            try:
                data.records = await self._messages(partition, data)
            except ApiError as error:
                self._fail(partition, error.error_code)
                continue
            self.size += len(data.records)

    async def _messages(self, partition: FetchedPartition, data: PartitionData) -> bytes:
        version = self._call.version
        limit = self._limit(partition)
        if limit <= 0 and self.size:
            return b""
        records = cast("FileRange | bytes", data.records)
        while len(records):
            converted = await to_message_set(
                records,
                1 if version >= FORMAT_1_SINCE else 0,
                partition.fetch_offset,
                limit,
                min_one_message=version >= WHOLE_MESSAGE_SINCE,
            )
            if converted.messages or converted.next_offset < 0:
                self._broker.conversions.fetched += converted.record_count
                return converted.messages
            # Only transaction markers, which old clients do not know, so read the next records.
            log = self._broker.find_log(*partition.key)
            with storage_errors():
                read = await log.directory.in_thread(
                    partial(log.read_warm, converted.next_offset, limit, True, self._up_to(data))
                )
            records = read.records
        return b""

    def _fail(self, partition: FetchedPartition, error_code: int) -> None:
        self.has_error = self._call.has_errors = True
        self.results[partition] = PartitionData(
            partition_index=partition.key[1],
            error_code=error_code_for(self._call, error_code),
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )

    def _check_replica(self) -> None:
        request = self._request
        replica_id = request.replica_id
        if request.replica_state is not None:
            replica_id = request.replica_state.replica_id
        if replica_id >= 0:
            raise ApiError(error_codes.NOT_LEADER_OR_FOLLOWER, "this broker has no followers")

    def _describe(self, log: Log, data: PartitionData) -> None:
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.start_offset
        data.aborted_transactions = [] if self._request.isolation_level == READ_COMMITTED else None

    def _add_aborted(
        self, partition: FetchedPartition, log: Log, read: LogRead, data: PartitionData
    ) -> None:
        """Name the aborted transactions whose records a consumer must skip.

        After the read, whose end is the last stable offset of before: what is below that was
        decided then, so that no transaction is missing.
        """
        if data.aborted_transactions is None or not read.records.count:
            return
        up_to = min(data.last_stable_offset, log.end_of(read))
        data.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in log.aborted_transactions(partition.fetch_offset, up_to)
        ]

    def _read(self, partition: FetchedPartition, log: Log, data: PartitionData) -> None:
        self._describe(log, data)
        if partition.last_fetched_epoch >= 0 and self._has_diverged(partition, log, data):
            return
        limit = self._limit(partition)
        if limit <= 0 and self.size:
            return
        read = log.read_cached(
            partition.fetch_offset,
            limit,
            min_one_message=not self.size or self._call.version < WHOLE_MESSAGE_SINCE,
            up_to=self._up_to(data),
        )
        if read is None:
            self.cold_partitions.append((partition, log))
            return
        data.records = _copy_if_small(read.records)
        self.size += len(read.records)
        if read.records.count and not log.is_active(read.segment):
            self.reads_old_segments = True
        self._add_aborted(partition, log, read, data)

    def _has_diverged(self, partition: FetchedPartition, log: Log, data: PartitionData) -> bool:
        """Compare the epoch of the last record that the client has read with the log (KIP-595).

        If the epoch ends before the client's position, ``data`` says where; the client truncates
        what it has read and continues from there.
        """
        epoch, end_offset = log.end_of_epoch(partition.last_fetched_epoch)
        if epoch < 0 or partition.fetch_offset < log.start_offset:
            raise ApiError(error_codes.OFFSET_OUT_OF_RANGE)
        if epoch == partition.last_fetched_epoch and partition.fetch_offset <= end_offset:
            return False
        self.has_diverged = True
        partition.high_watermark = -1  # news in any session
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return True

    def _limit(self, partition: FetchedPartition) -> int:
        left = min(self._request.max_bytes, self._broker.fetch_bytes_max) - self.size
        return max(0, min(left, partition.max_bytes))

    def _up_to(self, data: PartitionData) -> int:
        if self._request.isolation_level == READ_COMMITTED:
            return data.last_stable_offset
        return data.high_watermark


class Fetch:
    """A Fetch call: its results and, if it must wait for records, the delayed operation.

    Attributes:
        reader: the last read of the partitions.
    """

    __slots__ = (
        "_broker",
        "_bytes_missing",
        "_call",
        "_context",
        "_request",
        "reader",
    )

    def __init__(
        self, broker: BrokerState, request: FetchRequest, call: Call, context: FetchContext
    ) -> None:
        self._broker = broker
        self._request = request
        self._call = call
        self._context = context
        self.reader = _Reader(broker, request, call)
        self._bytes_missing = 0

    @property
    def client(self) -> Client:
        """The client that fetches."""
        return client_of(self._call.client_id, self._call.request.peer_address)

    @property
    def partitions(self) -> list[FetchedPartition]:
        """The partitions to fetch, each with the offset from which."""
        return self._context.partitions

    @property
    def must_wait(self) -> bool:
        """Whether too few bytes were read, and nothing requires an immediate response."""
        reader, request = self.reader, self._request
        if reader.has_error or reader.has_diverged:
            return False
        if reader.cold_partitions or request.max_wait_ms <= 0:
            return False
        # A range ends with its segment (Kafka: DelayedFetch, case F).
        if reader.reads_old_segments:
            return False
        self._bytes_missing = request.min_bytes - reader.size
        return self._bytes_missing > 0 and bool(self._context.partitions)

    @property
    def is_long(self) -> bool:
        """Whether the fetch has so many partitions that it must be served in steps."""
        return len(self._context.partitions) > QUICK_PARTITIONS and not self._call.needs_lists

    def wait(self) -> None:
        """Put the fetch into the purgatory until enough records arrive or ``max_wait_ms`` passes.

        While it waits, the fetch keeps no buffers, files or request frame. It reads again when the
        wait ends.
        """
        self.reader = self._new_reader()
        self._call.request.payload = b""
        deadline = trio.current_time() + self._request.max_wait_ms / 1000
        is_committed = self._request.isolation_level == READ_COMMITTED
        keys = [
            log.stable if is_committed else log
            for partition in self._context.partitions
            if (log := self._broker.get_log(*partition.key)) is not None
        ]
        self._broker.purgatory.add(self, keys, deadline)

    # The delayed operation (Kafka: DelayedFetch).

    @property
    def is_abandoned(self) -> bool:
        return not self._call.request.channel.is_open

    def is_satisfied_by(self, amount: int) -> bool:
        self._bytes_missing -= amount
        return self._bytes_missing <= 0

    def complete(self) -> None:
        if not self._call.request.channel.is_open:
            self._call.abandon()
            return
        if self.is_long:
            self._call.continue_as_long_call(self.read_and_respond)
            return
        try:
            self.read()
            if self.reader.cold_partitions or self._call.version < BATCHES_SINCE:
                self._broker.nursery.start_soon(self.respond_later)
            else:
                self._call.respond(self.response())
        except Exception as error:  # boundary: one call, completed in the task of another
            self._call.fail(error)

    async def respond_later(self) -> None:
        """Finish reading and respond; runs in a separate task."""
        try:
            await self.reader.finish()
            self._call.respond(self.response())
        except Exception as error:  # boundary: one call, in a task of its own
            self._call.fail(error)

    # Reading.

    def _new_reader(self) -> _Reader:
        return _Reader(self._broker, self._request, self._call)

    def read(self) -> None:
        """Read all partitions in order, within the limits of the request."""
        self.reader = self._new_reader()
        self.reader.read(self._context.partitions)

    async def read_in_steps(self) -> FetchResponse | None:
        """Read many partitions; return the response, or None if the fetch must wait for records."""
        await self._read_paused(self._context.partitions)
        for _ in range(READS_MAX):
            if not self.must_wait:
                break
            changed = self._forget_changed()
            if len(changed) > READ_AT_ONCE:
                await self._read_paused(changed)
                continue
            self.reader.read(changed)
            if self.must_wait:
                # No records can have been appended meanwhile, since there was no pause.
                self.wait()
                return None
        return await self._respond_paused()

    async def read_and_respond(self) -> FetchResponse:
        """Read many partitions after a wait, and return the response."""
        self.reader = self._new_reader()
        await self._read_paused(self._context.partitions)
        return await self._respond_paused()

    async def _read_paused(self, partitions: list[FetchedPartition]) -> None:
        for start in range(0, len(partitions), READ_AT_ONCE):
            self.reader.read(partitions[start : start + READ_AT_ONCE])
            await self._call.pause()

    def _forget_changed(self) -> list[FetchedPartition]:
        """Discount partitions that have changed since they were read, and return them.

        The purgatory does not report appends that happen during pauses.
        """
        reader = self.reader
        changed = [each for each, data in reader.results.items() if self._has_changed(each, data)]
        for partition in changed:
            reader.size -= len(reader.results[partition].records or b"")
        return changed

    def _has_changed(self, partition: FetchedPartition, data: PartitionData) -> bool:
        log = self._broker.get_log(*partition.key)
        return (
            log is None
            or log.leader_id != self._broker.node_id
            or log.high_watermark != data.high_watermark
            or log.last_stable_offset != data.last_stable_offset
            or log.start_offset != data.log_start_offset
        )

    # Responding.

    def response(self) -> FetchResponse:
        """Return the response with the results of the read."""
        begun = self._begin_response()
        begun.add(self._take_results())
        return begun.finished()

    async def _respond_paused(self) -> FetchResponse:
        await self.reader.finish()
        begun = self._begin_response()
        left = iter(self._take_results().items())
        while some := dict(islice(left, READ_AT_ONCE)):
            begun.add(some)
            await self._call.pause()
        return begun.finished()

    def _take_results(self) -> dict[FetchedPartition, PartitionData]:
        results, self.reader.results = self.reader.results, {}
        return results

    def _begin_response(self) -> _PartialResponse:
        leaders = None
        if self.reader.has_error and has_current_leader(self._call):
            leaders = CurrentLeaders(self._broker, self._call)
        return _PartialResponse(self._context, leaders)


class _PartialResponse:
    """A response to which results are still being added.

    A fetch must not keep it. After a wait, the purgatory holds the fetch until its deadline, which
    may be long after the response, and the records would stay in memory with it.
    """

    __slots__ = ("_context", "_leaders", "_name", "_partitions", "_response")

    def __init__(self, context: FetchContext, leaders: CurrentLeaders | None) -> None:
        self._context = context
        self._leaders = leaders
        self._response = FetchResponse(session_id=context.session_id)
        # The topic to which the last result was added.
        self._name: str | bytes | None = None
        self._partitions: list[PartitionData] = []

    def add(self, results: dict[FetchedPartition, PartitionData]) -> None:
        """Add results to the response; an incremental fetch omits unchanged partitions.

        Their order stays, so that a topic is repeated if others are between its partitions.
        """
        context, leaders = self._context, self._leaders
        is_incremental, session = context.is_incremental, context.session
        for partition, data in results.items():
            if leaders is not None and data.error_code:
                data.current_leader = leaders.find(
                    *partition.key, data.error_code, LeaderIdAndEpoch
                )
            has_news = partition.has_news(data)
            if is_incremental and not has_news:
                continue
            if session is not None and data.records:
                session.served(partition.key)
            name = partition.key[0]
            if name != self._name:
                topic = FetchableTopicResponse()
                if isinstance(name, bytes):
                    topic.topic_id = name
                else:
                    topic.topic = name
                self._response.responses.append(topic)
                self._name, self._partitions = name, topic.partitions
            self._partitions.append(data)

    def finished(self) -> FetchResponse:
        """Return the response."""
        if self._leaders is not None:
            self._response.node_endpoints = self._leaders.endpoints(NodeEndpoint)
        return self._response


def _partition_data(index: int) -> PartitionData:
    # Fields are assigned, since the constructor with keyword arguments takes half as long as the
    # read.
    data = new(PartitionData)
    data.partition_index = index
    data.error_code = 0
    data.high_watermark = 0
    data.last_stable_offset = -1
    data.log_start_offset = -1
    data.diverging_epoch = None
    data.current_leader = None
    data.snapshot_id = None
    data.aborted_transactions = []
    data.preferred_read_replica = -1
    data.records = b""
    data.unknown_tags = ()
    return data


def _copy_if_small(records: FileRange) -> FileRange | bytes:
    if len(records) > COPIED_BYTES_MAX:
        return records
    return records.file.read_at(records.offset, records.count) if records.count else b""
