"""Topics as they are kept in the database: transactions of :class:`._database.Database`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from ...protocol._uuids import uuid_text
from ._leadership import Replicas
from ._uuids import new_uuid

if TYPE_CHECKING:
    from sqlite3 import Connection


@attrs.frozen
class Topic:
    """One topic.

    Args:
        name: legal by Kafka's rules.
        id: 16 bytes, never zero; a topic made again under its name has another one.
        partitions: how many, numbered from 0.
        configs: its own settings as texts, checked; see :func:`._topic_keys.topic_config`.
        replicas: the nodes of each partition; empty if all have the first node, or the only one.
    """

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str]
    replicas: Replicas = ()

    @property
    def replication_factor(self) -> int:
        """How many replicas its first partition has, as all others unless somebody chose them."""
        return len(self.replicas[0]) if self.replicas else 1


@attrs.frozen
class Unsettled:
    """Partitions of a topic whose folders are just being made or removed.

    Which of the two the topic tells: those that it has get folders, and all others lose theirs.

    Args:
        id: of the topic, which may be gone.
        name: of the topic.
        first: the first of the partitions.
        end: behind the last one.
    """

    id: bytes
    name: str
    first: int
    end: int

    def made(self, topic: Topic | None) -> range:
        """The partitions that the topic has: their folders may not be there yet."""
        return range(self.first, min(self.end, topic.partitions if topic is not None else 0))

    def removed(self, topic: Topic | None) -> range:
        """The partitions that the topic has not: their folders may still be there."""
        return range(max(self.first, topic.partitions if topic is not None else 0), self.end)


def load(connection: Connection, chance: random.Random) -> tuple[str, list[Topic]]:
    """The cluster id, which a new database gets, and all topics in the order of their making."""
    row = connection.execute("SELECT value FROM property WHERE name = 'cluster.id'").fetchone()
    cluster_id: str = row[0] if row else uuid_text(new_uuid(chance))
    if row is None:
        connection.execute("INSERT INTO property VALUES ('cluster.id', ?)", (cluster_id,))
    configs: dict[bytes, dict[str, str]] = {}
    for id, name, value in connection.execute("SELECT topic_id, name, value FROM topic_config"):
        configs.setdefault(id, {})[name] = value
    replicas: dict[bytes, list[tuple[int, ...]]] = {}
    for id, nodes in connection.execute(
        'SELECT topic_id, nodes FROM partition_replicas ORDER BY topic_id, "partition"'
    ):
        replicas.setdefault(id, []).append(tuple(map(int, nodes.split(","))))
    rows = connection.execute("SELECT name, id, partitions FROM topic ORDER BY rowid")
    return cluster_id, [
        Topic(name, id, partitions, configs.get(id, {}), tuple(replicas.get(id, ())))
        for name, id, partitions in rows
    ]


def load_unsettled(connection: Connection) -> list[Unsettled]:
    """What somebody began and was not done with."""
    rows = connection.execute(
        "SELECT id, name, first_partition, end_partition FROM unsettled_topic"
    )
    return [Unsettled(*row) for row in rows]


def settle(connection: Connection, ids: Iterable[bytes]) -> None:
    """The folders of these topics are made or removed."""
    connection.executemany("DELETE FROM unsettled_topic WHERE id = ?", [(id,) for id in ids])


def _unsettle(connection: Connection, topic: Topic, first: int, end: int) -> None:
    """Note what begins when this transaction is committed, with what is still to be done."""
    connection.execute(
        "INSERT INTO unsettled_topic VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " first_partition = min(first_partition, excluded.first_partition),"
        " end_partition = max(end_partition, excluded.end_partition)",
        (topic.id, topic.name, first, end),
    )


def insert(connection: Connection, topic: Topic) -> None:
    """Store a new topic."""
    _unsettle(connection, topic, 0, topic.partitions)
    connection.execute(
        "INSERT INTO topic (id, name, partitions) VALUES (?, ?, ?)",
        (topic.id, topic.name, topic.partitions),
    )
    _insert_configs(connection, topic)
    _insert_replicas(connection, topic)


def _insert_configs(connection: Connection, topic: Topic) -> None:
    connection.executemany(
        "INSERT INTO topic_config VALUES (?, ?, ?)",
        [(topic.id, name, value) for name, value in topic.configs.items()],
    )


def _insert_replicas(connection: Connection, topic: Topic) -> None:
    connection.executemany(
        "INSERT INTO partition_replicas VALUES (?, ?, ?)",
        [
            (topic.id, number, ",".join(map(str, nodes)))
            for number, nodes in enumerate(topic.replicas)
        ],
    )


def update_partitions(connection: Connection, topic: Topic) -> None:
    """Store how many partitions a topic has, and their replicas."""
    row = connection.execute("SELECT partitions FROM topic WHERE id = ?", (topic.id,)).fetchone()
    _unsettle(connection, topic, min(row[0], topic.partitions), max(row[0], topic.partitions))
    connection.execute("UPDATE topic SET partitions = ? WHERE id = ?", (topic.partitions, topic.id))
    connection.execute("DELETE FROM partition_replicas WHERE topic_id = ?", (topic.id,))
    _insert_replicas(connection, topic)


def update_configs(connection: Connection, topic: Topic) -> None:
    """Store the settings of a topic, in place of those that it had."""
    connection.execute("DELETE FROM topic_config WHERE topic_id = ?", (topic.id,))
    _insert_configs(connection, topic)


def delete(connection: Connection, topic: Topic) -> None:
    """Forget a topic and all that belongs to it."""
    _unsettle(connection, topic, 0, topic.partitions)
    connection.execute("DELETE FROM topic WHERE id = ?", (topic.id,))
    # Here, so that no crash leaves them to a later topic of this name.
    connection.execute("DELETE FROM committed_offset WHERE topic = ?", (topic.name,))
