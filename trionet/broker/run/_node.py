"""A node of a broker: its settings, its state and, while it is running, its network and metrics."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import trio

from ..._util._logging import get_logger
from ...errors import ConfigError
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopMonitor
from ...net._principal import PrincipalBuilder
from ...net.wire._close_reason import CloseReason
from ...net.wire._endpoint import PORT_MAX, Endpoint, SecurityProtocol
from ...protocol._config_types import INT_MAX, Value
from ...server._closed_connections import ClosedConnection
from ...server._socket_server import SocketServer
from ...server.metrics._local_listener import open_local_sockets, serve_locally
from ..api._dispatch import Apis
from ..config._broker_config import BrokerConfig
from ..config._dynamic_config import ADDRESS_LIMITS, store_group
from ..model._broker_state import BrokerState
from ..telemetry._request_recorder import RequestRecorder
from ._reconfiguration import NodeReconfiguration
from ._server_settings import log_connections_max, log_lockouts, server_config

if TYPE_CHECKING:
    from ...server.metrics._metrics_listener import FindPage
    from ..security._listener_security import SecuredListener
    from ..security._scram_credentials import ScramCredentials
    from ..telemetry._broker_metrics import BrokerMetrics


T = TypeVar("T")

# The module of the metrics, loaded when they are needed: it takes 15 ms, and most brokers are not
# monitored.
_METRICS = "trionet.broker.telemetry._broker_metrics"

logger = get_logger("trionet.broker")

_FAILED_AUTHENTICATION = (
    CloseReason.AUTHENTICATION_FAILED,
    CloseReason.AUTHENTICATION_TIMEOUT,
    CloseReason.ILLEGAL_SASL_STATE,
)


@attrs.define(eq=False)
class Node:
    """A node of a broker, which can be run and stopped repeatedly.

    Args:
        principal_builder: builds principals, instead of ``ssl.principal.mapping.rules``.
        monitor: the monitor of the event loop.
        log: the recent log lines to report; None if metrics are not served.

    Attributes:
        state: the state that the handlers of the node share.
        apis: dispatches requests to the handlers.
        recorder: records requests for the request log; None without a request log.
        endpoints: the listeners, with their bound ports after the first start.
        server: the network layer of the current run, or of the last run if the node is stopped.
        metrics: the metrics of the node; None without ``metrics.listener``.
    """

    state: BrokerState
    apis: Apis
    recorder: RequestRecorder | None
    _principal_builder: PrincipalBuilder | None
    _monitor: LoopMonitor
    _log: LogRing | None
    endpoints: Sequence[Endpoint] = attrs.field(init=False)
    server: SocketServer = attrs.field(init=False)
    metrics: BrokerMetrics | None = attrs.field(default=None, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _reserved: list[socket.socket] = attrs.field(factory=list, init=False)

    @endpoints.default
    def _configured_endpoints(self) -> Sequence[Endpoint]:
        return self.state.config.listeners

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve requests until stopped or cancelled; report ``started`` once the node is listening.

        Raises:
            ConfigError: a setting is not allowed or cannot be used.
            OSError: a listener cannot be bound.
        """
        self._ended = trio.Event()
        try:
            with trio.CancelScope() as self._scope, ExitStack() as last:
                async with trio.open_nursery() as nursery:
                    async with trio.open_nursery() as serving:
                        changes = await self._listen(nursery, serving)
                        last.callback(self.state.cluster.configs.unregister, changes)
                        await self._start_metrics(nursery)
                        self._serve_locally(nursery, last)
                        task_status.started()
                    nursery.cancel_scope.cancel(reason="the node has stopped")
        finally:
            self._ended.set()

    async def _listen(self, nursery: trio.Nursery, serving: trio.Nursery) -> NodeReconfiguration:
        """Apply the settings that were altered while the node was stopped, and start serving.

        Returns:
            The component that applies later changes to settings.
        """
        state, configs = self.state, self.state.cluster.configs
        async with configs.hold_changes():
            state.reconfigure(configs.settings_of(state.settings.static))
            secured = await self._open_security(nursery)
            cluster = state.cluster
            nodes = None if cluster.network.is_virtual else len(cluster.nodes)
            network_config = await self._with_usable(
                partial(server_config, nodes=nodes), ADDRESS_LIMITS
            )
            if nodes is not None:
                log_connections_max(state.config, nodes)
            log_lockouts(state.settings)
            advertised = self.apis.advertised.response
            self.server = server = SocketServer(
                self.apis.handle,
                self.endpoints,
                network_config,
                {name: listener.for_server(advertised) for name, listener in secured.items()},
                network=state.cluster.network,
                recorder=self.recorder,
                never_waits=self.apis.never_waits,
            )
            server.closed_connections.listeners.append(log_failed_authentication)
            self.release_ports()
            endpoints: Any = await serving.start(server.run, name="socket-server")
            changes = NodeReconfiguration(state, server, secured, nodes)
            configs.register(state.node_id, changes)
        self.endpoints = endpoints
        state.set_bound(endpoints)
        return changes

    async def _with_usable(self, make: Callable[[BrokerConfig], Awaitable[T]], group: str) -> T:
        """Return ``make(config)``; if it fails, ignore the group's altered settings and retry.

        (Kafka: DynamicBrokerConfig also logs settings that it cannot apply, and continues.)

        Args:
            make: builds the result from the settings.
            group: the group of keys that the result depends on; see :func:`.check_group`.

        Raises:
            ConfigError: the settings that the broker was started with cannot be used either.
        """
        state = self.state
        try:
            return await make(state.config)
        except ConfigError as error:
            rest = state.settings.without(group)
            if rest.current.originals == state.config.originals:
                raise
            logger.warning("%s: ignoring altered settings: %s", group, error)
        state.reconfigure(rest)
        return await make(rest.current)

    async def stop(self, grace_seconds: float) -> None:
        """Send pending responses, close all connections, and wait until the node has stopped.

        Args:
            grace_seconds: how long to wait, at most, for pending responses to be sent.

        Cancellation: the node stops without waiting for pending responses.
        """
        try:
            with trio.move_on_after(grace_seconds):
                await self.server.stop()
        finally:
            self._scope.cancel(reason="the node is stopping")
            with trio.CancelScope(shield=True):  # bounded: everything in it is cancelled
                await self._ended.wait()

    def reserve_ports(self) -> None:
        """Reserve the ports of the stopped node, so that other processes cannot bind them.

        Connections to the ports are refused. If a port cannot be reserved, another process may bind
        it, and the next start then fails.
        """
        if self.state.cluster.network.is_virtual:
            return  # no other process can bind ports of a memory network
        for endpoint in self.endpoints:
            family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            self._reserved.append(sock)
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((endpoint.host, endpoint.port))
                # The option was needed to bind despite closing connections. With it, other
                # processes could share the port.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def release_ports(self) -> None:
        """Release the reserved ports."""
        while self._reserved:
            self._reserved.pop().close()

    async def _open_security(self, nursery: trio.Nursery) -> dict[str, SecuredListener]:
        """Open the security of listeners with TLS or SASL, keep it current, return it by name."""
        await trio.lowlevel.checkpoint()
        state = self.state
        secured = [
            endpoint
            for endpoint in state.config.listeners
            if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT
        ]
        if not secured:
            return {}
        # Imported here, since listener_security and its HTTP client take 15 ms to load.
        from ..security._scram_credentials import ScramCredentials

        cluster = state.cluster
        if cluster.scram_credentials is None:
            cluster.scram_credentials = await ScramCredentials.load(cluster.database)
        credentials = cluster.scram_credentials
        opened = {}
        for endpoint in secured:
            secure = partial(self._secure, endpoint, credentials)
            listener = await self._with_usable(secure, store_group(endpoint.listener_name))
            await listener.load()
            listener.log_warnings(has_scram_users=credentials.has_users)
            nursery.start_soon(listener.keep_fresh, name=f"security of {endpoint.listener_name}")
            opened[endpoint.listener_name] = listener
        return opened

    async def _secure(
        self, endpoint: Endpoint, credentials: ScramCredentials, config: BrokerConfig
    ) -> SecuredListener:
        from ...net.tls._key_stores import in_store_thread
        from ..security._listener_security import listener_security

        return await in_store_thread(
            listener_security, config, endpoint, credentials, self._principal_builder
        )

    async def _start_metrics(self, nursery: trio.Nursery) -> None:
        """Start collecting and serving metrics, if there is a metrics listener."""
        await trio.lowlevel.checkpoint()
        if self._log is None or not self.state.config["metrics.listener"]:
            return
        self.metrics = self.create_metrics(self._log)
        await nursery.start(self.metrics.run, name="metrics")

    def _serve_locally(self, nursery: trio.Nursery, stack: ExitStack) -> None:
        """Serve metrics to this user's processes, if enabled; see :func:`.serve_locally`.

        Args:
            nursery: the nursery of the tasks.
            stack: closes the sockets.
        """
        log = self._log
        if log is None or not self.state.config["metrics.local.enable"]:
            return
        sockets = stack.enter_context(open_local_sockets("kafka", self.endpoints))

        def find_page() -> FindPage:
            metrics = self.metrics
            if metrics is None:
                metrics = self.create_metrics(log)
                nursery.start_soon(metrics.run, name="metrics")
            return metrics.find_page()

        if sockets:
            nursery.start_soon(serve_locally, sockets, find_page, [_METRICS], name="local-metrics")

    def create_metrics(self, log: LogRing) -> BrokerMetrics:
        """Create the metrics of the running node.

        Args:
            log: the log lines to report.
        """
        # Imported here, since most brokers are not monitored, and it takes 15 ms to load.
        from ..telemetry._broker_metrics import BrokerMetrics, metrics_settings

        settings = metrics_settings(self.state.config)
        return BrokerMetrics(
            self.state, self.server, self._monitor, self.apis.counts, self.recorder, settings, log
        )


