"""Which topics there are: checked by Kafka's rules, kept in the database, looked up in memory.

The rules and their error codes are those of Kafka's ReplicationControlManager. The logs of the
partitions are somebody else's: a topic is committed before its folders are made, and forgotten
before they are removed. Either comes with a note, which goes when they are, so that a start can
always finish what was begun, and tell it from folders that were lost.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import attrs
import trio

from ...errors import ApiError, ConfigError
from ...net._network import SYSTEM
from ...protocol.error_codes import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from ..config._broker_config import BrokerConfig
from ..config._topic_keys import check_topic_overrides, topic_config
from ..storage._database import Database, damaged
from . import _topic_store as topic_store
from ._leadership import Leadership, Replicas
from ._topic_store import Topic, Unsettled
from ._uuids import new_uuid

NAME_LENGTH_MAX = 249

# What Kafka's controller makes in one go; the folders of more would hold the loop for too long.
PARTITIONS_MAX = 10_000

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_CLUSTER_METADATA = "__cluster_metadata"

Assignments = Sequence[tuple[int, Sequence[int]]]
"""The brokers of each partition, as CreateTopics may name them."""

Settings = Sequence[tuple[str, str | None]]
"""A topic's own settings, as CreateTopics brings them."""


class TopicRegistry:
    """All topics of a broker; made by :meth:`load`.

    ``len`` counts topics, and iterating gives them in the order in which they were made.

    Attributes:
        unsettled: whose folders the last broker was making or removing when it ended.
    """

    def __init__(
        self,
        database: Database,
        config: BrokerConfig,
        leadership: Leadership[tuple[str, int]],
        cluster_id: str,
        topics: Sequence[Topic],
        chance: random.Random,
        unsettled: Sequence[Unsettled] = (),
    ) -> None:
        self.unsettled = unsettled
        self._chance = chance
        self.cluster_id = cluster_id
        self._database = database
        self._config = config
        self._leadership = leadership
        self._writing = trio.Lock()
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.id: topic for topic in topics}
        self._by_collision = {_collision_name(topic.name): topic for topic in topics}

    @classmethod
    async def load(
        cls,
        database: Database,
        config: BrokerConfig,
        leadership: Leadership[tuple[str, int]] | None = None,
        chance: random.Random = SYSTEM.chance,
    ) -> TopicRegistry:
        """Read all topics; a new database gets its cluster id, 22 characters, which it keeps.

        Args:
            database: where they are.
            config: the settings.
            leadership: knows the nodes, and places partitions on them; one node by default.
            chance: what ids are drawn from.

        Raises:
            DatabaseError: the database cannot be read.
        """
        cluster_id, topics = await database.read(partial(topic_store.load, chance=chance))
        for topic in topics:
            _check_stored(database, config, topic)
        unsettled = await database.read(topic_store.load_unsettled)
        for each in unsettled:
            _check_unsettled(database, each)
        leadership = leadership or Leadership([config.node_id])
        return cls(database, config, leadership, cluster_id, topics, chance, unsettled)

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        """The topic of this name, if there is one."""
        return self._by_name.get(name)

    def by_id(self, id: bytes) -> Topic | None:
        """The topic of this id, if there is one."""
        return self._by_id.get(id)

    def check(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments = (),
        configs: Settings = (),
    ) -> Topic:
        """The topic that :meth:`create` would make now; what ``validate_only`` asks for.

        Args:
            name: of the new topic.
            partitions: how many, or -1 for ``num.partitions``.
            replication_factor: how many copies, or -1 for ``default.replication.factor``.
            assignments: the brokers of each partition instead of the two numbers, which are -1
                then.
            configs: its own settings.

        Raises:
            ApiError: with the error code that Kafka gives; says what is allowed.
        """
        check_topic_name(name)
        if name in self._by_name:
            raise ApiError(TOPIC_ALREADY_EXISTS, f"topic {name} already exists")
        other = self._by_collision.get(_collision_name(name))
        if other is not None:
            raise ApiError(
                INVALID_TOPIC_EXCEPTION,
                f"topic {name} collides with topic {other.name}: '.' and '_' count as the same,"
                " because metrics are named after topics",
            )
        overrides = check_topic_overrides(self._config, configs)
        replicas: Replicas = ()
        if assignments:
            count, factor = self._check_assignments(partitions, replication_factor, assignments)
            replicas = tuple(tuple(nodes) for _, nodes in sorted(assignments))
        else:
            count, factor = self._check_numbers(partitions, replication_factor)
        check_partition_count(count)
        if len(self._leadership.nodes) == 1:
            replicas = ()
        elif not replicas:
            replicas = self._leadership.place(count, factor)
        return Topic(name, new_uuid(self._chance), count, overrides, replicas)

    async def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments = (),
        configs: Settings = (),
    ) -> Topic:
        """Make a topic; it is in the database before anyone can see it.

        Args:
            name: of the new topic; the other arguments are those of :meth:`check`.
            partitions: how many, or -1.
            replication_factor: how many copies, or -1.
            assignments: the brokers of each partition.
            configs: its own settings.

        Raises:
            ApiError: as :meth:`check`.
            DatabaseError: it could not be written, and there is no such topic.

        Cancellation: raises ``Cancelled`` only if there is no such topic.
        """
        async with self._writing:
            topic = self.check(name, partitions, replication_factor, assignments, configs)
            await self._database.transaction(partial(topic_store.insert, topic=topic))
            self._put(topic)
            return topic

    def check_growth(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> Topic:
        """The topic as :meth:`grow` would make it (Kafka: ReplicationControlManager).

        Args:
            name: of the topic.
            partitions: how many it is to have, more than now.
            assignments: the brokers of each new partition; None leaves them to the broker.

        Raises:
            ApiError: with the error code that Kafka gives; says what is allowed.
        """
        topic = self._by_name.get(name)
        if topic is None:
            raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        if partitions <= topic.partitions:
            raise ApiError(
                INVALID_PARTITIONS,
                f"topic {name} has {topic.partitions} partitions; {partitions} would not be more,"
                " and partitions cannot be taken away",
            )
        more = partitions - topic.partitions
        if assignments is not None and len(assignments) != more:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"{more} partitions are to be added, but {len(assignments)} are assigned to"
                " brokers",
            )
        for partition, brokers in enumerate(assignments or (), topic.partitions):
            self._check_brokers(partition, brokers)
        check_partition_count(partitions)
        return attrs.evolve(
            topic, partitions=partitions, replicas=self._grown(topic, more, assignments)
        )

    def _grown(
        self, topic: Topic, more: int, assignments: Sequence[Sequence[int]] | None
    ) -> Replicas:
        """The replicas of a topic that gets more partitions."""
        nodes, factor = self._leadership.nodes, topic.replication_factor
        if len(nodes) == 1:
            # Those of a topic that was made on several nodes are kept, one entry a partition.
            return topic.replicas and topic.replicas + (nodes,) * more
        if assignments is None:
            added = self._leadership.place(more, factor)
        else:
            added = tuple(map(tuple, assignments))
        if any(len(each) != factor for each in added):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"the partitions of topic {topic.name} have {factor} replicas; allowed: as many for"
                " each new one",
            )
        return (topic.replicas or (nodes[:1],) * topic.partitions) + added

    async def grow(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> Topic:
        """Give a topic more partitions; see :meth:`check_growth` for the arguments.

        Raises:
            ApiError: as :meth:`check_growth`.
            DatabaseError: it could not be written, and the topic is as before.

        Cancellation: raises ``Cancelled`` only if the topic is as before.
        """
        async with self._writing:
            topic = self.check_growth(name, partitions, assignments)
            await self._set_partitions(topic)
            return topic

    async def shrink(self, name: str, partitions: int) -> None:
        """Take back a growth whose partitions could not be made.

        Raises:
            DatabaseError: it could not be written, and the topic is as it was.
        """
        async with self._writing:
            topic = self._by_name[name]
            await self._set_partitions(
                attrs.evolve(topic, partitions=partitions, replicas=topic.replicas[:partitions])
            )

    async def _set_partitions(self, topic: Topic) -> None:
        await self._database.transaction(partial(topic_store.update_partitions, topic=topic))
        self._put(topic)

    def _put(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic
        self._by_collision[_collision_name(topic.name)] = topic

    async def alter(self, topic: Topic, configs: Mapping[str, str]) -> Topic:
        """Give a topic other settings of its own; they are in the database before they count.

        Args:
            topic: the topic as it is.
            configs: all of its settings from now on, checked.

        Returns:
            The topic as it is now.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION: it has been deleted meanwhile.
            DatabaseError: it could not be written, and nothing has changed.

        Cancellation: raises ``Cancelled`` only if nothing has changed.
        """
        async with self._writing:
            if topic.id not in self._by_id:
                raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}")
            altered = attrs.evolve(self._by_id[topic.id], configs=configs)
            await self._database.transaction(partial(topic_store.update_configs, topic=altered))
            self._put(altered)
            return altered

    def use(self, config: BrokerConfig) -> None:
        """Check new topics by other settings of the broker from now on."""
        self._config = config

    async def delete(self, topic: Topic) -> None:
        """Forget a topic, after it has left the database.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION: it has been deleted meanwhile.
            DatabaseError: it could not be deleted, and is still there.

        Cancellation: raises ``Cancelled`` only if the topic is still there.
        """
        async with self._writing:
            if topic.id not in self._by_id:
                raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}")
            await self._database.transaction(partial(topic_store.delete, topic=topic))
            del self._by_name[topic.name]
            del self._by_id[topic.id]
            del self._by_collision[_collision_name(topic.name)]

    async def settle(self, ids: Collection[bytes]) -> None:
        """Note that the folders of topics, which may be gone, are as this registry tells.

        Raises:
            DatabaseError: it could not be written; the next start looks at the folders.

        Cancellation: raises ``Cancelled`` only if nothing was noted.
        """
        await self._database.transaction(partial(topic_store.settle, ids=ids))

    def _check_numbers(self, partitions: int, replication_factor: int) -> tuple[int, int]:
        """The numbers of partitions and of replicas."""
        nodes = len(self._leadership.nodes)
        if replication_factor == -1:
            replication_factor = self._config.integer("default.replication.factor")
        if not 1 <= replication_factor <= nodes:
            there = "is one broker" if nodes == 1 else f"are {nodes} brokers"
            raise ApiError(
                INVALID_REPLICATION_FACTOR,
                f"replication factor {replication_factor} is not allowed; allowed:"
                f" {'1' if nodes == 1 else f'1 to {nodes}'}, since there {there}, or -1 for"
                " default.replication.factor",
            )
        if partitions == -1:
            partitions = self._config.integer("num.partitions")
        elif partitions < 1:
            raise ApiError(
                INVALID_PARTITIONS,
                f"{partitions} partitions are not allowed; allowed: 1 or more, or -1 for"
                " num.partitions",
            )
        return partitions, replication_factor

    def _check_assignments(
        self, partitions: int, replication_factor: int, assignments: Assignments
    ) -> tuple[int, int]:
        """The numbers of partitions and of replicas."""
        if partitions != -1 or replication_factor != -1:
            raise ApiError(
                INVALID_REQUEST,
                "with a replica assignment the number of partitions and the replication factor"
                " are both -1",
            )
        for partition, brokers in assignments:
            self._check_brokers(partition, brokers)
        factors = {len(brokers) for _, brokers in assignments}
        if len(factors) > 1:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                "the partitions are assigned to different numbers of brokers; allowed: as many for"
                " each",
            )
        numbers = sorted(partition for partition, _ in assignments)
        if numbers != list(range(len(numbers))):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                "the assigned partitions are not the numbers from 0 on, each once",
            )
        return len(numbers), factors.pop()

    def _check_brokers(self, partition: int, brokers: Sequence[int]) -> None:
        nodes = self._leadership.nodes
        if not brokers or len(set(brokers)) < len(brokers) or not set(brokers) <= set(nodes):
            allowed = f"[{nodes[0]}], since there is one broker"
            if len(nodes) > 1:
                allowed = f"some of {list(nodes)}, each once"
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} is assigned to the brokers {list(brokers)}; allowed:"
                f" {allowed}",
            )
        if not any(map(self._leadership.is_live, brokers)):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} is assigned to the brokers {list(brokers)}, which are all"
                " stopped; allowed: at least one that runs",
            )


