"""What the nodes of a cluster have in common: topics and their logs, groups, the database.

A node has a :class:`~._broker_state.BrokerState` of its own, which its handlers work on, and a
network. All that is stored is here, once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import trio

from ...errors import ApiError
from ...net._network import SYSTEM, Network
from ...protocol import error_codes
from ..config._alterations import Change
from ..config._broker_config import BrokerConfig
from ..config._logger_levels import BrokerLoggers
from ..config._topic_keys import check_topic_overrides, topic_config, topic_keys_not_applied
from ..groups._group_store import GroupStore
from ..groups._offsets_partition import PARTITIONS, partition_of
from ..log import Log, LogConfig, LogFolder
from ..log.recovery._missing_records import MissingRecordsError
from ..storage._database import DATABASE_NAME, Database, DatabaseError
from ..storage._storage_errors import storage_errors
from ._leadership import NO_LEADER, Leadership
from ._producer_ids import ProducerIds
from ._purgatory import Purgatory
from ._topic_registry import TopicRegistry
from ._topic_store import Topic

if TYPE_CHECKING:
    from ..config._dynamic_config_store import BrokerConfigs
    from ..groups._group_coordinator import GroupCoordinator
    from ..security._scram_credentials import ScramCredentials
    from ._broker_state import BrokerState

logger = logging.getLogger("trionet.broker")

ELECTIONS_AT_ONCE: Final = 40
"""How many partitions get their next leader together; in between, others are served."""


class Cluster:
    """The nodes' common data.

    Attributes:
        config: the settings; each node has its own copy, with its own addresses.
        configs: the settings that were altered while nodes ran.
        loggers: the levels of the loggers.
        topics: which topics there are.
        folder: the logs of their partitions.
        database: everything that is not a log.
        network: where time and chance come from, and the connections of its nodes.
        nursery: where work goes that outlives the call that began it, until the broker stops.
        producer_ids: ids for idempotent producers.
        scram_credentials: the users of SCRAM; only there with a listener that uses SASL or TLS.
        purgatory: calls that wait for data.
        leadership: who leads the partitions of topics.
        coordinators: who leads those of ``__consumer_offsets``, and so coordinates groups.
        group_store: what is kept of consumer groups.
        nodes: all nodes, by their ids.
        unflushed: logs that were written since the background flush last looked.
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
        self._virtual_now_ms = network.now_ms if network.is_virtual else None
        self.config = config
        self.loggers = BrokerLoggers()
        self.topics = topics
        self.folder = folder
        self.database = database
        self.nursery = nursery
        self.producer_ids = ProducerIds(database)
        self.scram_credentials = None
        self.purgatory = Purgatory()
        self.leadership = leadership
        self.coordinators: Leadership[int] = Leadership(leadership.nodes)
        for number, replicas in enumerate(
            self.coordinators.place(PARTITIONS, len(leadership.nodes))
        ):
            self.coordinators.add(number, replicas)
        self.group_store = GroupStore(database)
        self.nodes: dict[int, BrokerState] = {}
        self.id = folder.cluster_id
        self.is_in_memory = not folder.directory.is_durable
        self.unflushed: dict[Log, None] = {}
        self._changing_topics = trio.Lock()
        self._logs = folder.logs

    def now_ms(self) -> int:
        """The time that records are stamped with and clients are told, in ms since the epoch."""
        if self._virtual_now_ms is not None:
            return self._virtual_now_ms()
        return time.time_ns() // 1_000_000

    def let_go(self) -> None:
        """Hold no file any more: they close with their last reference, and a Broker may be kept."""
        self._logs.clear()
        self.unflushed.clear()
        if self.is_in_memory:
            for name in self.folder.directory.folders():
                self.folder.directory.remove_folder(name)

    async def next_producer_id(self) -> int:
        """A producer id that was never given before.

        Raises:
            ApiError: the database cannot be written.
        """
        with storage_errors():
            return await self.producer_ids.next_id()

    # Nodes.

    def live_nodes(self) -> list[BrokerState]:
        """The nodes that clients are told of."""
        return [
            state
            for id, state in self.nodes.items()
            if state.has_addresses and self.leadership.is_live(id)
        ]

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates a group, or NO_LEADER."""
        return self.coordinators[partition_of(group_id)].leader

    def groups_of(self, group_id: str) -> GroupCoordinator | None:
        """The groups of the node that coordinates this one; None while no node does."""
        state = self.nodes.get(self.coordinator_of(group_id))
        return None if state is None else state.groups

    # Topics.

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return LogConfig.from_topic(
            topic_config(self.config, overrides),
            producer_id_expiration_ms=self.config.integer("producer.id.expiration.ms"),
        )

    async def create_topic(self, name: str, **settings: Any) -> Topic:
        """Create a topic and its logs; see :meth:`TopicRegistry.create` for the arguments.

        Raises:
            ApiError: it exists, or what was asked for is not allowed.
        """
        async with self._changing_topics:
            with storage_errors():
                topic = await self.topics.create(name, **settings)
                failure: OSError | None = None
                try:
                    await self._take_office(await self._create_logs(topic))
                except OSError as error:
                    failure = error
                if failure is not None:
                    await self._remove(topic)  # what was refused must not be there
                    raise failure
                await self._settle([topic.id])
        _report_topic(topic, {})
        return topic

    async def alter_topic(self, name: str, change: Change, *, validate_only: bool = False) -> None:
        """Change the settings of a topic; its logs obey them from the next append on.

        Args:
            name: of the topic.
            change: makes its new settings of the old ones.
            validate_only: check, and change nothing.

        Raises:
            ApiError: there is no such topic, a setting is not allowed, or ``change`` raises it;
                nothing was changed.
        """
        async with self._changing_topics:
            topic = self.topics.get(name)
            changed = change(topic.configs if topic is not None else {})
            overrides = check_topic_overrides(self.config, changed.items())
            if topic is None:
                raise ApiError(
                    error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
                )
            if validate_only or overrides == topic.configs:
                return
            with storage_errors():
                altered = await self.topics.alter(topic, overrides)
            self.configure_logs(altered, self.log_config(overrides))
        _report_topic(altered, topic.configs)

    def configure_logs(self, topic: Topic, config: LogConfig) -> None:
        """Have the logs of a topic obey other settings."""
        for partition in range(topic.partitions):
            log = self._logs.get((topic.name, partition))
            if log is not None:
                log.config = config

    def use(self, config: BrokerConfig) -> None:
        """Have other settings from now on; logs are told by :meth:`configure_logs`."""
        self.config = config
        self.topics.use(config)

    async def create_partitions(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Give a topic more partitions; see :meth:`TopicRegistry.check_growth`.

        Raises:
            ApiError: what was asked for is not allowed, or their logs could not be made; the
                topic is then as before.
        """
        async with self._changing_topics:
            with storage_errors():
                before = self.topics.get(name)
                topic = await self.topics.grow(name, partitions, assignments)
                assert before is not None, "a topic that is not there cannot grow"
                failure: OSError | None = None
                try:
                    await self._take_office(await self._create_logs(topic))
                except OSError as error:
                    failure = error
                if failure is not None:
                    await self.topics.shrink(name, before.partitions)
                    await self._remove_logs(name, range(before.partitions, partitions))
                await self._settle([topic.id])
                if failure is not None:
                    raise failure

    async def delete_records(self, log: Log, offset: int) -> None:
        """Remove the records below ``offset``; fetches that wait for the partition learn of it.

        Raises:
            ApiError, OSError: as :meth:`._log.Log.delete_before`.
        """
        before = log.start_offset
        await log.delete_before(offset)
        if log.start_offset > before:
            self.purgatory.complete_all(log)

    async def get_or_create_topic(self, name: str) -> Topic:
        """The topic, created with the broker's defaults if there is none.

        Raises:
            ApiError: the name is not allowed.
        """
        try:
            return await self.create_topic(name)
        except ApiError as error:
            topic = self.topics.get(name)
            if error.error_code == error_codes.TOPIC_ALREADY_EXISTS and topic is not None:
                return topic
            raise

    async def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; waiting fetches of it are answered.

        Raises:
            ApiError: it is gone already.
        """
        async with self._changing_topics:
            with storage_errors():
                await self._remove(topic)

    async def _remove(self, topic: Topic) -> None:
        await self.topics.delete(topic)
        # At once: the topic is gone, even if its folders cannot be removed.
        self.group_store.forget_topic(topic.name)
        await self._remove_logs(topic.name, range(topic.partitions))
        await self._settle([topic.id])

    async def _remove_logs(self, name: str, partitions: range) -> None:
        failure: OSError | None = None
        for partition in partitions:
            self.leadership.remove((name, partition))
            log = self._logs.get((name, partition))
            if log is None:
                continue  # it could not be made
            try:
                await self.folder.delete(name, partition, self.nursery)
            except OSError as error:
                failure = error  # the others have to go all the same
            self.unflushed.pop(log, None)
            self.purgatory.complete_all(log)
        if failure is not None:
            raise failure

    async def _settle(self, topic_ids: Collection[bytes]) -> None:
        """Note that the folders of topics are as the registry tells."""
        try:
            # First, or a power cut could take the names of new folders, or give back old ones.
            await self.folder.sync_names()
            await self.topics.settle(topic_ids)
        except (OSError, DatabaseError) as error:
            # What was asked for is done; the next start will find nothing to do.
            logger.warning("it cannot be noted that a change of topics is complete: %s", error)

    async def open_logs(self) -> None:
        """Open what is in the folder, finish creations that were cut short, set aside the rest."""
        topics = {topic.name: topic for topic in self.topics}
        unsettled = [(each, self.topics.by_id(each.id)) for each in self.topics.unsettled]

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
            begun={(each.name, number) for each, topic in unsettled for number in each.made(topic)},
            removed=[
                ((each.name, number), each.id)
                for each, topic in unsettled
                for number in each.removed(topic)
            ],
            loss_allowed=self.config.flag("log.missing.records.allowed"),
        )
        for name, partition in self._without_topic(topics):
            folder = await self.folder.set_aside(name, partition)
            logger.warning(
                "%s-%d: no topic owns it; it is kept as %s and not served. Remove that folder if"
                " nobody needs it",
                name,
                partition,
                folder,
            )
        begun = [key for topic in topics.values() for key in await self._create_logs(topic)]
        await self._take_office(begun)
        if unsettled:
            await self._settle([each.id for each, _ in unsettled])

    def _without_topic(self, topics: Mapping[str, Topic]) -> list[tuple[str, int]]:
        """The partitions that no topic owns.

        Raises:
            MissingRecordsError: their records would not be served, which is not allowed.
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
                f"no topic owns {len(with_records)} partitions with records, as {name}-{number}"
                f", and log.missing.records.allowed is false; put {DATABASE_NAME} back from a"
                " backup, or start with log.missing.records.allowed=true to set them aside"
            )
        return found

    async def _create_logs(self, topic: Topic) -> list[tuple[str, int]]:
        """Open what there is not yet; tells which partitions begin with another leader epoch.

        Nobody has written down who led. It was the first replica as long as the epoch is 0, since
        whoever else begins, here or in an election, has an epoch of its own.
        """
        begun: list[tuple[str, int]] = []
        config: LogConfig | None = None
        for number in range(topic.partitions):
            key = topic.name, number
            if self.leadership.get(key).replicas:
                continue
            log = self._logs.get(key)
            if log is None:
                config = config or self.log_config(topic.configs)
                log = await self.folder.create(topic.name, number, topic.id, config, self.now_ms())
            replicas = topic.replicas[number] if number < len(topic.replicas) else ()
            self.leadership.add(key, replicas, log.leader_epoch)
            log.leader_id = leader = self.leadership[key].leader
            if replicas and (log.leader_epoch or leader != replicas[0]):
                self.leadership.begin_epoch(key)
                begun.append(key)
        return begun

    # Elections. Each is complete, or was not begun: a cancelled one still ends, which takes a few
    # syncs of files at most.

    async def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition.

        Raises:
            ValueError: there is no such partition, or the node cannot lead it.
        """
        async with self._changing_topics:
            if self.leadership.move((topic, partition), node):
                await self._take_office([(topic, partition)])

    async def move_coordinator(self, group_id: str, node: int) -> None:
        """Make a node the coordinator of a group, and of all in the same partition.

        Raises:
            ValueError: the node cannot be.
        """
        async with self._changing_topics:
            self.coordinators.move(partition_of(group_id), node)
            self._hand_over_groups()

    async def node_started(self, node: int) -> None:
        """A node listens: it leads what had no leader."""
        async with self._changing_topics:
            self.coordinators.start(node)
            self._hand_over_groups()
            await self._take_office(self.leadership.start(node))

    async def node_stops(self, node: int) -> None:
        """A node will not listen any more: others lead what it led, if there are any."""
        async with self._changing_topics:
            self.coordinators.stop(node)
            self._hand_over_groups()
            await self._take_office(self.leadership.stop(node))

    async def elect_preferred_leaders(self) -> None:
        """Make the first replica of every partition its leader, where that lives."""
        async with self._changing_topics:
            self.coordinators.prefer()
            self._hand_over_groups()
            await self._take_office(self.leadership.prefer())

    def _hand_over_groups(self) -> None:
        for state in self.nodes.values():
            state.groups.hand_over(self.groups_of)

    async def _take_office(self, keys: Iterable[tuple[str, int]]) -> None:
        """Have partitions led by those who were elected, and tell who waits for the others.

        Nobody leads them until their new epochs are written down, so that no record is ever of an
        epoch that a power cut could give to another leader.
        """
        logs = {key: log for key in keys if (log := self._logs.get(key)) is not None}
        for log in logs.values():
            log.leader_id = NO_LEADER
        elected = list(logs)
        for first in range(0, len(elected), ELECTIONS_AT_ONCE):
            some = elected[first : first + ELECTIONS_AT_ONCE]
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    for key in some:
                        nursery.start_soon(_begin_epoch, logs[key], self.leadership[key].epoch)
            for key in some:
                logs[key].leader_id = self.leadership[key].leader
                self.purgatory.complete_all(logs[key])


def _report_topic(topic: Topic, before: Mapping[str, str]) -> None:
    """Say which settings of a topic have no effect: accepted is not the same as applied."""
    told = topic_keys_not_applied(before)
    ignored = [each for each in topic_keys_not_applied(topic.configs) if each not in told]
    if ignored:
        logger.warning("topic %s: not applied by this version: %s", topic.name, ", ".join(ignored))


async def _begin_epoch(log: Log, epoch: int) -> None:
    try:
        await log.begin_epoch(epoch)
    except ApiError as error:
        logger.warning("%s-%d: leader epoch %d: %s", log.topic, log.partition, epoch, error)
