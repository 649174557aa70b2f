"""What users do with each kind of client, whatever its responses say."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

import attrs
import trio

from trionet import (
    Admin,
    ConfigError,
    Consumer,
    Producer,
    TopicPartition,
    TrionetError,
    open_admin,
    open_consumer,
    open_producer,
    open_reader,
)
from trionet.client.admin import (
    AclFilter,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    NewTopic,
    OffsetSpec,
    QuotaEntity,
    Replica,
    ScramDeletion,
    ScramMechanism,
)
from trionet.client.network._open_client import open_network_client
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import MemoryNetwork

ADDRESS = "10.0.0.2:9092"
TOPIC, OTHER, GROUP = "t", "other", "g"
PARTITIONS, RECORDS = 2, 6
#: How long a call may take, in virtual seconds, before the user goes on.
CALL_SECONDS = 3.0
#: How long a client may take from its opening to its end.
LIFE_SECONDS = 100.0
#: A consumer that hands out more has handed out some again and again.
RECORDS_MAX = 2_000
#: No wait between attempts is long, and a silent broker is soon given up.
SOON: dict[str, object] = {
    "request.timeout.ms": 1_000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "metadata.max.age.ms": 2_000,
}


class EndlessError(AssertionError):
    """A consumer hands out records without an end."""


@attrs.frozen
class Scene:
    """Where a program runs.

    Attributes:
        network: where its clients are.
        rng: decides about its settings.
        settings: of each client: :data:`SOON`, and how it authenticates.
    """

    network: MemoryNetwork
    rng: random.Random
    settings: dict[str, object]


Program: TypeAlias = Callable[[Scene], Awaitable[None]]
Call: TypeAlias = Callable[[], Awaitable[object]]


async def tried(call: Call, seconds: float = CALL_SECONDS) -> None:
    """Make a call; errors of the documented tree are what a user expects."""
    with trio.move_on_after(seconds):
        try:
            await call()
        except ConfigError:
            raise  # of the program itself
        except TrionetError:
            pass


def places() -> list[TopicPartition]:
    return [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]


# Producers.


async def producing(scene: Scene) -> None:
    """One record after the other, several at once, with keys and without."""
    rng = scene.rng
    settings = {
        **scene.settings,
        "delivery.timeout.ms": 3_000,
        "max.block.ms": 2_000,
        "linger.ms": rng.choice((0, 5)),
        **rng.choice(
            (
                {"enable.idempotence": True},
                {"enable.idempotence": False, "acks": "1"},
                {"enable.idempotence": False, "acks": "0"},
            )
        ),
    }
    async with open_producer(ADDRESS, settings, network=scene.network) as producer:
        await tried(lambda: producer.send(TOPIC, b"1"))
        await tried(lambda: producer.send(OTHER, b"2", key=b"key"))
        await tried(lambda: producer.send(TOPIC, b"3", partition=1))
        await tried(lambda: producer.send_batch(TOPIC, [b"4", b"5", b"6"]))
        await tried(lambda: producer.key_partitions(TOPIC))
        for number in range(4):
            await tried(partial(enqueued, producer, TOPIC, b"%d" % number))
        await tried(producer.flush)
        await trio.sleep(1)
        await tried(lambda: producer.send(TOPIC, b"7", partition=0))


async def enqueued(producer: Producer, topic: str, value: bytes) -> None:
    _ = await producer.enqueue(topic, value)


async def transacting(scene: Scene) -> None:
    """Transactions that commit, abort, and take the offsets of a consumer with them."""
    settings = {
        **scene.settings,
        "transactional.id": "id",
        "delivery.timeout.ms": 2_000,
        "max.block.ms": 2_000,
        "linger.ms": 0,
    }
    reads = {**scene.settings, "group.id": GROUP, "enable.auto.commit": False}

    async def transfer() -> None:
        async with producer.transaction():
            await producer.send(TOPIC, b"a", partition=0)
            await enqueued(producer, OTHER, b"b")

    async def abort() -> None:
        await producer.begin_transaction()
        await enqueued(producer, TOPIC, b"c")
        await producer.abort_transaction()

    async def copy() -> None:
        async with (
            open_consumer(
                ADDRESS,
                {**reads, "auto.offset.reset": "earliest"},
                topics=TOPIC,
                network=scene.network,
            ) as consumer,
            producer.transaction() as transaction,
        ):
            record = await anext(consumer)
            await enqueued(producer, OTHER, record.value or b"")
            await transaction.send_offsets(consumer)

    async with open_producer(ADDRESS, settings, network=scene.network) as producer:
        await tried(producer.init_transactions)
        for call in (transfer, transfer, abort, copy, transfer):
            await tried(call)


# Consumers.


def reading(scene: Scene) -> dict[str, object]:
    rng = scene.rng
    return {
        **scene.settings,
        "auto.offset.reset": rng.choice(("earliest", "earliest", "latest", "none")),
        "isolation.level": rng.choice(("read_committed", "read_uncommitted")),
        "max.partition.fetch.bytes": rng.choice((100, 1_048_576)),
        "fetch.max.wait.ms": 100,
        "default.api.timeout.ms": 2_000,
    }


class Reader:
    """Reads what a consumer hands out."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._count = 0

    async def read(self) -> None:
        """For some time."""
        while True:
            await anext(self._consumer)
            self._count += 1
            self._check()

    async def read_batches(self) -> None:
        """The same in batches."""
        async for batch in self._consumer.batches():
            self._count += len(batch.offsets)
            self._check()

    def _check(self) -> None:
        if self._count > RECORDS_MAX:
            raise EndlessError(f"{self._count} records of {PARTITIONS * RECORDS}")


