"""What the nodes of a cluster have in common: topics and their logs, groups, the database.

A node has a :class:`~.state.BrokerState` of its own, which its handlers work on, and a network. All
that is stored is here, once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import trio

from ..errors import ApiError
from ..protocol import error_codes
from .config import BrokerConfig
from .config_topic_keys import topic_config, topic_keys_not_applied
from .database import Database
from .delayed import Purgatory
from .groups.coordinator import GroupCoordinator
from .log import Log, LogConfig, LogFolder
from .producer_ids import ProducerIds
from .storage_errors import storage_errors
from .topics import Topic, TopicRegistry

if TYPE_CHECKING:
    from .credentials import ScramCredentials

logger = logging.getLogger("trionet.broker")


class Cluster:
    """The nodes' common data.

    Attributes:
        config: the settings; each node has its own copy, with its own addresses.
        topics: which topics there are.
        folder: the logs of their partitions.
        database: everything that is not a log.
        nursery: where work goes that outlives the call that began it, until the broker stops.
        producer_ids: ids for idempotent producers.
        scram_credentials: the users of SCRAM; only there with a listener that uses SASL or TLS.
        purgatory: calls that wait for data.
        groups: consumer groups and what they have committed.
        unflushed: logs that were written since the background flush last looked.
    """

    scram_credentials: ScramCredentials | None

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicRegistry,
        folder: LogFolder,
        database: Database,
        nursery: trio.Nursery,
    ) -> None:
        self.config = config
        self.topics = topics
        self.folder = folder
        self.database = database
        self.nursery = nursery
        self.producer_ids = ProducerIds(database)
        self.scram_credentials = None
        self.purgatory = Purgatory()
        self.groups = GroupCoordinator(config, database, self.now_ms)
        self.id = folder.cluster_id
        self.is_in_memory = not folder.directory.is_durable
        self.unflushed: dict[Log, None] = {}
        self._changing_topics = trio.Lock()
        self._logs = folder.logs

    def now_ms(self) -> int:
        """The time that records are stamped with and clients are told, in ms since the epoch."""
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
                    await self._create_logs(topic)
                except OSError as error:
                    failure = error
                if failure is not None:
                    await self._remove(topic)  # what was refused must not be there
                    raise failure
        if ignored := topic_keys_not_applied(topic.configs):
            logger.warning("topic %s: not applied by this version: %s", name, ", ".join(ignored))
        return topic

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
                    await self._create_logs(topic)
                except OSError as error:
                    failure = error
                if failure is not None:
                    await self.topics.shrink(name, before.partitions)
                    await self._remove_logs(name, range(before.partitions, partitions))
                    raise failure

    async def delete_records(self, log: Log, offset: int) -> None:
        """Remove the records below ``offset``; fetches that wait for the partition learn of it.

        Raises:
            ApiError, OSError: as :meth:`.log.Log.delete_before`.
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
            self.groups.forget_topic(topic.name)

    async def _remove(self, topic: Topic) -> None:
        await self.topics.delete(topic)
        await self._remove_logs(topic.name, range(topic.partitions))

    async def _remove_logs(self, name: str, partitions: range) -> None:
        failure: OSError | None = None
        for partition in partitions:
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

    async def open_logs(self) -> None:
        """Open what is in the folder, finish creations that were cut short, set aside the rest."""
        topics = {topic.name: topic for topic in self.topics}

        def config_for(name: str) -> LogConfig:
            topic = topics.get(name)
            return self.log_config(topic.configs if topic else {})

        await self.folder.open_all(
            config_for,
            self.now_ms(),
            threads=self.config.integer("num.recovery.threads.per.data.dir"),
            topic_id_for=lambda name: topics[name].id if name in topics else None,
        )
        for name, partition in list(self._logs):
            topic = topics.get(name)
            if topic is None or partition >= topic.partitions:
                folder = await self.folder.set_aside(name, partition)
                logger.warning(
                    "%s-%d: no topic owns it; it is kept as %s and not served. Remove that folder "
                    "if nobody needs it",
                    name,
                    partition,
                    folder,
                )
        for topic in topics.values():
            await self._create_logs(topic)

    async def _create_logs(self, topic: Topic) -> None:
        config = self.log_config(topic.configs)
        for partition in range(topic.partitions):
            if (topic.name, partition) not in self._logs:
                await self.folder.create(topic.name, partition, topic.id, config, self.now_ms())
