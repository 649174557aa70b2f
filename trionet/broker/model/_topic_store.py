"""Stores topics in the database. Each function runs in a transaction of :class:`.Database`."""

from __future__ import annotations

import random
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...net._network import SYSTEM
from ...protocol._wire import uuid_text
from ..storage._tables import (
    PROPERTIES,
    TEXT,
    Fields,
    Table,
    blob_of,
    integer,
    read_property,
)
from ._leadership import Replicas

if TYPE_CHECKING:
    from sqlite3 import Connection

#: The limit of Kafka's controller per request; more directories would hold the loop for too long.
PARTITIONS_MAX: Final = 10_000

_CLUSTER_ID: Final = "cluster.id"
_OFFSET_TABLES: Final = ("committed_offset", "pending_offset")

_ID: Final = blob_of(16)
_NUMBER: Final = integer(0, PARTITIONS_MAX - 1)
_TOPICS: Final = Table("topic", 2, Fields(id=_ID, name=TEXT, partitions=integer(1, PARTITIONS_MAX)))
_CONFIGS: Final = Table("topic_config", 2, Fields(topic_id=_ID, name=TEXT, value=TEXT))
_REPLICAS: Final = Table(
    "partition_replicas", 2, Fields(topic_id=_ID, partition=_NUMBER, nodes=TEXT)
)
_PENDING_FOLDERS: Final = Table(
    "unsettled_topic",
    2,
    Fields(
        id=_ID,
        name=TEXT,
        first_partition=integer(0, PARTITIONS_MAX),
        end_partition=integer(0, PARTITIONS_MAX),
    ),
)


