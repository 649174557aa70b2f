"""Reads the offset range of one task from the partition's leader, and detects lost records.

(The connector: KafkaDataConsumer.) Records are fetched in the trio loop, and decoded in the task's
thread.

A task must read its range completely or report missing records.
Two situations look alike: offsets without a record because of compaction or transaction markers,
which are normal, and records that retention has deleted. The log start offset distinguishes them: a
gap is a loss only if the log starts after the requested offset. The minimum version is therefore
Fetch v5 (KIP-107).

The responses are passed on undecoded, to be decoded by column. A Consumer could also fetch them,
but it resets positions automatically and does not expose the log start offsets from which losses
are detected. If it exposed undecoded responses and log start offsets, most of this module would be
redundant.

A recreated topic has the same name but different records. It is detected by its topic id (KIP-516),
which the query plan records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import trio
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from ..._util._logging import get_logger
from ...client._api_errors import STALE_METADATA, api_error, is_retriable
from ...client.consumer.fetch._settings import FetchSettings
from ...client.consumer.offsets._position_requests import leader_epoch
from ...client.network._cluster import Node, TopicMetadata, nodes_of
from ...errors import (
    CallTimedOutError,
    CorruptRecordError,
    DisconnectedError,
    FetchTooLargeError,
    ResponseTooLargeError,
    TrionetError,
    WireFormatError,
)
from ...net._network import SYSTEM
from ...protocol import error_codes
from ...protocol._wire import NO_UUID
from ...protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from .._loop_host import host
from .._offset_limits import (
    DataLossError,
    OffsetChangedError,
    PartitionsDeletedError,
    UnreadRangeError,
)
from .._options import SourceOptions
from .._planning import OffsetRange, check_order
from ._arrow_decoder import ColumnDecoder, FetchedRecords, bounds
from ._offset_reader import OffsetReader, SourceClient, drop_client, leased_client

logger = get_logger("trionet.spark")

#: The first version with the log start offset (KIP-107).
VERSION_MIN: Final = 5
#: The last version with topic names; later ones have only topic ids (KIP-516).
LAST_VERSION_WITH_NAMES: Final = 12

#: The size of the first fetch, when the size of the records is unknown; enough for small ranges.
FIRST_FETCH_BYTES: Final = 1024 * 1024
#: Requested in addition to the estimated size of the rest of the range.
SPARE_BYTES: Final = 64 * 1024

#: How long a fetch that has timed out still asks whether its records were deleted.
LAST_LOOK_SECONDS: Final = 5.0

#: The metadata updates before a new topic id is accepted: old metadata may predate the plan.
ID_REFRESHES: Final = 3

# The leader has changed, or has not finished its election: the same request works soon.
_NOT_YET: Final = frozenset({error_codes.UNKNOWN_LEADER_EPOCH, error_codes.OFFSET_NOT_AVAILABLE})


class PollTimeoutError(TrionetError, TimeoutError):
    """Raised when existing records did not arrive within ``kafkaConsumer.pollTimeoutMs``."""


class RangeFetcher:
    """Fetches one range, retrying until records arrive or the poll timeout expires.

    Args:
        client: sends the requests.
        options: the options of the source.
        offset_range: the range to fetch.
    """

    def __init__(
        self, client: SourceClient, options: SourceOptions, offset_range: OffsetRange
    ) -> None:
        self._client = client
        self._options = options
        self._range = offset_range
        self._name = offset_range.topic_partition
        self._topic_id = offset_range.topic_id
        self._offsets = OffsetReader(options)
        self._until = offset_range.until
        # The follower that the leader has named as preferred (KIP-392), if any.
        self._replica: int | None = None
        self._failures = self._id_refreshes = 0
        self._is_deleted = False
        self._may_start_late = offset_range.may_start_late
        self._bytes_per_offset: float | None = None
        self._last_error: Exception | None = None

    async def run(self, send: trio.MemorySendChannel[FetchedRecords]) -> None:
        """Fetch the whole range; each response is fetched while the previous one is being decoded.

        Raises:
            DataLossError: records have been deleted, and ``failOnDataLoss`` is true.
            OffsetsMismatchError: the range ends before it starts.
            PollTimeoutError: no records arrived in time.
            CorruptRecordError: the records are malformed.
            TrionetError: a broker rejected a request.
        """
        position = await self._resolve()
        while position < self._until:
            fetched, position = await self._next(position)
            if fetched is not None:
                await send.send(fetched)

    async def _resolve(self) -> int:
        """Resolve the start and the end of the range. Returns the start."""
        start, self._until = [
            (await self._offsets.resolved({self._name: offset})).get(self._name, offset)
            for offset in (self._range.start, self._range.until)
        ]
        if start < 0 or self._until < 0:
            self._report(PartitionsDeletedError(f"{self._name} was deleted"))
            return self._until
        # Whatever failOnDataLoss is, as in the connector (KafkaSourceRDD.resolveRange).
        check_order(self._name, start, self._until, is_resolved=True)
        return start

    async def _next(self, position: int) -> tuple[FetchedRecords | None, int]:
        """Fetch once, with retries. Returns the records, if any, and the next position."""
        with trio.move_on_after(self._options.poll_timeout_seconds):
            while True:
                response = await self._fetch(position)
                if response is not None and response.records:
                    return self._accept(response, position)
                if self._is_deleted or (response is not None and response.error_code):
                    after = await self._next_available(position)
                    if after != position:
                        return None, after
                await self._pause()
        # In an outage there is no response to this either, so that it must not take as long again.
        with trio.move_on_after(LAST_LOOK_SECONDS):
            found = await self._last_look(position)
            if found is not None:
                return found
        seconds = self._options.poll_timeout_seconds
        problem = self._client.network.connection_problem()
        raise PollTimeoutError(
            f"offset {position} of {self._name} could not be fetched within"
            f" kafkaConsumer.pollTimeoutMs = {seconds * 1000:.0f}; last error:"
            f" {self._last_error or problem or 'none, the broker returned no records'}"
        ) from self._last_error

    async def _last_look(self, position: int) -> tuple[FetchedRecords | None, int] | None:
        """Return what became of records that did not arrive; None if that is a timeout.

        If they were deleted meanwhile that is a loss, not a timeout. And they may have been written
        after the last fetch, as in a topic that was recreated.
        """
        try:
            after = await self._next_available(position)
        except (CallTimedOutError, DisconnectedError) as error:
            self._last_error = self._last_error or error
            await trio.lowlevel.checkpoint()
            return None
        if after != position:
            return None, after
        response = await self._fetch(position)
        return self._accept(response, position) if response and response.records else None

    def _accept(self, response: PartitionData, position: int) -> tuple[FetchedRecords | None, int]:
        """Check the offsets of a response's records. Returns the records and the next position."""
        records = response.records
        assert isinstance(records, memoryview)
        self._failures = 0
        try:
            first, end = bounds(records)
        except WireFormatError as error:
            raise CorruptRecordError(
                f"cannot read {self._name} at offset {position}: {error}; to skip the corrupt"
                " records, start a new query with startingOffsets after them",
                *self._name,
                position,
            ) from error
        # A gap alone is no loss (compaction, markers); it is one if the log starts after position.
        if first > position < response.log_start_offset:
            lost_until = min(response.log_start_offset, self._until)
            self._report_unread(
                position,
                lost_until,
                f"starts at {response.log_start_offset}",
                is_before_earliest=True,
            )
        if end <= position:
            raise CorruptRecordError(
                f"cannot read {self._name} at offset {position}: the broker returned records that"
                f" end at {end}",
                *self._name,
                position,
            )
        self._may_start_late = False
        self._bytes_per_offset = len(records) / (end - min(first, position))
        aborted = tuple(response.aborted_transactions or ())
        return FetchedRecords(records, position, self._until, aborted), end

    # One request.

    async def _fetch(self, position: int) -> PartitionData | None:
        """Send a Fetch request. Returns the response, or None to retry after a back-off."""
        topic = await self._topic()
        node = self._node()
        if topic is None or node is None:
            self._client.network.metadata.request_update()
            return None
        try:
            body: FetchResponse = await self._client.network.request(
                node,
                self._request(topic, position),
                version_min=VERSION_MIN,
                version_max=LAST_VERSION_WITH_NAMES if topic.id == NO_UUID else None,
            )
        except DisconnectedError as error:
            self._last_error = error
            self._replica = None
            self._client.network.metadata.request_update()
            return None
        except ResponseTooLargeError as error:
            raise FetchTooLargeError(
                f"cannot read {self._name} at offset {position}: {error}, by option"
                " kafka.receive.message.max.bytes, or skip the batch with startingOffsets in a new"
                " query",
                *self._name,
                position,
                error.size,
                error.bytes_max,
            ) from error
        partitions = [each for topic in body.responses for each in topic.partitions]
        if body.error_code or len(partitions) != 1:
            self._on_error(body.error_code or error_codes.UNKNOWN_TOPIC_OR_PARTITION)
            return None
        [response] = partitions
        if response.preferred_read_replica >= 0 and not response.records:  # KIP-392
            self._replica = response.preferred_read_replica
            return None
        if response.error_code in {0, error_codes.OFFSET_OUT_OF_RANGE}:
            if response.error_code and self._replica is not None:
                self._replica = None  # the follower may lag; ask the leader
                return None
            return response
        self._update_leader(response, body)
        self._on_error(response.error_code)
        return None

    def _request(self, topic: TopicMetadata, position: int) -> FetchRequest:
        settings = self._client.settings.fetch
        partition = FetchPartition(
            partition=self._name.partition,
            current_leader_epoch=leader_epoch(self._client.network.metadata.cluster, self._name),
            fetch_offset=position,
            partition_max_bytes=self._bytes_max(position),
        )
        return FetchRequest(
            max_wait_ms=round(settings.wait_seconds * 1000),
            min_bytes=settings.bytes_min,
            max_bytes=settings.bytes_max,
            isolation_level=int(settings.is_read_committed),
            rack_id=settings.rack,
            topics=[FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[partition])],
        )

    def _bytes_max(self, position: int) -> int:
        """Return the size limit of a fetch, from the estimated size of the rest of the range."""
        limit = self._client.settings.fetch.partition_bytes_max
        if self._bytes_per_offset is None:
            return min(limit, FIRST_FETCH_BYTES)
        rest = int((self._until - position) * self._bytes_per_offset)
        return min(limit, rest + SPARE_BYTES)

    def _on_error(self, error_code: int) -> None:
        """Prepare a retry after an error; the caller backs off.

        Raises:
            ApiError: the error is not retriable.
        """
        error = api_error(error_code, f"fetching {self._name}")
        self._last_error = error
        self._replica = None
        if error_code in STALE_METADATA:
            self._client.network.metadata.request_update()
        elif error_code not in _NOT_YET and not is_retriable(error):
            raise error

    def _update_leader(self, response: PartitionData, body: FetchResponse) -> None:
        """Update the metadata with the new leader named in a response (KIP-951)."""
        leader = response.current_leader
        if leader is not None:
            leaders = {self._name: (leader.leader_id, leader.leader_epoch)}
            nodes = nodes_of(body.node_endpoints)
            self._client.network.metadata.update_leaders(leaders, nodes)

    async def _pause(self) -> None:
        """Back off before the next attempt (KIP-580)."""
        self._failures += 1
        retry = self._client.settings.client.metadata.retry
        await trio.sleep(retry.seconds(self._failures, SYSTEM.rng))

    # The topic.

    async def _topic(self) -> TopicMetadata | None:
        """Return the topic's metadata; None if the partition is gone or the topic id differs."""
        metadata = self._client.network.metadata
        await trio.lowlevel.checkpoint()
        metadata.add_topics((self._name.topic,))
        while (topic := metadata.cluster.topics.get(self._name.topic)) is None:
            await self._client.network.until_updated(metadata.updates)
        self._is_deleted = self._name.partition not in topic.partitions
        if self._is_deleted:
            return None
        if NO_UUID in {topic.id, self._topic_id} or topic.id == self._topic_id:
            return topic
        return await self._recreated(topic)

    async def _recreated(self, topic: TopicMetadata) -> TopicMetadata | None:
        """Report a topic as recreated if its id still differs after several metadata updates."""
        metadata = self._client.network.metadata
        await trio.lowlevel.checkpoint()
        if self._id_refreshes < ID_REFRESHES:
            self._id_refreshes += 1
            await self._client.network.until_updated(metadata.request_update())
            return None
        self._topic_id = topic.id
        self._report(
            OffsetChangedError(
                f"the topic of {self._name} was recreated after the query was planned"
            )
        )
        return topic

    def _node(self) -> Node | None:
        """Return the node to fetch from: the preferred replica, or the leader."""
        cluster = self._client.network.metadata.cluster
        if self._replica is not None and self._replica in cluster.nodes:
            return cluster.nodes[self._replica]
        return cluster.leader(*self._name)

    # Data loss.

    async def _next_available(self, position: int) -> int:
        """Return the first available offset at or after ``position``, or the end of the range.

        Offsets in between are reported as lost. (The connector:
        InternalKafkaConsumer.getEarliestAvailableOffsetBetween.)
        """
        earliest = (await self._offsets.earliest([self._name])).get(self._name)
        latest = None
        if earliest is not None:
            latest = (await self._offsets.latest([self._name])).get(self._name)
        if earliest is None or latest is None:
            self._forget_topic()
            self._report(
                PartitionsDeletedError(
                    f"{self._name} was deleted before [{position}, {self._until}) was read"
                )
            )
            return self._until
        if earliest <= position < latest:
            return position
        after = earliest if position < earliest < self._until else self._until
        self._report_unread(
            position,
            after,
            f"starts at {earliest} and ends at {latest}",
            is_before_earliest=position < earliest,
        )
        return after

    def _forget_topic(self) -> None:
        """Stop requesting the metadata of a deleted topic."""
        self._client.network.metadata.remove_topics((self._name.topic,))

    def _report_unread(
        self, start: int, until: int, what_log_does: str, *, is_before_earliest: bool
    ) -> None:
        """Report deleted records as lost, unless the query may start after them."""
        error = UnreadRangeError(
            f"{self._name} no longer has the records in [{start}, {until}): its log {what_log_does}"
        )
        if is_before_earliest and self._may_start_late:
            logger.info("the query starts later, since %s", error.what)
        else:
            self._report(error)

    def _report(self, error: DataLossError) -> None:
        """Raise a data loss error, or log the error if ``failOnDataLoss`` is false."""
        if self._options.fail_on_data_loss:
            raise error
        logger.warning("%s", error)


