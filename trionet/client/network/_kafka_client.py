"""Requests to the nodes of a cluster and their answers, over one Selector (Kafka: KafkaClient).

This is what every client here is built on, compiled; users have :class:`.NetworkClient`.

One task polls; any number of others send, or await a :meth:`KafkaClient.request`. A turn of
:meth:`KafkaClient.poll` is Kafka's: ask for metadata if that is due, poll the selector, then look
at completed sends, completed receives, disconnections, connections, connects and requests that took
too long, and last run the callbacks. What is decided lies in pure state machines beside this:
:mod:`._connection_states`, :mod:`._in_flight`, :mod:`._metadata`.

A peer's fault, such as a response to no request, ends that connection and no other.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from typing import Any

import trio

from ..._util._raising import again
from ...errors import (
    AuthenticationError,
    DisconnectedError,
    LocalProtocolError,
    TrionetError,
    UnsupportedVersionError,
)
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...protocol._codec import ApiVersionCodec
from ...protocol._request_keys import api_key_of
from ...protocol._wire import Message
from .._api_errors import LASTING
from .._node import Node
from ..connections._connection_states import ClusterConnectionStates
from ..connections._connections import Connections
from ..connections._least_loaded import least_loaded
from ..metadata._metadata import Metadata
from ..metadata._metadata_updater import MetadataUpdater
from ..metrics._client_metrics import ClientMetrics
from ..metrics._statistics import ClientStatistics
from ..metrics._telemetry import Telemetry
from ..requests._api_versions import NodeApiVersions
from ..requests._in_flight import InFlightRequest
from ..requests._pending_response import AwaitedAnswer
from ..requests._response import ClientResponse
from ._exchange import Callback, Exchange
from ._request_settings import RequestSettings


class KafkaClient:
    """The part of :class:`.NetworkClient` that is compiled; made by :func:`.open_kafka_client`.

    :class:`.NetworkClient` says what each method is for.

    Args:
        selector: of this client alone; its alarm is run by :mod:`._opening`.
        connections: the channels over it.
        states: of the connections.
        updater: keeps the metadata.
        settings: of requests.
        chance: what breaks ties.

    Attributes:
        metrics: what can be measured of it.
        reachability: which nodes were reached, and why others cannot be.
        telemetry: pushes that to brokers that ask for it; None if it does not.
    """

    def __init__(
        self,
        selector: Selector,
        connections: Connections,
        states: ClusterConnectionStates,
        updater: MetadataUpdater,
        settings: RequestSettings,
        chance: random.Random,
        metrics: ClientMetrics,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.metrics = metrics
        self.telemetry = telemetry
        self._selector = selector
        self._connections = connections
        self._states = states
        self._updater = updater
        self._settings = settings
        self._chance = chance
        self._awaited: dict[int, int] = {}
        self._exchange = Exchange(
            selector, connections, states, updater, settings, metrics.counters, self._awaited
        )
        self.reachability = self._exchange.reachability
        self._clock = trio.lowlevel.current_clock().current_time
        # No longer, and what is sent meanwhile need not end a poll for the sake of its own time.
        self._poll_seconds = settings.timeout_seconds
        self._news: trio.Event | None = None  # made by the first who waits
        self._poll_ends_at = -math.inf  # no poll is under way that could be ended
        self._is_polling = self._is_closed = False

    @property
    def metadata(self) -> Metadata:
        return self._updater.metadata

    # Connections.

    def ready(self, node: Node) -> bool:
        self._check_open()
        if self.is_ready(node):
            return True
        self.begin_connect(node, self._clock())
        return False

    def is_ready(self, node: Node) -> bool:
        now = self._clock()
        return not self._updater.is_due(now) and self.can_send(node.id, now)

    def can_send(self, node_id: int, now: float) -> bool:
        if not self._states.is_ready(node_id, now):
            return False
        if not self._exchange.in_flight.can_send_more(node_id):
            return False
        channel = self._connections.channel(node_id)
        # The channel says it, too: it may be authenticating again (KAFKA-5014).
        return channel is not None and channel.is_ready and channel.send is None

    def begin_connect(self, node: Node, now: float) -> bool:
        if not self._states.can_connect(node.id, now):
            return False
        self._connections.connect(node, self._states.connecting(node.id, node.host, now))
        if now < self._poll_ends_at:  # it must not sleep past the end of this attempt
            self._selector.wakeup()
        return True

    def connection_failed(self, node: Node) -> bool:
        return self._states.is_disconnected(node.id)

    def connection_delay(self, node: Node) -> float:
        return self._states.connection_delay(node.id, self._clock())

    def poll_delay(self, node: Node) -> float:
        return self._states.poll_delay(node.id, self._clock())

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        return self._states.authentication_error(node.id)

    def connection_error(self, node: Node) -> TrionetError | None:
        return self._states.error(node.id)

    def connection_problem(self) -> str:
        return self.reachability.problem(self.metadata.cluster)

    def versions(self, node: Node) -> NodeApiVersions | None:
        return self._exchange.versions.get(node.id)

    def in_flight_count(self, node: Node | None = None) -> int:
        in_flight = self._exchange.in_flight
        return len(in_flight) if node is None else in_flight.count(node.id)

    def statistics(self) -> ClientStatistics:
        return self.metrics.statistics(self._clock())

    def disconnect(self, node: Node) -> None:
        if self._states.state(node.id) is None or self._states.is_disconnected(node.id):
            return
        error = DisconnectedError(f"{node}: the client ended the connection")
        self._exchange.give_up(node.id, error, self._clock())
        self._selector.wakeup()

    def close(self, node: Node) -> None:
        self._exchange.drop(node.id, self._clock())
        self._selector.wakeup()  # who waits until this node is ready begins anew

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]:
        nodes = list(self.metadata.cluster.nodes.values())
        start = self._chance.randrange(len(nodes)) if nodes else 0
        has_ready = any(map(self._states.is_established, self.metadata.cluster.nodes))
        node = least_loaded(
            nodes[start:] + nodes[:start],
            self._states,
            now,
            can_send=self.can_send,
            in_flight_count=self.in_flight_count,
        )
        return node, has_ready

    def soonest(self, now: float) -> float:
        nodes = self.metadata.cluster.nodes
        return min((self._states.poll_delay(node_id, now) for node_id in nodes), default=0.0)

    # Requests.

    def send(
        self,
        node: Node,
        body: Message,
        callback: Callback | None = None,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> int:
        self._check_open()
        now = self._clock()
        if not self.can_send(node.id, now):
            raise LocalProtocolError(f"{node} is not ready for a request; ask ready() before")
        exchange = self._exchange
        try:
            codec = self._codec(node.id, body, version_min, version_max)
        except UnsupportedVersionError as error:
            return exchange.refuse(node.id, body, callback, error)
        request = InFlightRequest(
            node.id,
            exchange.next_correlation_id(),
            codec,
            body,
            now,
            self._settings.timeout_seconds if seconds_max is None else seconds_max,
            callback=callback,
        )
        exchange.send(request)
        if request.expires_at < self._poll_ends_at:
            self._selector.wakeup()
        return request.correlation_id

    def send_internal(
        self,
        node: Node,
        body: Message,
        now: float,
        *,
        version_min: int,
        told: Callback | None = None,
    ) -> None:
        """Send a request of its own; raises UnsupportedVersionError as :meth:`request`."""
        codec = self._codec(node.id, body, version_min, None)
        self._exchange.send_own(node.id, codec, body, now, told)

    def _codec(
        self, node_id: int, body: Message, version_min: int, version_max: int | None
    ) -> ApiVersionCodec:
        versions = self._exchange.versions[node_id]
        return versions.codec(api_key_of(body), version_min=version_min, version_max=version_max)

    async def request(
        self,
        node: Node,
        body: Message,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        seconds_max: float | None = None,
    ) -> Any:
        await self.until_ready(node)
        answer = AwaitedAnswer()
        self.send(
            node,
            body,
            answer,
            version_min=version_min,
            version_max=version_max,
            seconds_max=seconds_max,
        )
        return await answer.wait()

    # Waits.

    async def until_ready(self, node: Node) -> None:
        await trio.lowlevel.checkpoint()
        if self.ready(node):
            return
        self._awaited[node.id] = self._awaited.get(node.id, 0) + 1
        self._selector.wakeup()  # the poll under way ends when this node may be tried again
        was_tried = False
        try:
            while not self.ready(node):
                has_failed = self.connection_failed(node)
                if has_failed and was_tried:
                    raise again(self._states.error(node.id) or DisconnectedError(str(node)))
                was_tried = was_tried or not has_failed
                await self.until_news()
        finally:
            self._awaited[node.id] -= 1
            if not self._awaited[node.id]:
                del self._awaited[node.id]

    async def until_updated(self, updates: int = 0) -> None:
        await trio.lowlevel.checkpoint()
        if not self._updater.asks:
            raise LocalProtocolError(
                "this client never asks for metadata: its nodes are given by a"
                " ManualMetadataUpdater, and set_nodes() changes them at once"
            )
        self._selector.wakeup()  # the poll under way may not know that an update is wanted
        errors = self.metadata.errors
        while self.metadata.updates <= updates:
            self._check_open()
            error = self.metadata.error if self.metadata.errors > errors else None
            if isinstance(error, LASTING):
                raise again(error)
            await self.until_news()

    # The turn.

    def wakeup(self) -> None:
        self._selector.wakeup()

    async def run(self) -> None:
        while True:
            await self.poll()

    async def poll(self, seconds_max: float = math.inf) -> list[ClientResponse]:
        if seconds_max < 0:
            raise ValueError(f"seconds_max = {seconds_max}; allowed: 0 or more")
        self._check_open()
        if self._is_polling:
            raise trio.BusyResourceError("another task polls this client")
        self._is_polling = True
        exchange = self._exchange
        try:
            if exchange.has_completed:
                await trio.lowlevel.checkpoint()
                return exchange.hand_out()
            now = self._clock()
            due = self._updater.maybe_update(self, now)
            seconds = max(0.0, min(seconds_max, due, self._next_event(now), self._poll_seconds))
            self._poll_ends_at = now + seconds
            result = await self._selector.poll(seconds_max=seconds)
            self._check_open()
            now = self._clock()
            exchange.take(result, now)
            if self._news is not None:  # metadata go first; who waits for a node sends behind them
                self._updater.maybe_update(self, now)
            return exchange.hand_out()
        finally:
            self._is_polling = False
            self._poll_ends_at = -math.inf
            self._tell_news()

    def _tell_news(self) -> None:
        """Whoever waits for something looks again."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def until_news(self) -> None:
        if self._news is None:
            self._news = trio.Event()
        await self._news.wait()

    def _next_event(self, now: float) -> float:
        """Seconds until time alone brings something."""
        at = min(
            self._exchange.in_flight.next_expiry(),
            self._states.next_late_connect(),
            self._states.next_slow_at,
        )
        soonest = at - now
        for node_id in self._awaited:
            delay = self._states.poll_delay(node_id, now)
            # A wait that is over, and led to nothing, is not waited for again (KAFKA-1642).
            if 0 < delay < soonest:
                soonest = delay
        return soonest

    # The end.

    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this client is closed")

    def end(self) -> None:
        """Close every connection and end every wait; for :mod:`._opening`."""
        self._is_closed = True
        self._connections.give_up_all()
        self._selector.close_all(CloseReason.LOCAL_CLOSE)
        self._exchange.end_all(DisconnectedError("the client is closed"), self._clock())
        self._exchange.hand_out()
        self._selector.wakeup()
        self._tell_news()
