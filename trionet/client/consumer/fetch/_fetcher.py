"""Fetches records ahead of whoever reads them, within bounds (Kafka: AbstractFetch).

At most one fetch is under way to each node, so that its session keeps its order (KIP-227). The next
one goes out as soon as the last was answered, for the records behind those that wait to be handed
out, and as long as each of the node's partitions has room: a fetch that leaves out a partition
could be held by its node for ``fetch.max.wait.ms`` while that partition is asked for.

Nothing here waits. Whoever polls the client calls :meth:`Fetcher.send` between two polls.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import trio

from ....errors import PartitionError, ResponseTooLargeError
from ....protocol import api_keys, error_codes
from ....protocol._wire import NO_UUID
from ....protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from ..._backoff import ExponentialBackoff
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...metadata._cluster import PartitionMetadata
from ...network._kafka_client import KafkaClient
from ...requests._response import ClientResponse
from .._settings import FetchSettings
from ..records._chunk import Chunk
from ..records._hooks import ConsumerHooks
from ..state._partition_state import FetchPosition, PartitionState
from ..state._pending_errors import Failures
from ..state._subscription_state import SubscriptionState
from ._completed_fetch import CompletedFetch
from ._counters import FetchCounters
from ._decompression import Inflation
from ._fetch_buffer import FetchBuffer
from ._fetch_errors import refused, too_large
from ._fetch_session import LAST_VERSION_WITH_NAMES, FetchSession, Wanted, WantedPartition

logger = logging.getLogger("trionet.client.consumer")

#: The first version that reads record batches and knows of transactions (KIP-98).
VERSION_MIN = 4


class AskedPartition(NamedTuple):
    """A partition when it was asked for."""

    state: PartitionState
    jumps: int
    position: FetchPosition

    @property
    def is_current(self) -> bool:
        """Whether the answer is still wanted."""
        return self.state.jumps == self.jumps


class Fetcher:
    """See the module.

    Args:
        client: sends.
        subscriptions: what is wanted.
        settings: of fetches.
        failures: what the user has to be told.
        replica_seconds: how long a replica nearby is preferred (``metadata.max.age.ms``).
        retry: the wait of a partition that cannot be fetched for now.
        chance: what blurs that.
        on_news: called when there may be something to hand out.
        hooks: see what is handed out.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        settings: FetchSettings,
        failures: Failures,
        *,
        replica_seconds: float,
        retry: ExponentialBackoff,
        chance: random.Random,
        on_news: Callable[[], object],
        hooks: ConsumerHooks,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._settings = settings
        self._failures = failures
        self._replica_seconds = replica_seconds
        self._retry = retry
        self._chance = chance
        self._on_news = on_news
        self._buffer = FetchBuffer(hooks)
        self._sessions: dict[int, FetchSession] = {}
        self._is_closed = False
        self._asked: dict[int, dict[TopicPartition, AskedPartition]] = {}
        self._lacks_room = False

    @property
    def counters(self) -> FetchCounters:
        """What came, and what was decoded of it."""
        return self._buffer.counters

    @property
    def inflation(self) -> Inflation | None:
        """What has to be run before :meth:`next_chunk` has more; None if nothing has."""
        return self._buffer.inflation

    def next_chunk(self, records_wanted: int, now: float) -> Chunk | None:
        """Records to be handed out next; None if nothing was fetched that could be, or
        :attr:`inflation` comes first.

        Args:
            records_wanted: so many, if that many are there.
            now: the time.

        Raises:
            CorruptRecordError: what comes next cannot be read.
        """
        chunk = self._buffer.next_chunk(records_wanted)
        if self._lacks_room:
            self.send(now)
        return chunk

    # Requests.

    def send(self, now: float) -> float:
        """Ask every node that may be asked for what is wanted of it.

        Returns:
            Seconds until this has to be called again, if nothing else happens before.
        """
        if self._is_closed:
            return math.inf
        ends = self._buffer.ends()
        self._lacks_room = sum(size for size, _ in ends.values()) >= self._settings.bytes_max
        if self._lacks_room:
            self._buffer.drop_paused()
            return math.inf
        asked, full, seconds = self._wanted(ends, now)
        for node, partitions in asked.items():
            if node.id in self._asked:
                continue
            if node.id in full:
                self._lacks_room = True
            elif self._client.ready(node):
                self._fetch(node, partitions)
            else:
                seconds = min(seconds, self._client.poll_delay(node) or math.inf)
                self._failures.add_if_final(self._client.authentication_error(node))
        return seconds

    def _wanted(
        self, ends: dict[TopicPartition, tuple[int, FetchPosition]], now: float
    ) -> tuple[dict[Node, dict[TopicPartition, AskedPartition]], set[int], float]:
        """What to ask each node for, the nodes that have to wait, and how long others have to."""
        wanted: dict[Node, dict[TopicPartition, AskedPartition]] = {}
        alone: dict[Node, TopicPartition] = {}
        full: set[int] = set()
        seconds = math.inf
        for name, state in self._subscriptions.partitions.items():
            if not state.is_fetchable or self._failures.has(name, state):
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
                # The records before a batch that is too large come before the error about it.
                if size >= self._settings.partition_bytes_max or state.is_fetched_alone:
                    full.add(node.id)
            asked = AskedPartition(state, state.jumps, position)
            wanted.setdefault(node, {})[name] = asked
            if state.is_fetched_alone:
                alone.setdefault(node, name)
        for node, name in alone.items():
            wanted[node] = {name: wanted[node][name]}
        return wanted, full, seconds

    def _node(self, name: TopicPartition, state: PartitionState, now: float) -> Node | None:
        """Where to fetch a partition from: the replica nearby, or the leader."""
        metadata = self._client.metadata
        leader = metadata.cluster.leader(*name)
        if leader is None:
            metadata.request_update()
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

    def _fetch(self, node: Node, partitions: dict[TopicPartition, AskedPartition]) -> None:
        settings = self._settings
        # A broker that waits for records of one partition keeps the others waiting for their turn.
        is_alone = any(each.state.is_fetched_alone for each in partitions.values())
        session = self._sessions.setdefault(node.id, FetchSession(node.id))
        request = FetchRequest(
            max_wait_ms=0 if is_alone else round(settings.wait_seconds * 1000),
            min_bytes=settings.bytes_min,
            max_bytes=settings.bytes_max,
            isolation_level=int(settings.is_read_committed),
            rack_id=settings.rack,
        )
        session.fill(request, self._details(node, partitions))
        self._asked[node.id] = partitions
        self._client.send(
            node,
            request,
            self._answered,
            version_min=VERSION_MIN,
            version_max=None if session.uses_topic_ids else LAST_VERSION_WITH_NAMES,
        )

    def _details(self, node: Node, partitions: dict[TopicPartition, AskedPartition]) -> Wanted:
        cluster = self._client.metadata.cluster
        versions = self._client.versions(node)
        takes_ids = versions is not None and LAST_VERSION_WITH_NAMES + 1 in versions.versions(
            api_keys.FETCH
        )
        details: dict[TopicPartition, WantedPartition] = {}
        for name, asked in partitions.items():
            topic = cluster.topics[name.topic]
            details[name] = WantedPartition(
                topic.id if takes_ids else NO_UUID,
                asked.position.offset,
                self._settings.partition_bytes_max,
                topic.partitions[name.partition].leader_epoch,
            )
        return details

    # Answers.

    def _answered(self, response: ClientResponse) -> None:
        asked = self._asked.pop(response.node_id)
        session = self._sessions.get(response.node_id)
        if session is None:
            return  # closed meanwhile
        now = trio.current_time()
        if response.error is not None:
            session.failed()
            for each in asked.values():
                each.state.forget_replica()
            if isinstance(response.error, ResponseTooLargeError):
                self._look_for_large(asked, response.error, now)
            elif self._failures.add_if_final(response.error):
                self._put_off(asked, now)
        else:
            self._take(session, asked, response.body, now)
        self.send(now)

    def _take(
        self,
        session: FetchSession,
        asked: dict[TopicPartition, AskedPartition],
        body: FetchResponse,
        now: float,
    ) -> None:
        is_first = session.is_beginning
        found = session.answered(body)
        if found is None:
            if is_first:  # else a new session may do at once, such as after a restart of the node
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
            if not each.is_current or self._subscriptions.state(name) is not each.state:
                continue
            before = ends[name][1] if name in ends else each.state.position
            if before is None or before.offset != each.position.offset:
                continue  # it was asked for elsewhere, too
            if data.error_code:
                self._refused(name, each, data, now)
            else:
                self._fetched(name, each, data, now)
        self._on_news()

    def _look_for_large(
        self, asked: dict[TopicPartition, AskedPartition], error: ResponseTooLargeError, now: float
    ) -> None:
        """A response was too large: fetch each of its partitions alone, to find the one that is.

        A broker sends the first batch that it finds whatever its size (KIP-74), and where there is
        one that is too large, the partitions beside it can be read nevertheless.
        """
        for each in asked.values():
            each.state.is_fetched_alone = True
        if len(asked) > 1:
            return
        [(name, each)] = asked.items()
        if each.is_current and each.position == each.state.position:
            self._put_off(asked, now)
            failure = too_large(name, each.position, error)
            self._failures.add_partition(name, each.state, failure)

    def _put_off(self, asked: dict[TopicPartition, AskedPartition], now: float) -> None:
        """Ask for these again after a wait."""
        for each in asked.values():
            if each.is_current:
                each.state.put_off(now, self._retry, self._chance)

    def _learn_leaders(
        self, found: dict[TopicPartition, PartitionData], body: FetchResponse
    ) -> None:
        """Take the new leaders that an answer tells of (KIP-951)."""
        leaders = {
            name: (data.current_leader.leader_id, data.current_leader.leader_epoch)
            for name, data in found.items()
            if data.error_code and data.current_leader is not None
        }
        if leaders:
            endpoints = body.node_endpoints
            nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in endpoints]
            self._client.metadata.update_leaders(leaders, nodes)
            self._subscriptions.look_at_leaders(self._client.metadata.cluster)

    def _fetched(
        self, name: TopicPartition, asked: AskedPartition, data: PartitionData, now: float
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
            )
        except PartitionError as error:
            self._failures.add_partition(name, state, error)
        else:
            self._buffer.add(fetch)
            self._subscriptions.move_to_end(name)

    def _refused(
        self, name: TopicPartition, asked: AskedPartition, data: PartitionData, now: float
    ) -> None:
        state = asked.state
        state.put_off(now, self._retry, self._chance)
        if data.error_code == error_codes.OFFSET_OUT_OF_RANGE and asked.position != state.position:
            return  # what was fetched ahead of it is handed out before anything is decided
        refusal = refused(name, asked.position, data.error_code, state, self._subscriptions)
        if refusal.is_metadata_old:
            self._client.metadata.request_update()
        if refusal.error is not None:
            self._failures.add_partition(name, state, refusal.error)

    # The end.

    def close(self) -> None:
        """Have the nodes forget the sessions, where that can be said without waiting (KIP-227)."""
        self._buffer.clear()
        self._is_closed = True
        sessions, self._sessions = self._sessions, {}  # also of nodes that have left the cluster
        for node in self._client.metadata.cluster.nodes.values():
            session = sessions.get(node.id)
            if session is not None and session.is_open and self._client.is_ready(node):
                request = FetchRequest(max_bytes=0)
                session.closing(request)
                self._client.send(node, request, version_min=VERSION_MIN)
