"""Our admin client and the controller of a real Kafka node, asked without its brokers (KIP-919)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import trionet
from support.admin_errors import code_of
from support.administered_kafka import Kafka
from support.eventually import eventually
from trionet import Admin, UnsupportedVersionError
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    PatternType,
    ResourceType,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

NODE = ConfigResource(ConfigResourceType.BROKER, "1")
EVERY_BROKER = ConfigResource(ConfigResourceType.BROKER, "")
ENTRY = AclBinding(
    resource_type=ResourceType.TOPIC,
    resource_name="t",
    pattern_type=PatternType.LITERAL,
    principal="User:bob",
    host="*",
    operation=AclOperation.READ,
    permission=AclPermission.ALLOW,
)


@pytest.fixture
async def admin(kafka: Kafka) -> AsyncIterator[Admin]:
    async with trionet.open_admin(bootstrap_controllers=kafka.controllers) as admin:
        yield admin


async def test_controllers_describe_themselves(kafka: Kafka, admin: Admin) -> None:
    cluster = await admin.describe_cluster()
    async with trionet.open_admin(kafka.bootstrap) as of_brokers:
        brokers = await of_brokers.describe_cluster()

    assert brokers.id == cluster.id
    assert [kafka.controllers] == [f"{each.host}:{each.port}" for each in cluster.brokers.values()]
    assert cluster.controller == cluster.brokers[1]
    assert cluster.brokers == await admin.nodes()
    assert 1 == (await admin.describe_metadata_quorum()).leader
    assert "metadata.version" in (await admin.describe_features()).finalized


async def test_settings_of_brokers_are_read_and_changed(admin: Admin) -> None:
    changes = {"log.cleaner.threads": 2}

    (await admin.incremental_alter_configs({NODE: changes, EVERY_BROKER: changes})).checked()

    async def threads() -> str | None:
        found = (await admin.describe_configs([EVERY_BROKER])).checked()[EVERY_BROKER]
        entry = found.get("log.cleaner.threads")
        return entry.value if entry is not None else None

    assert "2" == await eventually(threads, lambda value: value == "2")


async def test_entries_for_access_are_made_and_deleted(admin: Admin) -> None:
    (await admin.create_acls([ENTRY])).checked()

    async def found() -> list[AclBinding]:
        return await admin.describe_acls(AclFilter(principal="User:bob"))

    # What reads them follows the log of the controllers.
    assert [ENTRY] == await eventually(found, lambda entries: entries)
    await admin.delete_acls([AclFilter(principal="User:bob")])
    await eventually(found, lambda entries: not entries)


async def test_topics_are_made_enlarged_and_deleted(kafka: Kafka, admin: Admin) -> None:
    (await admin.create_topics([NewTopic("made", 1, 1)])).checked()
    (await admin.create_partitions({"made": 2})).checked()
    assert {} == await admin.list_partition_reassignments()
    moved = await admin.alter_partition_reassignments({TopicPartition("unknown", 0): [1]})
    (await admin.delete_topics(["made"])).checked()

    assert ["UNKNOWN_TOPIC_OR_PARTITION"] == [code_of(each) for each in moved.values()]


async def test_what_brokers_alone_do_is_an_error_that_says_so(admin: Admin) -> None:
    asked_of_brokers: list[Callable[[], Awaitable[object]]] = [
        admin.list_topics,
        admin.list_groups,
        lambda: admin.describe_groups(["g"]),
        lambda: admin.list_offsets({TopicPartition("t", 0): 0}),
        lambda: admin.list_group_offsets(["g"]),
        lambda: admin.fence_producers(["x"]),
        admin.describe_log_dirs,
        lambda: admin.describe_client_quotas([]),
    ]
    for ask in asked_of_brokers:
        with pytest.raises(
            UnsupportedVersionError, match=r"a controller does not support .* bootstrap\.servers"
        ):
            await ask()


async def test_brokers_are_no_controllers_and_controllers_no_brokers(kafka: Kafka) -> None:
    async with trionet.open_admin(bootstrap_controllers=kafka.bootstrap) as admin:
        with pytest.raises(UnsupportedVersionError, match=r"no controller: .*MISMATCHED_ENDPOINT"):
            await admin.describe_cluster()
    async with trionet.open_admin(kafka.controllers) as admin:
        with pytest.raises(UnsupportedVersionError, match="a controller does not support Metadata"):
            await admin.list_topics()