#: The maximum number of responses that wait to be decoded while the next response is fetched.
PREFETCHED_MAX: Final = 1


def read_partition(options: SourceOptions, partition: InputPartition) -> Iterator[Any]:
    """Return an iterator over the records of a range, as Arrow batches.

    Args:
        options: the options of the source.
        partition: the partition, whose value is the range; None for a plan without ranges.
    """
    if partition.value is None:
        return iter(())
    task = TaskContext.get()
    is_retry = task is not None and task.attemptNumber() > 0
    return read_range(options, partition.value, is_retry=is_retry)


def read_range(
    options: SourceOptions, offset_range: OffsetRange, *, is_retry: bool = False
) -> Iterator[Any]:
    """Yield the records of a range as Arrow batches with the columns of the connector.

    Closing the generator stops the fetch.

    Args:
        options: the options of the source.
        offset_range: the range to read; -2 and -1 are resolved when the fetch starts.
        is_retry: whether the task has failed before; it then gets a new client, as in the
            connector.

    Yields:
        ``pyarrow.RecordBatch``, never empty.

    Raises:
        DataLossError: records have been deleted, and ``failOnDataLoss`` is true.
        OffsetsMismatchError: the range ends before it starts.
        PollTimeoutError: no records arrived within ``kafkaConsumer.pollTimeoutMs``.
        CorruptRecordError: records are malformed.
        FetchTooLargeError: a batch is larger than the client's settings allow.
        ConfigError: the client's settings conflict with each other.
        TrionetError: a broker rejected a request, or none could be reached.
    """
    loop = host()
    reading = _Reading(options, offset_range, is_retry=is_retry)
    loop.call(reading.begin)
    try:
        decoder = None
        while (fetched := loop.call(reading.next)) is not None:
            if decoder is None:
                decoder = reading.decoder()
            yield from decoder.decode(fetched)
    finally:
        loop.call(reading.end)


