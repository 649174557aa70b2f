"""The state of the connection to each node, and when the next attempt may be made.

(Kafka: ClusterConnectionStates.) Pure: nothing here connects, and ``now`` is always a parameter, in
seconds of the loop's clock. Rules:

* The reconnect backoff starts at the disconnection, not at the attempt (KAFKA-2459), and grows
  with each consecutive failure (KIP-144).
* Only a node that became READY counts as a success, and resets the backoff (KAFKA-13879).
* The connection setup timeout grows only with connects that failed (KIP-601).
* A throttled node is not ready, and a later response never shortens the throttling (KIP-219).
* A node in setup for more than :data:`PATIENCE_SECONDS` is slow, and no reason to wait.

**The problem.** "May I connect, may I send, when should I look again" depends on the history of
each connection, and is asked for every node in every turn, by callers that must not disagree.

**The choice.** One object per node with what happened to it, and questions that compute the answer
from that and ``now``. No timers: a poll sleeps until the earliest time at which an answer changes.
The tasks that wait for a node are counted here as well, because they decide whether its connection
may be given up, and when the next retry is due; nothing else keeps a list of them.

**What was refused.** A coroutine per connection that holds its state in local variables: it reads
better, but every question would have to be passed to it, and tests would need a clock. Kafka's wait
for a slow bootstrap server, ``request.timeout.ms`` at worst: another server is tried beside it.

**When to think again.** If a client talks to hundreds of nodes: the minimum over all of them in
every turn would then want a heap.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from enum import Enum
from typing import Final

import attrs

from ...errors import AuthenticationError, DisconnectedError, LocalProtocolError, TrionetError
from .._backoff import ExponentialBackoff
from ._addresses import HostAddresses

#: A connection that takes longer than this to become ready is slow: other nodes are tried in
#: addition for requests that any node can serve. (Kafka waits for
#: ``socket.connection.setup.timeout.ms`` and then for ``request.timeout.ms``.)
PATIENCE_SECONDS: Final = 2.0


class ConnectionState(Enum):
    """The state of the connection to one node."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "asking for its API versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"


_LOST = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
_PREPARING = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)


@attrs.frozen(kw_only=True)
class ConnectionTimes:
    """The backoffs and timeouts of connections.

    Attributes:
        reconnect: the wait after a failed or lost connection (``reconnect.backoff.ms`` and
            ``reconnect.backoff.max.ms``).
        setup: how long a connect may take (``socket.connection.setup.timeout.ms`` and
            ``socket.connection.setup.timeout.max.ms``).
    """

    reconnect: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.05, 1.0))
    setup: ExponentialBackoff = attrs.field(default=ExponentialBackoff(10.0, 30.0))


class _NodeConnection:
    def __init__(self, host: str) -> None:
        self.host = host
        self.state = ConnectionState.DISCONNECTED
        #: When the last attempt started or ended.
        self.changed_at = 0.0
        self.failures = 0
        self.wait_seconds = 0.0
        self.failed_setups = 0
        self.setup_seconds = 0.0
        self.slow_at = math.inf
        self.is_slow = False
        self.throttled_until = -math.inf
        self.error: TrionetError | None = None
        self.addresses = HostAddresses()


