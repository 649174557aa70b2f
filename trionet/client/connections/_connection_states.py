"""Where the connection to each node stands, and when the next attempt may be made.

(Kafka: ClusterConnectionStates.) Pure: nothing here connects, and ``now`` is always a parameter, in
seconds of the loop's clock. Rules:

* a wait counts from the disconnection, not from the attempt (KAFKA-2459), and grows with each
  failure in a row (KIP-144);
* only a node that became READY has succeeded (KAFKA-13879);
* the time that a connect may take grows only with connects that failed (KIP-601);
* a throttled node is not ready, and the end of its throttling never moves back (KIP-219).
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

#: A connection that is not ready after so long does not hold up what another node can do as well:
#: that is tried beside it. (Kafka waits for ``socket.connection.setup.timeout.ms`` and then for
#: ``request.timeout.ms``.)
PATIENCE_SECONDS: Final = 2.0


class ConnectionState(Enum):
    """Where the connection to one node stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "asking for its API versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"


_LOST = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)
_PREPARING = (ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS)


@attrs.frozen(kw_only=True)
class ConnectionTimes:
    """The waits of connections.

    Attributes:
        reconnect: after a connection failed or was lost (``reconnect.backoff.ms`` and ``.max.ms``).
        setup: how long a connect may take (``socket.connection.setup.timeout.ms`` and
            ``.max.ms``).
    """

    reconnect: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.05, 1.0))
    setup: ExponentialBackoff = attrs.field(default=ExponentialBackoff(10.0, 30.0))