class _Reading:
    """The trio task that fetches a range, and the channel for its responses."""

    def __init__(
        self, options: SourceOptions, offset_range: OffsetRange, *, is_retry: bool
    ) -> None:
        self._options = options
        self._range = offset_range
        self._is_retry = is_retry
        self._send, self._receive = trio.open_memory_channel[FetchedRecords](PREFETCHED_MAX)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._is_complete = False
        self._error: Exception | None = None
        self._settings: FetchSettings | None = None

    async def begin(self) -> None:
        """Start fetching."""
        await trio.lowlevel.checkpoint()
        if self._is_retry:
            drop_client(self._options)
        host().start_soon(self._run)

    async def _run(self) -> None:  # noqa: ASYNC910 -- a task; next() raises its error
        try:
            with self._scope, self._send:
                async with leased_client(self._options) as client:
                    self._settings = client.settings.fetch
                    await RangeFetcher(client, self._options, self._range).run(self._send)
                self._is_complete = True
        except Exception as error:  # boundary: fails one Spark task, not the loop
            self._error = error
        finally:
            self._ended.set()

    async def next(self) -> FetchedRecords | None:
        """Return the next fetched records, or None at the end of the range.

        Raises:
            Exception: the error that ended the fetch.
        """
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            await self._ended.wait()
        if self._error is not None:
            raise self._error
        if not self._is_complete:
            raise trio.RunFinishedError("the trio loop was closed while records were being read")
        return None

    def decoder(self) -> ColumnDecoder:
        """Create a decoder with the settings of the client, which has fetched records."""
        settings = self._settings
        assert settings is not None
        return ColumnDecoder(
            self._range.topic_partition,
            include_headers=self._options.include_headers,
            is_read_committed=settings.is_read_committed,
            checks_crcs=settings.checks_crcs,
            decompressed_bytes_max=settings.decompressed_bytes_max,
        )

    async def end(self) -> None:
        """Stop fetching."""
        self._scope.cancel()
        await self._ended.wait()