async def consuming(scene: Scene) -> None:
    """Assigned partitions, which are also asked about."""
    settings = reading(scene)
    async with open_consumer(ADDRESS, settings, network=scene.network) as consumer:
        reader = Reader(consumer)
        names = places()
        consumer.assign(names)
        await tried(reader.read)
        await tried(lambda: consumer.partitions_of(TOPIC))
        await tried(lambda: consumer.beginning_offsets(names))
        await tried(lambda: consumer.end_offsets(names))
        await tried(lambda: consumer.offsets_for_times(dict.fromkeys(names, 1000)))
        consumer.seek_to_beginning(*names)
        await tried(reader.read_batches)
        consumer.seek_to_end(names[0])
        consumer.seek(names[1], 3, leader_epoch=0)
        await tried(reader.read)


async def grouping(scene: Scene) -> None:
    """Two members, of which one comes later; offsets are committed by them and by hand."""
    rng = scene.rng
    settings = {
        **reading(scene),
        "group.id": GROUP,
        "heartbeat.interval.ms": 200,
        "auto.commit.interval.ms": 500,
        "enable.auto.commit": rng.random() < 0.7,
        "partition.assignment.strategy": rng.choice(
            ("range", "roundrobin", "sticky", "cooperative-sticky", "range,cooperative-sticky")
        ),
    }

    async def be_member() -> None:
        topics = rng.choice((TOPIC, [TOPIC, OTHER]))
        async with open_consumer(
            ADDRESS, settings, topics=topics, network=scene.network
        ) as consumer:
            await tried(Reader(consumer).read)
            await tried(consumer.commit)
            await tried(lambda: consumer.committed(places()))
            await tried(Reader(consumer).read)
            await tried(consumer.unsubscribe)

    async def come_later() -> None:
        await trio.sleep(1)
        await tried(be_member, LIFE_SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_later)
        await tried(be_member, LIFE_SECONDS)


async def subscribing(scene: Scene) -> None:
    """A group of one that subscribes to a pattern."""
    settings = {**reading(scene), "group.id": GROUP, "heartbeat.interval.ms": 200}

    async def live() -> None:
        async with open_consumer(ADDRESS, settings, network=scene.network) as consumer:
            consumer.subscribe(re.compile("t|o.*"))
            await tried(Reader(consumer).read)
            await tried(Reader(consumer).read_batches)

    await tried(live, LIFE_SECONDS)


async def reading_ranges(scene: Scene) -> None:
    """Topics that are read from one place to another, without a group."""
    settings = {**reading(scene), "auto.offset.reset": "earliest"}

    async def read(**arguments: Any) -> None:
        async with open_reader(
            ADDRESS, arguments.pop("topics"), settings, network=scene.network, **arguments
        ) as reader:
            await Reader(reader).read_batches()

    at = datetime.fromtimestamp(1, UTC)
    for arguments in (
        {"topics": [TOPIC, OTHER]},
        {"topics": TOPIC, "start": -2},
        {"topics": TOPIC, "start": at, "end": -1},
        {"topics": OTHER, "start": 2, "end": 5, "partitions": [1]},
    ):
        await tried(partial(read, **arguments))


# Admin clients.


