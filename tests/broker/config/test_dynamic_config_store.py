"""Altered settings of brokers: stored, restored, and told to the brokers that they concern."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from support.brokers import broker_and_client, log_of
from support.calls import create_topic
from support.config_calls import (
    BROKER,
    DEFAULT,
    DELETE,
    OF_ALL_BROKERS,
    OF_BROKER,
    OF_TOPIC,
    SET,
    TOPIC,
    alter,
    delete,
    put,
    sets,
    settings_of,
    value_of,
)
from support.nodes import connect_to
from support.tls import certificate, write_pem
from trionet import ConfigError, open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._dynamic_config import DynamicConfig
from trionet.broker.config._dynamic_config_store import (
    ALL_BROKERS,
    Apply,
    BrokerConfigs,
    altered_settings,
    reset_altered,
)
from trionet.broker.storage._database import DATABASE_NAME, Database, open_database
from trionet.errors import ApiError
from trionet.protocol import error_codes
from trionet.server.quotas._connection_limits import UNLIMITED


class Node:
    """A broker that only has settings, and takes none that it is asked to refuse."""

    def __init__(self, configs: BrokerConfigs, node_id: int) -> None:
        static = BrokerConfig.from_settings({"node.id": node_id})
        self.settings: DynamicConfig = configs.settings_of(static)
        self.refused = -1
        self.altered: list[frozenset[str]] = []

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        await trio.lowlevel.checkpoint()
        if settings.current.integer("message.max.bytes") == self.refused:
            raise ConfigError("this one does not")

        async def apply() -> None:
            await trio.lowlevel.checkpoint()
            self.settings = settings
            self.altered.append(altered)

        return apply

    @property
    def bytes_max(self) -> int:
        return self.settings.current.integer("message.max.bytes")


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with open_database(":memory:") as database:
        yield database


def two_nodes(configs: BrokerConfigs) -> tuple[Node, Node]:
    nodes = Node(configs, 1), Node(configs, 2)
    for node in nodes:
        configs.register(node.settings.static.node_id, node)
    return nodes


# Several brokers.


async def test_a_setting_of_all_brokers_is_every_brokers_and_one_of_one_is_its_own(
    database: Database,
) -> None:
    configs = await BrokerConfigs.load(database)
    first, second = two_nodes(configs)

    await configs.alter(ALL_BROKERS, lambda _: {"message.max.bytes": "5"})
    await configs.alter("2", lambda _: {"message.max.bytes": "6"})

    assert (5, 6) == (first.bytes_max, second.bytes_max)
    again = await BrokerConfigs.load(database)
    assert (5, 6) == (Node(again, 1).bytes_max, Node(again, 2).bytes_max)


async def test_what_one_broker_refuses_changes_none(database: Database) -> None:
    configs = await BrokerConfigs.load(database)
    first, second = two_nodes(configs)
    before = first.bytes_max
    second.refused = 5

    with pytest.raises(ApiError, match="this one does not") as raised:
        await configs.alter(ALL_BROKERS, lambda _: {"message.max.bytes": "5"})

    assert error_codes.INVALID_REQUEST == raised.value.error_code
    assert (before, before) == (first.bytes_max, second.bytes_max)
    assert before == Node(await BrokerConfigs.load(database), 1).bytes_max


async def test_a_broker_that_has_left_gets_no_updates_and_finds_them_when_it_is_back(
    database: Database,
) -> None:
    configs = await BrokerConfigs.load(database)
    first, second = two_nodes(configs)
    configs.unregister(second)

    await configs.alter(ALL_BROKERS, lambda _: {"message.max.bytes": "5"})

    assert (5, []) == (first.bytes_max, second.altered)
    assert 5 == Node(configs, 2).bytes_max


async def test_nothing_is_altered_while_a_broker_starts(database: Database) -> None:
    configs = await BrokerConfigs.load(database)
    node = Node(configs, 1)
    async with trio.open_nursery() as nursery, configs.hold_changes():
        configs.register(1, node)
        nursery.start_soon(configs.alter, ALL_BROKERS, lambda _: {"message.max.bytes": "5"})
        await trio.testing.wait_all_tasks_blocked()
        assert [] == node.altered

    assert 5 == node.bytes_max


async def test_keys_that_are_named_count_as_altered_even_with_the_same_value(
    database: Database,
) -> None:
    configs = await BrokerConfigs.load(database)
    node, _ = two_nodes(configs)
    settings = {"message.max.bytes": "5", "log.retention.ms": "6"}
    await configs.alter("1", lambda _: settings)

    await configs.alter("1", lambda _: {**settings, "log.roll.ms": "7"}, ["log.retention.ms"])

    assert frozenset(("log.roll.ms", "log.retention.ms")) == node.altered[-1]


# Starts.


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Of a broker that has stopped, with what was altered while it ran."""
    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        await create_topic(client, "t", retention_ms=1, flush_ms=2)
        await put(client, TOPIC, "t", retention_ms=3, segment_ms=4)
        await delete(client, TOPIC, "t", "flush.ms")
        await put(client, BROKER, "", message_max_bytes=5, num_io_threads=16, log_retention_ms=6)
        await put(client, BROKER, "1", message_max_bytes=7, log_roll_ms=8)
        await delete(client, BROKER, "", "log.retention.ms")
    return tmp_path


