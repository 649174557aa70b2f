"""A running broker: settings, data and network put together, started and stopped."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import TYPE_CHECKING

import attrs
import trio

from ..._util._single_error import raise_single_error
from ...errors import ConfigError
from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopMonitor, LoopStatistics
from ...net._network import SYSTEM, Network
from ...net._principal import PrincipalBuilder
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...server._server_statistics import ServerStatistics, combined
from ...server._socket_server import SocketServer
from ..api._dispatch import Apis
from ..config._broker_config import BrokerConfig
from ..config._dynamic_config_store import BrokerConfigs
from ..config._settings_report import report_settings
from ..log import Directory, MemoryDirectory, open_log_folder
from ..model._broker_state import BrokerState
from ..model._cluster import Cluster
from ..model._leadership import Leadership
from ..model._topic_registry import TopicRegistry
from ..storage._database import IN_MEMORY, Database, open_database
from ..storage._disk import SYSTEM_DISK, Disk
from ..telemetry._request_log_writer import (
    RequestLogStatistics,
    open_request_log,
    request_log_settings,
    statistics,
)
from ..telemetry._request_recorder import RequestRecorder
from ._node import Node, Surroundings
from ._node_configs import node_configs
from ._reconfiguration import OF_LOGS, LogReconfiguration
from ._served_apis import served_apis
from ._upkeep import start_upkeep

if TYPE_CHECKING:
    from ..telemetry._broker_metrics import BrokerMetrics

logger = logging.getLogger("trionet.broker")

# Where open_broker differs from Kafka's defaults, for those who test: no port to collide with, no
# wait for a second consumer, and no second request for the partitions of a new topic.
_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "auto.create.topics.ready.at.once": True,
    "group.initial.rebalance.delay.ms": 0,
}
# How long a graceful stop waits for answers that are owed to leave.
STOP_GRACE_SECONDS = 5.0
# How many replicas partitions get by default where there are so many nodes.
REPLICATION_FACTOR_MAX = 3


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
        request_log: what became of the requests that are over; None without request.log.topic.
    """

    server: ServerStatistics
    calls: dict[str, int]
    delayed: int
    fetch_sessions: int
    topics: int
    partitions: int
    log_bytes: int
    loop: LoopStatistics
    request_log: RequestLogStatistics | None = None


