"""Fetches the range of one task, wherever its leader is, and says what is not there any more.

(The connector: KafkaDataConsumer.) A gap is no loss: as long as the log begins at or before the
offset that was asked for, what is missing was compacted, or is a marker of a transaction.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from ...client._api_errors import STALE_METADATA, api_error, is_retriable
from ...client._node import Node
from ...client.consumer.offsets._leaders import leader_epoch
from ...client.metadata._cluster import TopicMetadata
from ...errors import (
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
from ..offsets._errors import (
    DataLossError,
    OffsetChangedError,
    PartitionsDeletedError,
    UnreadRangeError,
)
from ..offsets._partition_offsets import EARLIEST, LATEST
from ..offsets._ranges import OffsetRange
from ..options._options import SourceOptions
from ..runtime._source_client import SourceClient
from ._fetched import Fetched, bounds
from ._offset_reader import OffsetReader

logger = logging.getLogger("trionet.spark")

#: The first version that says where the log begins (KIP-107).
VERSION_MIN: Final = 5
#: The newest that names topics; later ones have ids alone (KIP-516).
LAST_VERSION_WITH_NAMES: Final = 12

#: How much is asked for first, when nothing is known of the records: a small range is often all.
FIRST_FETCH_BYTES: Final = 1024 * 1024
#: What is asked for beyond what the rest of a range seems to have.
SPARE_BYTES: Final = 64 * 1024

#: How often the metadata are asked for before another id of a topic is believed: they may be older
#: than the plan.
ID_LOOKS: Final = 3

_NOT_YET: Final = frozenset({error_codes.UNKNOWN_LEADER_EPOCH, error_codes.OFFSET_NOT_AVAILABLE})


class PollTimeoutError(TrionetError, TimeoutError):
    """Records that are said to be there did not come within ``kafkaConsumer.pollTimeoutMs``."""


class RangeFetcher:
    """See the module.

    Args:
        client: sends.
        options: of the source.
        wanted: what to fetch.
    """

    def __init__(self, client: SourceClient, options: SourceOptions, wanted: OffsetRange) -> None:
        self._client = client
        self._options = options
        self._wanted = wanted
        self._name = wanted.topic_partition
        self._topic_id = wanted.topic_id
        self._offsets = OffsetReader(options)
        self._until = wanted.until
        self._replica: int | None = None
        self._failures = self._looks_at_id = 0
        self._is_gone = False
        self._bytes_per_offset: float | None = None
        self._last_error: Exception | None = None

    async def run(self, send: trio.MemorySendChannel[Fetched]) -> None:
        """Fetch all of the range; the next answer is on its way while the last one is decoded.

        Raises:
            DataLossError: records are gone, and ``failOnDataLoss`` is set.
            PollTimeoutError: they did not come in time.
            CorruptRecordError: what came has no form.
            TrionetError: a broker refuses.
        """
        position = await self._bounds()
        while position < self._until:
            fetched, position = await self._next(position)
            if fetched is not None:
                await send.send(fetched)

    async def _bounds(self) -> int:
        """Where the range begins; its end is resolved, too."""
        start = self._wanted.start
        ends = {self._name: start}
        await trio.lowlevel.checkpoint()
        if start in {EARLIEST, LATEST}:
            start = (await self._offsets.resolved(ends)).get(self._name, start)
        if self._until in {EARLIEST, LATEST}:
            ends = {self._name: self._until}
            self._until = (await self._offsets.resolved(ends)).get(self._name, self._until)
        if start < 0 or self._until < 0:
            self._lose(PartitionsDeletedError(f"{self._name} is gone"))
            return self._until
        return start

    async def _next(self, position: int) -> tuple[Fetched | None, int]:
        """What came, if anything did, and where to go on."""
        with trio.move_on_after(self._options.poll_timeout_seconds):
            while True:
                answer = await self._fetch(position)
                if answer is not None and answer.records:
                    return self._taken(answer, position)
                if self._is_gone or (answer is not None and answer.error_code):
                    after = await self._where_to_go_on(position)
                    if after != position:
                        return None, after
                await self._pause()
        after = await self._where_to_go_on(position)
        if after != position:
            return None, after
        seconds = self._options.poll_timeout_seconds
        problem = self._client.network.connection_problem()
        raise PollTimeoutError(
            f"offset {position} of {self._name} could not be fetched within"
            f" kafkaConsumer.pollTimeoutMs = {seconds * 1000:.0f}; the last error:"
            f" {self._last_error or problem or 'none, the broker had nothing to send'}"
        ) from self._last_error

    def _taken(self, answer: PartitionData, position: int) -> tuple[Fetched | None, int]:
        records = answer.records
        assert isinstance(records, memoryview)
        self._failures = 0
        try:
            first, end = bounds(records)
        except WireFormatError as error:
            raise CorruptRecordError(
                f"{self._name} at offset {position} cannot be read: {error}; begin behind it, with"
                " startingOffsets of a new query",
                *self._name,
                position,
            ) from error
        if first > position < answer.log_start_offset:
            lost_until = min(answer.log_start_offset, self._until)
            self._lose(
                UnreadRangeError(
                    f"{self._name} has no records in [{position}, {lost_until}) any more: its log"
                    f" begins at {answer.log_start_offset}"
                )
            )
        if end <= position:
            raise CorruptRecordError(
                f"{self._name} at offset {position} cannot be read: the broker sent records that"
                f" end at {end}",
                *self._name,
                position,
            )
        self._bytes_per_offset = len(records) / (end - min(first, position))
        fetched = Fetched(records, position, self._until, tuple(answer.aborted_transactions or ()))
        return fetched, end

    # One request.

    async def _fetch(self, position: int) -> PartitionData | None:
        """An answer about the partition that says something; None: ask again after a wait."""
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
                f"{self._name} at offset {position} cannot be read: {error}, by option"
                " kafka.receive.message.max.bytes; or begin behind it, with startingOffsets of a"
                " new query",
                *self._name,
                position,
                error.size,
                error.bytes_max,
            ) from error
        answers = [each for topic in body.responses for each in topic.partitions]
        if body.error_code or len(answers) != 1:
            self._refused(body.error_code or error_codes.UNKNOWN_TOPIC_OR_PARTITION)
            return None
        [answer] = answers
        if answer.preferred_read_replica >= 0 and not answer.records:  # KIP-392
            self._replica = answer.preferred_read_replica
            return None
        if answer.error_code in {0, error_codes.OFFSET_OUT_OF_RANGE}:
            if answer.error_code and self._replica is not None:
                self._replica = None  # a follower may be behind: the leader knows
                return None
            return answer
        self._learn_leader(answer, body)
        self._refused(answer.error_code)
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
        """No more than the rest of the range seems to have."""
        most = self._client.settings.fetch.partition_bytes_max
        if self._bytes_per_offset is None:
            return min(most, FIRST_FETCH_BYTES)
        rest = int((self._until - position) * self._bytes_per_offset)
        return min(most, rest + SPARE_BYTES)

    def _refused(self, error_code: int) -> None:
        """The wait is the caller's.

        Raises:
            ApiError: asking again does not help.
        """
        error = api_error(error_code, f"fetching {self._name}")
        self._last_error = error
        self._replica = None
        if error_code in STALE_METADATA:
            self._client.network.metadata.request_update()
        elif error_code not in _NOT_YET and not is_retriable(error):
            raise error

    def _learn_leader(self, answer: PartitionData, body: FetchResponse) -> None:
        """Take the new leader that an answer tells of (KIP-951)."""
        leader = answer.current_leader
        if leader is not None:
            endpoints = body.node_endpoints
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in endpoints]
            leaders = {self._name: (leader.leader_id, leader.leader_epoch)}
            self._client.network.metadata.update_leaders(leaders, nodes)

    async def _pause(self) -> None:
        """Wait before the same is asked again (KIP-580)."""
        self._failures += 1
        retry = self._client.settings.client.metadata.retry
        await trio.sleep(retry.seconds(self._failures, SYSTEM.chance))

    # The topic.

    async def _topic(self) -> TopicMetadata | None:
        """What is known of the topic; None where its partition is not."""
        metadata = self._client.network.metadata
        known = metadata.topics or frozenset()
        await trio.lowlevel.checkpoint()
        if self._name.topic not in known:
            metadata.want(known | {self._name.topic})
        while (topic := metadata.cluster.topics.get(self._name.topic)) is None:
            await self._client.network.until_updated(metadata.updates)
        self._is_gone = self._name.partition not in topic.partitions
        if self._is_gone:
            return None
        if NO_UUID in {topic.id, self._topic_id} or topic.id == self._topic_id:
            return topic
        return await self._made_anew(topic)

    async def _made_anew(self, topic: TopicMetadata) -> TopicMetadata | None:
        """A topic has another id than when it was planned, if its metadata are not old."""
        metadata = self._client.network.metadata
        await trio.lowlevel.checkpoint()
        if self._looks_at_id < ID_LOOKS:
            self._looks_at_id += 1
            await self._client.network.until_updated(metadata.request_update())
            return None
        self._topic_id = topic.id
        self._lose(
            OffsetChangedError(
                f"the topic of {self._name} was made anew since its records were planned"
            )
        )
        return topic

    def _node(self) -> Node | None:
        """Whom to ask: the replica nearby, or the leader."""
        cluster = self._client.network.metadata.cluster
        if self._replica is not None and self._replica in cluster.nodes:
            return cluster.nodes[self._replica]
        return cluster.leader(*self._name)

    # Losses.

    async def _where_to_go_on(self, position: int) -> int:
        """The same offset if it is there, else the next one in the range that is, or its end.

        (The connector: InternalKafkaConsumer.getEarliestAvailableOffsetBetween.)
        """
        earliest = (await self._offsets.earliest([self._name])).get(self._name)
        latest = None
        if earliest is not None:
            latest = (await self._offsets.latest([self._name])).get(self._name)
        if earliest is None or latest is None:
            self._unwant()
            self._lose(
                PartitionsDeletedError(
                    f"{self._name} is gone, before [{position}, {self._until}) of it was read"
                )
            )
            return self._until
        if earliest <= position < latest:
            return position
        after = earliest if position < earliest < self._until else self._until
        self._lose(
            UnreadRangeError(
                f"{self._name} has no records in [{position}, {after}) any more: its log begins at"
                f" {earliest} and ends at {latest}"
            )
        )
        return after

    def _unwant(self) -> None:
        """Nobody asks for the metadata of a topic that is gone, again and again."""
        metadata = self._client.network.metadata
        metadata.want((metadata.topics or frozenset()) - {self._name.topic})

    def _lose(self, error: DataLossError) -> None:
        """Raise it, or log it (``failOnDataLoss``)."""
        if self._options.fail_on_data_loss:
            raise error
        logger.warning("%s", error)
