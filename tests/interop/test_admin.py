"""Our admin client and a real Kafka node, which serves what our own broker does not."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import pytest

import trionet
from support.admin_errors import code_of
from support.admin_groups import be_in_group
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_node import KafkaFolder, memory_folder
from support.ports import free_ports
from trionet import Admin, ApiError
from trionet.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    Append,
    CommittedOffset,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    DelegationToken,
    FeatureUpdate,
    FencedProducer,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    PatternType,
    QuotaEntity,
    QuotaFilter,
    QuotaMatch,
    RaftEndpoint,
    Replica,
    ReplicaInfo,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    TopicDescription,
    TransactionListing,
    UpgradeType,
)
from trionet.client.topic_partition import TopicPartition
from trionet.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from trionet.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from trionet.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


@attrs.frozen
class Kafka:
    """A running node."""

    bootstrap: str
    secured: str
    folders: tuple[str, str]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    port, controller_port, secured_port = free_ports(3)
    try:
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
                'security.plain.PlainLoginModule required user_alice="secret";',
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:alice",
                "delegation.token.secret.key": "a secret of the brokers",
                "log.dirs": ",".join(folders),
            }
            node = KafkaFolder(Path(name), settings, ports=(port, controller_port))
            with node.broker():
                yield Kafka(f"127.0.0.1:{port}", f"127.0.0.1:{secured_port}", folders)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
async def admin(kafka: Kafka) -> AsyncIterator[Admin]:
    async with trionet.open_admin(kafka.bootstrap) as admin:
        yield admin


async def fresh(admin: Admin, name: str, partitions: int = 1) -> TopicPartition:
    """The first partition of a new topic, when it is led."""
    (await admin.create_topics([NewTopic(name, partitions, 1)])).checked()
    first = TopicPartition(name, 0)
    (await admin.list_offsets({first: OffsetSpec.LATEST})).checked()
    return first


async def coordinated(admin: Admin, group: str) -> None:
    """Wait until a group has a coordinator: the first one makes the topic for all."""
    (await admin.list_group_offsets([group])).checked()


async def test_topics(admin: Admin) -> None:
    made = await admin.create_topics(
        [
            NewTopic("t-a", 2, 1, {"retention.ms": 5000}),
            NewTopic("t-b", assignments={0: [1]}),
            "no way",
        ]
    )
    again = await admin.create_topics(["t-a"], validate_only=True)

    assert "INVALID_TOPIC_EXCEPTION" == code_of(made.pop("no way"))
    a, b = made.checked().values()
    assert (2, 1) == (a.partitions, a.replication_factor)
    assert a.configs is not None
    assert "5000" == a.configs["retention.ms"]
    assert "TOPIC_ALREADY_EXISTS" == code_of(again["t-a"])
    grown = await admin.create_partitions({"t-a": 3, "t-b": NewPartitions(2, [[1]])})
    assert {"t-a": None, "t-b": None} == grown

    async def describe() -> dict[str, TopicDescription]:
        results = await admin.describe_topics(["t-a"], ids=[b.id], include_operations=True)
        return results.checked()

    described = await eventually(describe, lambda found: len(found["t-a"].partitions) == 3)
    assert AclOperation.WRITE in (described["t-a"].operations or ())
    assert b.name == described[b.id].name
    assert {"t-a", "t-b"} <= set(await admin.list_topics())
    assert {"t-a": None, b.id: None} == await admin.delete_topics(["t-a"], ids=[b.id])


async def test_settings_of_all_kinds(admin: Admin) -> None:
    await fresh(admin, "c")
    topic = ConfigResource(ConfigResourceType.TOPIC, "c")
    broker = ConfigResource(ConfigResourceType.BROKER, "1")
    everywhere = ConfigResource(ConfigResourceType.BROKER, "")
    loggers = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
    metrics = ConfigResource(ConfigResourceType.CLIENT_METRICS, "subscription")
    group = ConfigResource(ConfigResourceType.GROUP, "settled")
    logger = min((await admin.describe_configs([loggers])).checked()[loggers])
    changes: dict[ConfigResource, dict[str, str | int | Append]] = {
        topic: {"cleanup.policy": Append("compact"), "retention.ms": 1234},
        broker: {"log.cleaner.threads": 2},
        everywhere: {"log.retention.ms": 99_000_000},
        loggers: {logger: "DEBUG"},
        metrics: {"interval.ms": 60_000},
        group: {"consumer.session.timeout.ms": 50_000},
    }

    assert dict.fromkeys(changes) == await admin.incremental_alter_configs(changes)

    async def value(resource: ConfigResource, key: str) -> str | None:
        found = await admin.describe_configs([resource], keys=[key])
        return found.checked()[resource][key].value

    async def session_timeout() -> str | None:
        return await value(group, "consumer.session.timeout.ms")

    await eventually(session_timeout, lambda found: found == "50000")
    entries = (await admin.describe_configs([topic, loggers], include_synonyms=True)).checked()
    assert "delete,compact" == entries[topic]["cleanup.policy"].value
    assert ConfigSource.DYNAMIC_TOPIC is entries[topic]["retention.ms"].source
    assert entries[topic]["retention.ms"].synonyms[0].value == "1234"
    assert "DEBUG" == entries[loggers][logger].value
    assert "60000" == await value(metrics, "interval.ms")
    assert "99000000" == await value(everywhere, "log.retention.ms")
    assert [metrics] == await admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
    assert {topic, broker, metrics, group} <= set(await admin.list_config_resources())
    back = await admin.incremental_alter_configs({loggers: {logger: None}})
    assert {loggers: None} == back


async def test_offsets_and_records(kafka: Kafka, admin: Admin) -> None:
    first = await fresh(admin, "o")
    async with trionet.open_producer(kafka.bootstrap) as producer:
        for time in (1000, 3000, 2000):
            await producer.send("o", b"v", partition=0, timestamp=time)

    assert 2 == (await admin.delete_records({first: 2})).checked()[first]
    wanted = {
        OffsetSpec.EARLIEST: 2,
        OffsetSpec.LATEST: 3,
        OffsetSpec.EARLIEST_LOCAL: 2,
        9_999_999: None,
    }
    found = {
        spec: (await admin.list_offsets({first: spec})).checked()[first].offset for spec in wanted
    }
    assert wanted == found
    states = (await admin.describe_producers([first])).checked()[first]
    assert [2] == [each.last_sequence for each in states]
    assert states == (await admin.describe_producers([first], broker_id=1)).checked()[first]


async def test_classic_groups(admin: Admin) -> None:
    await fresh(admin, "a")
    await coordinated(admin, "g")
    await be_in_group(admin, "static")

    described = (await admin.describe_groups(["g", "none"], include_operations=True)).errors
    assert {"none": "GROUP_ID_NOT_FOUND"} == {name: code_of(e) for name, e in described.items()}
    group = (await admin.describe_groups(["g"])).checked()["g"]
    assert ("classic", "Stable", "range") == (group.type, group.state, group.assignor)
    assert [{TopicPartition("a", 0)}] == [each.assignment for each in group.members]
    assert "Stable" == (await admin.list_groups(types=["classic"]))["g"].state
    assert "NON_EMPTY_GROUP" == code_of((await admin.delete_groups(["g"]))["g"])
    assert {"static": None} == await admin.remove_members("g")
    assert {"g": None} == await admin.delete_groups(["g"])


async def test_committed_offsets(admin: Admin) -> None:
    first = await fresh(admin, "committed")
    other = TopicPartition("committed", 7)

    done = await admin.alter_group_offsets("committing", {first: CommittedOffset(0, "why")})

    assert {first: None} == done
    found = await admin.list_group_offsets(["committing"], require_stable=True)
    assert {first: CommittedOffset(0, "why")} == found.checked()["committing"]
    some = (await admin.list_group_offsets({"committing": [first, other]})).checked()
    assert some["committing"][other] is None
    assert {first: None} == await admin.delete_group_offsets("committing", [first])


async def test_groups_that_the_broker_divides(admin: Admin) -> None:
    first = await fresh(admin, "k")
    await coordinated(admin, "kip848")
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="kip848",
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["k"],
        server_assignor="uniform",
        topic_partitions=[],
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_groups(["kip848"])).checked()["kip848"]

    (member,) = group.members
    assert ("consumer", "uniform") == (group.type, group.assignor)
    assert (frozenset({first}), MEMBER, ("k",), False) == (
        member.target_assignment,
        member.id,
        member.topics,
        member.is_classic,
    )
    assert ["kip848"] == list(await admin.list_groups(types=["consumer"]))


async def test_share_groups(admin: Admin) -> None:
    first = await fresh(admin, "s")
    await coordinated(admin, "share")
    heartbeat = ShareGroupHeartbeatRequest(
        group_id="share", member_id=MEMBER, subscribed_topic_names=["s"]
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_share_groups(["share"])).checked()["share"]
    assert ("share", [MEMBER]) == (group.type, [each.id for each in group.members])
    assert "share" == (await admin.list_groups(types=["share"]))["share"].type
    with pytest.raises(ApiError, match="NON_EMPTY_GROUP"):
        await admin.alter_share_group_offsets("share", {first: 0})
    heartbeat.member_epoch = -1
    heartbeat.subscribed_topic_names = None
    await admin.request(heartbeat)
    assert {first: None} == await admin.alter_share_group_offsets("share", {first: 0})
    offsets = (await admin.list_share_group_offsets(["share"])).checked()["share"].checked()
    assert 0 == getattr(offsets[first], "offset", None)
    assert {"s": None} == await admin.delete_share_group_offsets("share", ["s"])
    assert {"share": None} == await admin.delete_groups(["share"])


async def test_streams_groups(admin: Admin) -> None:
    await fresh(admin, "st")
    await coordinated(admin, "streams")
    heartbeat = StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id=MEMBER,
        rebalance_timeout_ms=30_000,
        topology=Topology(
            epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=["st"])]
        ),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
        client_tags=[],
        task_offsets=None,
        task_end_offsets=None,
    )
    assert 0 == (await admin.request(heartbeat)).error_code

    group = (await admin.describe_streams_groups(["streams"])).checked()["streams"]

    assert {"0"} == set(group.subtopologies)
    assert ("st",) == group.subtopologies["0"].source_topics
    assert [MEMBER] == [each.id for each in group.members]


async def test_access_control(admin: Admin) -> None:
    binding = AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name="secret-",
        pattern_type=PatternType.PREFIXED,
        principal="User:bob",
        operation=AclOperation.READ,
    )
    wrong = attrs.evolve(binding, principal="bob")

    made = await admin.create_acls([binding, wrong])

    assert made[binding] is None
    assert "INVALID_REQUEST" == code_of(made[wrong])
    of_bob = AclFilter(principal="User:bob")

    async def describe() -> list[AclBinding]:
        return await admin.describe_acls(of_bob)

    assert [binding] == await eventually(describe, bool)
    nothing = AclFilter(principal="User:nobody")
    deleted = (await admin.delete_acls([of_bob, nothing])).checked()
    assert {of_bob: {binding: None}, nothing: {}} == deleted


async def test_quotas(admin: Admin) -> None:
    alice = QuotaEntity({"user": "alice", "client-id": None})
    wrong = QuotaEntity({"user": "bob"})

    done = await admin.alter_client_quotas(
        {alice: {"producer_byte_rate": 1000.0}, wrong: {"no_such_rate": 1.0}}
    )

    assert done[alice] is None
    assert "INVALID_REQUEST" == code_of(done[wrong])
    filters = [QuotaFilter("user", "alice"), QuotaFilter("client-id", match=QuotaMatch.DEFAULT)]

    async def describe() -> dict[QuotaEntity, dict[str, float]]:
        return await admin.describe_client_quotas(filters, strict=True)

    assert {alice: {"producer_byte_rate": 1000.0}} == await eventually(describe, bool)
    assert {alice: {"producer_byte_rate": 1000.0}} == await admin.describe_client_quotas()
    assert {alice: None} == await admin.alter_client_quotas({alice: {"producer_byte_rate": None}})


async def test_passwords_for_scram(admin: Admin) -> None:
    sha256, sha512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512

    done = await admin.alter_user_scram_credentials(
        [
            ScramUpsertion("carol", sha256, "pw"),
            ScramUpsertion("erin", sha512, "pw", iterations=8192),
            ScramDeletion("dave", sha256),
        ]
    )

    assert "RESOURCE_NOT_FOUND" == code_of(done.pop("dave"))
    assert {"carol": None, "erin": None} == done
    found = await eventually(admin.describe_user_scram_credentials, bool)
    assert {"carol": {sha256: 4096}, "erin": {sha512: 8192}} == found
    nobody = await admin.describe_user_scram_credentials(["dave"])
    assert "RESOURCE_NOT_FOUND" == code_of(nobody["dave"])
    await admin.alter_user_scram_credentials(
        [ScramDeletion("carol", sha256), ScramDeletion("erin", sha512)]
    )


async def test_delegation_tokens(kafka: Kafka) -> None:
    async with trionet.open_admin(
        kafka.secured,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password="secret",
    ) as admin:
        token = await admin.create_delegation_token(renewers=["User:bob"])

        async def describe() -> list[DelegationToken]:
            return await admin.describe_delegation_tokens(["User:alice"])

        tokens = await eventually(describe, bool)
        assert ("User:alice", ("User:bob",)) == (token.owner, token.renewers)
        assert [(token.id, token.hmac)] == [(each.id, each.hmac) for each in tokens]
        assert base64.b64encode(token.hmac).decode() not in repr(token)
        assert token.expires_ms <= await admin.renew_delegation_token(token.hmac)
        assert token.ends_ms >= await admin.expire_delegation_token(token.hmac)
        with pytest.raises(ApiError, match="DELEGATION_TOKEN_NOT_FOUND"):
            await admin.renew_delegation_token(b"no such secret")


async def test_delegation_tokens_need_to_know_who_asks(admin: Admin) -> None:
    with pytest.raises(ApiError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
        await admin.create_delegation_token()


async def test_folders(kafka: Kafka, admin: Admin) -> None:
    first = await fresh(admin, "l")
    found = (await admin.describe_log_dirs(partitions=[first])).checked()[1].checked()
    here = next(path for path, each in found.items() if first in each.replicas)
    (there,) = set(kafka.folders) - {here}

    assert set(kafka.folders) == set(found)
    assert all((each.total_bytes or 0) > 0 for each in found.values())
    replica = Replica(first, 1)
    nowhere = await admin.alter_replica_log_dirs({replica: "/nowhere"})
    assert "LOG_DIR_NOT_FOUND" == code_of(nowhere[replica])
    assert {replica: None} == await admin.alter_replica_log_dirs({replica: there})

    async def in_its_new_place() -> ReplicaInfo | None:
        moved = (await admin.describe_log_dirs([1], [first])).checked()[1].checked()
        return moved[there].replicas.get(first)

    await eventually(in_its_new_place, lambda found: found is not None and not found.is_future)


async def test_transactions(admin: Admin) -> None:
    first = await fresh(admin, "x")
    begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    fenced = await admin.fence_producers(["tx"])  # finds the coordinator, too
    began = await admin.request(begin)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="x", partitions=[0])],
    )
    await admin.request(add, version_max=3)

    assert isinstance(fenced["tx"], FencedProducer)
    described = await admin.describe_transactions(["tx", "none"])
    assert "TRANSACTIONAL_ID_NOT_FOUND" == code_of(described.pop("none"))
    transaction = described.checked()["tx"]
    assert ("Ongoing", began.producer_id, frozenset({first}), 60_000) == (
        transaction.state,
        transaction.producer_id,
        transaction.partitions,
        transaction.timeout_ms,
    )
    assert transaction.started_ms is not None
    listed = await admin.list_transactions(states=["Ongoing"])
    assert {"tx": "Ongoing"} == {id: each.state for id, each in listed.items()}
    assert {} == await admin.list_transactions(pattern="other.*")
    with pytest.raises(ApiError, match="Nonsense"):
        await admin.list_transactions(states=["Nonsense"])
    after = await admin.terminate_transaction("tx")
    assert after.producer_epoch > began.producer_epoch

    async def open_ones() -> dict[str, TransactionListing]:
        return await admin.list_transactions(states=["Ongoing", "PrepareAbort"])

    await eventually(open_ones, lambda found: not found)
    (state,) = (await admin.describe_producers([first])).checked()[first]
    # The coordinator has ended it already: once more is allowed, by an older one is not.
    ended = {"producer_id": state.producer_id, "producer_epoch": state.producer_epoch}
    await admin.abort_transaction(first, **ended, coordinator_epoch=state.coordinator_epoch or 0)
    with pytest.raises(ApiError, match="TRANSACTION_COORDINATOR_FENCED"):
        await admin.abort_transaction(first, **ended)


async def test_features(admin: Admin) -> None:
    features = await admin.describe_features(1)

    level = features.finalized["metadata.version"]
    oldest, newest = features.supported["metadata.version"]
    assert oldest <= level <= newest
    with pytest.raises(ApiError, match=r"metadata\.version"):
        await admin.update_features({"metadata.version": newest + 1}, validate_only=True)
    same = FeatureUpdate(features.finalized["group.version"], UpgradeType.SAFE_DOWNGRADE)
    assert {"group.version": None} == await admin.update_features(
        {"group.version": same}, validate_only=True
    )


async def test_controllers_and_brokers(admin: Admin) -> None:
    quorum = await admin.describe_metadata_quorum()
    cluster = await admin.describe_cluster(include_operations=True, include_fenced=True)

    assert (1, [1]) == (quorum.leader, [each.id for each in quorum.voters])
    assert quorum.high_watermark > 0
    assert ([1], frozenset()) == (list(cluster.brokers), cluster.fenced)
    assert AclOperation.ALTER in (cluster.operations or ())
    with pytest.raises(ApiError, match="BROKER_ID_NOT_REGISTERED"):
        await admin.unregister_broker(9)
    # This node was formatted with controllers that cannot change.
    with pytest.raises(ApiError):
        await admin.add_raft_voter(9, MEMBER, [RaftEndpoint("CONTROLLER", "127.0.0.1", 9)])
    with pytest.raises(ApiError):
        await admin.remove_raft_voter(9, MEMBER)