async def test_altered_settings_count_from_the_next_start_on(folder: Path) -> None:
    async with broker_and_client(log_dir=str(folder)) as (broker, client):
        config = log_of(broker).config
        assert (3, 4, 7) == (config.retention_ms, config.segment_ms, config.max_message_bytes)
        assert 16 == len(broker._server._handlers or ())
        assert ("7", OF_BROKER) == await value_of(client, BROKER, "1", "message.max.bytes")
        for_all = {"message.max.bytes", "min.insync.replicas", "num.io.threads"}
        assert for_all == {*(await settings_of(client, BROKER, ""))}
        topic = await settings_of(client, TOPIC, "t")
        own = {key: each.value for key, each in topic.items() if each.source == OF_TOPIC}
        assert {"retention.ms": "3", "segment.ms": "4"} == own


async def test_the_settings_of_another_node_are_not_this_ones(folder: Path) -> None:
    """A folder is one node's, so its name in the database is changed here."""
    with sqlite3.connect(folder / DATABASE_NAME) as connection:
        connection.execute("UPDATE broker_config SET broker = '2' WHERE broker = '1'")
    connection.close()

    async with broker_and_client(log_dir=str(folder)) as (broker, client):
        assert 5 == broker.config.integer("message.max.bytes")
        assert ("5", OF_ALL_BROKERS) == await value_of(client, BROKER, "1", "message.max.bytes")


