"""The state shared by all nodes of a cluster: topics, logs, leaders, groups and the database.

The problem: to clients, a simulated cluster of several nodes in one process must look like several
Kafka brokers among which leadership moves, but it must never lose a record or serve it twice.

The choice: all stored data exists once, in this class, and every node reads and writes the same
logs. The state that differs between nodes (addresses, fetch sessions, coordinated groups) is in a
:class:`.BrokerState` per node. Thus leadership is simulated and replication is not: an election
only changes the leader epoch and the node that accepts requests for a partition.

Rejected: a log per replica, with real replication. It would multiply disk traffic and memory by the
replication factor, to protect against a failure that cannot occur here: a process that loses one of
its own copies. Reconsider if a broker ever spans several processes.

Changes to topics and elections run one at a time, under one lock. Each is atomic: the database is
written first, the state in memory changes without a checkpoint in between, and steps that must not
be interrupted are shielded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import trio

from ..._util._logging import get_logger
from ...errors import ApiError
from ...net._network import SYSTEM, Network
from ...protocol import error_codes
from ..config._alterations import BrokerLoggers, Change
from ..config._broker_config import BrokerConfig
from ..config._dynamic_config_store import BrokerConfigs
from ..config._limit import Limit
from ..config._topic_keys import check_topic_overrides, topic_config, topic_keys_not_applied
from ..groups._group_store import GroupStore
from ..groups._offsets_partition import PARTITIONS, partition_of
from ..log import Log, LogConfig, LogFolder
from ..log.compaction._cleaner import LogCleaner
from ..log.compaction._cleaner_config import CleanerConfig
from ..log.recovery._missing_records import MissingRecordsError
from ..storage._database import DATABASE_NAME, Database, DatabaseError
from ..storage._storage_errors import storage_errors
from ..storage._write_queue import WriteQueue
from ..transactions._transaction_coordinator import TransactionCoordinator
from ._elections import BrokerRegistration, Elections
from ._features import Features
from ._leadership import Leadership
from ._producer_ids import ProducerIds
from ._purgatory import Purgatory
from ._topic_registry import TopicRegistry, unknown_topic
from ._topic_store import Topic

if TYPE_CHECKING:
    from ..security._scram_credentials import ScramCredentials

logger = get_logger("trionet.broker")


class Cluster:
    """The state shared by the nodes of a cluster.

    Attributes:
        config: the settings of all nodes; each node has a copy with its own addresses.
        configs: the settings altered at run time.
        loggers: the log levels.
        topics: the registry of topics.
        folder: the data directory, which contains the logs of all partitions.
        database: the database for all data except logs.
        network: the source of time, randomness and connections.
        nursery: runs tasks that outlive the call that started them, until the broker stops.
        producer_ids: allocates ids for idempotent producers.
        scram_credentials: the SCRAM users; None without a listener that uses SASL or TLS.
        purgatory: the requests that are waiting for data.
        leadership: the leaders of topic partitions.
        coordinators: the leaders of the partitions of ``__consumer_offsets``, which coordinate
            groups.
        transaction_coordinators: the leaders of the partitions of ``__transaction_state``, which
            coordinate transactions.
        writes: the queue of writes to the database that have a callback.
        group_store: the stored state of consumer groups.
        transactions: the transactions, whichever node coordinates them.
        features: the feature levels.
        nodes: the registered nodes, keyed by id; a node is registered once its state has been
            created.
        elections: elects and installs leaders.
        unflushed: the logs appended to since the last background flush.
        cleaner: cleans the logs of compacted topics.
    """

    configs: BrokerConfigs
    scram_credentials: ScramCredentials | None

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicRegistry,
        folder: LogFolder,
        database: Database,
        nursery: trio.Nursery,
        leadership: Leadership[tuple[str, int]],
        network: Network = SYSTEM,
    ) -> None:
        self.network = network
        self.config: BrokerConfig = config
        self.loggers: BrokerLoggers = BrokerLoggers()
        self.topics = topics
        self.folder = folder
        self.database = database
        self.nursery = nursery
        self.producer_ids: ProducerIds = ProducerIds(database)
        self.scram_credentials = None
        self.purgatory: Purgatory = Purgatory()
        self.leadership = leadership
        self.coordinators: Leadership[int] = _coordinators(leadership.nodes)
        self.transaction_coordinators: Leadership[int] = _coordinators(leadership.nodes)
        self.features: Features = Features(database)
        self.writes: WriteQueue = WriteQueue(database)
        self.group_store: GroupStore = GroupStore(database, self.writes)
        self.nodes: dict[int, BrokerRegistration] = {}
        self.id: str = folder.cluster_id
        self.is_in_memory: bool = not folder.directory.is_durable
        self.unflushed: dict[Log, None] = {}
        self.cleaner: LogCleaner = LogCleaner(
            folder, _cleaner_config(config), self.now_ms, is_virtual=network.is_virtual
        )
        self._changing_topics = trio.Lock()
        self._topics_limit = _limit(config, "auto.create.topics.max")
        self._logs = folder.logs
        self.elections: Elections = Elections(
            leadership,
            self.coordinators,
            self.transaction_coordinators,
            self.nodes,
            self._logs,
            self.purgatory,
            self._changing_topics,
        )
        self.transactions: TransactionCoordinator = TransactionCoordinator(
            database,
            self.writes,
            self.group_store,
            self._logs,
            nursery,
            appended=self._appended,
            next_producer_id=self.next_producer_id,
            coordinator_epoch=self._transaction_coordinator_epoch,
            level=lambda: self.features.level,
            limit=_limit(config, "max.transactional.ids"),
            now_ms=self.now_ms,
        )

    def now_ms(self) -> int:
        """Return the current time for record timestamps and responses, in ms since the epoch."""
        return self.network.now_ms()

    def release_logs(self) -> None:
        """Drop all references to logs, so that holding on to the Broker keeps no files open."""
        self._logs.clear()
        self.unflushed.clear()
        if self.is_in_memory:
            for name in self.folder.directory.folders():
                self.folder.directory.remove_folder(name)

    async def next_producer_id(self) -> int:
        """Allocate a producer id that has never been used.

        Raises:
            ApiError: the database cannot be written.
        """
        with storage_errors():
            return await self.producer_ids.next_id()

    # Nodes.

    def live_nodes(self) -> list[BrokerRegistration]:
        """Return the nodes that are advertised to clients."""
        return [
            node
            for id, node in self.nodes.items()
            if node.advertised and self.leadership.is_live(id)
        ]

    def coordinator_of(self, group_id: str) -> int:
        """Return the id of the node that coordinates a group; NO_LEADER if no node does."""
        return self.coordinators[partition_of(group_id)].leader

    def transaction_coordinator_of(self, transactional_id: str) -> int:
        """Return the id of the node that coordinates a transactional id; NO_LEADER if none does."""
        return self.transaction_coordinators[partition_of(transactional_id)].leader

    def _transaction_coordinator_epoch(self, transactional_id: str) -> int:
        # Higher than that of any marker in the logs, so that a restart does not fence itself.
        epoch = self.transaction_coordinators[partition_of(transactional_id)].epoch
        # Markers have 32 bits for it, and an administrator's WriteTxnMarkers may contain any.
        return min(self.transactions.last_epoch + 1 + epoch, 2**31 - 1)

    def _appended(self, log: Log, size: int) -> None:
        """Do the same as :meth:`.BrokerState.appended`, for markers that no request appends."""
        self.unflushed[log] = None
        self.purgatory.notify(log, size)
        stable_bytes = log.take_stable_bytes()
        if stable_bytes:
            self.purgatory.notify(log.stable, stable_bytes)

    # Topics.

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return LogConfig.from_topic(
            topic_config(self.config, overrides),
            producer_id_expiration_ms=self.config.integer("producer.id.expiration.ms"),
        )

    async def create_topic(
        self, name: str, *, is_automatic: bool = False, **settings: Any
    ) -> Topic:
        """Create a topic and its logs; see :meth:`TopicRegistry.create` for the arguments.

        Args:
            name: the name of the new topic.
            is_automatic: whether ``auto.create.topics.max`` limits how many topics there are.
            settings: the arguments of :meth:`TopicRegistry.create`.

        Raises:
            ApiError: the topic already exists, the request is not allowed, or the topic could not
                be stored.

        Cancellation: the topic is created with all its logs, or not at all.
        """
        async with self._changing_topics:
            if is_automatic:
                self._check_automatic_creation(name)
            with storage_errors():
                topic = await self.topics.create(name, **settings)
                if name in self.topics.unreadable:
                    self.group_store.forget_topic(name)
                await self._open_new_logs(topic, partial(self._remove, topic))
                await self._settle([topic.id])
        _report_topic(topic, {})
        return topic

    def _check_automatic_creation(self, name: str) -> None:
        if self.topics.get(name) is None:
            error = self._topics_limit.error(len(self.topics), f"topic {name!r}")
            if error is not None:
                raise error

    async def alter_topic(self, name: str, change: Change, *, validate_only: bool = False) -> None:
        """Change the settings of a topic. They take effect with the next append to each log.

        Args:
            name: the topic's name.
            change: returns the new settings, given the old ones.
            validate_only: whether to validate the change without applying it.

        Raises:
            ApiError: the topic does not exist, a setting is not allowed, the change could not be
                stored, or ``change`` raised the error; nothing was changed.
        """
        async with self._changing_topics:
            topic = self.topics.get(name)
            changed = change(topic.configs if topic is not None else {})
            overrides = check_topic_overrides(self.config, changed.items())
            if topic is None:
                raise unknown_topic(name)
            if validate_only or overrides == topic.configs:
                return
            with storage_errors():
                altered = await self.topics.alter(topic, overrides)
            self.configure_logs(altered, self.log_config(overrides))
        _report_topic(altered, topic.configs)

    def configure_logs(self, topic: Topic, config: LogConfig) -> None:
        """Apply new settings to the logs of a topic."""
        for partition in range(topic.partitions):
            log = self._logs.get((topic.name, partition))
            if log is not None:
                log.config = config
        self.cleaner.note_config(config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Switch to new settings, except for logs; see :meth:`configure_logs`."""
        self.config = config
        self.cleaner.reconfigure(_cleaner_config(config))
        self.topics.reconfigure(config)

    async def create_partitions(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Add partitions to a topic; see :meth:`TopicRegistry.check_growth`.

        Raises:
            ApiError: the request is not allowed, or the logs could not be created; the topic is
                unchanged.

        Cancellation: all partitions are added with their logs, or none.
        """
        async with self._changing_topics:
            with storage_errors():
                before = self.topics.get(name)
                topic = await self.topics.grow(name, partitions, assignments)
                assert before is not None, "grow() raises for a topic that does not exist"
                first = before.partitions
                await self._open_new_logs(topic, partial(self._shrink, topic, first), first)
                await self._settle([topic.id])

    async def _shrink(self, topic: Topic, partitions: int) -> None:
        """Undo :meth:`create_partitions`, before which the topic had so many partitions."""
        await self.topics.shrink(topic.name, partitions)
        await self._remove_logs(topic.name, range(partitions, topic.partitions))
        await self._settle([topic.id])

    async def delete_records(self, log: Log, offset: int) -> None:
        """Delete the records below ``offset``, and complete fetches waiting for the partition.

        Raises:
            ApiError, OSError: see :meth:`.Log.delete_before`.
        """
        before = log.start_offset
        await log.delete_before(offset)
        if log.start_offset > before:
            self.purgatory.complete_all(log, log.stable)

    async def get_or_create_topic(self, name: str) -> Topic:
        """Return the topic, creating it with the broker's defaults if it does not exist.

        Raises:
            ApiError: the topic does not exist and cannot be created.
        """
        try:
            return await self.create_topic(name, is_automatic=True)
        except ApiError as error:
            topic = self.topics.get(name)
            if error.error_code == error_codes.TOPIC_ALREADY_EXISTS and topic is not None:
                return topic
            raise

    async def delete_topic(self, topic: Topic) -> None:
        """Delete a topic, and complete fetches waiting for it.

        Args:
            topic: the topic, which may have been altered or have grown since.

        Raises:
            ApiError: the topic was already deleted, or the deletion could not be stored.
        """
        async with self._changing_topics:
            with storage_errors():
                await self._remove(topic)

    async def _remove(self, topic: Topic) -> None:
        topic = await self.topics.delete(topic)
        # Before the logs: the topic is deleted, even if its directories cannot be removed.
        self.group_store.forget_topic(topic.name)
        await self._remove_logs(topic.name, range(topic.partitions))
        await self._settle([topic.id])

    async def _remove_logs(self, name: str, partitions: range) -> None:
        failure: OSError | None = None
        removed: list[Log] = []
        for partition in partitions:
            self.leadership.remove((name, partition))
            log = self._logs.get((name, partition))
            if log is None:
                continue  # its creation failed
            try:
                await self.folder.delete(name, partition, self.nursery)
            except OSError as error:
                failure = error  # still remove the other partitions
            self.unflushed.pop(log, None)
            self.purgatory.complete_all(log, log.stable)
            removed.append(log)
        self.transactions.forget(removed)
        if failure is not None:
            raise failure

    async def _settle(self, topic_ids: Collection[bytes]) -> None:
        """Record in the database that the directories of some topics match the registry."""
        try:
            # Before the note is removed: otherwise a power failure could lose the names of new
            # directories or bring deleted ones back, with nothing left that says so.
            await self.folder.sync_names()
            await self.topics.settle(topic_ids)
        except (OSError, DatabaseError) as error:
            # The request itself succeeded; the next startup checks the directories again.
            logger.warning("could not record that a topic change is complete: %s", error)

    async def open_logs(self) -> None:
        """Open all logs, complete interrupted creations, and set aside logs without a topic."""
        topics = {topic.name: topic for topic in self.topics}
        pending_folders = [
            (each, self.topics.by_id(each.id)) for each in self.topics.pending_folders
        ]

        @cache
        def config_for(name: str) -> LogConfig:
            topic = topics.get(name)
            return self.log_config(topic.configs if topic else {})

        await self.folder.open_all(
            config_for,
            self.now_ms(),
            threads=self.config.integer("num.recovery.threads.per.data.dir"),
            topic_id_for=lambda name: topics[name].id if name in topics else None,
            expected=[
                (name, number) for name in topics for number in range(topics[name].partitions)
            ],
            begun={
                (each.name, number)
                for each, topic in pending_folders
                for number in each.to_create(topic)
            },
            removed=[
                ((each.name, number), each.id)
                for each, topic in pending_folders
                for number in each.to_remove(topic)
            ],
            loss_allowed=self.config.flag("log.missing.records.allowed"),
        )
        for name, partition in self._without_topic(topics):
            folder = await self.folder.set_aside(name, partition)
            logger.warning(
                "%s-%d: no topic has this partition; its directory is kept as %s and not served;"
                " remove that directory if it is not needed",
                name,
                partition,
                folder,
            )
        begun = [key for topic in topics.values() for key in await self._create_logs(topic)]
        await self.elections.install_leaders(begun)
        if pending_folders:
            await self._settle([each.id for each, _ in pending_folders])

    def _without_topic(self, topics: Mapping[str, Topic]) -> list[tuple[str, int]]:
        """Return the partitions in the data directory that belong to no topic.

        Raises:
            MissingRecordsError: a partition without a topic contains records, and
                ``log.missing.records.allowed`` is false.
        """
        found = [
            (name, number)
            for name, number in self._logs
            if name not in topics or number >= topics[name].partitions
        ]
        with_records = [key for key in found if self._logs[key].size]
        if with_records and not self.config.flag("log.missing.records.allowed"):
            name, number = min(with_records)
            raise MissingRecordsError(
                f"{len(with_records)} partitions with records belong to no topic, such as"
                f" {name}-{number}, and log.missing.records.allowed is false; restore"
                f" {DATABASE_NAME} from a backup, or start with log.missing.records.allowed=true"
                " to set them aside"
            )
        return found

    async def _open_new_logs(
        self, topic: Topic, undo: Callable[[], Awaitable[None]], first: int = 0
    ) -> None:
        """Create missing logs and install their leaders; if that fails, undo the whole change.

        Also if it is cancelled, as by a node that stops: the other nodes would have a topic with
        partitions that lack their logs until the next start.
        """
        try:
            await self.elections.install_leaders(await self._create_logs(topic, first))
        except (OSError, trio.Cancelled):
            with trio.CancelScope(shield=True):  # bounded: it only renames what was created
                await undo()
            raise

    async def _create_logs(self, topic: Topic, first: int = 0) -> list[tuple[str, int]]:
        """Create missing logs, and return the partitions that must begin a new leader epoch.

        Only the partitions from ``first`` on are looked at. The last leader is not stored. If the
        leader epoch is 0, the leader was the first replica, since the election of any other leader
        starts a new epoch.
        """
        begun: list[tuple[str, int]] = []
        made_from: BrokerConfig | None = None
        config: LogConfig
        for number in range(first, topic.partitions):
            key = topic.name, number
            if self.leadership.get(key).replicas:
                continue
            log = self._logs.get(key)
            if log is None:
                if made_from is not self.config:
                    made_from, config = self.config, self.log_config(topic.configs)
                log = await self.folder.create(topic.name, number, topic.id, config, self.now_ms())
                if made_from is not self.config:
                    # Altered meanwhile; configure_logs() reaches only the logs that are open.
                    log.config = self.log_config(topic.configs)
                self.cleaner.note_config(log.config)
            replicas = topic.replicas[number] if number < len(topic.replicas) else ()
            self.leadership.add(key, replicas, log.leader_epoch)
            log.leader_id = leader = self.leadership[key].leader
            if replicas and (log.leader_epoch or leader != replicas[0]):
                self.leadership.begin_epoch(key)
                begun.append(key)
        return begun


def _coordinators(nodes: Sequence[int]) -> Leadership[int]:
    """Return the leaders of an internal topic's partitions, each with a replica on every node."""
    leadership: Leadership[int] = Leadership(nodes)
    for number, replicas in enumerate(leadership.place(PARTITIONS, len(nodes))):
        leadership.add(number, replicas)
    return leadership


def _limit(config: BrokerConfig, key: str) -> Limit:
    return Limit(key, config.integer(key))


def _cleaner_config(config: BrokerConfig) -> CleanerConfig:
    return CleanerConfig(
        is_enabled=config.flag("log.cleaner.enable"),
        threads=config.integer("log.cleaner.threads"),
        dedupe_buffer_size=config.integer("log.cleaner.dedupe.buffer.size"),
        load_factor=config.real("log.cleaner.io.buffer.load.factor"),
        io_buffer_size=config.integer("log.cleaner.io.buffer.size"),
        bytes_per_second_max=config.real("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=config.integer("log.cleaner.backoff.ms"),
    )


def _report_topic(topic: Topic, before: Mapping[str, str]) -> None:
    """Log the topic settings that were accepted but have no effect."""
    reported = topic_keys_not_applied(before)
    ignored = [each for each in topic_keys_not_applied(topic.configs) if each not in reported]
    if ignored:
        logger.warning("topic %s: not applied by this version: %s", topic.name, ", ".join(ignored))
