"""Implements ``open_broker`` and :class:`Broker`, which start and stop a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import TYPE_CHECKING, Unpack, final

import attrs
import trio

from ..._util._full_collections import full_collections
from ..._util._logging import get_logger
from ..._util._raising import raise_single_error
from ..._util._trio_task import check_trio
from ...errors import ConfigError
from ...metrics._log_ring import BackgroundLogRing, LogRing
from ...metrics._loop import LoopMonitor, LoopStatistics
from ...net._network import SYSTEM, Network
from ...net._principal import PrincipalBuilder
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...server._server_statistics import ServerStatistics, combined
from ...server._socket_server import SocketServer
from ..api._dispatch import Apis
from ..config._broker_config import BrokerConfig, check_settings, noting
from ..config._dynamic_config_store import BrokerConfigs, report_settings
from ..log import Directory, MemoryDirectory, open_log_folder
from ..log.compaction._cleaner import LastCleaning
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
from ._broker_keywords import BrokerKeywords
from ._new_topics import Topics, create_missing, parse_topics
from ._node import Node, node_configs
from ._reconfiguration import LOG_KEYS, LogReconfiguration
from ._served_apis import served_apis
from ._upkeep import start_upkeep

if TYPE_CHECKING:
    from ..telemetry._broker_metrics import BrokerMetrics

logger = get_logger("trionet.broker")

# Programs and tests listen on a free port.
_DEFAULTS = {"listeners": "PLAINTEXT://127.0.0.1:0"}
# What open_broker takes beside settings, for the error about a misspelled keyword.
_ARGUMENTS = ("brokers", "topics", "principal_builder", "network", "disk")
_WITHOUT_TRIO = (
    "a program without trio uses trionet.testing.broker(), whose broker has a thread of its own, or"
    " the command trionet broker"
)
# How long a graceful stop waits for pending responses to be sent.
STOP_GRACE_SECONDS = 5.0


@attrs.frozen
class BrokerStatistics:
    """A snapshot of the broker's activity and data.

    Attributes:
        server: the statistics of the network layer.
        calls: the number of requests by API name.
        delayed: the number of requests that are waiting for data.
        fetch_sessions: the number of incremental fetch sessions.
        topics: the number of topics.
        partitions: the number of partitions of all topics.
        log_bytes: the size of all logs, in bytes.
        transactional_ids: the number of transactional ids.
        loop: the load and lag of the event loop.
        request_log: the statistics of the request log; None without ``request.log.topic``.
    """

    server: ServerStatistics
    calls: dict[str, int]
    delayed: int
    fetch_sessions: int
    topics: int
    partitions: int
    log_bytes: int
    transactional_ids: int
    loop: LoopStatistics
    request_log: RequestLogStatistics | None = None


@final
class Broker:
    """A running broker, created by :func:`open_broker`.

    It has one node, or several nodes that share their data. With several nodes, leadership is
    simulated, but replication is not. Any replica of a partition may become its leader, and all
    replicas read and write the same log.

    Attributes:
        endpoints: the bound listeners of the first node.
    """

    endpoints: Sequence[Endpoint]
    _cluster: Cluster
    _nodes: dict[int, Node]
    _state: BrokerState
    _monitor: LoopMonitor
    _changing_nodes: trio.Lock

    def __init__(self) -> None:
        raise TypeError("create a broker with trionet.open_broker()")

    @classmethod
    def _create(cls, cluster: Cluster, nodes: Sequence[Node], monitor: LoopMonitor) -> Broker:
        self = cls.__new__(cls)
        first = nodes[0]
        self.endpoints = first.endpoints
        self._cluster = cluster
        self._nodes = {node.state.node_id: node for node in nodes}
        self._state = first.state
        self._monitor = monitor
        self._changing_nodes = trio.Lock()
        return self

    @property
    def _apis(self) -> Apis:
        return self._nodes[self._state.node_id].apis

    @property
    def _server(self) -> SocketServer:
        return self._nodes[self._state.node_id].server

    @property
    def bootstrap_servers(self) -> str:
        """The value for the ``bootstrap.servers`` of clients, such as ``"127.0.0.1:9092"``.

        It contains the addresses of all nodes, including stopped nodes, separated by commas.
        """
        name = self.endpoints[0].listener_name
        return ",".join(
            node.state.registration.advertised[name].address for node in self._nodes.values()
        )

    @property
    def config(self) -> BrokerConfig:
        """The current settings of the first node, which may be altered at run time."""
        return self._cluster.config

    @property
    def metrics(self) -> BrokerMetrics | None:
        """The metrics of the first node; None unless ``metrics.listener`` is set."""
        return self._nodes[self._state.node_id].metrics

    @property
    def cluster_id(self) -> str:
        return self._cluster.id

    @property
    def stop_failed(self) -> bool:
        """Whether some data could not be flushed at shutdown; valid once the broker has closed.

        If so, the next start scans the logs. Records are lost only if the machine fails before the
        operating system has written them.
        """
        return self._cluster.folder.stop_failed

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes, in ascending order starting at ``node.id``."""
        return list(self._nodes)

    @property
    def running_nodes(self) -> list[int]:
        """The ids of the running nodes."""
        return self._cluster.leadership.live

    def endpoints_of(self, node: int) -> Sequence[Endpoint]:
        """Return the bound listeners of a node; they do not change while the node is stopped.

        Args:
            node: the id of the node; see :attr:`node_ids`.

        Raises:
            ValueError: there is no such node.
        """
        return self._node(node).endpoints

    def leader(self, topic: str, partition: int) -> int:
        """Return the node id of a partition's leader, or -1 if the partition has no leader.

        Args:
            topic: the name of the topic.
            partition: the number of the partition.

        Raises:
            ValueError: the partition does not exist.
        """
        key = topic, partition
        found = self._cluster.leadership.get(key)
        if not found.replicas:
            raise ValueError(f"partition {topic}-{partition} does not exist")
        return found.leader

    def coordinator(self, group: str) -> int:
        """Return the node id of a group's coordinator, or -1 if no coordinator is available.

        Args:
            group: the group id; the group need not exist.
        """
        return self._cluster.coordinator_of(group)

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition, in the partition's next leader epoch.

        The old leader rejects further requests and waiting fetches with NOT_LEADER_OR_FOLLOWER.
        If the node is already the leader, nothing changes.

        Args:
            topic: the name of the topic.
            partition: the number of the partition.
            node: the id of a running node that has a replica.

        Raises:
            ValueError: the partition does not exist, or the node has no replica or is stopped.

        Cancellation: the leader either changes or stays the same.
        """
        await self._cluster.elections.move_leader(topic, partition, node)

    async def move_coordinator(self, group: str, node: int) -> None:
        """Make a node the coordinator of a group.

        The node also becomes the coordinator of all other groups of the same offsets partition. The
        stored state of the groups moves to the node: members stay in their generation, and a
        rebalance in progress restarts. If the node is already the coordinator, nothing changes.

        Args:
            group: the group id; the group need not exist.
            node: the id of a running node.

        Raises:
            ValueError: the node does not exist or is stopped.

        Cancellation: the coordinator either changes or stays the same.
        """
        await self._cluster.elections.move_coordinator(group, node)

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the node id of a transactional id's coordinator, or -1 if none is available.

        Args:
            transactional_id: the transactional id, which need not be in use.
        """
        return self._cluster.transaction_coordinator_of(transactional_id)

    async def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        """Make a node the coordinator of a transactional id, in the coordinator's next epoch.

        The node also becomes the coordinator of all other ids of the same partition of
        ``__transaction_state``. If the node is already the coordinator, nothing changes.

        Args:
            transactional_id: the transactional id, which need not be in use.
            node: the id of a running node.

        Raises:
            ValueError: the node does not exist or is stopped.

        Cancellation: the coordinator either changes or stays the same.
        """
        await self._cluster.elections.move_transaction_coordinator(transactional_id, node)

    async def elect_preferred_leaders(self) -> None:
        """Make the first replica of every partition its leader, if that node is running.

        This is the equivalent of ``kafka-leader-election.sh --election-type PREFERRED``. Leaders
        are not rebalanced automatically.

        Cancellation: either all preferred leaders are elected, or none.
        """
        await self._cluster.elections.elect_preferred_leaders()

    async def stop(self, node: int) -> None:
        """Move a node's leaderships to other nodes, then close its listeners and connections.

        Partitions without another running replica have no leader until :meth:`start`. The node
        takes at most 5 s to send pending responses. If it is already stopped, nothing changes.

        Args:
            node: the id of the node; see :attr:`node_ids`.

        Raises:
            ValueError: there is no such node.

        Cancellation: either nothing changes, or the leaderships move and the node stops without
        waiting for responses.
        """
        running = self._node(node)
        async with self._changing_nodes:
            if not self._cluster.leadership.is_live(node):
                return
            await self._cluster.elections.node_stops(node)
            try:
                await running.stop(STOP_GRACE_SECONDS)
            finally:
                running.reserve_ports()

    async def start(self, node: int) -> None:
        """Restart a stopped node on the same ports, with the data shared by all nodes.

        The node becomes the leader of those of its partitions that have no leader, and the
        coordinator of groups without one. To return other partitions to it as well, call
        :meth:`elect_preferred_leaders`. If the node is already running, nothing changes.

        Args:
            node: the id of the node; see :attr:`node_ids`.

        Raises:
            ValueError: there is no such node.
            OSError: another process has bound one of the node's ports in the meantime.

        Cancellation: the node either starts or stays stopped.
        """
        stopped = self._node(node)
        async with self._changing_nodes:
            if self._cluster.leadership.is_live(node):
                return
            stopped.state.reset_fetch_sessions()
            try:
                with raise_single_error():
                    await self._cluster.nursery.start(stopped.run, name=f"node {node}")
            except BaseException:
                stopped.reserve_ports()
                raise
            # Shielded, since the node already serves. Bounded: it only syncs files.
            with trio.CancelScope(shield=True):
                await self._cluster.elections.node_started(node)

    async def compact(self, topic: str) -> dict[int, LastCleaning]:
        """Clean a compacted topic now, so that a test need not wait for the cleaner.

        Each partition's active segment is rolled, and everything is cleaned that the cleaner may
        ever clean: what is below the last stable offset and older than ``min.compaction.lag.ms``.
        ``min.cleanable.dirty.ratio`` and ``log.cleaner.enable`` do not matter. As in Kafka, the
        cleaning that first meets a tombstone keeps it for ``delete.retention.ms``; a later call
        removes it after that time, even if nothing was written in between.

        Args:
            topic: the name of the topic.

        Returns:
            What was read and written, by partition.

        Raises:
            ValueError: the topic does not exist, or its ``cleanup.policy`` lacks ``compact``.
            ApiError: a partition cannot be cleaned.
            OSError: a file cannot be read or written.

        Cancellation: each partition is cleaned in whole segments, or as it was.
        """
        await trio.lowlevel.checkpoint()
        cluster = self._cluster
        found = cluster.topics.get(topic)
        if found is None:
            raise ValueError(f"topic {topic!r} does not exist")
        logs = [
            log
            for number in range(found.partitions)
            if (log := cluster.folder.logs.get((topic, number))) is not None
        ]
        policies = {log.config.cleanup_policy for log in logs if not log.config.is_compacted}
        if policies:
            raise ValueError(
                f"topic {topic!r} has cleanup.policy={policies.pop()}; it must contain compact"
            )
        return {log.partition: await cluster.cleaner.compact(log) for log in logs}

    def own_process(self) -> AbstractContextManager[None]:
        """Declare that the process runs this broker and nothing else, as ``trionet broker`` does.

        In the block, objects that last are exempt from garbage collections, which would hold the
        loop for a second with 100,000 partitions or groups. In the process of another program, its
        garbage in cycles would be kept as well.
        """
        return full_collections.freeze_survivors()

    def _node(self, id: int) -> Node:
        node = self._nodes.get(id)
        if node is None:
            allowed = ", ".join(map(str, self._nodes))
            raise ValueError(f"node {id} does not exist; allowed: {allowed}")
        return node

    def statistics(self) -> BrokerStatistics:
        """Return a snapshot of the statistics; a node's counts restart when the node restarts."""
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
            transactional_ids=len(cluster.transactions.transactions),
            loop=self._monitor.statistics(),
            request_log=statistics(recorders) if recorders else None,
        )

    @contextmanager
    def watch(self, log: LogRing | None = None) -> Iterator[BrokerMetrics]:
        """Collect the metrics of the first node while the context is active.

        The caller must take a snapshot every few seconds, because recent rates and quantiles are
        computed from the changes between snapshots. With ``metrics.listener``, the context yields
        :attr:`metrics`, which are always collected.

        Args:
            log: the log lines to report; by default, the lines logged in the context.
        """
        metrics = self.metrics
        if metrics is not None:
            yield metrics
            return
        with _recent_log_lines(LogRing()) if log is None else nullcontext(log) as lines:
            yield self._nodes[self._state.node_id].create_metrics(lines)

    def __repr__(self) -> str:
        return f"<Broker {', '.join(map(str, self._nodes))} at {self.bootstrap_servers}>"


