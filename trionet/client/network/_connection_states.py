"""The state of the connection to each node, and when the next attempt is permitted.

(Kafka: ClusterConnectionStates, NodeConnectionState.) Performs no I/O; ``now``, the time on the
event loop's clock in seconds, is always a parameter. Rules:

* The reconnect backoff starts at the disconnection, not at the attempt (KAFKA-2459), and grows
  with each consecutive failure (KIP-144).
* Only a connection that becomes READY counts as a success and resets the backoff (KAFKA-13879).
* The connection setup timeout grows only with failed connection attempts (KIP-601).
* A throttled node is not ready, and a later response never shortens the throttle (KIP-219).
* A connection in setup for more than :data:`PATIENCE_SECONDS` is slow: callers that can use any
  node also try other nodes.
* After :data:`FREE_FAILURES` failed attempts in a row, such callers try one node per reconnect
  backoff: a cluster may advertise any number of nodes that do not exist. Attempts of others do not
  count: there may be so many that none would be left for such callers. For the same reason, at most
  :data:`SETUPS_MAX` connections are set up at a time, and a node waits for its next turn until
  all others that wait have had one.

**The problem.** Whether a client may connect or send, and when to check again, depends on the
history of each connection. Several callers check every node in every turn, and must get consistent
results.

**The choice.** One object per node holds the history of the connection, and its methods compute
their results from that history and ``now``. No timers: a poll sleeps until the earliest time at
which a result changes. The tasks waiting for a node are counted here as well, because they
determine whether the connection may be given up and when the next retry is due.

**What was refused.** A coroutine per connection that holds its state in local variables: it reads
better, but every query would need a message to it, and tests would need a clock. Kafka's wait for a
slow bootstrap server, for up to ``request.timeout.ms``: here another server is tried in parallel.

**When to think again.** If a client sets up connections to hundreds of nodes at a time, the minimum
over them in every turn should come from a heap.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections import OrderedDict
from enum import Enum
from typing import Final

from ...errors import AuthenticationError, DisconnectedError, LocalProtocolError, TrionetError
from .._network_settings import ConnectionTimes
from ._addresses import HostAddresses


class ConnectionState(Enum):
    """The phases of the connection to one node."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "requesting the API versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"


_LOST = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
_PREPARING = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)


