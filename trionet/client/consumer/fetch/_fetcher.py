"""The fetcher, which fetches records ahead of the task that reads them (Kafka: AbstractFetch).

The reading task should not wait for a round trip while there are records to fetch, but the buffer
must be bounded. At most one fetch is in flight to each node, because the requests of a session must
be processed in order (KIP-227). The next fetch is sent as soon as the response has arrived. It
requests the records after those in the buffer, and is sent only if the buffer has space for each
partition of the node.

Rejected: omitting partitions without space from a fetch. The node may hold such a fetch for
``fetch.max.wait.ms``, which would delay the records of an omitted partition that has space again.
Reconsider if clients can cancel a fetch that a broker is holding.

Nothing here is async or blocks: the network task calls :meth:`Fetcher.send` between polls.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from ...._util._logging import get_logger
from ....errors import (
    CorruptRecordError,
    FetchTooLargeError,
    OffsetOutOfRangeError,
    PartitionError,
    ResponseTooLargeError,
)
from ....protocol import api_keys, error_codes
from ....protocol._wire import NO_UUID
from ....protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from ..._api_errors import STALE_METADATA, api_error, is_retriable
from ..._backoff import ExponentialBackoff
from ..._topic_partition import TopicPartition
from ...network._cluster import Node, PartitionMetadata, nodes_of
from ...network._connections import RESPONSE_LIMIT
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ..records._chunk import Chunk, FetchPosition
from ..records._hooks import ConsumerHooks
from ..state._partition_state import PartitionState
from ..state._pending_errors import PendingErrors
from ..state._reset_strategy import NONE
from ..state._subscription_state import SubscriptionState
from ._completed_fetch import CompletedFetch
from ._decompression import Decompression
from ._fetch_buffer import FetchBuffer, FetchCounters
from ._fetch_session import (
    LAST_VERSION_WITH_NAMES,
    FetchSession,
    RequestedPartition,
    RequestedPartitions,
)
from ._settings import FetchSettings

logger = get_logger("trionet.client.consumer")

#: The first version with record batches and transactions (KIP-98).
VERSION_MIN = 4

#: Errors of a node that is not up to date yet. A retry of the same request will soon succeed.
_NOT_YET: Final = frozenset({error_codes.UNKNOWN_LEADER_EPOCH, error_codes.OFFSET_NOT_AVAILABLE})

#: Errors about the records at the offset that was asked for.
_AT_POSITION: Final = frozenset({error_codes.OFFSET_OUT_OF_RANGE, error_codes.CORRUPT_MESSAGE})


class PendingFetch(NamedTuple):
    """The state of a partition at the time of its fetch request."""

    state: PartitionState
    jumps: int
    position: FetchPosition
    broker_id: int

    @property
    def is_current(self) -> bool:
        """Whether the response is still valid; see :attr:`.PartitionState.jumps`."""
        return self.state.jumps == self.jumps


class Fetcher:
    """Sends fetch requests and buffers the fetched records.

    Args:
        client: sends the requests.
        subscriptions: holds the assigned partitions.
        settings: the fetch settings.
        errors: collects errors, which the user's next request for a record raises.
        replica_seconds: how long to prefer a nearby replica (``metadata.max.age.ms``).
        retry: the backoff for a partition after a failed fetch.
        rng: jitters the backoff.
        notify: called when records may be available.
        hooks: notified of decoded records.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        settings: FetchSettings,
        errors: PendingErrors,
        *,
        replica_seconds: float,
        retry: ExponentialBackoff,
        rng: random.Random,
        notify: Callable[[], object],
        hooks: ConsumerHooks,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._settings = settings
        self._errors = errors
        self._replica_seconds = replica_seconds
        self._retry = retry
        self._rng = rng
        self._notify = notify
        self._buffer = FetchBuffer(hooks)
        self._sessions: dict[int, FetchSession] = {}
        self._is_closed = False
        self._in_flight: dict[int, dict[TopicPartition, PendingFetch]] = {}
        self._lacks_room = False

    @property
    def counters(self) -> FetchCounters:
        """The counters of fetched and decoded records."""
        return self._buffer.counters

    @property
    def decompression(self) -> Decompression | None:
        """The decompression to run before the next :meth:`next_chunk`; None if none is needed."""
        return self._buffer.decompression

    def next_chunk(self, records_wanted: int, now: float) -> Chunk | None:
        """Return the next records; None if there are none or :attr:`decompression` must run first.

        Args:
            records_wanted: the number of records after which no further batch is joined to the
                chunk.
            now: the current time on the event loop's clock, in seconds.

        Raises:
            CorruptRecordError: the next batch cannot be read.
        """
        chunk = self._buffer.next_chunk(records_wanted)
        if self._lacks_room:
            self.send(now)
        return chunk

    # Requests.

    def send(self, now: float) -> float:
        """Send a fetch to each node that is ready for one.

        Returns:
            The seconds until the next call is due, unless an event makes one due earlier.
        """
        if self._is_closed:
            return math.inf
        ends = self._buffer.ends()
        # With fetch.max.bytes=0, a response still has the first batch (KIP-74).
        size = sum(size for size, _ in ends.values())
        self._lacks_room = size >= max(1, self._settings.bytes_max)
        if self._lacks_room:
            self._buffer.drop_paused()
            return math.inf
        asked, full, seconds = self._plan(ends, now)
        for node, partitions in asked.items():
            if node.id in self._in_flight:
                continue
            if node.id in full:
                self._lacks_room = True
            elif self._client.ready(node):
                self._fetch(node, partitions)
            else:
                connection = self._client.connection(node)
                seconds = min(seconds, connection.poll_delay(now) or math.inf)
                self._errors.add_if_final(connection.authentication_error)
        return seconds

    def _plan(
        self, ends: dict[TopicPartition, tuple[int, FetchPosition]], now: float
    ) -> tuple[dict[Node, dict[TopicPartition, PendingFetch]], set[int], float]:
        """Return the partitions to fetch, by node; the nodes to skip; the seconds until a retry."""
        wanted: dict[Node, dict[TopicPartition, PendingFetch]] = {}
        alone: dict[Node, TopicPartition] = {}
        full: set[int] = set()
        seconds = math.inf
        for name, state in self._subscriptions.assignment.states.items():
            if not state.is_fetchable or self._errors.has(name, state):
                continue
            if state.retry_at > now:
                seconds = min(seconds, state.retry_at - now)
                continue
            node = self._node(name, state, now)
            position = state.position
            if node is None or position is None:
                continue
            if name in ends:
                size, position = ends[name]
                if state.stop_offset is not None and position.offset >= state.stop_offset:
                    continue
                # The records before a batch that is too large are handed out before its error.
                if size >= self._settings.partition_bytes_max or state.is_fetched_alone:
                    full.add(node.id)
            asked = PendingFetch(state, state.jumps, position, node.id)
            wanted.setdefault(node, {})[name] = asked
            if state.is_fetched_alone:
                alone.setdefault(node, name)
        for node, name in alone.items():
            wanted[node] = {name: wanted[node][name]}
        return wanted, full, seconds

    def _node(self, name: TopicPartition, state: PartitionState, now: float) -> Node | None:
        """Return the preferred replica if available, or else the leader; None if it is unknown."""
        metadata = self._client.metadata
        leader = metadata.cluster.leader(*name)
        if leader is None:
            metadata.request_topics((name.topic,))
            return None
        replica = state.preferred_replica(now)
        if replica is None:
            return leader
        node = metadata.cluster.nodes.get(replica)
        if node is not None and replica not in self._known(name).offline:
            return node
        state.forget_replica()
        metadata.request_update()
        return leader

    def _known(self, name: TopicPartition) -> PartitionMetadata:
        return self._client.metadata.cluster.topics[name.topic].partitions[name.partition]

    def _fetch(self, node: Node, partitions: dict[TopicPartition, PendingFetch]) -> None:
        settings = self._settings
        # While a broker waits for records of one partition, the others cannot be fetched from it.
        is_alone = any(each.state.is_fetched_alone for each in partitions.values())
        session = self._sessions.setdefault(node.id, FetchSession(node.id))
        # A node omits partitions without news. One that was given up and assigned again has a new
        # state, which would not learn the end of its log, and so its lag, before the next record.
        known = session.partitions
        if any(each.state.high_watermark is None and n in known for n, each in partitions.items()):
            session.begin_anew()
        request = FetchRequest(
            max_wait_ms=0 if is_alone else round(settings.wait_seconds * 1000),
            min_bytes=settings.bytes_min,
            max_bytes=settings.bytes_max,
            isolation_level=int(settings.is_read_committed),
            rack_id=settings.rack,
        )
        session.fill(request, self._details(node, partitions))
        self._in_flight[node.id] = partitions
        self._client.send(
            node,
            request,
            self._handle_response,
            version_min=VERSION_MIN,
            version_max=None if session.uses_topic_ids else LAST_VERSION_WITH_NAMES,
        )

    def _details(
        self, node: Node, partitions: dict[TopicPartition, PendingFetch]
    ) -> RequestedPartitions:
        cluster = self._client.metadata.cluster
        versions = self._client.versions(node)
        takes_ids = versions is not None and LAST_VERSION_WITH_NAMES + 1 in versions.versions(
            api_keys.FETCH
        )
        details: dict[TopicPartition, RequestedPartition] = {}
        for name, asked in partitions.items():
            topic = cluster.topics[name.topic]
            details[name] = RequestedPartition(
                topic.id if takes_ids else NO_UUID,
                asked.position.offset,
                self._settings.partition_bytes_max,
                topic.partitions[name.partition].leader_epoch,
            )
        return details

    # Responses.

    def _handle_response(self, response: ClientResponse) -> None:
        asked = self._in_flight.pop(response.node_id)
        session = self._sessions.get(response.node_id)
        if session is None:
            return  # the fetcher was closed
        now = trio.current_time()
        if response.error is not None:
            session.begin_anew()
            for each in asked.values():
                each.state.forget_replica()
            if isinstance(response.error, ResponseTooLargeError):
                self._look_for_large(asked, response.error, now)
            elif self._errors.add_if_final(response.error):
                self._put_off(asked, now)
        else:
            self._take_response(session, asked, response.body, now)
        self.send(now)

    def _take_response(
        self,
        session: FetchSession,
        asked: dict[TopicPartition, PendingFetch],
        body: FetchResponse,
        now: float,
    ) -> None:
        is_first = session.is_beginning
        found = session.handle_response(body)
        if found is None:
            if is_first:  # else a new session may succeed at once, e.g. after the node restarted
                self._put_off(asked, now)
            if body.error_code == error_codes.FETCH_SESSION_TOPIC_ID_ERROR:
                self._client.metadata.request_update()
            return
        for name, each in asked.items():
            each.state.is_fetched_alone = False
            if each.state.failures and not (name in found and found[name].error_code):
                each.state.failures = 0
        self._learn_leaders(found, body)
        ends = self._buffer.ends()
        for name, data in found.items():
            each = asked[name]
            if not each.is_current or self._subscriptions.assignment.state(name) is not each.state:
                continue
            before = ends[name][1] if name in ends else each.state.position
            if before is None or before.offset != each.position.offset:
                continue  # it was fetched from another node as well
            if data.error_code:
                self._handle_error(name, each, data, now)
            else:
                self._fetched(name, each, data, now)
        self._notify()

    def _look_for_large(
        self, asked: dict[TopicPartition, PendingFetch], error: ResponseTooLargeError, now: float
    ) -> None:
        """After a response that was too large, fetch each of its partitions separately.

        A broker returns the first batch even if it exceeds the limits (KIP-74). Separate fetches
        identify the partition of that batch, and the other partitions can still be read.
        """
        for each in asked.values():
            each.state.is_fetched_alone = True
        if len(asked) > 1:
            return
        [(name, each)] = asked.items()
        if each.is_current and each.position == each.state.position:
            self._put_off(asked, now)
            failure = batch_too_large(name, each.position, error)
            self._errors.add_partition(name, each.state, failure)

    def _put_off(self, asked: dict[TopicPartition, PendingFetch], now: float) -> None:
        """Fetch these partitions again after a backoff."""
        for each in asked.values():
            if each.is_current:
                each.state.put_off(now, self._retry, self._rng)

    def _learn_leaders(
        self, found: dict[TopicPartition, PartitionData], body: FetchResponse
    ) -> None:
        """Update the metadata with the new leaders in a response (KIP-951)."""
        leaders = {
            name: (data.current_leader.leader_id, data.current_leader.leader_epoch)
            for name, data in found.items()
            if data.error_code and data.current_leader is not None
        }
        if leaders:
            self._client.metadata.update_leaders(leaders, nodes_of(body.node_endpoints))
            self._subscriptions.assignment.validate_positions_of_new_leaders(
                self._client.metadata.cluster
            )

    def _fetched(
        self, name: TopicPartition, asked: PendingFetch, data: PartitionData, now: float
    ) -> None:
        state = asked.state
        state.high_watermark = data.high_watermark
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.prefer_replica(data.preferred_read_replica, now + self._replica_seconds)
        if not data.records:
            return
        assert isinstance(data.records, memoryview)
        try:
            fetch = CompletedFetch(
                name,
                state,
                asked.position,
                data.records,
                data.aborted_transactions or (),
                self._settings,
                asked.broker_id,
            )
        except PartitionError as error:
            self._errors.add_partition(name, state, error)
        else:
            self._buffer.add(fetch)
            self._subscriptions.assignment.move_to_end(name)

    def _handle_error(
        self, name: TopicPartition, asked: PendingFetch, data: PartitionData, now: float
    ) -> None:
        state = asked.state
        state.put_off(now, self._retry, self._rng)
        code = data.error_code
        if code in _AT_POSITION and asked.position != state.position:
            return  # buffered records before that offset are handed out first
        logger.info("fetching %s failed: %s", name, error_codes.name_of(code))
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            self._out_of_range(name, asked)
        elif code == error_codes.CORRUPT_MESSAGE:
            self._errors.add_partition(name, state, _corrupt_in_log(name, asked.position))
        elif code in STALE_METADATA:
            state.forget_replica()  # as only the leader is in the metadata (Kafka: AbstractFetch)
            self._client.metadata.request_update()
        elif code not in _NOT_YET:
            error = api_error(code, f"fetching {name}")
            if not is_retriable(error):
                self._errors.add_partition(name, state, error)

    def _out_of_range(self, name: TopicPartition, asked: PendingFetch) -> None:
        """Reset the position, or raise an error if there is no reset strategy."""
        offset = asked.position.offset
        if asked.state.forget_replica() is not None:
            return  # a follower may lag: ask the leader
        if self._subscriptions.assignment.default_reset != NONE:
            self._subscriptions.assignment.request_reset(name)
            return
        message = (
            f"offset {offset} of {name} is out of range, and auto.offset.reset is none;"
            " seek() to an existing offset"
        )
        error = OffsetOutOfRangeError(message, *name, offset)
        self._errors.add_partition(name, asked.state, error)

    # Closing.

    def close(self) -> None:
        """Clear the buffer, and close the sessions with connected nodes (KIP-227)."""
        self._buffer.clear()
        self._is_closed = True
        sessions, self._sessions = self._sessions, {}  # includes nodes that left the cluster
        for node in self._client.metadata.cluster.nodes.values():
            session = sessions.get(node.id)
            if session is not None and session.is_open and self._client.is_ready(node):
                request = FetchRequest(max_bytes=0)
                session.closing(request)
                self._client.send(node, request, version_min=VERSION_MIN)


def _corrupt_in_log(name: TopicPartition, position: FetchPosition) -> CorruptRecordError:
    """Return the error for records that a broker cannot read (Kafka: FetchCollector).

    The code is retriable for a producer, whose records were damaged on the way. A log stays as it
    is, so that a consumer would try again without end.
    """
    return CorruptRecordError(
        f"cannot read {name} at offset {position.offset}: the broker returned CORRUPT_MESSAGE, as"
        " the records in its log are damaged; seek() past them to continue",
        *name,
        position.offset,
    )


def batch_too_large(
    name: TopicPartition, position: FetchPosition, error: ResponseTooLargeError
) -> FetchTooLargeError:
    """Return the error for a single-partition response that exceeds the client's size limit."""
    found = FetchTooLargeError(
        f"cannot read {name} at offset {position.offset}: the response with the next record batch"
        f" is {error.size} bytes long, more than {RESPONSE_LIMIT} = {error.bytes_max}; set"
        f" {RESPONSE_LIMIT} to {error.size} or more, or seek() past the batch",
        *name,
        position.offset,
        error.size,
        error.bytes_max,
    )
    found.__cause__ = error
    return found