@asynccontextmanager
async def open_broker(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    brokers: int = 1,
    topics: Topics | None = None,
    principal_builder: PrincipalBuilder | None = None,
    network: Network = SYSTEM,
    disk: Disk = SYSTEM_DISK,
    **keywords: Unpack[BrokerKeywords],
) -> AsyncIterator[Broker]:
    """Run a broker within the context.

    By default, the broker listens on a free port of 127.0.0.1 and keeps its data in memory. Set
    ``log_dirs`` (or ``log_dir``) to store the data in a directory.

    Args:
        settings: Kafka's broker settings by their dotted keys.
        brokers: the number of nodes, which share the data and have consecutive ids starting at
            ``node.id``. Each node's ports are one higher than the previous node's, unless a port is
            0. By default, new topics have one replica per node, but at most three.
        topics: the topics to create before the broker accepts connections: a list of names, or a
            dict that maps each name to a number of partitions or to a dict of ``partitions`` and
            topic configs. A topic that the data directory has already is left as it is.
        principal_builder: builds principals from the authenticated identities of peers, instead of
            ``ssl.principal.mapping.rules``.
        network: the source of connections, time and randomness; pass a
            :class:`trionet.testing.MemoryNetwork` for virtual time.
        disk: provides the data directory; tests may pass their own :class:`trionet.broker.Disk`.
        keywords: Kafka's broker settings with underscores instead of dots, such as
            ``num_partitions=3``; they take precedence over ``settings``.

    Raises:
        ConfigError: a setting is unknown, has an invalid value or is not allowed in virtual time,
            or the data directory is in use.
        OSError: a listener cannot be bound, or the data directory cannot be used.
        ApiError: a topic cannot be created.
        TypeError: ``settings`` or ``topics`` is of the wrong kind.
        RuntimeError: trio does not run the calling task.

    On exit, the broker takes at most 5 s to send pending responses. Then it closes all sockets and
    files and marks the logs as cleanly stopped. No tasks remain.

    Cancellation: the broker does not wait for responses, and flushes the logs for at most 2 s. If
    this takes longer, the logs are not marked as cleanly stopped, and the next start scans them.
    Acknowledged records are not lost. If cancelled during startup, the function returns once the
    logs that are being opened are open.
    """
    check_trio("brokers", _WITHOUT_TRIO)
    new_topics = parse_topics(topics)
    check_settings(settings)
    if "port" in keywords:  # old files have it, in which Kafka ignores it, too
        raise ConfigError("port: unknown key; set listeners='PLAINTEXT://127.0.0.1:9092'")
    given = {**_DEFAULTS, **(settings or {}), **keywords}
    configs = node_configs(BrokerConfig.from_settings(given, _ARGUMENTS), brokers)
    config = configs[0]
    for each in configs:
        check_telemetry(each)
        if network.is_virtual:
            _check_virtual(each, disk)
    with raise_single_error() as caller, ExitStack() as last:
        log = None
        if _serves_metrics(config, network):
            log = last.enter_context(_recent_log_lines(BackgroundLogRing()))
        report_settings(config, nodes=brokers)
        async with AsyncExitStack() as stack:
            cluster, states, recorders = await _open_cluster(configs, stack, network, disk)
            last.callback(cluster.release_logs)
            await create_missing(cluster, new_topics)
            monitor = stack.enter_context(LoopMonitor())
            nodes = [
                Node(
                    state,
                    served_apis(state),
                    recorders.get(state.node_id),
                    principal_builder,
                    monitor,
                    log,
                )
                for state in states
            ]
            start_upkeep(cluster.nursery, cluster, [node.apis for node in nodes])
            for node in nodes:
                last.callback(node.release_ports)
                await cluster.nursery.start(node.run, name=f"node {node.state.node_id}")
            stack.push_async_callback(_stop, cluster, nodes)
            with caller.block():
                yield Broker._create(cluster, nodes, monitor)  # noqa: SLF001