def check_partition_count(partitions: int) -> None:
    """Whether a topic may have so many partitions.

    Raises:
        ApiError: POLICY_VIOLATION.
    """
    if partitions > PARTITIONS_MAX:
        raise ApiError(
            POLICY_VIOLATION,
            f"{partitions} partitions are too many; allowed: 1 to {PARTITIONS_MAX}",
        )


def check_topic_name(name: str) -> None:
    """Whether a topic may have this name (Kafka: Topic.validate).

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, or INVALID_REQUEST for the name of KRaft's own log.
    """
    if name == _CLUSTER_METADATA:
        raise ApiError(INVALID_REQUEST, f"{name} is the name of Kafka's metadata log")
    if (
        0 < len(name) <= NAME_LENGTH_MAX
        and name not in (".", "..")
        and _NAME_CHARACTERS.issuperset(name)
    ):
        return
    shown = name if len(name) <= NAME_LENGTH_MAX else f"{name[:20]}... ({len(name)} characters)"
    raise ApiError(
        INVALID_TOPIC_EXCEPTION,
        f"{shown!r} is no topic name; allowed: 1 to {NAME_LENGTH_MAX} of the letters a-z and A-Z,"
        " the digits, '.', '_' and '-', but neither '.' nor '..'",
    )


def _check_stored(database: Database, config: BrokerConfig, topic: Topic) -> None:
    """Refuse a topic that cannot have been put into the database."""
    try:
        check_topic_name(topic.name)
        if len(topic.id) != 16 or not 1 <= topic.partitions <= PARTITIONS_MAX:
            raise ValueError(f"an id of {len(topic.id)} bytes, {topic.partitions} partitions")
        topic_config(config, topic.configs)
    except (ApiError, ConfigError, LookupError, ValueError) as error:
        raise damaged(database.path, f"topic {topic.name!r}: {error}") from error


def _check_unsettled(database: Database, unsettled: Unsettled) -> None:
    """Refuse what would have a start look at other folders than those of partitions."""
    first, end = unsettled.first, unsettled.end
    try:
        check_topic_name(unsettled.name)
        if not 0 <= first <= end <= PARTITIONS_MAX:
            raise ValueError(f"partitions {first} to {end}")
    except (ApiError, ValueError) as error:
        raise damaged(database.path, f"unsettled topic {unsettled.name!r}: {error}") from error


def is_internal(name: str) -> bool:
    """Whether Kafka keeps state of its own in a topic of this name (Kafka: Topic.isInternal)."""
    return name in _INTERNAL


def _collision_name(name: str) -> str:
    return name.replace(".", "_")
