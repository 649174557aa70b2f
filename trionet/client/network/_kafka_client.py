"""The client that every other client is built on (Kafka: KafkaClient, NetworkClient).

It sends requests to the nodes of a cluster over one Selector. The class is compiled; users call it
through :class:`.NetworkClient`.

One task polls; any number of other tasks send requests, or await :meth:`KafkaClient.request`. A
turn of :meth:`KafkaClient.poll` follows Kafka's steps: request metadata if an update is due, poll
the selector, handle completed sends, completed receives, disconnections, connections and timeouts,
and finally run the callbacks. State machines without I/O make the decisions:
:mod:`._connection_states`, :mod:`._in_flight` and :mod:`._metadata`.

The connection to a peer that violates the protocol is closed; no other connection is affected.

**The problem.** Requests of many tasks to many nodes share one selector, which only one task may
poll. While that task is parked in a poll, other tasks change the state on which the poll depends:
they start connections, send requests with short timeouts, and close nodes.

**The choice.** As in Kafka, one task drives everything, and every other method is synchronous: it
changes state immediately, and wakes the selector if the current poll would sleep past a new
deadline. ``_poll_ends_at`` is the time at which the current poll ends without a wakeup; a change
with a later deadline need not wake it. Tasks that wait for a condition check it again after every
poll.

**What was refused.** A task per connection: a request would cost two task switches, and callbacks
could run out of order. A queue of commands to the polling task: ``send`` could not raise errors. An
event per condition: each of the dozen state changes that can end a wait would need to find the
waiting tasks, while polls end rarely compared with requests.

**When to think again.** If hundreds of tasks wait for different nodes at the same time: the end of
each poll wakes all of them, and an event per node would be cheaper.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final

import trio

from ..._util._logging import get_logger
from ..._util._raising import again
from ...errors import (
    AuthenticationError,
    DisconnectedError,
    LocalProtocolError,
    UnsupportedVersionError,
)
from ...net._channels import PollResult
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...protocol._wire import Message
from .._api_errors import LASTING
from .._client_metrics import ClientMetrics
from .._network_settings import RequestSettings
from ._api_versions import NodeApiVersions
from ._cluster import Node
from ._connection_states import ClusterConnectionStates, ConnectionState, NodeConnectionState
from ._connections import Connections
from ._exchange import Exchange
from ._in_flight import InFlightRequest
from ._metadata import Metadata
from ._metadata_updater import MetadataUpdater
from ._reachability import Reachability
from ._responses import Callback, ClientResponse, PendingResponse
from ._telemetry import Telemetry

logger = get_logger("trionet.client")

#: The number of nodes of a cluster among which the least loaded one is searched for, beside those
#: to which there are connections.
_CANDIDATES_MAX: Final = 256

#: A poll that fails is tried again, in case its error was a passing one, but not for ever.
_FAILED_POLLS_MAX: Final = 10
_FAILED_POLL_SECONDS: Final = 0.1


class KafkaClient:
    """The compiled part of :class:`.NetworkClient`, which documents the methods.

    Created by :func:`.open_kafka_client`. :meth:`connection` returns the state of the connection to
    a node, which NetworkClient exposes through several methods.

    Args:
        selector: the client's own selector; the caller must run the selector's alarm.
        connections: the channels.
        states: the states of the connections.
        updater: keeps the metadata up to date.
        settings: the request settings.
        rng: chooses the node at which the search for the least loaded one starts.
        metrics: the client's metrics.
        background: runs the tasks of the client, and of what is built on it, until its block ends.
        telemetry: pushes the metrics to brokers that request them; None if that is disabled.

    Attributes:
        background: see the argument.
        is_closed: whether the client's block has ended, or one of its tasks has failed.
        metadata: the client's view of the cluster.
        metrics: the client's metrics.
        reachability: tracks which nodes have been reached, and why others cannot be reached.
        telemetry: see the argument.
    """

    def __init__(
        self,
        selector: Selector,
        connections: Connections,
        states: ClusterConnectionStates,
        updater: MetadataUpdater,
        settings: RequestSettings,
        rng: random.Random,
        metrics: ClientMetrics,
        background: trio.Nursery,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.background = background
        self.metadata: Metadata = updater.metadata
        self.metrics = metrics
        self.telemetry = telemetry
        self._selector = selector
        self._connections = connections
        self._states = states
        self._updater = updater
        self._settings = settings
        self._rng = rng
        self._exchange = Exchange(
            selector, connections, states, updater, settings, metrics.counters
        )
        self.reachability: Reachability = self._exchange.reachability
        self._clock = trio.lowlevel.current_clock().current_time
        # No poll is longer than the default request timeout, so that a request sent during a poll
        # rarely needs to end the poll because of its timeout.
        self._poll_seconds_max = settings.timeout_seconds
        self._polled: trio.Event | None = None  # created by the first waiting task
        self._poll_ends_at = -math.inf  # while no poll is in progress
        self._chosen_id: int | None = None  # the last node to which any caller should connect
        self._is_polling = False
        self._failed_polls = 0
        self._thread_id = get_ident()
        self.is_closed = False

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
        if not self._states.of(node_id).is_ready(now):
            return False
        if not self._exchange.in_flight.can_send_more(node_id):
            return False
        channel = self._connections.channel(node_id)
        # The channel must be ready too: it may be re-authenticating (KAFKA-5014).
        return channel is not None and channel.is_ready and channel.send is None

    def begin_connect(self, node: Node, now: float) -> bool:
        states = self._states
        if not (states.of(node.id).can_connect(now) and states.has_room_for(node.id)):
            return False
        if node.id == self._chosen_id:
            states.trying_any_node(now)
        self._connections.connect(node, states.connecting(node.id, node.host, now))
        if now < self._poll_ends_at:  # it must not sleep past this attempt's setup timeout
            self._selector.wakeup()
        return True

    def connection(self, node: Node) -> NodeConnectionState:
        """Return the state of the connection to a node, which the caller must not modify."""
        return self._states.of(node.id)

    def connection_problem(self) -> str:
        return self.reachability.problem(self.metadata.cluster)

    def connection_error(self) -> DisconnectedError | None:
        """Return the error that :meth:`connection_problem` describes; None if there is none."""
        return self.reachability.error(self.metadata.cluster)

    def connection_refusal(self) -> str:
        return self.reachability.refusal(self.metadata.cluster)

    def versions(self, node: Node) -> NodeApiVersions | None:
        return self._exchange.setup.versions.get(node.id)

    def finalized_level(self, feature: str) -> int:
        """Return the finalized level of a feature of the cluster; 0 if none is known (KIP-584)."""
        return self._exchange.setup.finalized_features.get(feature, 0)

    def in_flight_count(self, node: Node | None = None) -> int:
        in_flight = self._exchange.in_flight
        return len(in_flight) if node is None else in_flight.count(node.id)

    def disconnect(self, node: Node) -> None:
        connection = self.connection(node)
        if connection.state is None or connection.is_disconnected:
            return
        error = DisconnectedError(f"{node}: the client closed the connection")
        self._exchange.give_up(node.id, error, self._clock())
        self._selector.wakeup()

    def disconnect_all(self) -> None:
        """Close all connections; the next poll returns the errors of their requests."""
        for node in self._connections.all_nodes():
            self.disconnect(node)

    def close(self, node: Node) -> None:
        self._exchange.drop(node.id, self._clock())
        self._selector.wakeup()  # tasks waiting for this node must start over

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]:
        nodes = self._candidates()
        ready = ConnectionState.READY  # throttled or not
        has_ready = any(self.connection(each).state is ready for each in nodes)
        return self._least_loaded(nodes, now), has_ready

    def _candidates(self) -> list[Node]:
        """Return the nodes of the cluster in an order that begins at a random one.

        Of a very large cluster, these are some nodes, and all to which there are connections.
        """
        nodes = list(self.metadata.cluster.nodes.values())
        start = self._rng.randrange(len(nodes)) if nodes else 0
        end = start + _CANDIDATES_MAX
        found = nodes[start:end] + nodes[: min(start, max(0, end - len(nodes)))]
        return found if len(found) == len(nodes) else found + self._connected()

    def _connected(self) -> list[Node]:
        """Return the nodes of the cluster to which there are connections, or attempts."""
        nodes = self.metadata.cluster.nodes
        return [nodes[each.id] for each in self._connections.all_nodes() if each.id in nodes]

    def authentication_errors(self) -> list[AuthenticationError]:
        """Return the errors of the nodes of the cluster that last rejected the credentials."""
        rejecting = self._states.rejecting & self.metadata.cluster.nodes.keys()
        errors = [self._states.of(node_id).authentication_error for node_id in rejecting]
        return [each for each in errors if each is not None]

    def have_all_failed(self) -> bool:
        """Return whether the last attempts to connect to all nodes of the cluster have failed."""
        nodes = self.metadata.cluster.nodes
        return all(self._states.of(each).is_disconnected for each in nodes)

    def least_loaded_busy_node(self) -> Node | None:
        """Return the connected node with the fewest requests in flight; None if there is none.

        If :meth:`least_loaded_node` returns None, only a poll can make such a node usable.
        """
        now = self._clock()
        nodes = self._connected()
        busy = [each for each in nodes if self.connection(each).poll_delay(now) == math.inf]
        return min(busy, key=self.in_flight_count, default=None)

    def _least_loaded(self, nodes: list[Node], now: float) -> Node | None:
        """Return the node most likely to respond first; on a tie, the first of them.

        In order of preference: the ready node with the fewest requests in flight; a node whose
        connection is being set up; of the nodes whose backoff has passed, the one tried least
        recently; a node whose connection has been in setup for longer than
        :data:`.PATIENCE_SECONDS`. None if there is no such node, or too many others have failed
        just now (Kafka: NetworkClient.leastLoadedNode).
        """
        sendable: list[Node] = []
        preparing: list[Node] = []
        connectable: list[Node] = []
        slow: list[Node] = []
        for node in nodes:
            connection = self._states.of(node.id)
            if self.can_send(node.id, now):
                sendable.append(node)
            elif connection.is_slow:
                slow.append(node)
            elif connection.is_preparing:
                preparing.append(node)
            elif connection.can_connect(now):
                connectable.append(node)
        if sendable:
            return min(sendable, key=self.in_flight_count)
        if preparing:
            return preparing[0]
        if connectable and not self._states.any_node_delay(now):
            chosen = min(connectable, key=lambda each: self._states.of(each.id).changed_at)
            self._chosen_id = chosen.id
            return chosen
        return slow[0] if slow else None

    def next_usable_delay(self, now: float) -> float:
        delays = (self.connection(each).poll_delay(now) for each in self._candidates())
        return max(min(delays, default=0.0), self._states.any_node_delay(now))

    # Requests.

    def send(
        self,
        node: Node,
        body: Message,
        callback: Callback | None = None,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
    ) -> int:
        self._check_open()
        now = self._clock()
        if not self.can_send(node.id, now):
            raise LocalProtocolError(f"{node} is not ready for a request; call ready() first")
        exchange = self._exchange
        try:
            codec = exchange.setup.codec(node.id, body, version_min, version_max)
        except UnsupportedVersionError as error:
            return exchange.fail(node.id, body, callback, error)
        request = InFlightRequest(
            node.id,
            exchange.next_correlation_id(),
            codec,
            body,
            now,
            self._settings.timeout_seconds if timeout_seconds is None else timeout_seconds,
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
        callback: Callback | None = None,
    ) -> None:
        """Send an internal request; UnsupportedVersionError is raised as in :meth:`request`."""
        codec = self._exchange.setup.codec(node.id, body, version_min, None)
        self._exchange.send_own(node.id, codec, body, now, callback)

    async def request(
        self,
        node: Node,
        body: Message,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        await self.until_ready(node)
        pending = PendingResponse()
        self.send(
            node,
            body,
            pending,
            version_min=version_min,
            version_max=version_max,
            timeout_seconds=timeout_seconds,
        )
        return await pending.wait()

    # Waits.

    async def until_ready(self, node: Node) -> None:
        self.check_thread()
        await trio.lowlevel.checkpoint()
        if self.ready(node):
            return
        self._states.add_waiting(node.id)
        self._selector.wakeup()  # the next poll ends in time to retry this node
        before = self.connection(node).error
        try:
            while not self.ready(node):
                # By its error, since ready() or another task may have started the next attempt.
                error = self.connection(node).error
                if error is not None and error is not before:
                    raise again(error)
                await self.until_polled()
        finally:
            self._states.remove_waiting(node.id)

    async def until_updated(
        self, updates: int = 0, check: Callable[[], None] | None = None
    ) -> None:
        """See :meth:`.NetworkClient.until_updated`.

        Args:
            updates: the number of updates to wait for, exclusive.
            check: called before each wait for a poll; raises an error to end the wait, such as that
                no task polls any more.
        """
        self.check_thread()
        await trio.lowlevel.checkpoint()
        if not self._updater.is_automatic:
            raise LocalProtocolError(
                "this client never requests metadata: its nodes are set by a"
                " ManualMetadataUpdater, whose set_nodes() takes effect immediately"
            )
        self._selector.wakeup()  # the current poll may have started before the update was requested
        errors = self.metadata.errors
        while self.metadata.updates <= updates:
            self._check_open()
            if check is not None:
                check()
            error = self.metadata.error if self.metadata.errors > errors else None
            if isinstance(error, LASTING):
                raise again(error)
            await self.until_polled()

    # Polling.

    def wakeup(self) -> None:
        self._selector.wakeup()

    async def run(self) -> None:
        while True:
            await self.poll()

    async def poll(self, timeout_seconds: float = math.inf) -> list[ClientResponse]:
        if timeout_seconds < 0:
            raise ValueError(f"timeout_seconds = {timeout_seconds} must be 0 or more")
        self._check_open()
        if self._is_polling:
            raise trio.BusyResourceError("another task is polling this client")
        self._is_polling = True
        exchange = self._exchange
        try:
            # Requests that failed without being sent, and outcomes left by a cancelled poll.
            if not exchange.outcomes.is_empty:
                await trio.lowlevel.checkpoint()
                return exchange.outcomes.run_callbacks()
            now = self._clock()
            # Before the poll, since this may send a metadata request or start a connection.
            due = self._updater.maybe_update(self, now)
            seconds = min(
                timeout_seconds,
                due,
                exchange.next_timeout() - now,
                self._states.next_retry(now),
                self._poll_seconds_max,
            )
            seconds = max(0.0, seconds)
            # Other tasks now run, and compare their deadlines with this one to decide whether to
            # wake the poll.
            self._poll_ends_at = now + seconds
            try:
                result = await self._selector.poll(seconds_max=seconds)
                self._failed_polls = 0
            except OSError as error:
                result = await self._result_of_failed_poll(error)
            if self.is_closed:  # meanwhile; the next poll raises
                return []
            now = self._clock()
            # No checkpoint before the callbacks, so that a cancelled poll loses no outcome.
            exchange.handle_poll(result, now)
            # Before the waiting tasks run, since metadata requests precede their requests.
            if self._polled is not None:
                self._updater.maybe_update(self, now)
            return exchange.outcomes.run_callbacks()
        finally:
            self._is_polling = False
            self._poll_ends_at = -math.inf
            # Also after a failed or cancelled poll, so that waiting tasks notice a closed client.
            self.wake_waiting()

    async def _result_of_failed_poll(self, error: OSError) -> PollResult:
        """Log the error, and return what the poll has achieved nevertheless, after a moment.

        (Kafka: NetworkClient.poll logs "Unexpected error during I/O" and goes on.)

        Raises:
            OSError: the last :data:`_FAILED_POLLS_MAX` polls have all failed.
        """
        self._failed_polls += 1
        if self._failed_polls >= _FAILED_POLLS_MAX:
            raise error
        seconds = _FAILED_POLL_SECONDS
        logger.error("a poll has failed; polling again in %g s", seconds, exc_info=error)
        await trio.sleep(seconds)
        return self._selector.take_result()

    def wake_waiting(self) -> None:
        """Wake the tasks in :meth:`until_polled`, so that they check their conditions again."""
        if self._polled is not None:
            self._polled.set()
            self._polled = None

    async def until_polled(self) -> None:
        self.check_thread()
        if self._polled is None:
            self._polled = trio.Event()
        await self._polled.wait()

    # Closing.

    def check_thread(self) -> None:
        """Check that the caller is in the thread in which the client was opened.

        Raises:
            RuntimeError: it is in another one.
        """
        if get_ident() != self._thread_id:
            raise RuntimeError(
                "this client belongs to the trio run of another thread, whose events do not reach"
                " this one; call it there, for example with trio.from_thread.run()"
            )

    def _check_open(self) -> None:
        self.check_thread()
        if self.is_closed:
            raise trio.ClosedResourceError("this client is closed")

    def shut_down(self) -> None:
        """Close all connections and wake all waiting tasks, which raise ClosedResourceError."""
        if self.is_closed:
            return
        if self.telemetry is not None:
            self.telemetry.end(self)
        self.is_closed = True
        self._connections.give_up_all()
        self._selector.close_all(CloseReason.LOCAL_CLOSE)
        self._exchange.fail_all(DisconnectedError("the client is closed"), self._clock())
        self._exchange.outcomes.run_callbacks()
        self._selector.wakeup()
        self.wake_waiting()
