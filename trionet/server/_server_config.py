"""The settings of a SocketServer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..errors import ConfigError
from ..net.wire._readiness import ReadinessKind
from .quotas._connection_limits import ListenerLimits, ServerLimits
from .quotas._creation_rate import WINDOW_SECONDS, WINDOWS

# The kernel accepts no larger number for the size of a buffer or a backlog.
_INT_MAX: Final = 2**31 - 1

_Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _refuse(name: str, value: object, allowed: str) -> ConfigError:
    return ConfigError(f"{name} = {value} is not allowed; allowed: {allowed}")


def _from(lowest: int, highest: float = math.inf, *, or_else: int | None = None) -> _Validator:
    """Return a validator that requires a number in a range, or ``or_else``."""
    allowed = f"{lowest} or more" if highest == math.inf else f"{lowest} to {highest}"
    if or_else is not None:
        allowed = f"{or_else}, or {allowed}"

    def check(_: Any, field: attrs.Attribute[Any], value: int) -> None:
        if value != or_else and not lowest <= value <= highest:
            raise _refuse(field.name, value, allowed)

    return check


def _check_threads(_: Any, field: attrs.Attribute[Any], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if count < 1:
            raise _refuse(f"{field.name}[{name!r}]", count, "1 or more")


def _check_seconds(_: Any, field: attrs.Attribute[Any], seconds: float) -> None:
    if not 0 < seconds < math.inf:
        raise _refuse(field.name, seconds, "above 0, and finite")


# Kafka writes listener names in upper case, and so do endpoints. attrs derives the type of a field
# from its converter, so a single converter for all values is not possible.


def _threads_by_listener(counts: Mapping[str, int]) -> dict[str, int]:
    return {name.upper(): count for name, count in counts.items()}


def _limits_by_listener(limits: Mapping[str, ListenerLimits]) -> dict[str, ListenerLimits]:
    return {name.upper(): each for name, each in limits.items()}


def _upper(name: str | None) -> str | None:
    return name.upper() if name is not None else None


_at_least_one = _from(1)
_buffer_size = _from(1, _INT_MAX, or_else=-1)


@attrs.frozen(kw_only=True)
class ServerConfig:
    """Kafka's network-layer settings, named like Kafka's keys, with underscores for dots.

    Attributes:
        node_id: the node id, which appears in log lines and task names.
        num_network_threads: the number of processors per listener. The processors share one loop:
            more processors divide the connections, but add no parallelism.
        listener_network_threads: the number of processors of individual listeners, by name, in
            upper or lower case (KIP-788).
        num_io_threads: the number of handler tasks.
        queued_max_requests: the maximum number of requests waiting for a handler.
        queued_max_request_bytes: the maximum total memory of requests that are not complete after
            their first read, which is up to 4 KB (479 bytes after a small request); -1 for no
            limit.
        socket_request_max_bytes: the size of the largest request.
        socket_send_buffer_bytes: the size of the socket send buffer; -1 for the system's default.
        socket_receive_buffer_bytes: the size of the socket receive buffer; -1 for the system's
            default.
        socket_listen_backlog_size: the maximum number of connections that the kernel queues until
            they are accepted.
        connections_max_idle_ms: how long a connection may be idle; -1 for no limit.
        authentication_timeout_ms: the time limit for TLS handshake and SASL exchange together.
        limits: the limits on connections and on their creation rate, for the whole server and for
            each address.
        listener_limits: the same limits for individual listeners, by name.
        protected_listener: the inter-broker listener, which is exempt from the limits of the whole
            server.
        quota_window_num: the number of windows over which connection rates are measured.
        quota_window_size_seconds: the length of each of these windows.
        times_connections: whether to measure ``network_thread_ns`` of every request.
        readiness: the readiness backend; None for the best backend on this system.

    Raises:
        ConfigError: a number is not allowed.
    """

    node_id: int = 0
    num_network_threads: int = attrs.field(default=3, validator=_at_least_one)
    listener_network_threads: Mapping[str, int] = attrs.field(
        factory=dict, converter=_threads_by_listener, validator=_check_threads
    )
    num_io_threads: int = attrs.field(default=8, validator=_at_least_one)
    queued_max_requests: int = attrs.field(default=500, validator=_at_least_one)
    queued_max_request_bytes: int = -1
    socket_request_max_bytes: int = attrs.field(default=104857600, validator=_at_least_one)
    socket_send_buffer_bytes: int = attrs.field(default=102400, validator=_buffer_size)
    socket_receive_buffer_bytes: int = attrs.field(default=102400, validator=_buffer_size)
    socket_listen_backlog_size: int = attrs.field(default=50, validator=_from(1, _INT_MAX))
    connections_max_idle_ms: int = attrs.field(default=600_000, validator=_from(-1))
    authentication_timeout_ms: int = attrs.field(default=30_000, validator=_at_least_one)
    limits: ServerLimits = attrs.field(factory=ServerLimits)
    listener_limits: Mapping[str, ListenerLimits] = attrs.field(
        factory=dict, converter=_limits_by_listener
    )
    protected_listener: str | None = attrs.field(default=None, converter=_upper)
    quota_window_num: int = attrs.field(default=WINDOWS, validator=_at_least_one)
    quota_window_size_seconds: float = attrs.field(default=WINDOW_SECONDS, validator=_check_seconds)
    times_connections: bool = False
    readiness: ReadinessKind | None = None

    def check_names(self, listeners: Sequence[str]) -> None:
        """Check that the settings for individual listeners name existing listeners.

        Raises:
            ConfigError: a setting names an unknown listener.
        """
        protected = [self.protected_listener] if self.protected_listener is not None else []
        for field, named in (
            ("listener_network_threads", self.listener_network_threads),
            ("listener_limits", self.listener_limits),
            ("protected_listener", protected),
        ):
            for name in named:
                if name not in listeners:
                    raise ConfigError(
                        f"{field} names {name}, which is not one of the listeners; allowed:"
                        f" {', '.join(listeners)}"
                    )

    @property
    def idle_seconds_max(self) -> float:
        """``connections_max_idle_ms`` in seconds; infinite for -1."""
        ms = self.connections_max_idle_ms
        return math.inf if ms < 0 else ms / 1000
