"""One real Kafka node with everything that an administrator may ask for."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from support.kafka_node import KafkaFolder, memory_folder
from support.ports import free_ports
from trionet import Admin
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import NewTopic, OffsetSpec


@attrs.frozen
class Kafka:
    """A running node."""

    bootstrap: str
    secured: str
    folders: tuple[str, str]
    controllers: str


@contextlib.contextmanager
def administered_kafka() -> Iterator[Kafka]:
    """A running node with users, entries for access, tokens and two folders.

    Raises `Unavailable` when there is no Java or no jars.
    """
    port, controller_port, secured_port = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="trionet-kafka-", dir=memory_folder()) as name:
        folders = f"{name}/one", f"{name}/two"
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},"
            f"SASL_PLAINTEXT://127.0.0.1:{secured_port},"
            f"CONTROLLER://127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common."
            'security.plain.PlainLoginModule required user_alice="secret" user_bob="secret";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
            "delegation.token.secret.key": "a secret of the brokers",
            "log.dirs": ",".join(folders),
        }
        node = KafkaFolder(Path(name), settings, ports=(port, controller_port))
        with node.broker():
            yield Kafka(f"127.0.0.1:{port}", f"127.0.0.1:{secured_port}", folders, node.controllers)


async def fresh(admin: Admin, name: str, partitions: int = 1) -> TopicPartition:
    """The first partition of a new topic, when it is led."""
    (await admin.create_topics([NewTopic(name, partitions, 1)])).checked()
    first = TopicPartition(name, 0)
    (await admin.list_offsets({first: OffsetSpec.LATEST})).checked()
    return first


async def coordinated(admin: Admin, group: str) -> None:
    """Wait until a group has a coordinator: the first one makes the topic for all."""
    (await admin.list_group_offsets([group])).checked()
