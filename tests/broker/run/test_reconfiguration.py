"""Settings that are altered while the broker runs take effect at once, where they should."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
import trio

from support.brokers import log_of
from support.calls import TIMESTAMP, append, batch, create_topic, produce
from support.client import Client, connect
from support.config_calls import (
    BROKER,
    LOGGER,
    OF_ALL_BROKERS,
    OF_BROKER,
    SET,
    TOPIC,
    alter,
    delete,
    put,
    sets,
    value_of,
)
from support.nodes import connect_to
from trionet import Broker, open_broker
from trionet.broker.log import LogConfig
from trionet.protocol import error_codes

DAY_MS = 86_400_000


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(num_io_threads=4) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    """Of a broker with a topic that follows it, and one that does not."""
    async with connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", partitions=3)
        await create_topic(client, "own", max_message_bytes=500, segment_ms=DAY_MS)
        yield client


def limits(broker: Broker, topic: str, partition: int = 0) -> tuple[int, int]:
    config = log_of(broker, topic, partition).config
    return config.max_message_bytes, config.segment_ms


# Topics.


async def test_a_topics_setting_counts_for_all_its_partitions_at_once(
    broker: Broker, client: Client
) -> None:
    await put(client, TOPIC, "t", max_message_bytes=100)

    assert [100, 100, 100] == [limits(broker, "t", index)[0] for index in range(3)]
    refused = await produce(client, "t", batch(b"x" * 100), partition=2)
    assert error_codes.MESSAGE_TOO_LARGE == refused.error_code

    await delete(client, TOPIC, "t", "max.message.bytes")

    assert 0 == (await produce(client, "t", batch(b"x" * 100), partition=2)).error_code


async def test_the_next_append_obeys_another_segment_size(broker: Broker, client: Client) -> None:
    await append(client, b"a", b"b")
    assert 1 == len(log_of(broker)._segments.all)

    await put(client, TOPIC, "t", internal_segment_bytes=80)
    await append(client, b"c", b"d")

    assert [0, 2, 3] == [segment.base_offset for segment in log_of(broker)._segments.all]


async def test_the_next_append_has_another_kind_of_timestamp(client: Client) -> None:
    assert -1 == (await produce(client, "t", batch(b"a"))).log_append_time_ms

    await put(client, TOPIC, "t", message_timestamp_type="LogAppendTime")

    assert TIMESTAMP < (await produce(client, "t", batch(b"a"))).log_append_time_ms


async def test_every_key_that_a_log_reads_reaches_it(broker: Broker, client: Client) -> None:
    values: dict[str, str | int] = {
        "segment_bytes": 2_000_000,
        "segment_ms": 2,
        "segment_jitter_ms": 3,
        "segment_index_bytes": 4,
        "index_interval_bytes": 5,
        "max_message_bytes": 6,
        "message_timestamp_type": "LogAppendTime",
        "message_timestamp_before_max_ms": 7,
        "message_timestamp_after_max_ms": 8,
        "flush_messages": 9,
        "flush_ms": 10,
        "retention_bytes": 11,
        "retention_ms": 12,
    }
    await put(client, TOPIC, "t", **values, cleanup_policy="compact")

    config = log_of(broker).config
    assert values == {name: getattr(config, name) for name in values}
    assert (True, False) == (config.may_have_gaps, config.removes_old_segments)

    await delete(
        client, TOPIC, "t", *(name.replace("_", ".") for name in [*values, "cleanup_policy"])
    )

    assert LogConfig(cleanup_policy="('delete',)") == log_of(broker).config


async def test_a_topics_settings_without_effect_are_reported_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "trionet.broker")
    await put(client, TOPIC, "t", cleanup_policy="compact")
    await put(client, TOPIC, "t", retention_ms=5)

    told = [each.getMessage() for each in caplog.records]
    assert ["topic t: not applied by this version: cleanup.policy=compact"] == told


# The broker's settings as the defaults of topics.


@pytest.mark.parametrize("name", ["", "1"])
async def test_topics_without_a_setting_of_their_own_follow_the_broker(
    broker: Broker, client: Client, name: str
) -> None:
    await put(client, BROKER, name, message_max_bytes=700, log_roll_ms=DAY_MS // 2)
    await create_topic(client, "new")

    assert {(700, DAY_MS // 2)} == {limits(broker, "t", index) for index in range(3)}
    assert (700, DAY_MS // 2) == limits(broker, "new")
    assert (500, DAY_MS) == limits(broker, "own")

    await delete(client, TOPIC, "own", "max.message.bytes")
    assert (700, DAY_MS) == limits(broker, "own")

    await delete(client, BROKER, name, "message.max.bytes", "log.roll.ms")
    assert (1_048_588, 7 * DAY_MS) == limits(broker, "t")


async def test_a_setting_in_milliseconds_wins_over_one_in_hours_that_the_broker_began_with() -> (
    None
):
    async with (
        open_broker(log_retention_hours=5) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        assert 5 * 3_600_000 == log_of(broker).config.retention_ms

        await put(client, BROKER, "1", log_retention_ms=77)
        assert 77 == log_of(broker).config.retention_ms

        await delete(client, BROKER, "1", "log.retention.ms")
        assert 5 * 3_600_000 == log_of(broker).config.retention_ms


async def test_idle_producers_are_forgotten_after_another_time(
    broker: Broker, client: Client
) -> None:
    await put(client, BROKER, "", producer_id_expiration_ms=77)

    assert 77 == log_of(broker).config.producer_id_expiration_ms
    assert 77 == log_of(broker, "own").config.producer_id_expiration_ms


async def test_many_topics_follow_and_one_that_is_altered_meanwhile_keeps_its_change(
    broker: Broker, client: Client
) -> None:
    for index in range(120):
        await create_topic(client, f"t{index}")

    async with connect(broker.bootstrap_servers) as other, trio.open_nursery() as nursery:
        nursery.start_soon(put_default, other)
        await put(client, TOPIC, "t119", max_message_bytes=5)

    assert {700} == {limits(broker, f"t{index}")[0] for index in range(119)}
    assert 5 == limits(broker, "t119")[0]


async def put_default(client: Client) -> None:
    await put(client, BROKER, "", message_max_bytes=700)


# What is reported.


async def test_what_is_altered_is_logged_without_secrets_and_what_has_no_effect_is_reported(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trionet.broker")
    await put(client, BROKER, "1", log_retention_ms=5, log_cleaner_threads=2)
    await put(client, BROKER, "", num_replica_fetchers=2)
    await delete(client, BROKER, "1", "log.retention.ms")

    assert [
        "altered settings of broker 1: log.retention.ms=5, log.cleaner.threads=2",
        "settings not applied by this version: log.cleaner.threads=2",
        "altered settings of all brokers: num.replica.fetchers=2",
        "settings without effect on a single node: num.replica.fetchers",
        "altered settings of broker 1: log.retention.ms deleted",
    ] == [each.getMessage() for each in caplog.records]


async def test_levels_of_loggers_go_back_when_the_broker_ends() -> None:
    logger = logging.getLogger("trionet.broker")
    before = logger.level
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await alter(client, LOGGER, "1", ("trionet.broker", SET, "TRACE"))
        assert 5 == logger.level

    assert before == logger.level


# Several nodes: one set of logs, and a network for each.


@pytest.fixture
async def nodes() -> AsyncIterator[Broker]:
    async with open_broker(brokers=2, num_network_threads=2) as broker:
        yield broker


def threads(broker: Broker) -> list[int]:
    return [len(broker._nodes[node].server.processors) for node in broker.node_ids]


async def test_a_setting_of_one_node_is_its_own_and_one_of_all_is_every_nodes(
    nodes: Broker,
) -> None:
    async with connect_to(nodes, 1, 2) as [first, second]:
        await put(first, BROKER, "1", num_network_threads=3)
        assert [3, 2] == threads(nodes)

        await put(second, BROKER, "", num_network_threads=4)
        assert [3, 4] == threads(nodes)

        assert ("3", OF_BROKER) == await value_of(first, BROKER, "1", "num.network.threads")
        assert ("4", OF_ALL_BROKERS) == await value_of(second, BROKER, "2", "num.network.threads")
        code, _ = await alter(first, BROKER, "2", *sets(num_network_threads=2))
        assert error_codes.INVALID_REQUEST == code


async def test_the_logs_of_several_nodes_obey_what_is_set_for_all(nodes: Broker) -> None:
    async with connect_to(nodes, 1, 2) as [first, second]:
        await create_topic(first, "t", partitions=2)
        for node, client in ((1, first), (2, second)):
            code, message = await alter(client, BROKER, str(node), *sets(message_max_bytes=700))
            assert error_codes.INVALID_REQUEST == code
            assert "set it for all nodes" in message

        await put(second, BROKER, "", message_max_bytes=700)

        assert [700, 700] == [limits(nodes, "t", index)[0] for index in range(2)]


@pytest.mark.parametrize("stopped", [1, 2])
async def test_what_was_altered_while_a_node_was_stopped_counts_when_it_is_back(
    nodes: Broker, stopped: int
) -> None:
    async with connect_to(nodes, 3 - stopped) as [client]:
        await create_topic(client, "t")
        await nodes.stop(stopped)
        await put(client, BROKER, "", message_max_bytes=700, num_network_threads=4)
        assert 700 == limits(nodes, "t")[0]

        await nodes.start(stopped)

    assert [4, 4] == threads(nodes)
    async with connect_to(nodes, stopped) as [client]:
        await put(client, BROKER, str(stopped), num_network_threads=3)
    assert {3, 4} == set(threads(nodes))