@attrs.frozen
class Topic:
    """A topic and its settings.

    Args:
        name: a name that is valid by Kafka's rules.
        id: the 16-byte topic id, never all zeros; a recreated topic of the same name has a new id.
        partitions: the number of partitions, which are numbered from 0.
        configs: the validated settings that the topic overrides, as strings; see
            :func:`.topic_config`.
        replicas: the replicas of each partition; empty if every partition is only on the first
            node.
    """

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str]
    replicas: Replicas = ()

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, usually the same for all partitions."""
        return len(self.replicas[0]) if self.replicas else 1


@attrs.frozen
class PendingFolders:
    """Partitions whose directories are being created or removed.

    If the topic has a partition of this range, the partition's directory is being created;
    otherwise, it is being removed.

    Args:
        id: the id of the topic, which may have been deleted.
        name: the name of the topic.
        first: the number of the first partition.
        end: the number after the last partition.
    """

    id: bytes
    name: str
    first: int
    end: int

    def to_create(self, topic: Topic | None) -> range:
        """Return the existing partitions, whose directories may not have been created yet."""
        return range(self.first, min(self.end, topic.partitions if topic is not None else 0))

    def to_remove(self, topic: Topic | None) -> range:
        """Return the removed partitions, whose directories may still exist."""
        return range(max(self.first, topic.partitions if topic is not None else 0), self.end)


def load(connection: Connection, rng: random.Random) -> tuple[str, list[Topic]]:
    """Read the cluster id, generating it if needed, and all topics in order of creation."""
    cluster_id = read_property(connection, _CLUSTER_ID, str)
    if cluster_id is None:
        cluster_id = uuid_text(new_uuid(rng))
        PROPERTIES.put(connection, [(_CLUSTER_ID, cluster_id)])
    configs: dict[bytes, dict[str, str]] = {}
    for id, name, value in _CONFIGS.read(connection, _row):
        configs.setdefault(id, {})[name] = value
    replicas: dict[bytes, list[tuple[int, ...]]] = {}
    for id, nodes in _REPLICAS.read(connection, _nodes, 'ORDER BY topic_id, "partition"'):
        replicas.setdefault(id, []).append(nodes)

    def topic(id: bytes, name: str, partitions: int) -> Topic:
        placed = tuple(replicas.get(id, ()))
        # Without a partition's row, those of the later ones would be taken for the earlier ones.
        is_complete = len(placed) == partitions
        return Topic(name, id, partitions, configs.get(id, {}), placed if is_complete else ())

    return cluster_id, list(_TOPICS.read(connection, topic, "ORDER BY rowid"))


def load_unreadable(connection: Connection, readable: Container[bytes]) -> frozenset[object]:
    """Return the names and ids in the rows of topics that are not ``readable``, given by id."""
    rows = connection.execute("SELECT id, name FROM topic").fetchall()
    return frozenset(each for row in rows if row[0] not in readable for each in row)


def delete_orphaned_offsets(connection: Connection) -> None:
    """Delete offsets that were stored just after the deletion of their topic, before a crash."""
    for table in _OFFSET_TABLES:
        connection.execute(
            f"DELETE FROM {table} WHERE topic NOT IN (SELECT name FROM topic)"  # noqa: S608 - ours
        )


def _row(*row: Any) -> tuple[Any, ...]:
    return row


def _nodes(id: bytes, _partition: int, nodes: str) -> tuple[bytes, tuple[int, ...]]:
    return id, tuple(map(int, nodes.split(",")))


def load_pending_folders(connection: Connection) -> list[PendingFolders]:
    """Read the directory changes that were not completed."""
    return list(_PENDING_FOLDERS.read(connection, _pending_folders))


def _pending_folders(id: bytes, name: str, first: int, end: int) -> PendingFolders:
    if first > end:
        raise ValueError(f"invalid partition range {first} to {end}")
    return PendingFolders(id, name, first, end)


def settle(connection: Connection, ids: Iterable[bytes]) -> None:
    """Record that these topics have no pending directory changes."""
    connection.executemany("DELETE FROM unsettled_topic WHERE id = ?", [(id,) for id in ids])


def _add_pending_folders(connection: Connection, topic: Topic, first: int, end: int) -> None:
    """Record the directory changes that are pending once this transaction is committed."""
    connection.execute(
        "INSERT INTO unsettled_topic VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " first_partition = min(first_partition, excluded.first_partition),"
        " end_partition = max(end_partition, excluded.end_partition)",
        _PENDING_FOLDERS.columns.checked((topic.id, topic.name, first, end)),
    )


def insert(connection: Connection, topic: Topic) -> None:
    """Store a new topic, perhaps in place of an unreadable one with the same name."""
    replaced = connection.execute("DELETE FROM topic WHERE name = ?", (topic.name,)).rowcount
    if replaced:
        _delete_offsets(connection, topic.name)
    _add_pending_folders(connection, topic, 0, topic.partitions)
    _TOPICS.put(connection, [(topic.id, topic.name, topic.partitions)])
    _insert_configs(connection, topic)
    _insert_replicas(connection, topic)


def _insert_configs(connection: Connection, topic: Topic) -> None:
    rows = [(topic.id, name, value) for name, value in topic.configs.items()]
    _CONFIGS.put(connection, rows)


def _insert_replicas(connection: Connection, topic: Topic, first: int = 0) -> None:
    _REPLICAS.put(
        connection,
        [
            (topic.id, number, ",".join(map(str, nodes)))
            for number, nodes in enumerate(topic.replicas[first:], first)
        ],
    )


def update_partitions(connection: Connection, topic: Topic) -> None:
    """Store the number of partitions of a topic, and their replicas."""
    _TOPICS.columns.checked((topic.id, topic.name, topic.partitions))
    row = connection.execute("SELECT partitions FROM topic WHERE id = ?", (topic.id,)).fetchone()
    _add_pending_folders(
        connection, topic, min(row[0], topic.partitions), max(row[0], topic.partitions)
    )
    connection.execute("UPDATE topic SET partitions = ? WHERE id = ?", (topic.partitions, topic.id))
    connection.execute(
        'DELETE FROM partition_replicas WHERE topic_id = ? AND "partition" >= ?',
        (topic.id, topic.partitions),
    )
    # None are stored of a topic whose partitions were all on the first node.
    [stored] = connection.execute(
        'SELECT coalesce(max("partition") + 1, 0) FROM partition_replicas WHERE topic_id = ?',
        (topic.id,),
    ).fetchone()
    _insert_replicas(connection, topic, stored)


def update_configs(connection: Connection, topic: Topic) -> None:
    """Replace the stored settings of a topic."""
    connection.execute("DELETE FROM topic_config WHERE topic_id = ?", (topic.id,))
    _insert_configs(connection, topic)


def delete(connection: Connection, topic: Topic) -> None:
    """Delete a topic, with its settings, replicas and committed offsets."""
    _add_pending_folders(connection, topic, 0, topic.partitions)
    connection.execute("DELETE FROM topic WHERE id = ?", (topic.id,))
    # In the same transaction, so that no crash leaves them to a later topic of this name.
    _delete_offsets(connection, topic.name)


def _delete_offsets(connection: Connection, name: str) -> None:
    for table in _OFFSET_TABLES:
        query = f"DELETE FROM {table} WHERE topic = ?"  # noqa: S608 - ours
        connection.execute(query, (name,))


def new_uuid(rng: random.Random = SYSTEM.rng) -> bytes:
    """Return a random version 4 UUID (Kafka: Uuid.randomUuid).

    Like Kafka, this skips ids whose text form begins with a hyphen, which tools would parse as an
    option. It never returns one of Kafka's reserved ids, which are not version 4 UUIDs.
    """
    while True:
        drawn = bytearray(rng.randbytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if not uuid_text(drawn).startswith("-"):
            return bytes(drawn)
