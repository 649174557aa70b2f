"""Topics as they are kept in the database: transactions of :class:`.database.Database`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from ..protocol.uuids import uuid_text
from .leadership import Replicas
from .uuids import new_uuid

if TYPE_CHECKING:
    from sqlite3 import Connection


@attrs.frozen
class Topic:
    """One topic.

    Args:
        name: legal by Kafka's rules.
        id: 16 bytes, never zero; a topic made again under its name has another one.
        partitions: how many, numbered from 0.
        configs: its own settings as texts, checked; see :func:`.config_topic_keys.topic_config`.
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


def insert(connection: Connection, topic: Topic) -> None:
    """Store a new topic."""
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
    connection.execute("UPDATE topic SET partitions = ? WHERE id = ?", (topic.partitions, topic.id))
    connection.execute("DELETE FROM partition_replicas WHERE topic_id = ?", (topic.id,))
    _insert_replicas(connection, topic)


def update_configs(connection: Connection, topic: Topic) -> None:
    """Store the settings of a topic, in place of those that it had."""
    connection.execute("DELETE FROM topic_config WHERE topic_id = ?", (topic.id,))
    _insert_configs(connection, topic)


def delete(connection: Connection, topic: Topic) -> None:
    """Forget a topic and all that belongs to it."""
    connection.execute("DELETE FROM topic WHERE id = ?", (topic.id,))
    # Here, so that no crash leaves them to a later topic of this name.
    connection.execute("DELETE FROM committed_offset WHERE topic = ?", (topic.name,))
