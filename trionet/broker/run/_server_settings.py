"""The settings of the SocketServer, derived from the broker's settings.

``max.connections`` is reduced to leave some of the process's file descriptors for files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..._util._logging import get_logger
from ...errors import ConfigError
from ...net.wire._endpoint import Endpoint
from ...protocol._config_types import Value
from ...protocol.records._batch import HEADER_SIZE
from ...server._server_config import ServerConfig
from ...server.quotas._connection_limits import (
    UNLIMITED,
    ListenerLimits,
    ServerLimits,
    parse_overrides,
    resolve_overrides,
)
from ..config._broker_config import BrokerConfig, ListenerSettings
from ..config._dynamic_config import DynamicConfig, base_key, takes_effect

logger = get_logger("trionet.broker")

OVERRIDES = "max.connections.per.ip.overrides"


async def server_config(config: BrokerConfig, nodes: int | None = 1) -> ServerConfig:
    """Return the server's settings.

    The host names in ``max.connections.per.ip.overrides`` are resolved.

    Args:
        config: the broker's settings.
        nodes: see :func:`server_limits`.

    Raises:
        ConfigError: a value is not allowed, or a host name cannot be resolved.
    """
    listeners = {
        endpoint.listener_name: ListenerSettings(config, endpoint.listener_name)
        for endpoint in config.listeners
    }
    return ServerConfig(
        node_id=config.node_id,
        num_network_threads=config.integer("num.network.threads"),
        listener_network_threads={
            name: settings.integer("num.network.threads")
            for name, settings in listeners.items()
            if settings.own("num.network.threads") is not None
        },
        num_io_threads=config.integer("num.io.threads"),
        queued_max_requests=config.integer("queued.max.requests"),
        queued_max_request_bytes=config.integer("queued.max.request.bytes"),
        socket_request_max_bytes=config.integer("socket.request.max.bytes"),
        socket_send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
        socket_receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
        socket_listen_backlog_size=config.integer("socket.listen.backlog.size"),
        connections_max_idle_ms=max(-1, config.integer("connections.max.idle.ms")),
        limits=await server_limits(config, nodes=nodes),
        listener_limits={name: listener_limits(settings) for name, settings in listeners.items()},
        protected_listener=_protected_listener(config, config.listeners),
        quota_window_num=config.integer("quota.window.num"),
        quota_window_size_seconds=config.integer("quota.window.size.seconds"),
    )


async def server_limits(
    config: BrokerConfig, overrides: Mapping[str, int] | None = None, *, nodes: int | None = 1
) -> ServerLimits:
    """Return the limits for the whole server and per client address.

    Args:
        config: the broker's settings.
        overrides: the limits of ``max.connections.per.ip.overrides`` by address; None to resolve
            the host names in that setting.
        nodes: the number of nodes in the process; None if connections use no file descriptors.

    Raises:
        ConfigError: a value is not allowed, or a host name cannot be resolved.
    """
    if overrides is None:
        overrides = await resolve_overrides(parse_overrides(config.text(OVERRIDES)))
    return ServerLimits(
        connections_max=(
            config.integer("max.connections") if nodes is None else connections_max(config, nodes)
        ),
        connections_per_ip_max=config.integer("max.connections.per.ip"),
        overrides=overrides,
        connections_per_second_max=config.integer("max.connection.creation.rate"),
    )


def listener_limits(settings: ListenerSettings) -> ListenerLimits:
    """Return the limits of one listener.

    Only keys with the listener's prefix apply. Keys without a prefix limit the whole broker.

    Raises:
        ConfigError: a value is not allowed.
    """

    def own(key: str) -> int:
        value = settings.own(key)
        return value if isinstance(value, int) else UNLIMITED

    return ListenerLimits(
        connections_max=own("max.connections"),
        connections_per_second_max=own("max.connection.creation.rate"),
    )


def _protected_listener(config: BrokerConfig, listeners: tuple[Endpoint, ...]) -> str | None:
    """Return the inter-broker listener, which ``max.connections`` does not limit (KIP-402).

    Raises:
        ConfigError: there is no listener with that name.
    """
    name = config["inter.broker.listener.name"]
    if not isinstance(name, str):
        return None
    names = [endpoint.listener_name for endpoint in listeners]
    if name.upper() not in names:
        raise ConfigError(
            f"inter.broker.listener.name = {name!r} is not in listeners; allowed:"
            f" {', '.join(names)}"
        )
    return name.upper()


RESERVE = "file.descriptors.reserve"
# A lower limit could lock out administrators as well.
CONNECTIONS_MIN = 10


def connections_max(config: BrokerConfig, nodes: int = 1) -> int:
    """Return the effective ``max.connections`` of one node.

    Without a limit, any client could exhaust the file descriptors that partitions need for their
    files.

    Args:
        config: the broker's settings.
        nodes: the number of nodes in the process, which share its file descriptors.
    """
    setting, limit = config.integer("max.connections"), descriptor_limit()
    if limit is None:
        return setting
    reserve = config[RESERVE]
    files = reserve if isinstance(reserve, int) else limit // 2
    return min(setting, max((limit - files) // nodes, CONNECTIONS_MIN))


def log_connections_max(config: BrokerConfig, nodes: int) -> None:
    """Warn if the effective ``max.connections`` is lower than the setting."""
    if "max.connections" not in config.originals:
        return
    setting, effective = config.integer("max.connections"), connections_max(config, nodes)
    if effective < setting:
        logger.warning(
            "max.connections = %d is reduced to %d: the process may open %s files, and %s reserves"
            " some of them for partitions; raise the limit (ulimit -n) or lower %s",
            setting,
            effective,
            descriptor_limit(),
            RESERVE,
            RESERVE,
        )


# A client connects to a bootstrap server, and then to the broker that it finds there.
_CONNECTIONS_OF_CLIENT = 2
_CONNECTION_LIMITS = ("max.connections", "max.connections.per.ip")


def log_lockouts(settings: DynamicConfig) -> None:
    """Warn of altered settings that keep clients out, so that no client can undo them.

    Args:
        settings: the settings at startup.
    """
    for key, value in {**settings.cluster, **settings.own}.items():
        if takes_effect(settings.static, key):
            for effect in _lockouts(base_key(key), value):
                logger.warning(
                    "with the altered setting %s=%s the broker accepts %s; if that is not intended,"
                    " stop the broker and delete the setting: trionet broker --data DIR"
                    " --delete-altered-setting %s",
                    key,
                    value,
                    effect,
                    key,
                )


def _lockouts(key: str, value: Value) -> Iterator[str]:
    """Yield what a broker still accepts if a setting keeps clients out."""
    if key == OVERRIDES and isinstance(value, str):
        excluded = [host for host, count in parse_overrides(value).items() if count == 0]
        if excluded:
            yield f"no connection from {', '.join(excluded)}"
    elif key == "max.connections.per.ip" and value == 0:
        yield f"connections only from the addresses in {OVERRIDES}"
    elif key in _CONNECTION_LIMITS and isinstance(value, int) and value < _CONNECTIONS_OF_CLIENT:
        yield f"only {value} connection{' of an address' if key.endswith('.ip') else ''}"
    elif key == "message.max.bytes" and isinstance(value, int) and value < HEADER_SIZE:
        yield "no records"


def descriptor_limit() -> int | None:
    """Return the process's limit on file descriptors; None if it is unlimited or unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY or soft >= UNLIMITED else soft
