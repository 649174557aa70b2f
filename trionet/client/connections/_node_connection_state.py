"""The state of the connection to one node (Kafka: NodeConnectionState)."""

# Compiled by mypyc.

from __future__ import annotations

import math
from enum import Enum

from ...errors import AuthenticationError, TrionetError
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