def log_failed_authentication(connection: ClosedConnection) -> None:
    """Log a connection that was closed because authentication failed (Kafka: Selector)."""
    if connection.reason in _FAILED_AUTHENTICATION:
        logger.info(
            "listener %s: authentication of %s failed: %s",
            connection.listener,
            connection.peer,
            connection.detail or connection.reason.value,
        )


BROKERS_MAX = 100
"""The maximum number of nodes; each node has its own listeners, processors and handlers."""

# The maximum of the default replication factor.
_REPLICATION_FACTOR_MAX = 3
# The keys for lists of addresses and for a single address, which nodes cannot share.
_LISTS = ("listeners", "advertised.listeners")
_SINGLE = "metrics.listener"


def node_configs(config: BrokerConfig, brokers: int) -> list[BrokerConfig]:
    """Return the settings of each node.

    The first node has the broker's settings. For each further node, the id and the ports increase
    by one. Port 0 means a free port for every node.

    Args:
        config: the broker's settings.
        brokers: the number of nodes.

    Raises:
        ConfigError: the number of nodes is not allowed, two nodes would have the same port, or an
            id or a port would be too high.
    """
    # Not isinstance: to Python, True is a number.
    if type(brokers) is not int or not 1 <= brokers <= BROKERS_MAX:
        raise ConfigError(
            f"brokers = {brokers!r} is not allowed; allowed: an integer from 1 to {BROKERS_MAX}"
        )
    if config.node_id > INT_MAX - brokers + 1:
        raise ConfigError(
            f"node.id = {config.node_id} is not allowed with {brokers} nodes, whose ids are"
            f" consecutive; allowed: 0 to {INT_MAX - brokers + 1}"
        )
    config = _with_replicas(config, brokers)
    configs = [config, *(_shifted(config, number) for number in range(1, brokers))]
    _check_ports(configs)
    return configs


