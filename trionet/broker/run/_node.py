"""One node of a broker: its state and, while it runs, its network and what is measured of it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import trio

from ...errors import ConfigError
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopMonitor
from ...net._principal import PrincipalBuilder
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...server._socket_server import SocketServer
from ..api._dispatch import Apis
from ..config._broker_config import BrokerConfig
from ..config._dynamic_keys import ADDRESS_LIMITS, stores_of
from ..model._broker_state import BrokerState
from ..security._authentication_log import log_refusal
from ..telemetry._request_recorder import RequestRecorder
from ._file_descriptors import log_connections_max
from ._reconfiguration import NodeReconfiguration
from ._server_reconfiguration import ServerChanges
from ._server_settings import server_config

if TYPE_CHECKING:
    from ..security._listener_security import SecuredListener
    from ..security._scram_credentials import ScramCredentials
    from ..telemetry._broker_metrics import BrokerMetrics

T = TypeVar("T")

logger = logging.getLogger("trionet.broker")


@attrs.frozen
class Surroundings:
    """What the nodes of a broker are run with.

    Attributes:
        principal_builder: makes principals, in place of ``ssl.principal.mapping.rules``.
        monitor: of the loop that all run on.
        log: the last log lines, for those who watch; None if nobody may.
    """

    principal_builder: PrincipalBuilder | None
    monitor: LoopMonitor
    log: LogRing | None


class Node:
    """A node; its listeners open with :meth:`run` and close with :meth:`stop`, as often as wanted.

    Attributes:
        state: what its handlers work on.
        apis: dispatches requests to them.
        recorder: makes rows of requests for the request log; None without one.
        endpoints: where it listens, with the bound ports once it has run.
        server: its network; the last one while it is stopped.
        metrics: what ``metrics.listener`` tells; None without that setting.
    """

    server: SocketServer

    def __init__(
        self,
        state: BrokerState,
        apis: Apis,
        recorder: RequestRecorder | None,
        surroundings: Surroundings,
    ) -> None:
        self.state = state
        self.apis = apis
        self.recorder = recorder
        self.endpoints: Sequence[Endpoint] = state.config.listeners
        self.metrics: BrokerMetrics | None = None
        self._surroundings = surroundings
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._kept: list[socket.socket] = []

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until :meth:`stop` or cancellation; ``started`` when connections are accepted.

        Raises:
            ConfigError: a setting of its listeners is not allowed.
            OSError: a listener cannot be bound.
        """
        self._ended = trio.Event()
        try:
            with trio.CancelScope() as self._scope, ExitStack() as last:
                async with trio.open_nursery() as nursery:
                    async with trio.open_nursery() as serving:
                        changes = await self._listen(nursery, serving)
                        last.callback(self.state.cluster.configs.leave, changes)
                        await self._start_metrics(nursery)
                        task_status.started()
                    nursery.cancel_scope.cancel(reason="the node has stopped")
        finally:
            self._ended.set()

    async def _listen(self, nursery: trio.Nursery, serving: trio.Nursery) -> NodeReconfiguration:
        """Start to serve, with what was altered while the node was stopped.

        Returns:
            What is told of changes from now on.
        """
        state, configs = self.state, self.state.cluster.configs
        async with configs.unchanged():
            state.use(configs.of_broker(state.settings.static))
            secured = await self._open_security(nursery)
            cluster = state.cluster
            nodes = None if cluster.network.is_virtual else len(cluster.nodes)
            network_config = await self._with_usable(
                partial(server_config, nodes=nodes), ADDRESS_LIMITS
            )
            if nodes is not None:
                log_connections_max(state.config, nodes)
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
            server.closed_connections.listeners.append(log_refusal)
            self.give_ports_back()
            endpoints: Any = await serving.start(server.run, name="socket-server")
            changes = NodeReconfiguration(state, ServerChanges(server, secured, nodes))
            configs.join(state.node_id, changes)
        self.endpoints = endpoints
        state.set_bound(endpoints)
        return changes

    async def _with_usable(self, make: Callable[[BrokerConfig], Awaitable[T]], group: str) -> T:
        """What is made of the settings; what was altered does not keep the node from starting.

        (Kafka: DynamicBrokerConfig logs what could not be applied, and goes on.)

        Args:
            make: makes it.
            group: the keys that it depends on, besides those that nobody can alter; see
                :func:`._dynamic_keys.checked_with`.

        Raises:
            ConfigError: what the broker was started with cannot be used.
        """
        state = self.state
        try:
            return await make(state.config)
        except ConfigError as error:
            rest = state.settings.without(group)
            if rest.current.given == state.config.given:
                raise
            logger.warning("%s: what was altered is left out: %s", group, error)
        state.use(rest)
        return await make(rest.current)

    async def stop(self, grace_seconds: float) -> None:
        """Return when it has ended: owed answers leave, then every connection is closed.

        Args:
            grace_seconds: how long answers are waited for.

        Cancelled, it ends without waiting for any.
        """
        try:
            with trio.move_on_after(grace_seconds):
                await self.server.stop()
        finally:
            self._scope.cancel(reason="the node is to end")
            with trio.CancelScope(shield=True):  # bounded: everything in it is cancelled
                await self._ended.wait()

    def keep_ports(self) -> None:
        """Let nobody else have the ports while the node is stopped; who connects is refused.

        Where the system does not allow it, they are free, and the next start says if it failed.
        """
        if self.state.cluster.network.is_virtual:
            return  # where nobody takes a port without being told to
        for endpoint in self.endpoints:
            family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            self._kept.append(sock)
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((endpoint.host, endpoint.port))
                # It was for connections that still close; with it, others could share the port.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def give_ports_back(self) -> None:
        """Let the ports be bound again."""
        while self._kept:
            self._kept.pop().close()

    async def _open_security(self, nursery: trio.Nursery) -> dict[str, SecuredListener]:
        """The security of the listeners with TLS or SASL, by listener name."""
        await trio.lowlevel.checkpoint()
        state = self.state
        secured = [
            endpoint
            for endpoint in state.config.listeners
            if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT
        ]
        if not secured:
            return {}
        # Imported only here: the fetching of keys from URLs and what it needs take 15 ms to load.
        from ..security._scram_credentials import ScramCredentials

        cluster = state.cluster
        if cluster.scram_credentials is None:
            cluster.scram_credentials = await ScramCredentials.load(cluster.database)
        credentials = cluster.scram_credentials
        opened = {}
        for endpoint in secured:
            secure = partial(self._secure, endpoint, credentials)
            listener = await self._with_usable(secure, stores_of(endpoint.listener_name))
            await listener.load()
            listener.log_doubts(has_scram_users=bool(credentials.users()))
            nursery.start_soon(listener.keep_fresh, name=f"security of {endpoint.listener_name}")
            opened[endpoint.listener_name] = listener
        return opened

    async def _secure(
        self, endpoint: Endpoint, credentials: ScramCredentials, config: BrokerConfig
    ) -> SecuredListener:
        from ...net.tls._store_threads import in_store_thread
        from ..security._listener_security import listener_security

        return await in_store_thread(
            listener_security,
            config,
            endpoint,
            credentials.lookup,
            self._surroundings.principal_builder,
            credentials.secret,
        )

    async def _start_metrics(self, nursery: trio.Nursery) -> None:
        """Measure the node and serve what is measured, if somebody may watch."""
        await trio.lowlevel.checkpoint()
        if self._surroundings.log is None:
            return
        self.metrics = self.measured(self._surroundings.log)
        await nursery.start(self.metrics.run, name="metrics")

    def measured(self, log: LogRing) -> BrokerMetrics:
        """What is measured of the node as it serves now.

        Args:
            log: the log lines to be told.
        """
        # Imported only here: most brokers are not watched, and it takes 15 ms to load.
        from ..telemetry._broker_metrics import BrokerMetrics
        from ..telemetry._metrics_settings import metrics_settings

        state, monitor = self.state, self._surroundings.monitor
        settings = metrics_settings(state.config)
        return BrokerMetrics(
            state, self.server, monitor, self.apis.counts, self.recorder, settings, log
        )