class Broker:
    """A broker that accepts connections; made by :func:`open_broker`.

    It is one node, or several that share one store. Leadership is simulated then, replication is
    not: a node that is a replica of a partition may lead it, and all of them read and write the
    same log.

    Attributes:
        endpoints: where the first node listens.
    """

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], monitor: LoopMonitor) -> None:
        first = nodes[0]
        self.endpoints = first.endpoints
        self._cluster = cluster
        self._nodes = {node.state.node_id: node for node in nodes}
        self._state = first.state
        self._monitor = monitor
        self._changing_nodes = trio.Lock()

    @property
    def _apis(self) -> Apis:
        return self._nodes[self._state.node_id].apis

    @property
    def _server(self) -> SocketServer:
        return self._nodes[self._state.node_id].server

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that a client is given, as in ``"127.0.0.1:9092"``, with commas between.

        Those of all nodes, also of stopped ones.
        """
        name = self.endpoints[0].listener_name
        return ",".join(node.state.advertised(name).address for node in self._nodes.values())

    @property
    def config(self) -> BrokerConfig:
        """The settings of the first node as they count now; they may be altered while it runs."""
        return self._cluster.config

    @property
    def metrics(self) -> BrokerMetrics | None:
        """What ``metrics.listener`` tells of the first node; None without that setting."""
        return self._nodes[self._state.node_id].metrics

    @property
    def cluster_id(self) -> str:
        return self._cluster.id

    @property
    def stop_failed(self) -> bool:
        """After the end of the block: something could not be put on the disk.

        The next start scans what is there; only a power cut before it could take anything.
        """
        return self._cluster.folder.stop_failed

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes, from ``node.id`` upward."""
        return list(self._nodes)

    @property
    def running_nodes(self) -> list[int]:
        """The ids of those that are not stopped."""
        return self._cluster.leadership.live

    def endpoints_of(self, node: int) -> Sequence[Endpoint]:
        """Where a node listens, or did before it was stopped.

        Raises:
            ValueError: there is no such node.
        """
        return self._node(node).endpoints

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 while none does.

        Raises:
            ValueError: there is no such partition.
        """
        key = topic, partition
        found = self._cluster.leadership.get(key)
        if not found.replicas:
            raise ValueError(f"there is no partition {key}")
        return found.leader

    def coordinator(self, group: str) -> int:
        """The node that coordinates a consumer group, whether or not there is one; -1 if none."""
        return self._cluster.coordinator_of(group)

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition, in its next leader epoch.

        Nothing happens if it is already. Who produces to or fetches from the one before is told;
        a fetch that waits there is answered at once.

        Raises:
            ValueError: there is no such partition, or the node is none of its replicas, or stopped.

        Cancellation: the leader has moved, or not.
        """
        await self._cluster.move_leader(topic, partition, node)

    async def move_coordinator(self, group: str, node: int) -> None:
        """Make a node the coordinator of a group, and of all in the same partition.

        Nothing happens if it is already. What the group has stored goes with it: members go on in
        their generation, a rebalance that was under way begins anew.

        Raises:
            ValueError: there is no such node, or it is stopped.

        Cancellation: the coordinator has moved, or not.
        """
        await self._cluster.move_coordinator(group, node)

    async def elect_preferred_leaders(self) -> None:
        """Give every partition to the first of its replicas, where that runs.

        Kafka's ``kafka-leader-election.sh --election-type PREFERRED``; nothing does it by itself.

        Cancellation: all that were to move have, or none.
        """
        await self._cluster.elect_preferred_leaders()

    async def stop(self, node: int) -> None:
        """Stop a node: others lead what it led, its listeners and its connections are closed.

        What it led and no other replica can lead has no leader until :meth:`start`. Answers that
        are owed still leave, for at most 5 s. Nothing happens if it is stopped already.

        Raises:
            ValueError: there is no such node.

        Cancellation: nothing was done, or the leaders have moved and the node ends without
            waiting for answers.
        """
        running = self._node(node)
        async with self._changing_nodes:
            if not self._cluster.leadership.is_live(node):
                return
            await self._cluster.node_stops(node)
            try:
                await running.stop(STOP_GRACE_SECONDS)
            finally:
                running.keep_ports()

    async def start(self, node: int) -> None:
        """Start a stopped node again, on the same ports, with what all nodes have stored.

        It leads what has no leader, and coordinates groups without a coordinator; see
        :meth:`elect_preferred_leaders` for the others. Nothing happens if it runs.

        Raises:
            ValueError: there is no such node.
            OSError: a port was taken by somebody else meanwhile.

        Cancellation: it has started, or is stopped.
        """
        stopped = self._node(node)
        async with self._changing_nodes:
            if self._cluster.leadership.is_live(node):
                return
            stopped.state.begin_sessions()
            try:
                with raise_single_error():
                    await self._cluster.nursery.start(stopped.run, name=f"node {node}")
            except BaseException:
                stopped.keep_ports()
                raise
            with trio.CancelScope(shield=True):  # bounded: files are synced
                await self._cluster.node_started(node)

    def _node(self, id: int) -> Node:
        node = self._nodes.get(id)
        if node is None:
            allowed = ", ".join(map(str, self._nodes))
            raise ValueError(f"there is no node {id}; allowed: {allowed}")
        return node

    def statistics(self) -> BrokerStatistics:
        """What all nodes did and hold now; a node that was started again counts from there."""
        cluster, states = self._cluster, [node.state for node in self._nodes.values()]
        recorders = [node.recorder for node in self._nodes.values() if node.recorder is not None]
        calls: Counter[str] = Counter()
        for node in self._nodes.values():
            calls.update(node.apis.counts.calls())
        return BrokerStatistics(
            server=combined([node.server.statistics() for node in self._nodes.values()]),
            calls=dict(calls),
            delayed=len(cluster.purgatory),
            fetch_sessions=sum(len(state.fetch_sessions) for state in states),
            topics=len(cluster.topics),
            partitions=len(cluster.folder.logs),
            log_bytes=sum(log.size for log in cluster.folder.logs.values()),
            loop=self._monitor.statistics(),
            request_log=statistics(recorders) if recorders else None,
        )

    @contextmanager
    def watch(self, log: LogRing | None = None) -> Iterator[BrokerMetrics]:
        """Measure the first node for as long as the block lasts, without ``metrics.listener``.

        With that setting it is measured anyway, and this gives what is in :attr:`metrics`. Take a
        snapshot every few seconds: rates and quantiles of late are made of what changes between
        snapshots.

        Args:
            log: keeps the log lines that are told; by default those from now on.
        """
        metrics = self.metrics
        if metrics is not None:
            yield metrics
            return
        with ExitStack() as stack:
            if log is None:
                log = LogRing()
                root = logging.getLogger("trionet")
                root.addHandler(log)
                stack.callback(root.removeHandler, log)
            yield self._nodes[self._state.node_id].measured(log)

    def __repr__(self) -> str:
        return f"<Broker {', '.join(map(str, self._nodes))} at {self.bootstrap_servers}>"