async def test_what_cannot_be_used_any_more_prevents_no_start_and_no_alteration(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = "listener.name.secure.ssl.keystore"
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0"}
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL"}
    pem = write_pem(tmp_path / "key.pem", certificate())
    secure = {**listeners, **protocols, f"{store}.type": "PEM", f"{store}.location": pem}
    data = str(tmp_path / "data")
    async with broker_and_client(secure, log_dir=data) as (broker, client):
        await alter(client, BROKER, "1", (f"{store}.location", SET, pem), *sets(log_roll_ms=5))

    async with broker_and_client(log_dir=data) as (broker, client):
        assert f"altered settings that have no effect: {store}.location" in caplog.text
        assert 5 == broker.config.integer("log.roll.ms")

        await put(client, BROKER, "1", log_roll_ms=6)
        assert 6 == broker.config.integer("log.roll.ms")

    async with open_broker(secure, log_dir=data) as broker:
        assert pem == broker.config.text(f"{store}.location")


OVERRIDES = "max.connections.per.ip.overrides"


async def test_a_host_name_that_is_no_more_prevents_no_start_and_no_alteration(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own limit is left out until it is altered, and the rest of what was altered counts."""
    async with broker_and_client(log_dir=str(tmp_path)) as (broker, client):
        settings = sets(max_connections_per_ip=0, num_io_threads=16)
        await alter(client, BROKER, "1", (OVERRIDES, SET, "localhost:9"), *settings)
    with sqlite3.connect(tmp_path / DATABASE_NAME) as connection:
        connection.execute(
            "UPDATE broker_config SET value = 'host.invalid:9' WHERE name = ?", (OVERRIDES,)
        )
    connection.close()

    async with broker_and_client(log_dir=str(tmp_path)) as (broker, client):
        assert "ignoring altered settings: max.connections.per.ip.overrides" in caplog.text
        assert 16 == len(broker._server._handlers or ())
        assert UNLIMITED == broker._server.quotas.limits.connections_per_ip_max

        await put(client, BROKER, "1", log_roll_ms=6)
        assert ("", DEFAULT) == await value_of(client, BROKER, "1", OVERRIDES)
        code, message = await alter(client, BROKER, "1", *sets(max_connections_per_ip=0))
        assert (error_codes.INVALID_REQUEST, True) == (code, "host.invalid" in message)

        assert (0, "") == await alter(client, BROKER, "1", (OVERRIDES, SET, "127.0.0.1:8"))
        limits = broker._server.quotas.limits
        assert (0, {"127.0.0.1": 8}) == (limits.connections_per_ip_max, limits.overrides)


async def test_a_limit_of_0_for_a_listener_to_come_keeps_no_broker_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = "listener.name.later.max.connections"
    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        code, message = await alter(client, BROKER, "", (key, SET, "0"))
        assert (error_codes.INVALID_REQUEST, f"{key} = 0 is not allowed" in message) == (code, True)
        await alter(client, BROKER, "", (key, SET, "1"))
    with sqlite3.connect(tmp_path / DATABASE_NAME) as connection:  # as an older version stored it
        connection.execute("UPDATE broker_config SET value = '0' WHERE name = ?", (key,))
    connection.close()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,LATER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LATER:PLAINTEXT",
    }

    async with broker_and_client(settings, log_dir=str(tmp_path)) as (broker, client):
        assert f"ignoring an altered setting: {key} = 0" in caplog.text
        assert (0, "") == await alter(client, BROKER, "", (key, SET, "5"))
        assert 5 == broker._server.quotas.listener("LATER").limits.connections_max


async def test_defaults_with_which_no_topic_could_be_created_are_refused_and_not_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lowest, highest = (f"log.cleaner.{end}.compaction.lag.ms" for end in ("min", "max"))
    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        assert (0, "") == await alter(client, BROKER, "", (lowest, SET, "6"), (highest, SET, "7"))
        code, message = await alter(client, BROKER, "", (highest, SET, "5"))
        assert error_codes.INVALID_REQUEST == code
        assert f"{lowest} = 6 must not be greater than {highest} = 5" == message
    with sqlite3.connect(tmp_path / DATABASE_NAME) as connection:  # as an older version stored it
        connection.execute("UPDATE broker_config SET value = '5' WHERE name = ?", (highest,))
    connection.close()

    async with broker_and_client(log_dir=str(tmp_path), topics=["new"]) as (_, client):
        assert 1 == caplog.text.count("ignoring an altered setting, ")
        await create_topic(client, "newer")


async def test_a_key_store_that_is_gone_keeps_no_broker_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location = "listener.name.ssl.ssl.keystore.location"
    first, second = (
        write_pem(tmp_path / name, certificate()) for name in ("first.pem", "second.pem")
    )
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": first,
        "log.dir": str(tmp_path / "data"),
    }
    async with broker_and_client(settings) as (broker, client):
        assert (0, "") == await alter(client, BROKER, "1", (location, SET, second))
    os.rename(second, tmp_path / "away.pem")

    async with broker_and_client(settings) as (broker, client):
        assert "ignoring altered settings: listener SSL: ssl.keystore.location" in caplog.text
        assert location not in await settings_of(client, BROKER, "1")

        os.rename(tmp_path / "away.pem", second)
        assert (0, "") == await alter(client, BROKER, "1", (location, SET, second))

    async with open_broker(settings) as broker:
        assert second == broker.config.text(location)


async def test_what_the_broker_is_started_with_has_to_be_right(tmp_path: Path) -> None:
    settings = {"log.dir": str(tmp_path), OVERRIDES: "host.invalid:5"}
    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        await put(client, BROKER, "1", num_io_threads=16)

    with pytest.raises(ConfigError, match=r"cannot resolve 'host\.invalid'"):
        async with open_broker(settings):
            pass


async def test_a_log_setting_of_one_broker_is_not_that_of_several(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = str(tmp_path)
    async with broker_and_client(log_dir=data) as (broker, client):
        await put(client, BROKER, "1", log_roll_ms=1000)

    async with open_broker(log_dir=data, brokers=3) as broker, connect_to(broker, 1, 2) as clients:
        first, second = clients
        assert 1 == caplog.text.count("ignoring an altered setting: log.roll.ms cannot be set for")
        assert "log.roll.ms" not in broker.config.originals
        await put(second, BROKER, "", log_roll_ms=2000)
        await put(first, BROKER, "1", max_connections=100)
        # Refused as by one broker alone.
        code, message = await alter(first, BROKER, "1", *sets(min_insync_replicas=1))
        assert error_codes.INVALID_CONFIG == code
        assert message.startswith("Broker-level min.insync.replicas cannot be altered")
        assert 2000 == broker.config.integer("log.roll.ms")
        code, _ = await alter(first, BROKER, "1", *sets(log_roll_ms=1000))
        assert error_codes.INVALID_REQUEST == code

    async with open_broker(log_dir=data) as broker:
        assert 1000 == broker.config.integer("log.roll.ms")


async def test_the_cleaner_of_several_nodes_follows_the_first_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's nodes have a cleaner each, so that a setting of any of them is accepted."""
    key = "log.cleaner.backoff.ms"
    async with (
        open_broker(log_dir=str(tmp_path), brokers=2) as broker,
        connect_to(broker, 1, 2) as (first, second),
    ):
        await put(second, BROKER, "2", log_cleaner_backoff_ms=5)
        assert ("5", OF_BROKER) == await value_of(second, BROKER, "2", key)
        assert f"follows broker 1: broker 2 does not apply {key}" in caplog.text
        cleaner = broker._cluster.cleaner
        assert 15_000 == cleaner.config.backoff_ms

        await put(first, BROKER, "1", log_cleaner_backoff_ms=6)
        assert 6 == cleaner.config.backoff_ms


# Resets.


async def test_what_was_altered_can_be_forgotten_while_the_broker_does_not_run(
    folder: Path,
) -> None:
    assert [
        "all brokers: message.max.bytes=5",
        "all brokers: num.io.threads=16",
        "broker 1: log.roll.ms=8",
        "broker 1: message.max.bytes=7",
    ] == await reset_altered(str(folder))
    assert [] == await reset_altered(str(folder))

    async with open_broker(log_dir=str(folder)) as broker:
        assert 1_048_588 == broker.config.integer("message.max.bytes")
        assert 3 == log_of(broker).config.retention_ms  # of the topic

        with pytest.raises(ConfigError, match="in use by another broker"):
            await reset_altered(str(folder))


async def test_where_no_broker_was_nothing_is_made_to_be_forgotten(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no altered settings"):
        await reset_altered(str(tmp_path / "none"))

    assert [] == os.listdir(tmp_path)


@pytest.mark.slow
async def test_settings_that_cannot_be_stored_do_not_count(folder: Path) -> None:
    async with broker_and_client(log_dir=str(folder)) as (broker, client):
        with sqlite3.connect(folder / DATABASE_NAME) as other:
            other.execute("BEGIN IMMEDIATE")
            answers = [
                await alter(client, BROKER, "1", *sets(message_max_bytes=9)),
                await alter(client, TOPIC, "t", *sets(retention_ms=9)),
            ]
            other.rollback()
        other.close()

        assert {error_codes.KAFKA_STORAGE_ERROR} == {code for code, _ in answers}
        config = log_of(broker).config
        assert (7, 3) == (config.max_message_bytes, config.retention_ms)
        await put(client, BROKER, "1", message_max_bytes=9)


async def test_no_setting_forges_a_line_of_the_log_or_of_the_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line = "x\nWARNING forged\x1b[2J"
    caplog.set_level(logging.INFO, "trionet.broker")

    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        for key in (line, "sasl.enabled.mechanisms", "metrics.recording.level"):
            await alter(client, BROKER, "1", (key, SET, line))
    database = sqlite3.connect(tmp_path / DATABASE_NAME)
    with database:
        database.execute("INSERT INTO broker_config VALUES ('', 'message.max.bytes', ?)", (line,))
    database.close()
    async with open_broker(log_dir=str(tmp_path)):
        pass

    assert [] == [each for each in caplog.messages if not each.isprintable()]
    assert "Invalid value x\\nWARNING forged\\x1b[2J for" in caplog.text
    listed = await altered_settings(str(tmp_path))
    assert "broker 1: x\\nWARNING forged\\x1b[2J=[hidden]" in listed
    assert all(each.isprintable() for each in listed)
    with pytest.raises(ConfigError) as caught:
        await reset_altered(str(tmp_path), "other")
    assert str(caught.value).isprintable()


async def test_no_line_of_the_log_is_as_long_as_what_a_client_may_alter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trionet.broker")

    async with broker_and_client() as (_, client):
        custom: list[tuple[str, int, str | None]] = [
            (f"{number}{'y' * 30_000}", SET, "v") for number in range(50)
        ]
        assert (0, "") == await alter(client, BROKER, "1", *custom)

    lines = [each for each in caplog.messages if each.startswith("altered settings")]
    assert [True, True] == [each.endswith("y...") and len(each) < 10_100 for each in lines]


async def test_the_min_isr_that_an_older_version_stored_for_one_broker_can_be_deleted(
    tmp_path: Path,
) -> None:
    async with open_broker(log_dir=str(tmp_path)):
        pass
    database = sqlite3.connect(tmp_path / DATABASE_NAME)
    with database:
        database.execute("INSERT INTO broker_config VALUES ('1', 'min.insync.replicas', '2')")
    database.close()

    async with broker_and_client(log_dir=str(tmp_path)) as (_, client):
        assert ("2", OF_BROKER) == await value_of(client, BROKER, "1", "min.insync.replicas")
        code, message = await alter(client, BROKER, "1", *sets(min_insync_replicas=3))
        assert (error_codes.INVALID_CONFIG, True) == (code, "Broker-level" in message)

        await delete(client, BROKER, "1", "min.insync.replicas")

        _, source = await value_of(client, BROKER, "1", "min.insync.replicas")
        assert OF_ALL_BROKERS == source
        code, _ = await alter(client, BROKER, "1", ("min.insync.replicas", DELETE, None))
        assert error_codes.INVALID_CONFIG == code