class NodeConnectionState:
    """The state and history of the connection to one node.

    Only :class:`.ClusterConnectionStates` changes it. ``now`` is the current time on the event
    loop's clock, in seconds.

    Args:
        host: the node's host.

    Attributes:
        host: the host to which the history belongs.
        state: the state; None for a node to which no connection has ever been requested.
        changed_at: when the last attempt started or the connection was lost; ``-math.inf`` before
            the first attempt.
        failures: the number of consecutive failures.
        wait_seconds: the reconnect backoff, counted from ``changed_at``.
        failed_setups: the number of consecutive attempts that failed before a connection was
            established.
        setup_seconds: the setup timeout of the current attempt.
        slow_at: when a connection in setup becomes slow; ``math.inf`` once it is slow.
        throttled_until: when the node stops being throttled.
        error: why the last connection failed or was lost; None once a connection is READY.
        addresses: the addresses of the host.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.state: ConnectionState | None = None
        self.changed_at = -math.inf
        self.failures = 0
        self.wait_seconds = 0.0
        self.failed_setups = 0
        self.setup_seconds = 0.0
        self.slow_at = math.inf
        self.throttled_until = -math.inf
        self.error: TrionetError | None = None
        self.addresses = HostAddresses()

    def can_connect(self, now: float) -> bool:
        """Whether to allow a connection attempt: there is no connection, and no backoff is left."""
        return self.state is None or (self.state in _LOST and not self._wait_left(now))

    def is_ready(self, now: float) -> bool:
        """Whether requests may be sent: the connection is READY and not throttled."""
        return self.state is ConnectionState.READY and not now < self.throttled_until

    @property
    def is_preparing(self) -> bool:
        """Whether the connection is being set up: connecting, or waiting for ApiVersions."""
        return self.state in _PREPARING

    @property
    def is_slow(self) -> bool:
        """Whether the connection has been in setup for longer than :data:`.PATIENCE_SECONDS`."""
        return self.state in _PREPARING and self.slow_at == math.inf

    @property
    def is_disconnected(self) -> bool:
        """Whether the last connection or attempt has ended, with no new one since (KAFKA-4841)."""
        return self.state in _LOST

    @property
    def authentication_error(self) -> AuthenticationError | None:
        """The error of the last connection if authentication failed; None otherwise."""
        return self.error if isinstance(self.error, AuthenticationError) else None

    def connection_delay(self, now: float) -> float:
        """Return the seconds until the connection must be checked again.

        During the backoff, this is the remaining backoff. During a connection attempt, it is the
        time until the setup timeout, so that no poll sleeps past the timeout (KAFKA-12762). It is
        infinite once the connection is established.
        """
        if self.state is None:
            return 0.0
        if self.state in _LOST:
            return self._wait_left(now)
        if self.state is ConnectionState.CONNECTING:
            return max(0.0, self.changed_at + self.setup_seconds - now)
        return math.inf

    def poll_delay(self, now: float) -> float:
        """Return the seconds until a request may become possible by the passage of time alone."""
        return max(0.0, self.throttled_until - now) or self.connection_delay(now)

    def _wait_left(self, now: float) -> float:
        return max(0.0, self.changed_at + self.wait_seconds - now)


#: A connection that takes longer than this to become ready is slow: for requests that any node can
#: serve, other nodes are tried as well. (Kafka waits for
#: ``socket.connection.setup.timeout.ms`` and then for ``request.timeout.ms``.)
PATIENCE_SECONDS: Final = 2.0


#: The number of attempts in a row that may fail before the next ones are spread out; enough to find
#: a live node of most clusters without delay.
FREE_FAILURES: Final = 20


#: The number of connections that a client sets up at a time.
SETUPS_MAX: Final = 256


#: The shared state of all nodes to which no connection has ever been requested.
_UNKNOWN: Final = NodeConnectionState("")


class ClusterConnectionStates:
    """The connection states of all nodes to which a connection has ever been requested.

    :meth:`of` returns the state of the connection to one node. The other methods record events that
    change a state, or deal with several nodes.

    Args:
        times: the backoffs and timeouts.
        rng: the source of the jitter.

    Attributes:
        next_slow_at: the earliest time at which :meth:`take_newly_slow` may return a node.
        rejecting: the nodes whose last connection failed authentication.
    """

    def __init__(self, times: ConnectionTimes, rng: random.Random) -> None:
        self._times = times
        self._rng = rng
        self._nodes: dict[int, NodeConnectionState] = {}
        self._departed: set[int] = set()
        # The number of tasks that wait for each node.
        self._waiting: dict[int, int] = {}
        # The nodes whose connections are being set up; every turn walks them.
        self._preparing: dict[int, NodeConnectionState] = {}
        # Those of them that are not slow yet, in the order of their ``slow_at``.
        self._not_slow: OrderedDict[int, NodeConnectionState] = OrderedDict()
        # Nodes that have waited for room for longer than all others, and others that wait.
        self._turn: set[int] = set()
        self._next_turn: set[int] = set()
        self._failures_in_a_row = 0
        self._any_node_at = -math.inf
        self.next_slow_at: float = math.inf
        self.rejecting: set[int] = set()

    def of(self, node_id: int) -> NodeConnectionState:
        """Return the state of the connection to a node, which the caller must not modify."""
        return self._nodes.get(node_id, _UNKNOWN)

    # Timeouts.

    def timed_out_connects(self, now: float) -> list[int]:
        """Return the nodes whose connection attempts have exceeded the setup timeout."""
        return [
            node_id
            for node_id, node in self._preparing.items()
            if node.state is ConnectionState.CONNECTING
            and now >= node.changed_at + node.setup_seconds
        ]

    def next_connect_timeout(self) -> float:
        """Return when the next connection attempt times out; infinite if there is none."""
        at = math.inf
        for node in self._preparing.values():
            if node.state is ConnectionState.CONNECTING:
                at = min(at, node.changed_at + node.setup_seconds)
        return at

    def take_newly_slow(self, now: float) -> list[int]:
        """Return the nodes whose connections have become slow since the last call."""
        if now < self.next_slow_at:
            return []
        found = []
        while now >= self.next_slow_at:
            node_id, node = self._not_slow.popitem(last=False)
            node.slow_at = math.inf
            found.append(node_id)
            self._plan_slow()
        return found

    def _plan_slow(self) -> None:
        first = next(iter(self._not_slow.values()), None)
        self.next_slow_at = math.inf if first is None else first.slow_at

    def _end_setup(self, node_id: int) -> bool:
        """Record that a connection is no longer being set up. Returns whether it was."""
        self._not_slow.pop(node_id, None)
        self._plan_slow()
        return self._preparing.pop(node_id, None) is not None

    def has_room_for(self, node_id: int) -> bool:
        """Return whether a connection may be set up beside those that are; if not, it waits.

        Callers ask for nodes in the same order again and again, so that the first of them would
        otherwise take all the room.
        """
        if not self._preparing:  # callers that still wait ask again
            self._turn.clear()
            self._next_turn.clear()
        if len(self._preparing) < SETUPS_MAX:
            if not self._turn:
                self._turn, self._next_turn = self._next_turn, self._turn
            if not self._turn or node_id in self._turn:
                return True
        if node_id not in self._turn:
            self._next_turn.add(node_id)
        return False

    # The pace of attempts.

    def any_node_delay(self, now: float) -> float:
        """Return the seconds until another node may be tried in place of those that failed."""
        return max(0.0, self._any_node_at - now)

    def trying_any_node(self, now: float) -> None:
        """Record that a node is tried in place of those that failed."""
        if self._failures_in_a_row >= FREE_FAILURES:
            self._any_node_at = now + self._times.reconnect.first_seconds

    # Waiting tasks.

    def add_waiting(self, node_id: int) -> None:
        """Register a task that is waiting until a request may be sent to the node."""
        self._waiting[node_id] = self._waiting.get(node_id, 0) + 1

    def remove_waiting(self, node_id: int) -> None:
        """Remove a task registered with :meth:`add_waiting`."""
        self._waiting[node_id] -= 1
        if not self._waiting[node_id]:
            del self._waiting[node_id]

    def is_awaited(self, node_id: int) -> bool:
        """Whether tasks are waiting for the node: do not give up or rename its connection."""
        return node_id in self._waiting

    def next_retry(self, now: float) -> float:
        """Return the seconds until a node that a task is waiting for may be usable, or infinity."""
        soonest = math.inf
        for node_id in self._waiting:
            delay = self.of(node_id).poll_delay(now)
            # A delay that has passed without effect must not cause a busy loop (KAFKA-1642).
            if 0 < delay < soonest:
                soonest = delay
        return soonest

    # Events.

    def connecting(self, node_id: int, host: str, now: float) -> HostAddresses:
        """Record the start of a connection attempt.

        Returns:
            The host's addresses, to choose one from. If the node's host name has changed, its state
            starts afresh (KAFKA-7890).
        """
        node = self._nodes.get(node_id)
        if node is None or node.host != host:
            node = self._nodes[node_id] = NodeConnectionState(host)
            self.rejecting.discard(node_id)
        node.state = ConnectionState.CONNECTING
        self._turn.discard(node_id)
        self._preparing[node_id] = self._not_slow[node_id] = node
        node.changed_at = now
        node.slow_at = now + PATIENCE_SECONDS
        self._plan_slow()
        node.setup_seconds = self._times.setup.seconds(node.failed_setups + 1, self._rng)
        return node.addresses

    def checking_api_versions(self, node_id: int) -> None:
        """Record that the node is connected, and that ApiVersions has been sent."""
        node = self._known(node_id)
        node.state = ConnectionState.CHECKING_API_VERSIONS
        node.failed_setups = 0

    def ready(self, node_id: int) -> None:
        node = self._known(node_id)
        node.state = ConnectionState.READY
        node.error = None
        node.failures = node.failed_setups = 0
        self._failures_in_a_row = 0
        self._any_node_at = -math.inf
        self.rejecting.discard(node_id)
        self._end_setup(node_id)

    def authentication_failed(self, node_id: int, error: AuthenticationError, now: float) -> None:
        """Record that the node rejected the client's credentials."""
        node = self._known(node_id)
        node.state = ConnectionState.AUTHENTICATION_FAILED
        self.rejecting.add(node_id)
        self._lost(node_id, node, error, now)

    def disconnected(
        self, node_id: int, now: float, error: DisconnectedError | None = None
    ) -> None:
        """Record the end of a connection or connection attempt.

        Args:
            node_id: the node.
            now: the current time on the event loop's clock, in seconds.
            error: the reason, if it is known.
        """
        node = self._known(node_id)
        if node.state is ConnectionState.CONNECTING:
            node.failed_setups += 1
        elif not node.is_disconnected:
            node.addresses.forget()
        node.state = ConnectionState.DISCONNECTED
        self.rejecting.discard(node_id)
        self._lost(node_id, node, error, now)

    def throttle(self, node_id: int, until: float) -> None:
        """Throttle the node until the given time, unless it is already throttled for longer."""
        node = self._known(node_id)
        node.throttled_until = max(node.throttled_until, until)

    def forget_departed(self, known: set[int], nodes: set[int]) -> None:
        """Forget nodes that have left the cluster and have no connection.

        Nodes that were never part of the cluster are kept until they are removed explicitly.

        Args:
            known: the ids of the cluster's nodes before the update.
            nodes: the ids of the cluster's nodes after the update.
        """
        self._departed = (self._departed | known) - nodes
        for node_id in list(self._departed):
            node = self._nodes.get(node_id)
            if node is None or node.is_disconnected:
                self._departed.discard(node_id)
                self.remove(node_id)

    def rename(self, node_id: int, new_id: int) -> None:
        """Move a connection to the id of the node that it leads to, which must have none."""
        self.remove(new_id)
        self._nodes[new_id] = self._nodes.pop(node_id)

    def remove(self, node_id: int) -> None:
        """Discard the state of a node."""
        self._nodes.pop(node_id, None)
        for each in (self.rejecting, self._turn, self._next_turn):
            each.discard(node_id)
        self._end_setup(node_id)

    def _lost(
        self, node_id: int, node: NodeConnectionState, error: TrionetError | None, now: float
    ) -> None:
        if self._end_setup(node_id):
            self._failures_in_a_row += 1
        node.error = error
        node.failures += 1
        node.wait_seconds = self._times.reconnect.seconds(node.failures, self._rng)
        node.changed_at = now

    def _known(self, node_id: int) -> NodeConnectionState:
        node = self._nodes.get(node_id)
        if node is None:
            raise LocalProtocolError(f"no connection to node {node_id} has ever been started")
        return node
