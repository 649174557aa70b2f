from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from support.calls import create_topic
from support.client import Client, connect
from support.turns import turns_during
from trionet import open_broker
from trionet.broker.config._broker_config import BROKER_KEYS
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6
LONG = 5


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a broker with a setting of its own and a topic that overrides it."""
    async with (
        open_broker(log_segment_bytes=2_000_000) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", retention_ms=1000)
        yield client


async def ask(
    client: Client,
    type: int,
    name: str,
    keys: Sequence[str] | None = None,
    version: int = 4,
    **fields: Any,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=type,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[resource], **fields)
    [result] = (await client.call(request, version)).results
    assert isinstance(result, DescribeConfigsResult)
    assert (type, name) == (result.resource_type, result.resource_name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {entry.name: entry for entry in result.configs}


async def test_before_sources_it_was_reported_what_is_a_default(client: Client) -> None:
    settings = by_name(await ask(client, TOPIC, "t", version=0))

    assert ("1000", False) == (settings["retention.ms"].value, settings["retention.ms"].is_default)
    assert settings["index.interval.bytes"].is_default
    assert not settings["segment.bytes"].is_default


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topics_settings_come_with_their_source(client: Client, version: int) -> None:
    result = await ask(client, TOPIC, "t", version=version)

    settings = by_name(result)
    assert (0, None) == (result.error_code, result.error_message)
    assert ("1000", DYNAMIC_TOPIC_CONFIG) == (
        settings["retention.ms"].value,
        settings["retention.ms"].config_source,
    )
    assert ("2000000", STATIC_BROKER_CONFIG) == (
        settings["segment.bytes"].value,
        settings["segment.bytes"].config_source,
    )
    assert ("4096", DEFAULT_CONFIG) == (
        settings["index.interval.bytes"].value,
        settings["index.interval.bytes"].config_source,
    )
    assert (LONG if version >= 3 else 0) == settings["retention.ms"].config_type
    assert not settings["retention.ms"].read_only


async def test_a_brokers_settings_come_with_their_source(client: Client) -> None:
    settings = by_name(await ask(client, BROKER, "1"))

    assert ("2000000", STATIC_BROKER_CONFIG) == (
        settings["log.segment.bytes"].value,
        settings["log.segment.bytes"].config_source,
    )
    assert ("8", DEFAULT_CONFIG) == (
        settings["num.io.threads"].value,
        settings["num.io.threads"].config_source,
    )
    assert not settings["num.io.threads"].read_only
    assert settings["log.retention.hours"].read_only


@pytest.mark.parametrize(("type", "name"), [(TOPIC, "t"), (BROKER, "1")])
async def test_keys_narrow_the_response_and_an_empty_list_does_not(
    client: Client, type: int, name: str
) -> None:
    everything = await ask(client, type, name)
    key = everything.configs[3].name

    one = await ask(client, type, name, [key, "no.such.key"])
    empty = await ask(client, type, name, [])

    assert [key] == [entry.name for entry in one.configs]
    assert everything.configs == empty.configs


async def test_synonyms_are_listed_where_they_are_asked_for(client: Client) -> None:
    without = by_name(await ask(client, TOPIC, "t"))["segment.bytes"]
    with_them = by_name(await ask(client, TOPIC, "t", include_synonyms=True))

    assert [] == without.synonyms
    assert [
        ("log.segment.bytes", "2000000", STATIC_BROKER_CONFIG),
        ("log.segment.bytes", "1073741824", DEFAULT_CONFIG),
    ] == [
        (synonym.name, synonym.value, synonym.source)
        for synonym in with_them["segment.bytes"].synonyms
    ]
    assert ("retention.ms", "1000", DYNAMIC_TOPIC_CONFIG) == (
        with_them["retention.ms"].synonyms[0].name,
        with_them["retention.ms"].synonyms[0].value,
        with_them["retention.ms"].synonyms[0].source,
    )


async def test_documentation_is_accepted_and_none_is_there(client: Client) -> None:
    settings = by_name(await ask(client, TOPIC, "t", include_documentation=True))

    assert settings["retention.ms"].documentation is None


async def test_what_was_altered_for_all_brokers_is_nothing_at_first(client: Client) -> None:
    result = await ask(client, BROKER, "")

    assert (0, []) == (result.error_code, result.configs)


async def test_loggers_are_reported_with_their_levels(client: Client) -> None:
    entry = by_name(await ask(client, LOGGER, "1", ["trionet.broker"]))["trionet.broker"]

    assert "WARN" == entry.value
    assert (DYNAMIC_BROKER_LOGGER_CONFIG, False, 0) == (
        entry.config_source,
        entry.read_only,
        entry.config_type,
    )


@pytest.mark.parametrize(
    ("type", "name", "code"),
    [
        (TOPIC, "missing", error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", error_codes.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", error_codes.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", error_codes.INVALID_REQUEST),
        (BROKER, "x", error_codes.INVALID_REQUEST),
        (LOGGER, "2", error_codes.INVALID_REQUEST),
        (LOGGER, "", error_codes.INVALID_REQUEST),
        (CLIENT_METRICS, "m", error_codes.INVALID_REQUEST),
        (GROUP, "g", error_codes.INVALID_REQUEST),
        (77, "t", error_codes.INVALID_REQUEST),
    ],
)
async def test_what_has_no_settings_is_an_error(
    client: Client, type: int, name: str, code: int
) -> None:
    result = await ask(client, type, name)

    assert (code, []) == (result.error_code, result.configs)
    assert result.error_message


async def test_each_resource_has_a_response_of_its_own(client: Client) -> None:
    wanted = [(TOPIC, "t"), (TOPIC, "missing"), (BROKER, "1")]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=type, resource_name=name, configuration_keys=None)
            for type, name in wanted
        ]
    )

    response = await client.call(request, 4)

    assert wanted == [(each.resource_type, each.resource_name) for each in response.results]
    assert [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION, 0] == [
        each.error_code for each in response.results
    ]


async def test_secrets_are_not_shown() -> None:
    async with (
        open_broker({"ssl.key.password": "hunter2"}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        result = await ask(client, BROKER, "1", ["ssl.key.password"], include_synonyms=True)

    [entry] = result.configs
    assert (None, True) == (entry.value, entry.is_sensitive)
    assert [None] == [synonym.value for synonym in entry.synonyms]


def of_broker(*keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=list(keys)
    )


async def test_who_describes_very_much_leaves_the_others_their_turn(client: Client) -> None:
    keys = list(BROKER_KEYS)
    request = DescribeConfigsRequest(resources=[of_broker(*keys, f"{n}") for n in range(200)])

    assert 100 <= await turns_during(client.call(request, 4))


async def test_what_is_asked_for_twice_is_described_once(client: Client) -> None:
    """A request of 16 KB could name the broker 2,000 times, for 1.2 GB of memory."""
    few, all_of_them = of_broker("message.max.bytes", "log.dirs"), of_broker()
    request = DescribeConfigsRequest(
        resources=[few, of_broker("log.dirs", "message.max.bytes"), all_of_them, all_of_them, few]
    )

    results = (await client.call(request, 4)).results

    assert [2, True] == [len(results[0].configs), len(results[1].configs) > 100]
    assert 2 == len(results)
