"""The settings of a SocketServer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..errors import ConfigError
from ..net.readiness import ReadinessKind
from .connection_limits import ListenerLimits, ServerLimits
from .creation_rate import WINDOW_SECONDS, WINDOWS

# The kernel takes no larger number for a size of a buffer or a backlog.
_INT_MAX: Final = 2**31 - 1

_Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _refuse(name: str, value: object, allowed: str) -> ConfigError:
    return ConfigError(f"{name} = {value} is not allowed; allowed: {allowed}")


def _from(lowest: int, highest: float = math.inf, *, or_else: int | None = None) -> _Validator:
    """Checks that a number is in a range, or the one that stands for something else."""
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


# Kafka has the names of listeners in upper case, and so have endpoints. attrs reads the type of a
# field off its converter, so that one for all values would not do.


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
    """Kafka's settings of the network layer; the names are its keys with dots as underscores.

    Attributes:
        node_id: shown in log lines and task names.
        num_network_threads: processors per listener. They share one loop: more of them divide
            connections, they add no parallelism.
        listener_network_threads: the same for single listeners, by name in any case (KIP-788).
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
        times_connections: measure ``network_thread_ns`` of every request.
        readiness: which readiness backend to use; None takes the best of this system.

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
        """Check that what is set for single listeners is for some of these.

        Raises:
            ConfigError: there is none of a name.
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
                        f"{field} names {name}, which is none of the listeners; allowed:"
                        f" {', '.join(listeners)}"
                    )

    @property
    def idle_seconds_max(self) -> float:
        """``connections_max_idle_ms`` in seconds; infinite for -1."""
        ms = self.connections_max_idle_ms
        return math.inf if ms < 0 else ms / 1000
