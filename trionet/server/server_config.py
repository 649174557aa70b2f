"""The settings of a SocketServer."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from ..net.readiness import ReadinessKind
from .connection_limits import ListenerLimits, ServerLimits
from .creation_rate import WINDOW_SECONDS, WINDOWS

_at_least_one = attrs.validators.ge(1)


@attrs.frozen(kw_only=True)
class ServerConfig:
    """Kafka's settings of the network layer; the names are its keys with dots as underscores.

    Attributes:
        node_id: shown in log lines and task names.
        num_network_threads: processors per listener. They share one loop: more of them divide
            connections, they add no parallelism.
        listener_network_threads: the same for single listeners, by name (KIP-788).
        num_io_threads: handler tasks.
        queued_max_requests: requests that may wait for a handler.
        queued_max_request_bytes: memory of all requests above 4 KB together; -1 for no limit.
        socket_request_max_bytes: largest request.
        socket_send_buffer_bytes: -1 leaves the system's default.
        socket_receive_buffer_bytes: -1 leaves the system's default.
        socket_listen_backlog_size: connections that the kernel keeps before they are accepted.
        connections_max_idle_ms: how long a connection may be unused; -1 for ever.
        authentication_timeout_ms: how long a TLS handshake and a SASL exchange may take together.
        limits: how many connections, and how many a second: of the server and of an address.
        listener_limits: the same for single listeners, by name.
        protected_listener: the listener between brokers, which others make room for.
        quota_window_num: windows in which connections a second are counted.
        quota_window_size_seconds: how long one of them is.
        readiness: which readiness backend to use; None takes the best of this system.

    Raises:
        ValueError: a number is below its limit.
    """

    node_id: int = 0
    num_network_threads: int = attrs.field(default=3, validator=_at_least_one)
    listener_network_threads: Mapping[str, int] = attrs.field(factory=dict)
    num_io_threads: int = attrs.field(default=8, validator=_at_least_one)
    queued_max_requests: int = attrs.field(default=500, validator=_at_least_one)
    queued_max_request_bytes: int = -1
    socket_request_max_bytes: int = attrs.field(default=104857600, validator=_at_least_one)
    socket_send_buffer_bytes: int = 102400
    socket_receive_buffer_bytes: int = 102400
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = attrs.field(default=600_000, validator=attrs.validators.ge(-1))
    authentication_timeout_ms: int = attrs.field(default=30_000, validator=_at_least_one)
    limits: ServerLimits = attrs.field(factory=ServerLimits)
    listener_limits: Mapping[str, ListenerLimits] = attrs.field(factory=dict)
    protected_listener: str | None = None
    quota_window_num: int = attrs.field(default=WINDOWS, validator=_at_least_one)
    quota_window_size_seconds: float = WINDOW_SECONDS
    readiness: ReadinessKind | None = None

    @property
    def idle_seconds_max(self) -> float:
        """``connections_max_idle_ms`` in seconds; infinite for -1."""
        ms = self.connections_max_idle_ms
        return math.inf if ms < 0 else ms / 1000