async def administering(scene: Scene) -> None:
    """Some of all calls."""
    settings = {**scene.settings, "default.api.timeout.ms": 1_500}
    async with open_admin(ADDRESS, settings, network=scene.network) as admin:
        calls = calls_of(admin)
        for call in scene.rng.sample(calls, 14):
            await tried(call)


def calls_of(admin: Admin) -> list[Call]:
    """A call of each method."""
    names = places()
    topic, broker = (
        ConfigResource(ConfigResourceType.TOPIC, TOPIC),
        ConfigResource(ConfigResourceType.BROKER, "1"),
    )
    return [
        lambda: admin.create_topics([NewTopic("new", 1)]),
        lambda: admin.create_partitions({OTHER: 3}),
        lambda: admin.delete_topics(["new"]),
        admin.list_topics,
        lambda: admin.describe_topics([TOPIC, OTHER]),
        lambda: admin.list_offsets(dict.fromkeys(names, OffsetSpec.LATEST)),
        lambda: admin.list_offsets(dict.fromkeys(names, OffsetSpec.MAX_TIMESTAMP)),
        lambda: admin.delete_records(dict.fromkeys(names, 1)),
        lambda: admin.elect_leaders(names),
        lambda: admin.alter_partition_reassignments({names[0]: [1]}),
        admin.list_partition_reassignments,
        lambda: admin.describe_configs([topic, broker], include_synonyms=True),
        lambda: admin.incremental_alter_configs({topic: {"retention.ms": "1000000000"}}),
        admin.list_config_resources,
        admin.list_groups,
        lambda: admin.describe_groups([GROUP, "none"]),
        lambda: admin.list_group_offsets([GROUP]),
        lambda: admin.alter_group_offsets(GROUP, dict.fromkeys(names, 1)),
        lambda: admin.delete_group_offsets(GROUP, names),
        lambda: admin.remove_members(GROUP),
        lambda: admin.delete_groups([GROUP]),
        lambda: admin.describe_share_groups([GROUP]),
        lambda: admin.list_share_group_offsets([GROUP]),
        lambda: admin.alter_share_group_offsets(GROUP, dict.fromkeys(names, 1)),
        lambda: admin.delete_share_group_offsets(GROUP, [TOPIC]),
        lambda: admin.describe_streams_groups([GROUP]),
        admin.list_transactions,
        lambda: admin.describe_transactions(["id"]),
        lambda: admin.describe_producers(names),
        lambda: admin.find_hanging_transactions(names),
        lambda: admin.fence_producers(["id"]),
        lambda: admin.terminate_transaction("id"),
        lambda: admin.abort_transaction(names[0], producer_id=1, producer_epoch=0),
        admin.describe_acls,
        lambda: admin.delete_acls([AclFilter()]),
        admin.describe_client_quotas,
        lambda: admin.alter_client_quotas(
            {QuotaEntity({"user": "u"}): {"producer_byte_rate": 1e6}}
        ),
        admin.describe_user_scram_credentials,
        lambda: admin.alter_user_scram_credentials(
            [ScramDeletion("u", ScramMechanism.SCRAM_SHA_256)]
        ),
        admin.create_delegation_token,
        lambda: admin.renew_delegation_token(b"hmac"),
        lambda: admin.expire_delegation_token(b"hmac"),
        admin.describe_delegation_tokens,
        lambda: admin.describe_cluster(include_operations=True),
        lambda: admin.unregister_broker(7),
        admin.describe_features,
        lambda: admin.update_features({"transaction.version": FeatureUpdate(2)}),
        admin.describe_metadata_quorum,
        admin.describe_log_dirs,
        lambda: admin.alter_replica_log_dirs({Replica(names[0], 1): "/nowhere"}),
        admin.nodes,
        admin.until_connected,
    ]


async def requesting(scene: Scene) -> None:
    """A network client that its user polls, with requests of the user's own."""

    async def request() -> None:
        await client.until_updated()
        for node in list(client.metadata.cluster.nodes.values()):
            await client.until_ready(node)
            await client.request(node, MetadataRequest(topics=None))

    async with (
        open_network_client(ADDRESS, network=scene.network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        for _ in range(4):
            await tried(request)
            client.metadata.request_update()
        nursery.cancel_scope.cancel()


ALL: tuple[Program, ...] = (
    producing,
    transacting,
    consuming,
    grouping,
    subscribing,
    reading_ranges,
    administering,
    requesting,
)