class _NodeConnection:
    def __init__(self, host: str) -> None:
        self.host = host
        self.state = ConnectionState.DISCONNECTED
        #: Of the last attempt, or of the end of it.
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
    """The states of all nodes that a connection was ever wanted to.

    Args:
        times: the waits.
        chance: what blurs them.

    Attributes:
        next_slow_at: when :meth:`take_slow` may find something, if nothing happens before.
    """

    def __init__(self, times: ConnectionTimes, chance: random.Random) -> None:
        self._times = times
        self._chance = chance
        self._nodes: dict[int, _NodeConnection] = {}
        self._departed: set[int] = set()
        self.next_slow_at = math.inf

    # What may be done.

    def can_connect(self, node_id: int, now: float) -> bool:
        """Whether a connection may be begun: there is none, and the wait is over."""
        node = self._nodes.get(node_id)
        return node is None or (node.state in _LOST and not self._wait_left(node, now))

    def is_backing_off(self, node_id: int, now: float) -> bool:
        """Whether a connection was lost, and it is too early for the next."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _LOST and self._wait_left(node, now) > 0

    def connection_delay(self, node_id: int, now: float) -> float:
        """Seconds until something about a connection has to be decided again.

        What is left of the wait after a lost one; what a connect under way has left, so that nobody
        sleeps past its end (KAFKA-12762); for ever with an established one.
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
        """Seconds until a request to this node may become possible by time alone."""
        return self.throttle_delay(node_id, now) or self.connection_delay(node_id, now)

    def throttle_delay(self, node_id: int, now: float) -> float:
        """Seconds until the broker wants to hear of us again; 0 if it does now."""
        node = self._nodes.get(node_id)
        return max(0.0, node.throttled_until - now) if node is not None else 0.0

    def is_ready(self, node_id: int, now: float) -> bool:
        """Whether requests may be sent: READY, and not throttled."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is ConnectionState.READY
            and not now < node.throttled_until
        )

    def is_established(self, node_id: int) -> bool:
        """Whether there is a connection for requests, though it may be throttled."""
        return self.state(node_id) is ConnectionState.READY

    def has_ready_nodes(self, now: float) -> bool:
        return any(self.is_ready(node_id, now) for node_id in self._nodes)

    def is_connecting(self, node_id: int) -> bool:
        return self.state(node_id) is ConnectionState.CONNECTING

    def is_preparing(self, node_id: int) -> bool:
        """Whether it connects, or asks for versions."""
        return self.state(node_id) in _PREPARING

    def is_slow(self, node_id: int) -> bool:
        """Whether it has connected, or asked for versions, for :data:`PATIENCE_SECONDS`."""
        node = self._nodes.get(node_id)
        return node is not None and node.is_slow and node.state in _PREPARING

    def is_disconnected(self, node_id: int) -> bool:
        """Whether a connection was there, or tried, and is not now (KAFKA-4841)."""
        return self.state(node_id) in _LOST

    def state(self, node_id: int) -> ConnectionState | None:
        """None for a node that no connection was ever wanted to."""
        node = self._nodes.get(node_id)
        return node.state if node is not None else None

    def error(self, node_id: int) -> TrionetError | None:
        """Why the last connection was lost, or could not be made; None again after one that was."""
        node = self._nodes.get(node_id)
        return node.error if node is not None else None

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        """The same if the last connection was not let in; None otherwise."""
        error = self.error(node_id)
        return error if isinstance(error, AuthenticationError) else None

    def last_attempt_at(self, node_id: int) -> float:
        """When a connection was last begun or lost; long ago for an unknown node."""
        node = self._nodes.get(node_id)
        return node.changed_at if node is not None else -math.inf

    def late_connects(self, now: float) -> list[int]:
        """The nodes whose connect takes longer than it may."""
        return [
            node_id
            for node_id, node in self._nodes.items()
            if node.state is ConnectionState.CONNECTING
            and now >= node.changed_at + node.setup_seconds
        ]

    def setup_seconds(self, node_id: int) -> float:
        """How long the connect under way may take."""
        return self._node(node_id).setup_seconds

    def next_late_connect(self) -> float:
        """When the first connect under way will have taken too long; never: ``math.inf``."""
        at = math.inf
        for node in self._nodes.values():
            if node.state is ConnectionState.CONNECTING:
                at = min(at, node.changed_at + node.setup_seconds)
        return at

    def take_slow(self, now: float) -> list[int]:
        """The nodes whose connections have become slow since the last time."""
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
        on_their_way = (each for each in self._nodes.values() if each.state in _PREPARING)
        self.next_slow_at = min((each.slow_at for each in on_their_way), default=math.inf)

    # What happened.

    def connecting(self, node_id: int, host: str, now: float) -> HostAddresses:
        """A connection is begun.

        Returns:
            The addresses to choose from. All is forgotten if the host's name has changed
            (KAFKA-7890).
        """
        node = self._nodes.get(node_id)
        if node is None or node.host != host:
            node = self._nodes[node_id] = _NodeConnection(host)
        node.state = ConnectionState.CONNECTING
        node.is_slow = False
        node.changed_at = now
        node.slow_at = now + PATIENCE_SECONDS
        self._plan_slow()
        node.setup_seconds = self._times.setup.seconds(node.failed_setups + 1, self._chance)
        return node.addresses

    def checking_api_versions(self, node_id: int) -> None:
        """It is connected, and was asked what it can do."""
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
        """It was connected, and would not let us in."""
        node = self._node(node_id)
        node.state = ConnectionState.AUTHENTICATION_FAILED
        self._lost(node, error, now)

    def disconnected(
        self, node_id: int, now: float, error: DisconnectedError | None = None
    ) -> None:
        """The connection, or the attempt to make one, is over.

        Args:
            node_id: whose.
            now: in seconds of the loop's clock.
            error: why, if there is something to tell.
        """
        node = self._node(node_id)
        if node.state is ConnectionState.CONNECTING:
            node.failed_setups += 1
        elif node.state not in _LOST:
            node.addresses.forget()
        node.state = ConnectionState.DISCONNECTED
        self._lost(node, error, now)

    def throttle(self, node_id: int, until: float) -> None:
        """The broker asked for silence; no earlier end is moved back by a later answer."""
        node = self._node(node_id)
        node.throttled_until = max(node.throttled_until, until)

    def keep_up(self, known: set[int], nodes: set[int]) -> None:
        """The cluster was described anew: forget who left it, once there is no connection either.

        Nodes that were never a part of it stay, as their owner knows them from elsewhere.

        Args:
            known: the nodes it had before.
            nodes: those it has now.
        """
        self._departed = (self._departed | known) - nodes
        for node_id in list(self._departed):
            node = self._nodes.get(node_id)
            if node is None or node.state in _LOST:
                self._departed.discard(node_id)
                self.remove(node_id)

    def rename(self, node_id: int, new_id: int) -> None:
        """The connection of a node turned out to be another's, to whom there is none."""
        self._nodes[new_id] = self._nodes.pop(node_id)

    def remove(self, node_id: int) -> None:
        """Forget everything about a node."""
        self._nodes.pop(node_id, None)
        self._plan_slow()

    def _lost(self, node: _NodeConnection, error: TrionetError | None, now: float) -> None:
        node.error = error
        node.failures += 1
        node.wait_seconds = self._times.reconnect.seconds(node.failures, self._chance)
        node.changed_at = now
        self._plan_slow()

    def _wait_left(self, node: _NodeConnection, now: float) -> float:
        return max(0.0, node.changed_at + node.wait_seconds - now)

    def _node(self, node_id: int) -> _NodeConnection:
        node = self._nodes.get(node_id)
        if node is None:
            raise LocalProtocolError(f"no connection to node {node_id} was ever begun")
        return node
