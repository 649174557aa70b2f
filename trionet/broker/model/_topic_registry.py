"""The registry of topics, stored in the database and cached in memory.

The rules and error codes match Kafka's ReplicationControlManager. The registry does not access the
logs of partitions: a topic is committed before its directories are created, and deleted before its
directories are removed. In both cases, the transaction also records the pending directory changes,
and the record is removed when the changes are complete. Startup can therefore complete interrupted
changes, and distinguish them from lost directories.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import attrs
import trio

from ..._util._logging import get_logger
from ...errors import ApiError
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
from ..config._topic_keys import check_topic_overrides, readable_overrides
from ..storage._database import Database
from . import _topic_store as topic_store
from ._leadership import Leadership, Replicas
from ._topic_store import PARTITIONS_MAX, PendingFolders, Topic, new_uuid

logger = get_logger("trionet.broker")

NAME_LENGTH_MAX = 249

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_CLUSTER_METADATA = "__cluster_metadata"

Assignments = Sequence[tuple[int, Sequence[int]]]
"""Partitions with their replicas, in the form of CreateTopics."""

Settings = Sequence[tuple[str, str | None]]
"""The settings of a topic itself, in the form of CreateTopics."""


class TopicRegistry:
    """All topics of a broker, loaded by :meth:`load`.

    ``len()`` is the number of topics; iteration is in order of creation.

    Attributes:
        pending_folders: the directory changes that were pending when the broker last stopped.
        unreadable: the names and ids of unreadable topics. Their data is kept for their repair,
            until a new topic takes their name.
    """

    def __init__(
        self,
        database: Database,
        config: BrokerConfig,
        leadership: Leadership[tuple[str, int]],
        cluster_id: str,
        topics: Sequence[Topic],
        rng: random.Random,
        pending_folders: Sequence[PendingFolders] = (),
        unreadable: frozenset[object] = frozenset(),
    ) -> None:
        self.pending_folders = pending_folders
        self.unreadable = unreadable
        self._rng = rng
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
        rng: random.Random = SYSTEM.rng,
    ) -> TopicRegistry:
        """Load all topics and the cluster id (22 characters), generating the id for a new database.

        Args:
            database: the database.
            config: the broker's settings.
            leadership: assigns partitions to nodes; by default, to a single node.
            rng: the random generator for ids.

        Raises:
            DatabaseError: the database cannot be read.
        """
        cluster_id, stored = await database.read(partial(topic_store.load, rng=rng))
        topics = [_readable(topic) for topic in stored if _has_valid_name(topic)]
        readable = {topic.id for topic in topics}
        unreadable = await database.read(partial(topic_store.load_unreadable, readable=readable))
        if not unreadable:  # otherwise, it is not known which topics exist
            await database.transaction(topic_store.delete_orphaned_offsets)
        pending_folders = [
            each
            for each in await database.read(topic_store.load_pending_folders)
            # Otherwise, the directories of an unreadable topic would be removed.
            if _has_valid_name(each) and unreadable.isdisjoint((each.id, each.name))
        ]
        leadership = leadership or Leadership([config.node_id])
        return cls(
            database, config, leadership, cluster_id, topics, rng, pending_folders, unreadable
        )

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        """Return the topic with this name, or None."""
        return self._by_name.get(name)

    def by_id(self, id: bytes) -> Topic | None:
        """Return the topic with this id, or None."""
        return self._by_id.get(id)

    def check(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments = (),
        configs: Settings = (),
    ) -> Topic:
        """Return the topic that :meth:`create` would create, for ``validate_only``.

        Args:
            name: the name of the new topic.
            partitions: the number of partitions, or -1 for ``num.partitions``.
            replication_factor: the number of replicas, or -1 for ``default.replication.factor``.
            assignments: the replicas of each partition; if given, both numbers must be -1.
            configs: the settings that the topic overrides.

        Raises:
            ApiError: the topic cannot be created. The error code is Kafka's.
        """
        check_topic_name(name)
        if name in self._by_name:
            raise ApiError(TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        check_not_internal(name)
        other = self._by_collision.get(_collision_name(name))
        if other is not None:
            raise ApiError(
                INVALID_TOPIC_EXCEPTION,
                f"topic {name} collides with topic {other.name}: the names differ only in '.' and"
                " '_', which are indistinguishable in metric names",
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
        return Topic(name, new_uuid(self._rng), count, overrides, replicas)

    async def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments = (),
        configs: Settings = (),
    ) -> Topic:
        """Create a topic, which is stored before it becomes visible.

        Args:
            name: the name of the new topic.
            partitions: the number of partitions, or -1; see :meth:`check`.
            replication_factor: the number of replicas, or -1; see :meth:`check`.
            assignments: the replicas of each partition.
            configs: the settings that the topic overrides.

        Raises:
            ApiError: see :meth:`check`.
            DatabaseError: the topic could not be stored, and was not created.

        Cancellation: raises ``Cancelled`` only if the topic was not created.
        """
        async with self._writing:
            topic = self.check(name, partitions, replication_factor, assignments, configs)
            await self._database.transaction(partial(topic_store.insert, topic=topic))
            self._put(topic)
            return topic

    def check_growth(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> Topic:
        """Return the topic that :meth:`grow` would create (Kafka: ReplicationControlManager).

        Errors have the wording of Kafka, with which programs compare them.

        Args:
            name: the name of the topic.
            partitions: the new number of partitions, which must exceed the current number.
            assignments: the replicas of each new partition; None to assign them automatically.

        Raises:
            ApiError: the change is not allowed. The error code is Kafka's.
        """
        topic = self._by_name.get(name)
        # Kafka's words, which programs compare.
        if topic is None:
            raise ApiError(
                UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
        if partitions == topic.partitions:
            raise ApiError(INVALID_PARTITIONS, f"Topic already has {partitions} partition(s).")
        if partitions < topic.partitions:
            raise ApiError(
                INVALID_PARTITIONS,
                f"The topic {name} currently has {topic.partitions} partition(s); {partitions}"
                " would not be an increase.",
            )
        more = partitions - topic.partitions
        if assignments is not None and len(assignments) != more:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {more} additional partition(s), but only {len(assignments)}"
                " assignment(s) were specified.",
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
        """Return the replicas of a topic after adding ``more`` partitions."""
        nodes, factor = self._leadership.nodes, topic.replication_factor
        if len(nodes) == 1:
            # A topic created on several nodes keeps its replicas, with an entry per partition.
            return topic.replicas and topic.replicas + (nodes,) * more
        if assignments is None:
            added = self._leadership.place(more, factor)
        else:
            added = tuple(map(tuple, assignments))
        for each in added:
            _check_factor(each, factor)
        return (topic.replicas or (nodes[:1],) * topic.partitions) + added

    async def grow(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> Topic:
        """Add partitions to a topic; see :meth:`check_growth` for the arguments.

        Raises:
            ApiError: see :meth:`check_growth`.
            DatabaseError: the change could not be stored; the topic is unchanged.

        Cancellation: raises ``Cancelled`` only if the topic is unchanged.
        """
        async with self._writing:
            topic = self.check_growth(name, partitions, assignments)
            await self._set_partitions(topic)
            return topic

    async def shrink(self, name: str, partitions: int) -> None:
        """Undo :meth:`grow` if the logs of the new partitions could not be created.

        Raises:
            DatabaseError: the change could not be stored; the topic is unchanged.
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
        """Replace the settings of a topic. They are stored before they take effect.

        Args:
            topic: the topic.
            configs: the complete new settings of the topic, validated.

        Returns:
            The changed topic.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic was deleted.
            DatabaseError: the change could not be stored; the topic is unchanged.

        Cancellation: raises ``Cancelled`` only if the topic is unchanged.
        """
        async with self._writing:
            if topic.id not in self._by_id:
                raise unknown_topic(topic.name)
            altered = attrs.evolve(self._by_id[topic.id], configs=configs)
            await self._database.transaction(partial(topic_store.update_configs, topic=altered))
            self._put(altered)
            return altered

    def reconfigure(self, config: BrokerConfig) -> None:
        """Switch to new broker settings."""
        self._config = config

    async def delete(self, topic: Topic) -> Topic:
        """Delete a topic from the database, then from memory.

        Returns:
            The deleted topic, which may have grown since the caller has looked it up.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION if the topic was already deleted.
            DatabaseError: the topic could not be deleted and still exists.

        Cancellation: raises ``Cancelled`` only if the topic still exists.
        """
        async with self._writing:
            deleted = self._by_id.get(topic.id)
            if deleted is None:
                raise unknown_topic(topic.name)
            await self._database.transaction(partial(topic_store.delete, topic=deleted))
            del self._by_name[deleted.name]
            del self._by_id[deleted.id]
            del self._by_collision[_collision_name(deleted.name)]
            return deleted

    async def settle(self, ids: Collection[bytes]) -> None:
        """Record that the directories of some topics, which may be deleted, match the registry.

        Raises:
            DatabaseError: nothing was recorded; the next startup checks the directories.

        Cancellation: raises ``Cancelled`` only if nothing was recorded.
        """
        await self._database.transaction(partial(topic_store.settle, ids=ids))

    def _check_numbers(self, partitions: int, replication_factor: int) -> tuple[int, int]:
        """Validate the numbers of partitions and replicas, and apply the defaults."""
        nodes = len(self._leadership.nodes)
        if replication_factor == -1:
            replication_factor = self._config.integer("default.replication.factor")
        if not 1 <= replication_factor <= nodes:
            there = "is one broker" if nodes == 1 else f"are {nodes} brokers"
            raise ApiError(
                INVALID_REPLICATION_FACTOR,
                f"replication factor {replication_factor} is not allowed; it must be"
                f" {'1' if nodes == 1 else f'1 to {nodes}'}, since there {there}, or -1 for"
                " default.replication.factor",
            )
        if partitions == -1:
            partitions = self._config.integer("num.partitions")
        elif partitions < 1:
            raise ApiError(
                INVALID_PARTITIONS,
                f"partition count {partitions} is not allowed; it must be at least 1, or -1 for"
                " num.partitions",
            )
        return partitions, replication_factor

    def _check_assignments(
        self, partitions: int, replication_factor: int, assignments: Assignments
    ) -> tuple[int, int]:
        """Validate assignments, and return the numbers of partitions and replicas."""
        if partitions != -1 or replication_factor != -1:
            raise ApiError(
                INVALID_REQUEST,
                "with replica assignments, the partition count and the replication factor must both"
                " be -1",
            )
        for partition, brokers in assignments:
            self._check_brokers(partition, brokers)
        factor = len(assignments[0][1])
        for _, brokers in assignments:
            _check_factor(brokers, factor)
        numbers = sorted(partition for partition, _ in assignments)
        if numbers != list(range(len(numbers))):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence",
            )
        return len(numbers), factor

    def _check_brokers(self, partition: int, brokers: Sequence[int]) -> None:
        includes = "The manual partition assignment includes"
        if not brokers:
            raise ApiError(INVALID_REPLICA_ASSIGNMENT, f"{includes} an empty replica list.")
        seen: set[int] = set()
        for each in sorted(brokers):
            if each not in self._leadership.nodes:
                raise ApiError(
                    INVALID_REPLICA_ASSIGNMENT,
                    f"{includes} broker {each}, but no such broker is registered.",
                )
            if each in seen:
                raise ApiError(
                    INVALID_REPLICA_ASSIGNMENT, f"{includes} the broker {each} more than once."
                )
            seen.add(each)
        if not any(map(self._leadership.is_live, brokers)):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} cannot be assigned to brokers {list(brokers)}, since all of"
                " them are stopped; at least one must be running",
            )


