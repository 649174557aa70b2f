from __future__ import annotations

import pytest

import trionet
from support.admin_errors import code_of
from trionet import Admin
from trionet.client.admin import (
    Append,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    Subtract,
)

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "a")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")


async def test_settings_are_changed_and_the_others_stay(admin: Admin) -> None:
    await admin.create_topics(["a"])

    first = await admin.incremental_alter_configs(
        {TOPIC: {"retention.ms": 1000, "preallocate": True, "cleanup.policy": Append("compact")}}
    )
    second = await admin.incremental_alter_configs(
        {TOPIC: {"preallocate": None, "cleanup.policy": Subtract("delete")}}
    )

    assert {TOPIC: None} == first == second
    entries = (await admin.describe_configs([TOPIC])).checked()[TOPIC]
    assert ["1000", "false", "compact"] == [
        entries[key].value for key in ("retention.ms", "preallocate", "cleanup.policy")
    ]
    assert entries["preallocate"].is_default
    retention = entries["retention.ms"]
    assert ConfigSource.DYNAMIC_TOPIC is retention.source
    assert ConfigType.LONG is retention.type
    assert not retention.is_default


async def test_keys_synonyms_and_documentation_are_listed_on_request(admin: Admin) -> None:
    found = (
        await admin.describe_configs(
            [BROKER],
            keys=["log.retention.ms", "log.retention.hours"],
            include_synonyms=True,
            include_documentation=True,
        )
    ).checked()

    entries = found[BROKER]
    assert {"log.retention.ms", "log.retention.hours"} == set(entries)
    assert entries["log.retention.hours"].synonyms[-1].source is ConfigSource.DEFAULT


async def test_validating_changes_nothing(admin: Admin) -> None:
    await admin.create_topics(["a"])

    good = await admin.incremental_alter_configs({TOPIC: {"retention.ms": 1}}, validate_only=True)
    bad = await admin.incremental_alter_configs({TOPIC: {"retention.ms": "x"}}, validate_only=True)

    assert {TOPIC: None} == good
    assert "INVALID_CONFIG" == code_of(bad[TOPIC])
    entries = (await admin.describe_configs([TOPIC], keys=["retention.ms"])).checked()[TOPIC]
    assert entries["retention.ms"].is_default


async def test_each_broker_is_asked_for_its_own_settings() -> None:
    async with (
        trionet.open_broker(brokers=2) as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        brokers = [ConfigResource(ConfigResourceType.BROKER, str(n)) for n in (1, 2, 3)]

        found = await admin.describe_configs(brokers, keys=["node.id"])

        assert "BROKER_NOT_AVAILABLE" == code_of(found.pop(brokers[2]))
        assert ["1", "2"] == [each["node.id"].value for each in found.checked().values()]


async def test_name_that_is_no_broker_is_refused(admin: Admin) -> None:
    with pytest.raises(ValueError, match="invalid broker id"):
        await admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "one")])


async def test_resources_with_settings_are_listed(admin: Admin) -> None:
    await admin.create_topics(["a"])

    assert TOPIC in await admin.list_config_resources()
    assert [TOPIC] == await admin.list_config_resources([ConfigResourceType.TOPIC])
    assert [] == await admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
