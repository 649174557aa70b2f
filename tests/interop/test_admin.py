"""Our admin client and a real Kafka node, which serves what our own broker does not."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import attrs
import pytest

import trionet
from support.admin_errors import code_of
from support.administered_kafka import Kafka, fresh
from support.eventually import eventually
from trionet import Admin, ApiError
from trionet.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    Append,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    DelegationToken,
    FeatureUpdate,
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
    UpgradeType,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
async def admin(kafka: Kafka) -> AsyncIterator[Admin]:
    async with trionet.open_admin(kafka.bootstrap) as admin:
        yield admin


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