def _check_factor(brokers: Sequence[int], factor: int) -> None:
    if len(brokers) != factor:
        raise ApiError(
            INVALID_REPLICA_ASSIGNMENT,
            f"The manual partition assignment includes a partition with {len(brokers)} replica(s),"
            f" but this is not consistent with previous partitions, which have {factor}"
            " replica(s).",
        )


def check_partition_count(partitions: int) -> None:
    """Reject a number of partitions above the maximum.

    Raises:
        ApiError: POLICY_VIOLATION.
    """
    if partitions > PARTITIONS_MAX:
        raise ApiError(
            POLICY_VIOLATION,
            f"too many partitions: {partitions}; a topic can have at most {PARTITIONS_MAX}",
        )


def check_topic_name(name: str) -> None:
    """Validate a topic name (Kafka: Topic.validate).

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, or INVALID_REQUEST for the name of KRaft's metadata log.
    """
    if name == _CLUSTER_METADATA:
        raise ApiError(INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if (
        0 < len(name) <= NAME_LENGTH_MAX
        and name not in (".", "..")
        and _NAME_CHARACTERS.issuperset(name)
    ):
        return
    shown = name if len(name) <= NAME_LENGTH_MAX else f"{name[:20]}... ({len(name)} characters)"
    raise ApiError(
        INVALID_TOPIC_EXCEPTION,
        f"invalid topic name {shown!r}; expected 1 to {NAME_LENGTH_MAX} of the letters a-z and A-Z,"
        " the digits, '.', '_' and '-', but neither '.' nor '..'",
    )


def _has_valid_name(stored: Topic | PendingFolders) -> bool:
    """Return whether this code can have written a row, which is otherwise ignored."""
    try:
        check_topic_name(stored.name)
    except ApiError as error:
        logger.warning("ignoring an unreadable row of the database: %s", error)
        return False
    return True


def _readable(topic: Topic) -> Topic:
    """Return a stored topic without the settings that are not allowed."""
    configs, problems = readable_overrides(topic.configs)
    for problem in problems:
        logger.warning("ignoring an unreadable setting of topic %s: %s", topic.name, problem)
    return attrs.evolve(topic, configs=configs)


def unknown_topic(name: str) -> ApiError:
    """Return the error for a topic that does not exist."""
    return ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist")


def is_internal(name: str) -> bool:
    """Return whether a topic is one of Kafka's internal topics (Kafka: Topic.isInternal)."""
    return name in _INTERNAL


def check_not_internal(name: str) -> None:
    """Reject the names of Kafka's internal topics for a new topic, and for records.

    Tools that read these topics, such as Burrow, would take an ordinary topic of that name for the
    real one, and report that there are no groups. An earlier version has created such topics; they
    remain readable.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION.
    """
    if name in _INTERNAL:
        raise ApiError(
            INVALID_TOPIC_EXCEPTION,
            f"topic name {name} is reserved for an internal topic of Kafka, which does not exist"
            " here: the broker keeps offsets and transactions in its database; read them with the"
            " requests for groups and transactions, as `trionet groups` and kafka-consumer-groups"
            " do",
        )


def _collision_name(name: str) -> str:
    return name.replace(".", "_")