def _with_replicas(config: BrokerConfig, brokers: int) -> BrokerConfig:
    """Set ``default.replication.factor`` to that of a production cluster, unless it is set."""
    key = "default.replication.factor"
    if brokers == 1 or key in config.originals:
        return config
    return BrokerConfig({**config.originals, key: min(brokers, _REPLICATION_FACTOR_MAX)})


def _shifted(config: BrokerConfig, number: int) -> BrokerConfig:
    settings = dict(config.originals)
    settings["node.id"] = settings["broker.id"] = config.node_id + number
    for key in _LISTS:
        texts = config[key]
        if isinstance(texts, tuple):
            settings[key] = tuple(_at(key, text, number) for text in texts)
    single: Value = settings.get(_SINGLE)
    if isinstance(single, str) and single:
        settings[_SINGLE] = _at(_SINGLE, single, number)
    return BrokerConfig(settings)


def _at(key: str, text: str, number: int) -> str:
    """Return an address with its port increased by ``number``, unless the port is 0."""
    head, _, port = text.rpartition(":")
    if not port.isdigit() or not int(port):
        return text
    if int(port) + number > PORT_MAX:
        raise ConfigError(
            f"{key}: node {number + 1} would have port {int(port) + number}; the maximum is"
            f" {PORT_MAX}, and the ports of each node are one higher than those of the previous"
            " node"
        )
    return f"{head}:{int(port) + number}"


def _check_ports(configs: list[BrokerConfig]) -> None:
    taken: dict[int, int] = {}
    for config in configs:
        for port in _ports(config):
            if port in taken:
                raise ConfigError(
                    f"listeners, metrics.listener: nodes {taken[port]} and {config.node_id} would"
                    f" both have port {port}; ports must be 0 or at least {len(configs)} apart,"
                    " since the ports of each node are one higher than those of the previous node"
                )
            taken[port] = config.node_id


def _ports(config: BrokerConfig) -> set[int]:
    """Return the ports of a node, except port 0."""
    ports = {endpoint.port for endpoint in config.listeners if endpoint.port}
    url = config[_SINGLE]
    port = url.rpartition(":")[2] if isinstance(url, str) else ""
    return ports | {int(port)} if port.isdigit() and int(port) else ports
