"""Fetch, versions 0 to 18: read records from partitions, waiting for data if there are none yet.

A fetch with less than ``min_bytes`` to give waits in the purgatory, for appends or for
``max_wait_ms``, and holds no handler. Record bytes are file ranges that the socket sends by itself.
The first partition with data gives at least one whole batch, whatever the limits say (KIP-74).
Fetch sessions: KIP-227. Versions 0 to 3 are given message sets, which the batches are converted to.
Gap: no followers; replica ids other than a consumer's are refused.
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
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Log
from ..model._broker_state import BrokerState
from ..model._fetch_sessions import FetchContext, FetchedPartition
from ..storage._record_conversion import messages_of
from ..storage._storage_errors import storage_errors

READ_COMMITTED: Final = 1
# Before, batches are converted to messages: of format 1, or of format 0 up to version 1.
BATCHES_SINCE: Final = 4
FORMAT_1_SINCE: Final = 2
# Before, a partition's limit is that of its messages, which are cut there (KIP-74): so a batch is
# read whole in any case, to be converted.
WHOLE_MESSAGE_SINCE: Final = 3
# Before, clients do not know KAFKA_STORAGE_ERROR, and try again with the other (Kafka: KafkaApis).
STORAGE_ERROR_SINCE: Final = 6
# Older clients cannot read a topic that is compressed with zstd, and are told so (KIP-110).
ZSTD_SINCE: Final = 10
# Who has asked the wrong node is told the right one (KIP-951).
LEADER_SINCE: Final = 16
_LEADER_UNKNOWN = (error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.FENCED_LEADER_EPOCH)
# Ranges up to this size are read and sent in one piece with the rest of the answer: one system
# call to read, against one more packet and a system call that costs as much as five.
COPIED_BYTES_MAX: Final = 16 * 1024


# What reads more partitions is served in steps: each takes 5 µs or more.
QUICK_PARTITIONS: Final = 400
# How often many of them are read again for what was appended meanwhile, which is less than it
# waits for. It then waits no longer: it would miss what came during the last time.
READS_MAX: Final = 3
# How many are read, and told of, in one step.
READ_AT_ONCE: Final = 100


@serves(api_keys.FETCH, 0, 18, only_responds=True, quick_elements=QUICK_PARTITIONS)
async def handle(broker: BrokerState, request: FetchRequest, call: Call) -> FetchResponse | None:
    now = trio.current_time()
    sessions = broker.fetch_sessions
    try:
        if not call.is_long:
            context = sessions.open(request, call.version, now)
        else:
            context = await call.paused(sessions.opening(request, call.version, now))
    except ApiError as error:
        call.has_errors = True
        return FetchResponse(error_code=error.error_code)
    own_topic = broker.own_topic
    if own_topic is not None and own_topic.is_read_by(context):
        call.request.is_left_out = True
    fetch = _Fetch(broker, request, call, context)
    if fetch.is_long:
        call.takes_long(fetch.read_in_steps)
        return None
    fetch.read()
    if fetch.must_wait:
        fetch.wait()
        return None
    if call.version < BATCHES_SINCE:
        # Converting takes its time, and the handler has others to answer.
        broker.nursery.start_soon(fetch.respond_later, name="fetch-convert")
        return None
    if fetch.cold_partitions:
        await fetch.take_time()
    return fetch.response()


class _Told:
    """A response as far as it is made."""

    __slots__ = ("by_topic", "leaders", "response")

    def __init__(self, session_id: int) -> None:
        self.response = FetchResponse(session_id=session_id)
        self.by_topic: dict[str | bytes, FetchableTopicResponse] = {}
        self.leaders: set[int] = set()


class _Fetch:
    """One fetch: what was read so far, and the operation that waits for more."""

    __slots__ = (
        "_answers",
        "_broker",
        "_bytes",
        "_bytes_missing",
        "_call",
        "_context",
        "_has_error",
        "_request",
        "cold_partitions",
    )

    def __init__(
        self, broker: BrokerState, request: FetchRequest, call: Call, context: FetchContext
    ) -> None:
        self._broker = broker
        self._request = request
        self._call = call
        self._context = context
        self._answers: dict[FetchedPartition, PartitionData] = {}
        self._bytes = 0
        self._has_error = False
        self._bytes_missing = 0
        self.cold_partitions: list[tuple[FetchedPartition, Log]] = []

    @property
    def must_wait(self) -> bool:
        """Whether there is nothing to say yet that the client would not rather wait for."""
        if self._has_error or self.cold_partitions or self._request.max_wait_ms <= 0:
            return False
        self._bytes_missing = self._request.min_bytes - self._bytes
        return self._bytes_missing > 0 and bool(self._context.partitions)

    @property
    def is_long(self) -> bool:
        return len(self._context.partitions) > QUICK_PARTITIONS and not self._call.wants_lists

    def logs(self) -> list[Log]:
        return [
            log
            for partition in self._context.partitions
            if (log := self._broker.get_log(*partition.key)) is not None
        ]

    def wait(self) -> None:
        """Wait for data, or for ``max_wait_ms``.

        Nothing is held meanwhile that has to be read again then: buffers, files, the frame.
        """
        self._answers = {}
        self._call.request.payload = b""
        deadline = trio.current_time() + self._request.max_wait_ms / 1000
        self._broker.purgatory.add(self, self.logs(), deadline)

    # Kafka: DelayedFetch.

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
            self._call.takes_long(self.read_at_last)
            return
        try:
            self.read()
            if self.cold_partitions or self._call.version < BATCHES_SINCE:
                self._broker.nursery.start_soon(self.respond_later)
            else:
                self._call.respond(self.response())
        except Exception as error:  # boundary: one call, completed in somebody else's task
            self._call.fail(error)

    async def respond_later(self) -> None:
        """Take the time it needs and answer the call, in a task of its own."""
        try:
            await self.take_time()
            self._call.respond(self.response())
        except Exception as error:  # boundary: one call, in a task of its own
            self._call.fail(error)

    # Reading.

    def read(self) -> None:
        """Read every partition once, in order, within the limits of the request."""
        self._begin()
        self._read_some(self._context.partitions)

    async def read_in_steps(self) -> FetchResponse | None:
        """The same for many partitions; their response, or None if it has to wait for data."""
        await self._read_paused()
        for _ in range(READS_MAX):
            if not self.must_wait:
                break
            changed = self._forget_changed()
            if len(changed) > READ_AT_ONCE:
                await self._read_some_paused(changed)
                continue
            self._read_some(changed)
            if self.must_wait:
                # Nothing can have come since then: there was no pause.
                self.wait()
                return None
        return await self._respond_paused()

    def _forget_changed(self) -> list[FetchedPartition]:
        """The partitions that changed since they were read, to be read again.

        Nothing watches them during pauses.
        """
        changed = [each for each, data in self._answers.items() if self._has_changed(each, data)]
        for partition in changed:
            self._bytes -= len(self._answers[partition].records or b"")
        return changed

    def _has_changed(self, partition: FetchedPartition, data: PartitionData) -> bool:
        log = self._broker.get_log(*partition.key)
        return (
            log is None
            or log.leader_id != self._broker.node_id
            or log.high_watermark != data.high_watermark
            or log.start_offset != data.log_start_offset
        )

    async def read_at_last(self) -> FetchResponse:
        """The response of many partitions when there is data, or no time left."""
        await self._read_paused()
        return await self._respond_paused()

    async def _read_paused(self) -> None:
        self._begin()
        await self._read_some_paused(self._context.partitions)

    async def _read_some_paused(self, partitions: list[FetchedPartition]) -> None:
        for start in range(0, len(partitions), READ_AT_ONCE):
            self._read_some(partitions[start : start + READ_AT_ONCE])
            await self._call.pause()

    def _begin(self) -> None:
        self._answers = {}
        self._bytes = 0
        self._has_error = False
        self.cold_partitions = []

    def _read_some(self, partitions: list[FetchedPartition]) -> None:
        for partition in partitions:
            data = self._answers[partition] = _partition_data(partition.key[1])
            try:
                topic, index = partition.key
                log = self._broker.find_log(topic, index, partition.current_leader_epoch)
                self._check_replica()
                if self._call.version < ZSTD_SINCE and log.config.compression_type == "zstd":
                    raise ApiError(error_codes.UNSUPPORTED_COMPRESSION_TYPE)
                with storage_errors():
                    self._read(partition, log, data)
            except ApiError as error:
                self._refuse(partition, error.error_code)

    async def take_time(self) -> None:
        """Read what is not in the page cache, and convert what an old client could not read."""
        if self.cold_partitions:
            await self._read_cold_partitions()
        if self._call.version < BATCHES_SINCE:
            await self._convert()

    async def _read_cold_partitions(self) -> None:
        """Read in a thread what is not in the page cache, so that the loop never waits for it."""
        for partition, log in self.cold_partitions:
            data = self._answers[partition]
            # What the answer says of the log and what it holds of it are of the same moment.
            self._describe(log, data)
            try:
                with storage_errors():
                    read = await log.directory.in_thread(
                        partial(
                            log.read_warm,
                            partition.fetch_offset,
                            self._limit(partition),
                            not self._bytes or self._call.version < WHOLE_MESSAGE_SINCE,
                            self._up_to(data),
                        )
                    )
            except ApiError as error:
                self._refuse(partition, error.error_code)
                continue
            data.records = read.records
            self._bytes += len(read.records)

    async def _convert(self) -> None:
        """Put messages in the place of batches (Kafka: KafkaApis.maybeConvertFetchedData)."""
        self._bytes = 0
        for partition, data in self._answers.items():
            if not data.records:
                continue
            try:
                data.records = await self._messages(partition, data)
            except ApiError as error:
                self._refuse(partition, error.error_code)
                continue
            self._bytes += len(data.records)

    async def _messages(self, partition: FetchedPartition, data: PartitionData) -> bytes:
        version = self._call.version
        limit = self._limit(partition)
        if limit <= 0 and self._bytes:
            return b""
        records = cast("FileRange | bytes", data.records)
        while len(records):
            converted = await messages_of(
                records,
                1 if version >= FORMAT_1_SINCE else 0,
                partition.fetch_offset,
                limit,
                min_one_message=version >= WHOLE_MESSAGE_SINCE,
            )
            if converted.messages or converted.next_offset < 0:
                self._broker.conversions.fetched += converted.record_count
                return converted.messages
            # Transaction markers alone, which old clients know nothing of: read on behind them.
            log = self._broker.find_log(*partition.key)
            with storage_errors():
                read = await log.directory.in_thread(
                    partial(log.read_warm, converted.next_offset, limit, True, self._up_to(data))
                )
            records = read.records
        return b""

    def _refuse(self, partition: FetchedPartition, error_code: int) -> None:
        self._has_error = self._call.has_errors = True
        is_storage = error_code == error_codes.KAFKA_STORAGE_ERROR
        if is_storage and self._call.version < STORAGE_ERROR_SINCE:
            error_code = error_codes.NOT_LEADER_OR_FOLLOWER
        self._answers[partition] = PartitionData(
            partition_index=partition.key[1],
            error_code=error_code,
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
            raise ApiError(error_codes.NOT_LEADER_OR_FOLLOWER, "there are no followers here")

    def _describe(self, log: Log, data: PartitionData) -> None:
        data.high_watermark = log.high_watermark
        data.last_stable_offset = log.last_stable_offset
        data.log_start_offset = log.start_offset
        data.aborted_transactions = [] if self._request.isolation_level == READ_COMMITTED else None

    def _read(self, partition: FetchedPartition, log: Log, data: PartitionData) -> None:
        self._describe(log, data)
        limit = self._limit(partition)
        if limit <= 0 and self._bytes:
            return
        read = log.read_cached(
            partition.fetch_offset,
            limit,
            min_one_message=not self._bytes or self._call.version < WHOLE_MESSAGE_SINCE,
            up_to=self._up_to(data),
        )
        if read is None:
            self.cold_partitions.append((partition, log))
            return
        data.records = _small_ones_copied(read.records)
        self._bytes += len(read.records)

    def _limit(self, partition: FetchedPartition) -> int:
        left = min(self._request.max_bytes, self._broker.fetch_bytes_max) - self._bytes
        return max(0, min(left, partition.max_bytes))

    def _up_to(self, data: PartitionData) -> int:
        if self._request.isolation_level == READ_COMMITTED:
            return data.last_stable_offset
        return data.high_watermark

    # Answering.

    def response(self) -> FetchResponse:
        told = _Told(self._context.session_id)
        answers, self._answers = self._answers, {}
        self._tell(answers, told)
        return self._finished(told)

    async def _respond_paused(self) -> FetchResponse:
        await self.take_time()
        told = _Told(self._context.session_id)
        answers, self._answers = self._answers, {}
        left = iter(answers.items())
        while some := dict(islice(left, READ_AT_ONCE)):
            self._tell(some, told)
            await self._call.pause()
        return self._finished(told)

    def _tell(self, answers: dict[FetchedPartition, PartitionData], told: _Told) -> None:
        """Put what is known of partitions into the response, unless the client knows it."""
        context, by_topic = self._context, told.by_topic
        is_incremental, session = context.is_incremental, context.session
        tells_leaders = self._has_error and self._call.version >= LEADER_SINCE
        for partition, data in answers.items():
            if tells_leaders and data.error_code in _LEADER_UNKNOWN:
                self._tell_leader(partition, data, told.leaders)
            has_news = partition.has_news(data)
            if is_incremental and not has_news:
                continue
            if session is not None and data.records:
                session.served(partition.key)
            name = partition.key[0]
            topic = by_topic.get(name)
            if topic is None:
                topic = by_topic[name] = FetchableTopicResponse()
                if isinstance(name, bytes):
                    topic.topic_id = name
                else:
                    topic.topic = name
                told.response.responses.append(topic)
            topic.partitions.append(data)

    def _tell_leader(
        self, partition: FetchedPartition, data: PartitionData, leaders: set[int]
    ) -> None:
        found = self._broker.leader_of(*partition.key)
        if found is not None:
            data.current_leader = LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.epoch)
            leaders.add(found.leader)

    def _finished(self, told: _Told) -> FetchResponse:
        response, leaders = told.response, told.leaders
        if leaders:
            response.node_endpoints = [
                NodeEndpoint(
                    node_id=node.node_id, host=address.host, port=address.port, rack=node.rack
                )
                for node, address in self._broker.addresses(self._call.listener_name, leaders)
            ]
        return response


def _partition_data(index: int) -> PartitionData:
    # Assigned: the constructor takes arguments by name, which takes half as long as the read.
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


def _small_ones_copied(records: FileRange) -> FileRange | bytes:
    if len(records) > COPIED_BYTES_MAX:
        return records
    return records.file.read_at(records.offset, records.count) if records.count else b""