def _serves_metrics(config: BrokerConfig, network: Network) -> bool:
    is_local = bool(config["metrics.local.enable"]) and not network.is_virtual
    return is_local or bool(config["metrics.listener"])


def check_telemetry(config: BrokerConfig) -> None:
    """Validate the settings of metrics and the request log, before any resources are opened.

    Raises:
        ConfigError: settings are not allowed; its ``args`` are all problems.
    """
    problems: list[str] = []
    with noting(problems):
        request_log_settings(config)
    if any(key.startswith("metrics.listener") for key in config.originals):
        from ..telemetry._broker_metrics import metrics_settings

        with noting(problems):
            metrics_settings(config)
    if problems:
        raise ConfigError(*problems)


def _check_virtual(config: BrokerConfig, disk: Disk) -> None:
    """Reject settings that need a real disk, network or clock."""
    if config.log_dir is not None and not disk.is_virtual:
        raise ConfigError(
            f"log.dirs = {config.log_dir} is not allowed in virtual time; leave it out, since a"
            " broker on a memory network also keeps its data in memory"
        )
    if config["metrics.listener"]:
        raise ConfigError(
            "metrics.listener is not allowed in virtual time, since it listens on the system's"
            " network; use broker.statistics()"
        )
    for endpoint in config.listeners:
        if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT:
            raise ConfigError(
                f"listener {endpoint} is not allowed in virtual time; allowed: PLAINTEXT"
            )