@asynccontextmanager
async def open_broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    brokers: int = 1,
    principal_builder: PrincipalBuilder | None = None,
    network: Network = SYSTEM,
    disk: Disk = SYSTEM_DISK,
    **keywords: object,
) -> AsyncIterator[Broker]:
    """Run a broker for as long as the block lasts.

    By default it listens on a free port of 127.0.0.1 and keeps everything in memory; ``log_dirs``
    (or ``log_dir``) names a folder to keep it in.

    Args:
        settings: Kafka's broker settings by their dotted keys.
        brokers: how many nodes it is, with ids from ``node.id`` upward, over the same data. Each
            listens on ports one higher than the one before, or on free ones. By default new topics
            have as many replicas as there are nodes, up to three.
        principal_builder: makes principals of what peers have proved about themselves, in place
            of ``ssl.principal.mapping.rules``.
        network: where connections, time and chance come from; in place of the system's a
            :class:`trionet.testing.MemoryNetwork`, for virtual time.
        disk: where data folders are; in place of the system's a :class:`._disk.Disk` of your own.
        keywords: the same with underscores, as in ``num_partitions=3``; they win.

    Raises:
        ConfigError: a setting is unknown or its value is not allowed, or not in virtual time; the
            folder is in use.
        OSError: a listener cannot be bound, or the folder cannot be used.

    At the end of the block, answers that are owed still leave (for at most 5 s), then everything is
    closed and the logs are marked clean. No socket, file or task is left.

    Cancellation: no answer is waited for, and the logs have 2 s to reach the disk. If that is not
    enough, they are not marked clean, and the next start scans them; nothing that was acknowledged
    is lost either way. While it starts, it ends when the logs being opened are.
    """
    given = {**_DEFAULTS, **(settings or {}), **keywords}
    config = _with_replicas(BrokerConfig.from_settings(given), brokers)
    configs = node_configs(config, brokers)
    for each in configs:
        _check_metrics(each)
        request_log_settings(each)
        if network.is_virtual:
            _check_virtual(each, disk)
    with raise_single_error() as caller, ExitStack() as last:
        log = _remember_log(config, last)
        report_settings(config, nodes=brokers)
        async with AsyncExitStack() as stack:
            cluster, recorders = await _open_cluster(configs, stack, network, disk)
            last.callback(cluster.let_go)
            monitor = stack.enter_context(LoopMonitor())
            surroundings = Surroundings(principal_builder, monitor, log)
            nodes = [
                Node(state, served_apis(state), recorders.get(node_id), surroundings)
                for node_id, state in cluster.nodes.items()
            ]
            start_upkeep(cluster.nursery, cluster, [node.apis for node in nodes])
            for node in nodes:
                last.callback(node.give_ports_back)
                await cluster.nursery.start(node.run, name=f"node {node.state.node_id}")
            stack.push_async_callback(_stop, cluster, nodes)
            with caller.block():
                yield Broker(cluster, nodes, monitor)


