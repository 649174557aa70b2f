"""AlterConfigs, which replaces all settings of a resource: error codes as of a real Kafka 4.3."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.calls import create_topic
from support.client import Client, connect
from support.config_calls import (
    BROKER,
    CLIENT_METRICS,
    DEFAULT,
    GROUP,
    LOGGER,
    OF_TOPIC,
    TOPIC,
    alter_all,
    put,
    settings_of,
    value_of,
)
from trionet import Broker
from trionet.protocol.error_codes import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
)


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", retention_ms=1000, segment_ms=5)
        yield client


async def own(client: Client) -> dict[str, str | None]:
    """The settings that the topic has of its own."""
    settings = await settings_of(client, TOPIC, "t")
    return {key: each.value for key, each in settings.items() if each.source == OF_TOPIC}


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_what_is_not_named_goes_back_to_its_default(client: Client, version: int) -> None:
    answer = await alter_all(
        client, TOPIC, "t", {"retention.ms": "7", "flush.ms": "8"}, version=version
    )

    assert (0, "") == answer
    assert {"retention.ms": "7", "flush.ms": "8"} == await own(client)


async def test_with_nothing_named_a_topic_has_no_settings_of_its_own(client: Client) -> None:
    assert (0, "") == await alter_all(client, TOPIC, "t", {})
    assert {} == await own(client)


async def test_settings_of_all_brokers_are_replaced(client: Client, broker: Broker) -> None:
    await put(client, BROKER, "", message_max_bytes=5, log_retention_ms=6)

    assert (0, "") == await alter_all(client, BROKER, "", {"log.retention.ms": "7"})

    assert ["log.retention.ms"] == list(await settings_of(client, BROKER, ""))
    assert 1_048_588 == broker.config.integer("message.max.bytes")
    assert ("1048588", DEFAULT) == await value_of(client, BROKER, "1", "message.max.bytes")


async def test_a_check_changes_nothing(client: Client) -> None:
    answer = await alter_all(client, TOPIC, "t", {"flush.ms": "8"}, validate_only=True)

    assert (0, "") == answer
    assert {"retention.ms": "1000", "segment.ms": "5"} == await own(client)


@pytest.mark.parametrize(
    ("type", "name", "pairs", "code"),
    [
        (TOPIC, "t", [("retention.ms", "x")], INVALID_CONFIG),
        (TOPIC, "t", [("no.such.key", "1")], INVALID_CONFIG),
        (TOPIC, "t", [("flush.ms", "8"), ("retention.ms", None)], INVALID_REQUEST),
        (TOPIC, "t", [("flush.ms", "8"), ("flush.ms", "9")], INVALID_REQUEST),
        (TOPIC, "", [("flush.ms", "8")], INVALID_REQUEST),
        (TOPIC, "missing", [("flush.ms", "8")], UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", [("log.dirs", "/x")], INVALID_REQUEST),
        (BROKER, "1", [("message.max.bytes", "x")], INVALID_REQUEST),
        (BROKER, "2", [("message.max.bytes", "5")], INVALID_REQUEST),
        # Only IncrementalAlterConfigs knows loggers.
        (LOGGER, "1", [("trionet.broker", "INFO")], INVALID_REQUEST),
        (CLIENT_METRICS, "m", [("interval.ms", "1000")], INVALID_REQUEST),
        (GROUP, "g", [("consumer.session.timeout.ms", "45000")], INVALID_REQUEST),
        (77, "x", [("flush.ms", "8")], INVALID_REQUEST),
    ],
)
async def test_what_cannot_be_changes_nothing(
    client: Client, type: int, name: str, pairs: list[tuple[str, str | None]], code: int
) -> None:
    answered, message = await alter_all(client, type, name, pairs)

    assert (code, True) == (answered, bool(message))
    assert {"retention.ms": "1000", "segment.ms": "5"} == await own(client)