@contextmanager
def _recent_log_lines(ring: LogRing) -> Iterator[LogRing]:
    """Retain the recent lines that are logged while the context is active."""
    root = get_logger("trionet")
    root.addHandler(ring)
    try:
        yield ring
    finally:
        root.removeHandler(ring)


async def _open_cluster(
    configs: Sequence[BrokerConfig], stack: AsyncExitStack, network: Network, disk: Disk
) -> tuple[Cluster, list[BrokerState], dict[int, RequestRecorder]]:
    config = configs[0]
    directory: Directory
    if config.log_dir is None:
        directory = MemoryDirectory(is_virtual=network.is_virtual)
        opening: AbstractAsyncContextManager[Database] = open_database(IN_MEMORY)
    else:
        directory = disk.directory(config.log_dir)
        opening = disk.open_database(config.log_dir)
    folder = await stack.enter_async_context(
        open_log_folder(directory, node_id=config.node_id, rng=network.rng)
    )
    if config.log_dir is not None:
        await disk.check_ownership(config.log_dir)
    database = await stack.enter_async_context(opening)
    altered = await BrokerConfigs.load(database, LOG_KEYS if len(configs) > 1 else frozenset())
    settings = [altered.settings_of(each) for each in configs]
    first = settings[0].current
    report_settings(first, config, nodes=len(configs))
    leadership: Leadership[tuple[str, int]] = Leadership([each.node_id for each in configs])
    topics = await TopicRegistry.load(database, first, leadership, network.rng)
    # Runs its callbacks after all tasks have ended, and before the logs close.
    after_tasks = stack.enter_context(ExitStack())
    nursery = await stack.enter_async_context(trio.open_nursery())
    stack.callback(nursery.cancel_scope.cancel, reason="the broker is stopping")
    cluster = Cluster(first, topics, folder, database, nursery, leadership, network)
    cluster.configs = altered
    altered.register(config.node_id, LogReconfiguration(cluster, settings[0]))
    stack.callback(cluster.loggers.restore)
    await cluster.open_logs()
    states = [BrokerState(cluster, each) for each in settings]
    for state in states:
        cluster.nodes[state.node_id] = state.registration
        await state.groups.load()
    await cluster.features.load()
    await cluster.transactions.restore()
    logs = await open_request_log(cluster, states)
    for log in logs.values():
        after_tasks.callback(log.close)
        nursery.start_soon(log.run, name="request-log")
    return cluster, states, {node_id: log.recorder for node_id, log in logs.items()}


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
        # Otherwise, the next start would wait for members that have left.
        await cluster.writes.flush()