def _with_replicas(config: BrokerConfig, brokers: int) -> BrokerConfig:
    """With as many replicas as a cluster in production has, unless something else is set."""
    key = "default.replication.factor"
    if brokers == 1 or key in config.given:
        return config
    return BrokerConfig({**config.given, key: min(brokers, REPLICATION_FACTOR_MAX)})


def _check_metrics(config: BrokerConfig) -> None:
    """Find errors in the settings of metrics before anything is opened."""
    if "metrics.listener" in config.given or "metrics.listener.token" in config.given:
        from ..telemetry._metrics_settings import metrics_settings

        metrics_settings(config)


def _check_virtual(config: BrokerConfig, disk: Disk) -> None:
    """Refuse what would need a real socket, a thread or a clock."""
    if config.log_dir is not None and not disk.is_virtual:
        raise ConfigError(
            f"log.dirs = {config.log_dir} is not allowed in virtual time; a broker on a network in"
            " memory keeps its data there, too"
        )
    if config["metrics.listener"]:
        raise ConfigError(
            "metrics.listener is not allowed in virtual time: it listens on the system's network;"
            " use broker.statistics()"
        )
    for endpoint in config.listeners:
        if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise ConfigError(
                f"the listener {endpoint} is not allowed in virtual time; allowed: PLAINTEXT"
            )


def _remember_log(config: BrokerConfig, stack: ExitStack) -> LogRing | None:
    """Keep the last log lines for those who watch, from what is said of the settings on."""
    if not config["metrics.listener"]:
        return None
    ring, root = LogRing(), logging.getLogger("trionet")
    root.addHandler(ring)
    stack.callback(root.removeHandler, ring)
    return ring


async def _open_cluster(
    configs: Sequence[BrokerConfig], stack: AsyncExitStack, network: Network, disk: Disk
) -> tuple[Cluster, dict[int, RequestRecorder]]:
    config = configs[0]
    directory: Directory
    if config.log_dir is None:
        directory = MemoryDirectory(is_virtual=network.is_virtual)
        opening: AbstractAsyncContextManager[Database] = open_database(IN_MEMORY)
    else:
        directory = disk.directory(config.log_dir)
        opening = disk.open_database(config.log_dir)
    folder = await stack.enter_async_context(
        open_log_folder(directory, node_id=config.node_id, chance=network.chance)
    )
    if config.log_dir is not None:
        await disk.check_ownership(config.log_dir)
    database = await stack.enter_async_context(opening)
    altered = await BrokerConfigs.load(database, OF_LOGS if len(configs) > 1 else frozenset())
    settings = [altered.of_broker(each) for each in configs]
    first = settings[0].current
    report_settings(first, config, nodes=len(configs))
    leadership: Leadership[tuple[str, int]] = Leadership([each.node_id for each in configs])
    topics = await TopicRegistry.load(database, first, leadership, network.chance)
    at_the_end = stack.enter_context(ExitStack())  # when no task runs, and before the logs close
    nursery = await stack.enter_async_context(trio.open_nursery())
    stack.callback(nursery.cancel_scope.cancel, reason="the broker is stopping")
    cluster = Cluster(first, topics, folder, database, nursery, leadership, network)
    cluster.configs = altered
    altered.join(config.node_id, LogReconfiguration(cluster, settings[0]))
    stack.callback(cluster.loggers.restore)
    await cluster.open_logs()
    for each in settings:
        state = cluster.nodes[each.static.node_id] = BrokerState(cluster, each)
        await state.groups.load()
    logs = await open_request_log(cluster)
    for log in logs.values():
        at_the_end.callback(log.close)
        nursery.start_soon(log.run, name="request-log")
    return cluster, {node_id: log.recorder for node_id, log in logs.items()}


async def _stop(cluster: Cluster, nodes: Sequence[Node]) -> None:
    cluster.purgatory.close()
    for node in nodes:
        node.apis.long_calls.stop()
        node.state.groups.close()
    with trio.move_on_after(STOP_GRACE_SECONDS):
        await cluster.purgatory.drain()
        async with trio.open_nursery() as nursery:
            for node in nodes:
                nursery.start_soon(node.server.stop)
        # Who has left is not to be waited for after the next start.
        await cluster.group_store.flush()
