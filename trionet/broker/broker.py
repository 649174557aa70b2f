"""A running broker: settings, data and network put together, started and stopped."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs
import trio

from .._util import raise_single_error
from ..metrics.log_ring import LogRing
from ..metrics.loop import LoopMonitor, LoopStatistics
from ..net.endpoint import Endpoint, SecurityProtocol
from ..net.principal import PrincipalBuilder
from ..protocol import api_keys
from ..server.channel_builder import ListenerSecurity
from ..server.server_statistics import ServerStatistics
from ..server.socket_server import SocketServer
from .apis import Api, Apis
from .config import BrokerConfig
from .database import DATABASE_NAME, open_database
from .handlers import (
    api_versions,
    create_topics,
    delete_groups,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)
from .log import FolderDirectory, MemoryDirectory, open_log_folder
from .ownership import check_ownership
from .refusals import log_refusal
from .server_settings import server_config
from .state import BrokerState
from .topics import TopicRegistry
from .upkeep import start_upkeep

if TYPE_CHECKING:
    from .broker_metrics import BrokerMetrics

logger = logging.getLogger("trionet.broker")

# Where open_broker differs from Kafka's defaults, for those who test: no port to collide with, and
# no wait for a second consumer.
_DEFAULTS = {"listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": 0}
# How long a graceful stop waits for answers that are owed to leave.
STOP_GRACE_SECONDS = 5.0

# (key, lowest version, highest version, handler, lowest version that is advertised)
_SERVED: list[tuple[int, int, int, ModuleType, int]] = [
    (api_keys.PRODUCE, 3, 13, produce, 0),
    (api_keys.FETCH, 4, 18, fetch, 4),
    (api_keys.LIST_OFFSETS, 1, 11, list_offsets, 1),
    (api_keys.METADATA, 0, 13, metadata, 0),
    (api_keys.OFFSET_COMMIT, 2, 10, offset_commit, 2),
    (api_keys.OFFSET_FETCH, 1, 10, offset_fetch, 1),
    (api_keys.FIND_COORDINATOR, 0, 6, find_coordinator, 0),
    (api_keys.JOIN_GROUP, 0, 9, join_group, 0),
    (api_keys.HEARTBEAT, 0, 4, heartbeat, 0),
    (api_keys.LEAVE_GROUP, 0, 5, leave_group, 0),
    (api_keys.SYNC_GROUP, 0, 5, sync_group, 0),
    (api_keys.DESCRIBE_GROUPS, 0, 6, describe_groups, 0),
    (api_keys.LIST_GROUPS, 0, 5, list_groups, 0),
    (api_keys.SASL_HANDSHAKE, 0, 1, sasl_handshake, 0),
    (api_keys.API_VERSIONS, 0, 4, api_versions, 0),
    (api_keys.CREATE_TOPICS, 2, 7, create_topics, 2),
    (api_keys.DELETE_TOPICS, 1, 6, delete_topics, 1),
    (api_keys.INIT_PRODUCER_ID, 0, 5, init_producer_id, 0),
    (api_keys.DESCRIBE_CONFIGS, 1, 4, describe_configs, 1),
    (api_keys.SASL_AUTHENTICATE, 0, 2, sasl_authenticate, 0),
    (api_keys.DELETE_GROUPS, 0, 2, delete_groups, 0),
    (api_keys.OFFSET_DELETE, 0, 0, offset_delete, 0),
    (api_keys.DESCRIBE_CLUSTER, 0, 2, describe_cluster, 0),
]


@attrs.frozen
class BrokerStatistics:
    """What the broker did and holds at one moment.

    Attributes:
        server: the network layer's part.
        calls: calls ever answered or begun, by Kafka's name of the API.
        delayed: calls that wait for data.
        fetch_sessions: incremental fetch sessions.
        topics: topics.
        partitions: their partitions.
        log_bytes: bytes in all logs.
        loop: how busy the loop is and how long it was held.
    """

    server: ServerStatistics
    calls: dict[str, int]
    delayed: int
    fetch_sessions: int
    topics: int
    partitions: int
    log_bytes: int
    loop: LoopStatistics


class Broker:
    """A broker that accepts connections; made by :func:`open_broker`.

    Attributes:
        config: its settings.
        endpoints: where it listens.
        metrics: what ``metrics.listener`` tells; None without that setting.
    """

    def __init__(
        self,
        state: BrokerState,
        server: SocketServer,
        endpoints: list[Endpoint],
        monitor: LoopMonitor,
        metrics: BrokerMetrics | None,
    ) -> None:
        self.config = state.config
        self.endpoints = endpoints
        self._state = state
        self._server = server
        self._monitor = monitor
        self.metrics = metrics

    @property
    def bootstrap_servers(self) -> str:
        """The address that a client is given, as in ``"127.0.0.1:9092"``."""
        return self._state.advertised(self.endpoints[0].listener_name).address

    @property
    def cluster_id(self) -> str:
        return self._state.cluster_id

    def statistics(self) -> BrokerStatistics:
        state = self._state
        return BrokerStatistics(
            server=self._server.statistics(),
            calls=state.apis.counts.calls(),
            delayed=len(state.purgatory),
            fetch_sessions=len(state.fetch_sessions),
            topics=len(state.topics),
            partitions=len(state.folder.logs),
            log_bytes=sum(log.size for log in state.folder.logs.values()),
            loop=self._monitor.statistics(),
        )

    def __repr__(self) -> str:
        return f"<Broker {self._state.node_id} at {self.bootstrap_servers}>"


@asynccontextmanager
async def open_broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    principal_builder: PrincipalBuilder | None = None,
    **keywords: object,
) -> AsyncIterator[Broker]:
    """Run a broker for as long as the block lasts.

    By default it listens on a free port of 127.0.0.1 and keeps everything in memory; ``log_dirs``
    (or ``log_dir``) names a folder to keep it in.

    Args:
        settings: Kafka's broker settings by their dotted keys.
        principal_builder: makes principals of what peers have proved about themselves, in place
            of ``ssl.principal.mapping.rules``.
        keywords: the same with underscores, as in ``num_partitions=3``; they win.

    Raises:
        ConfigError: a setting is unknown or its value is not allowed; the folder is in use.
        OSError: a listener cannot be bound, or the folder cannot be used.

    At the end of the block, answers that are owed still leave (for at most 5 s), then everything is
    closed and the logs are marked clean. No socket, file or task is left.

    Cancellation: no answer is waited for, and the logs have 2 s to reach the disk. If that is not
    enough, they are not marked clean, and the next start scans them; nothing that was acknowledged
    is lost either way. While it starts, it ends when the logs being opened are.
    """
    given = {**_DEFAULTS, **(settings or {}), **keywords}
    config = BrokerConfig.from_settings(given)
    _check_metrics(config)
    with raise_single_error() as caller, ExitStack() as last:
        log = _remember_log(config, last)
        _report_settings(config)
        async with AsyncExitStack() as stack:
            state = await _open_state(config, stack)
            last.callback(state.let_go)
            monitor = stack.enter_context(LoopMonitor())
            security = await _open_security(state, principal_builder)
            broker = await _start(state, stack, monitor, security, log)
            with caller.block():
                yield broker


def _check_metrics(config: BrokerConfig) -> None:
    """Find errors in the settings of metrics before anything is opened."""
    if "metrics.listener" in config.given or "metrics.listener.token" in config.given:
        from .metrics_settings import metrics_settings

        metrics_settings(config)


def _remember_log(config: BrokerConfig, stack: ExitStack) -> LogRing | None:
    """Keep the last log lines for those who watch, from what is said of the settings on."""
    if not config["metrics.listener"]:
        return None
    ring, root = LogRing(), logging.getLogger("trionet")
    root.addHandler(ring)
    stack.callback(root.removeHandler, ring)
    return ring


def _report_settings(config: BrokerConfig) -> None:
    """Say once which settings have no effect: accepted is not the same as applied."""
    if config.without_meaning:
        logger.info("without meaning on one node: %s", ", ".join(config.without_meaning))
    if config.not_applied:
        logger.warning("not applied by this version: %s", ", ".join(config.not_applied))
    if config.of_no_listener:
        logger.warning("for listeners that there are not: %s", ", ".join(config.of_no_listener))


async def _open_state(config: BrokerConfig, stack: AsyncExitStack) -> BrokerState:
    directory: FolderDirectory | MemoryDirectory
    if config.log_dir is None:
        directory, database_path = MemoryDirectory(), ":memory:"
    else:
        directory = FolderDirectory(config.log_dir)
        database_path = os.path.join(config.log_dir, DATABASE_NAME)
    folder = await stack.enter_async_context(open_log_folder(directory, node_id=config.node_id))
    if config.log_dir is not None:
        await trio.to_thread.run_sync(check_ownership, config.log_dir)
    database = await stack.enter_async_context(open_database(database_path))
    topics = await TopicRegistry.load(database, config)
    nursery = await stack.enter_async_context(trio.open_nursery())
    stack.callback(nursery.cancel_scope.cancel, reason="the broker is stopping")
    state = BrokerState(config, topics, folder, database, nursery)
    state.apis = Apis(
        [
            Api(key, low, high, partial(module.handle, state), advertised)
            for key, low, high, module, advertised in _SERVED
        ],
        partial(api_versions.unsupported_version, state),
    )
    await state.open_logs()
    await state.groups.load()
    return state


async def _open_security(
    state: BrokerState, principal_builder: PrincipalBuilder | None
) -> dict[str, ListenerSecurity]:
    """What the connections of listeners with TLS or SASL go through, by listener name."""
    await trio.lowlevel.checkpoint()
    secured = [
        endpoint
        for endpoint in state.config.listeners
        if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT
    ]
    if not secured:
        return {}
    # Imported only here: the fetching of keys from URLs and what it needs take 15 ms to load.
    from .credentials import ScramCredentials
    from .security import listener_security

    credentials = state.scram_credentials = await ScramCredentials.load(state.database)
    security = {}
    for endpoint in secured:
        listener = await trio.to_thread.run_sync(
            listener_security, state.config, endpoint, credentials.lookup, principal_builder
        )
        await listener.load()
        listener.log_doubts(has_scram_users=bool(credentials.users()))
        state.nursery.start_soon(listener.keep_fresh, name=f"security of {endpoint.listener_name}")
        security[endpoint.listener_name] = listener.for_server(partial(api_versions.answer, state))
    return security


async def _start(
    state: BrokerState,
    stack: AsyncExitStack,
    monitor: LoopMonitor,
    security: Mapping[str, ListenerSecurity],
    log: LogRing | None,
) -> Broker:
    config = state.config
    start_upkeep(state.nursery, state)
    server = SocketServer(
        state.apis.handle, config.listeners, await server_config(config), security
    )
    server.closed_connections.listeners.append(log_refusal)
    started: Any = await state.nursery.start(server.run, name="socket-server")
    endpoints: list[Endpoint] = started
    state.set_bound(endpoints)
    stack.push_async_callback(_stop, state, server)
    metrics = None if log is None else await _start_metrics(state, server, monitor, log)
    return Broker(state, server, endpoints, monitor, metrics)


async def _start_metrics(
    state: BrokerState, server: SocketServer, monitor: LoopMonitor, log: LogRing
) -> BrokerMetrics:
    """Measure the broker and serve what is measured."""
    # Imported only here: most brokers are not watched, and it takes 15 ms to load.
    from .broker_metrics import BrokerMetrics
    from .metrics_settings import metrics_settings

    settings = metrics_settings(state.config)
    metrics = BrokerMetrics(state, server, monitor, state.apis.counts, settings, log)
    await state.nursery.start(metrics.run, name="metrics")
    return metrics


async def _stop(state: BrokerState, server: SocketServer) -> None:
    state.purgatory.close()
    state.groups.close()
    with trio.move_on_after(STOP_GRACE_SECONDS):
        await server.stop()
        # Who has left is not to be waited for after the next start.
        await state.groups.flush()