class ClusterConnectionStates:
    """The connection states of all nodes to which a connection was ever requested.

    More than 25 methods, as in Kafka's class of that name: questions and events are one line of its
    table each, and splitting them would spread the rules above over two classes.

    Args:
        times: the backoffs and timeouts.
        rng: source of their jitter.

    Attributes:
        next_slow_at: the earliest time at which :meth:`take_newly_slow` may return something.
    """

    def __init__(self, times: ConnectionTimes, rng: random.Random) -> None:
        self._times = times
        self._rng = rng
        self._nodes: dict[int, _NodeConnection] = {}
        self._departed: set[int] = set()
        # The number of tasks that wait for each node.
        self._waiting: dict[int, int] = {}
        self.next_slow_at: float = math.inf

    # Queries.

    def can_connect(self, node_id: int, now: float) -> bool:
        """Whether a connection may be started: there is none, and the backoff has passed."""
        node = self._nodes.get(node_id)
        return node is None or (node.state in _LOST and not self._wait_left(node, now))

    def is_backing_off(self, node_id: int, now: float) -> bool:
        """Whether a connection failed or was lost, and the backoff has not passed."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _LOST and self._wait_left(node, now) > 0

    def connection_delay(self, node_id: int, now: float) -> float:
        """Seconds until the connection has to be looked at again.

        While backing off, the rest of the backoff; while connecting, the time until the setup
        timeout, so that no poll sleeps past it (KAFKA-12762); infinite once established.
        """
        node = self._nodes.get(node_id)
        if node is None:
            return 0.0
        if node.state in _LOST:
            return self._wait_left(node, now)
        if node.state is ConnectionState.CONNECTING:
            return max(0.0, node.changed_at + node.setup_seconds - now)
        return math.inf

    def poll_delay(self, node_id: int, now: float) -> float:
        """Seconds until a request to this node may become possible by the passage of time."""
        return self.throttle_delay(node_id, now) or self.connection_delay(node_id, now)

    def throttle_delay(self, node_id: int, now: float) -> float:
        """Seconds until the node's throttling ends; 0 if it is not throttled."""
        node = self._nodes.get(node_id)
        return max(0.0, node.throttled_until - now) if node is not None else 0.0

    def is_ready(self, node_id: int, now: float) -> bool:
        """Whether requests may be sent: the connection is READY and not throttled."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is ConnectionState.READY
            and not now < node.throttled_until
        )

    def is_established(self, node_id: int) -> bool:
        """Whether the connection is READY, throttled or not."""
        return self.state(node_id) is ConnectionState.READY

    def has_ready_nodes(self, now: float) -> bool:
        return any(self.is_ready(node_id, now) for node_id in self._nodes)

    def is_connecting(self, node_id: int) -> bool:
        return self.state(node_id) is ConnectionState.CONNECTING

    def is_preparing(self, node_id: int) -> bool:
        """Whether the connection is being set up: connecting, or waiting for ApiVersions."""
        return self.state(node_id) in _PREPARING

    def is_slow(self, node_id: int) -> bool:
        """Whether the connection has been in setup for :data:`PATIENCE_SECONDS`."""
        node = self._nodes.get(node_id)
        return node is not None and node.is_slow and node.state in _PREPARING

    def is_disconnected(self, node_id: int) -> bool:
        """Whether there was a connection, or an attempt, and is none now (KAFKA-4841)."""
        return self.state(node_id) in _LOST

    def state(self, node_id: int) -> ConnectionState | None:
        """The state; None for a node to which no connection was ever requested."""
        node = self._nodes.get(node_id)
        return node.state if node is not None else None

    def error(self, node_id: int) -> TrionetError | None:
        """Why the last connection failed or was lost; None once another is established."""
        node = self._nodes.get(node_id)
        return node.error if node is not None else None

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        """The last connection's error if it failed authentication; None otherwise."""
        error = self.error(node_id)
        return error if isinstance(error, AuthenticationError) else None

    def last_attempt_at(self, node_id: int) -> float:
        """When a connection was last started or lost; ``-math.inf`` for an unknown node."""
        node = self._nodes.get(node_id)
        return node.changed_at if node is not None else -math.inf

    def timed_out_connects(self, now: float) -> list[int]:
        """The nodes whose connect has exceeded its setup timeout."""
        return [
            node_id
            for node_id, node in self._nodes.items()
            if node.state is ConnectionState.CONNECTING
            and now >= node.changed_at + node.setup_seconds
        ]

    def setup_seconds(self, node_id: int) -> float:
        """The setup timeout of the current connect."""
        return self._node(node_id).setup_seconds

    def next_connect_timeout(self) -> float:
        """When the first current connect reaches its setup timeout; ``math.inf`` for never."""
        at = math.inf
        for node in self._nodes.values():
            if node.state is ConnectionState.CONNECTING:
                at = min(at, node.changed_at + node.setup_seconds)
        return at

    def take_newly_slow(self, now: float) -> list[int]:
        """Return the nodes whose connections have become slow since the last call."""
        if now < self.next_slow_at:
            return []
        found = []
        for node_id, node in self._nodes.items():
            if node.state in _PREPARING and now >= node.slow_at:
                node.slow_at = math.inf
                node.is_slow = True
                found.append(node_id)
        self._plan_slow()
        return found

    def _plan_slow(self) -> None:
        preparing = (each for each in self._nodes.values() if each.state in _PREPARING)
        self.next_slow_at = min((each.slow_at for each in preparing), default=math.inf)

    # Waiting tasks.

    def add_waiting(self, node_id: int) -> None:
        """Count a task that waits until a request may be sent to the node."""
        self._waiting[node_id] = self._waiting.get(node_id, 0) + 1

    def remove_waiting(self, node_id: int) -> None:
        """Uncount such a task."""
        self._waiting[node_id] -= 1
        if not self._waiting[node_id]:
            del self._waiting[node_id]

    def is_awaited(self, node_id: int) -> bool:
        """Whether tasks wait for the node: its connection must not be given up or renamed."""
        return node_id in self._waiting

    def next_retry(self, now: float) -> float:
        """Seconds until a node for which tasks wait may become usable; infinite for never."""
        soonest = math.inf
        for node_id in self._waiting:
            delay = self.poll_delay(node_id, now)
            # A delay that has passed without effect must not cause a busy loop (KAFKA-1642).
            if 0 < delay < soonest:
                soonest = delay
        return soonest

    # Events.

    def connecting(self, node_id: int, host: str, now: float) -> HostAddresses:
        """Record the start of a connection attempt.

        Returns:
            The addresses to choose from. The node's state starts afresh if its host name has
            changed (KAFKA-7890).
        """
        node = self._nodes.get(node_id)
        if node is None or node.host != host:
            node = self._nodes[node_id] = _NodeConnection(host)
        node.state = ConnectionState.CONNECTING
        node.is_slow = False
        node.changed_at = now
        node.slow_at = now + PATIENCE_SECONDS
        self._plan_slow()
        node.setup_seconds = self._times.setup.seconds(node.failed_setups + 1, self._rng)
        return node.addresses

    def checking_api_versions(self, node_id: int) -> None:
        """Record that the node is connected, and that ApiVersions has been sent."""
        node = self._node(node_id)
        node.state = ConnectionState.CHECKING_API_VERSIONS
        node.failed_setups = 0

    def ready(self, node_id: int) -> None:
        node = self._node(node_id)
        node.state = ConnectionState.READY
        node.error = None
        node.failures = node.failed_setups = 0
        self._plan_slow()

    def authentication_failed(self, node_id: int, error: AuthenticationError, now: float) -> None:
        """Record that the node rejected the client's credentials."""
        node = self._node(node_id)
        node.state = ConnectionState.AUTHENTICATION_FAILED
        self._lost(node, error, now)

    def disconnected(
        self, node_id: int, now: float, error: DisconnectedError | None = None
    ) -> None:
        """Record the end of a connection, or of an attempt to make one.

        Args:
            node_id: the node.
            now: in seconds of the loop's clock.
            error: the reason, if it is known.
        """
        node = self._node(node_id)
        if node.state is ConnectionState.CONNECTING:
            node.failed_setups += 1
        elif node.state not in _LOST:
            node.addresses.forget()
        node.state = ConnectionState.DISCONNECTED
        self._lost(node, error, now)

    def throttle(self, node_id: int, until: float) -> None:
        """Throttle the node; the end of an earlier throttling is never moved forward."""
        node = self._node(node_id)
        node.throttled_until = max(node.throttled_until, until)

    def forget_departed(self, known: set[int], nodes: set[int]) -> None:
        """Forget nodes that left the cluster, as soon as they have no connection either.

        Nodes that were never part of the cluster stay: their owner manages them.

        Args:
            known: the ids of the cluster's nodes before the update.
            nodes: the ids after it.
        """
        self._departed = (self._departed | known) - nodes
        for node_id in list(self._departed):
            node = self._nodes.get(node_id)
            if node is None or node.state in _LOST:
                self._departed.discard(node_id)
                self.remove(node_id)

    def rename(self, node_id: int, new_id: int) -> None:
        """Move a connection to another id: it turned out to lead to that node, which has none."""
        self._nodes[new_id] = self._nodes.pop(node_id)

    def remove(self, node_id: int) -> None:
        """Forget everything about a node."""
        self._nodes.pop(node_id, None)
        self._plan_slow()

    def _lost(self, node: _NodeConnection, error: TrionetError | None, now: float) -> None:
        node.error = error
        node.failures += 1
        node.wait_seconds = self._times.reconnect.seconds(node.failures, self._rng)
        node.changed_at = now
        self._plan_slow()

    def _wait_left(self, node: _NodeConnection, now: float) -> float:
        return max(0.0, node.changed_at + node.wait_seconds - now)

    def _node(self, node_id: int) -> _NodeConnection:
        node = self._nodes.get(node_id)
        if node is None:
            raise LocalProtocolError(f"no connection to node {node_id} was ever started")
        return node
