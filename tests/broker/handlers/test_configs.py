"""The APIs of settings, which list, describe and alter them, as Kafka 4.3 does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from operator import attrgetter
from typing import Any

import pytest
import trio

from support.calls import batch, create_topic, fetch, produce, values_of
from support.client import Client, connect
from support.config_calls import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DEFAULT,
    DELETE,
    GROUP,
    LOGGER,
    OF_ALL_BROKERS,
    OF_BROKER,
    OF_LOGGER,
    OF_TOPIC,
    SET,
    SUBTRACT,
    TOPIC,
    Operation,
    alter,
    alter_all,
    alter_each,
    delete,
    incremental_request,
    put,
    sets,
    settings_of,
    value_of,
)
from support.nodes import connect_to
from support.turns import turns_during
from trionet import Broker, open_broker
from trionet.broker.config._broker_config import BROKER_KEYS
from trionet.protocol import error_codes
from trionet.protocol.error_codes import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from trionet.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from trionet.protocol.messages.list_config_resources import ListConfigResourcesRequest


async def list_resources(
    client: Client, *types: int, version: int = 1
) -> tuple[int, list[tuple[int, str]]]:
    answer = await client.call(ListConfigResourcesRequest(resource_types=list(types)), version)
    return answer.error_code, [
        (each.resource_type, each.resource_name) for each in answer.config_resources
    ]


async def test_without_types_all_that_can_be_described_is_reported(client: Client) -> None:
    await create_topic(client, "t")
    await create_topic(client, "u")

    assert (0, [(LOGGER, "1"), (BROKER, "1"), (TOPIC, "t"), (TOPIC, "u")]) == await list_resources(
        client
    )


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([TOPIC], [(TOPIC, "t")]),
        ([TOPIC, BROKER], [(BROKER, "1"), (TOPIC, "t")]),
        ([LOGGER, GROUP, CLIENT_METRICS], [(LOGGER, "1")]),
        ([GROUP], []),
    ],
)
async def test_types_narrow_the_response(
    client: Client, types: list[int], expected: list[tuple[int, str]]
) -> None:
    await create_topic(client, "t")

    assert (0, expected) == await list_resources(client, *types)


@pytest.mark.parametrize("type", [0, 1, 99, -1])
async def test_an_unknown_type_is_an_error(client: Client, type: int) -> None:
    assert (UNSUPPORTED_VERSION, []) == await list_resources(client, TOPIC, type)


async def test_version_0_is_about_client_metrics_and_there_are_none(client: Client) -> None:
    await create_topic(client, "t")

    assert (0, []) == await list_resources(client, version=0)


async def test_all_brokers_that_run_are_reported_by_each_of_them() -> None:
    async with open_broker(brokers=3) as broker, connect_to(broker, 2) as [client]:
        await broker.stop(3)

        assert (
            0,
            [(LOGGER, "1"), (LOGGER, "2"), (BROKER, "1"), (BROKER, "2")],
        ) == await list_resources(client, LOGGER, BROKER)


TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6
LONG = 5


@pytest.fixture
async def described() -> AsyncIterator[Client]:
    """Of a broker with a setting of its own and a topic that overrides it."""
    async with (
        open_broker(log_segment_bytes=2_000_000) as broker,
        connect(broker.bootstrap_servers) as described,
    ):
        await create_topic(described, "t", retention_ms=1000)
        yield described


async def describe(
    described: Client,
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
    [result] = (await described.call(request, version)).results
    assert isinstance(result, DescribeConfigsResult)
    assert (type, name) == (result.resource_type, result.resource_name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {entry.name: entry for entry in result.configs}


async def test_before_sources_it_was_reported_what_is_a_default(described: Client) -> None:
    settings = by_name(await describe(described, TOPIC, "t", version=0))

    assert ("1000", False) == (settings["retention.ms"].value, settings["retention.ms"].is_default)
    assert settings["index.interval.bytes"].is_default
    assert not settings["segment.bytes"].is_default


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topics_settings_come_with_their_source(described: Client, version: int) -> None:
    result = await describe(described, TOPIC, "t", version=version)

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


async def test_a_brokers_settings_come_with_their_source(described: Client) -> None:
    settings = by_name(await describe(described, BROKER, "1"))

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
    described: Client, type: int, name: str
) -> None:
    everything = await describe(described, type, name)
    key = everything.configs[3].name

    one = await describe(described, type, name, [key, "no.such.key"])
    empty = await describe(described, type, name, [])

    assert [key] == [entry.name for entry in one.configs]
    assert everything.configs == empty.configs


async def test_synonyms_are_listed_where_they_are_asked_for(described: Client) -> None:
    without = by_name(await describe(described, TOPIC, "t"))["segment.bytes"]
    with_them = by_name(await describe(described, TOPIC, "t", include_synonyms=True))

    assert [] == without.synonyms
    assert [
        ("log.segment.bytes", "2000000", STATIC_BROKER_CONFIG),
        ("log.segment.bytes", "1073741824", DEFAULT_CONFIG),
    ] == [
        (synonym.name, synonym.value, synonym.source)
        for synonym in with_them["segment.bytes"].synonyms
    ]
    assert ("retention.ms", "1000", DYNAMIC_TOPIC_CONFIG) == attrgetter("name", "value", "source")(
        with_them["retention.ms"].synonyms[0]
    )


async def test_documentation_is_returned_on_request(described: Client) -> None:
    for type, name in ((TOPIC, "t"), (BROKER, "1"), (BROKER, "")):
        documented = by_name(await describe(described, type, name, include_documentation=True))
        assert all(each.documentation for each in documented.values())
        plain = by_name(await describe(described, type, name))
        assert {None} == {each.documentation for each in plain.values()}

    loggers = by_name(await describe(described, LOGGER, "1", include_documentation=True))
    assert {None} == {each.documentation for each in loggers.values()}


async def test_of_all_brokers_only_one_setting_is_there_at_first(described: Client) -> None:
    """The one that a new cluster of Kafka takes over from its first broker (KIP-966)."""
    result = await describe(described, BROKER, "")

    assert 0 == result.error_code
    assert [("min.insync.replicas", "1", OF_ALL_BROKERS)] == [
        (each.name, each.value, each.config_source) for each in result.configs
    ]


async def test_least_replicas_in_sync_are_those_of_all_brokers(changed: Client) -> None:
    for type, name in ((BROKER, "1"), (TOPIC, "t")):
        [setting] = (await settings_of(changed, type, name, "min.insync.replicas")).values()
        of_all = ("min.insync.replicas", "1", OF_ALL_BROKERS)
        default = ("min.insync.replicas", "1", DEFAULT)
        assert ("1", OF_ALL_BROKERS, (of_all, default)) == setting

    await put(changed, BROKER, ALL, min_insync_replicas=2)

    assert ("2", OF_ALL_BROKERS) == await value_of(changed, TOPIC, "t", "min.insync.replicas")


async def test_loggers_are_reported_with_their_levels(described: Client) -> None:
    entry = by_name(await describe(described, LOGGER, "1", ["trionet.broker"]))["trionet.broker"]

    assert "WARN" == entry.value
    assert (DYNAMIC_BROKER_LOGGER_CONFIG, False, 0) == attrgetter(
        "config_source", "read_only", "config_type"
    )(entry)


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
    described: Client, type: int, name: str, code: int
) -> None:
    result = await describe(described, type, name)

    assert (code, []) == (result.error_code, result.configs)
    assert result.error_message


async def test_each_resource_has_a_response_of_its_own(described: Client) -> None:
    wanted = [(TOPIC, "t"), (TOPIC, "missing"), (BROKER, "1")]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=type, resource_name=name, configuration_keys=None)
            for type, name in wanted
        ]
    )

    response = await described.call(request, 4)

    assert wanted == [(each.resource_type, each.resource_name) for each in response.results]
    assert [0, error_codes.UNKNOWN_TOPIC_OR_PARTITION, 0] == [
        each.error_code for each in response.results
    ]


async def test_secrets_are_not_shown() -> None:
    async with (
        open_broker({"ssl.key.password": "hunter2"}) as broker,
        connect(broker.bootstrap_servers) as described,
    ):
        result = await describe(described, BROKER, "1", ["ssl.key.password"], include_synonyms=True)

    [entry] = result.configs
    assert (None, True) == (entry.value, entry.is_sensitive)
    assert [None] == [synonym.value for synonym in entry.synonyms]


def of_broker(*keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=list(keys)
    )


async def test_who_describes_very_much_leaves_the_others_their_turn(described: Client) -> None:
    keys = list(BROKER_KEYS)
    request = DescribeConfigsRequest(resources=[of_broker(*keys, f"{n}") for n in range(200)])

    assert 100 <= await turns_during(described.call(request, 4))


async def test_what_is_asked_for_twice_is_described_once(described: Client) -> None:
    """A request of 16 KB could name the broker 2,000 times, for 1.2 GB of memory."""
    few, all_of_them = of_broker("message.max.bytes", "log.dirs"), of_broker()
    request = DescribeConfigsRequest(
        resources=[few, of_broker("log.dirs", "message.max.bytes"), all_of_them, all_of_them, few]
    )

    results = (await described.call(request, 4)).results

    assert [2, True] == [len(results[0].configs), len(results[1].configs) > 100]
    assert 2 == len(results)


@pytest.fixture
async def altered(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as altered:
        await create_topic(altered, "t", retention_ms=1000, segment_ms=5)
        yield altered


async def own(altered: Client) -> dict[str, str | None]:
    """The settings that the topic has of its own."""
    settings = await settings_of(altered, TOPIC, "t")
    return {key: each.value for key, each in settings.items() if each.source == OF_TOPIC}


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_what_is_not_named_goes_back_to_its_default(altered: Client, version: int) -> None:
    answer = await alter_all(
        altered, TOPIC, "t", {"retention.ms": "7", "flush.ms": "8"}, version=version
    )

    assert (0, "") == answer
    assert {"retention.ms": "7", "flush.ms": "8"} == await own(altered)


async def test_with_nothing_named_a_topic_has_no_settings_of_its_own(altered: Client) -> None:
    assert (0, "") == await alter_all(altered, TOPIC, "t", {})
    assert {} == await own(altered)


async def test_settings_of_all_brokers_are_replaced(altered: Client, broker: Broker) -> None:
    await put(altered, BROKER, "", message_max_bytes=5, log_retention_ms=6)

    assert (0, "") == await alter_all(altered, BROKER, "", {"log.retention.ms": "7"})

    assert {"log.retention.ms", "min.insync.replicas"} == {
        *(await settings_of(altered, BROKER, ""))
    }
    assert 1_048_588 == broker.config.integer("message.max.bytes")
    assert ("1048588", DEFAULT) == await value_of(altered, BROKER, "1", "message.max.bytes")


async def test_a_check_of_a_replacement_changes_nothing(altered: Client) -> None:
    answer = await alter_all(altered, TOPIC, "t", {"flush.ms": "8"}, validate_only=True)

    assert (0, "") == answer
    assert {"retention.ms": "1000", "segment.ms": "5"} == await own(altered)


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
    altered: Client, type: int, name: str, pairs: list[tuple[str, str | None]], code: int
) -> None:
    answered, message = await alter_all(altered, type, name, pairs)

    assert (code, True) == (answered, bool(message))
    assert {"retention.ms": "1000", "segment.ms": "5"} == await own(altered)


ALL = ""


@pytest.fixture
async def changed(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as changed:
        await create_topic(changed, "t", retention_ms=1000)
        yield changed


# Topics.


@pytest.mark.parametrize("version", [0, 1])
async def test_keys_of_a_topic_are_set_and_deleted_and_the_others_stay(
    changed: Client, version: int
) -> None:
    answer = await alter(changed, TOPIC, "t", *sets(segment_ms=5), version=version)

    assert (0, "") == answer
    assert ("5", OF_TOPIC) == await value_of(changed, TOPIC, "t", "segment.ms")
    assert ("1000", OF_TOPIC) == await value_of(changed, TOPIC, "t", "retention.ms")

    await delete(changed, TOPIC, "t", "retention.ms", "no.such.key")

    assert ("604800000", DEFAULT) == await value_of(changed, TOPIC, "t", "retention.ms")
    assert ("5", OF_TOPIC) == await value_of(changed, TOPIC, "t", "segment.ms")


async def test_a_list_of_a_topic_is_appended_to_and_subtracted_from(changed: Client) -> None:
    async def policy(operation: int, value: str) -> str | None:
        assert (0, "") == await alter(changed, TOPIC, "t", ("cleanup.policy", operation, value))
        return (await value_of(changed, TOPIC, "t", "cleanup.policy"))[0]

    assert "delete,compact" == await policy(APPEND, "compact")
    assert "delete,compact" == await policy(APPEND, "compact,delete")
    assert "compact" == await policy(SUBTRACT, "delete")
    assert "" == await policy(SUBTRACT, "compact")


@pytest.mark.parametrize(
    ("type", "name", "key"),
    [
        (TOPIC, "t", "leader.replication.throttled.replicas"),
        (BROKER, "1", "sasl.enabled.mechanisms"),
    ],
)
async def test_a_list_stays_short_enough_to_be_described(
    changed: Client, type: int, name: str, key: str
) -> None:
    items = [",".join(f"{first + each}:1" for each in range(3000)) for first in (10_000, 20_000)]

    assert (0, "") == await alter(changed, type, name, (key, SET, items[0]))
    code, message = await alter(changed, type, name, (key, APPEND, items[1]))

    assert (INVALID_CONFIG, True) == (code, "exceeds the maximum value" in message)
    assert items[0] == (await value_of(changed, type, name, key))[0]


@pytest.mark.parametrize("size", [0, -1])
async def test_a_topic_whose_segments_hold_nothing_can_be_healed(
    changed: Client, broker: Broker, size: int
) -> None:
    """Kafka accepts any ``internal.segment.bytes``, and then no batch fits into a segment."""
    await put(changed, TOPIC, "t", internal_segment_bytes=200, cleanup_policy="compact")
    keyed = batch(b"v", key=b"k")
    for _ in range(10):
        assert 0 == (await produce(changed, "t", keyed)).error_code

    await put(changed, TOPIC, "t", internal_segment_bytes=size)

    assert RECORD_LIST_TOO_LARGE == (await produce(changed, "t", keyed)).error_code
    await broker.compact("t")
    assert 1 == len(values_of(await fetch(changed, "t")))
    await delete(changed, TOPIC, "t", "internal.segment.bytes")
    assert 0 == (await produce(changed, "t", keyed)).error_code


async def test_a_value_is_kept_as_its_type_prints_it(changed: Client) -> None:
    await put(changed, TOPIC, "t", retention_bytes=" +12 ")

    assert ("12", OF_TOPIC) == await value_of(changed, TOPIC, "t", "retention.bytes")


@pytest.mark.parametrize(
    ("operations", "code", "what"),
    [
        ([("no.such", SET, "1")], INVALID_CONFIG, "Unknown topic config name: no.such"),
        ([("retention.ms", SET, "x")], INVALID_CONFIG, "Not a number of type LONG"),
        ([("retention.ms", SET, "-2")], INVALID_CONFIG, "Value must be at least -1"),
        ([("cleanup.policy", APPEND, "x")], INVALID_CONFIG, "one of: compact, delete"),
        ([("cleanup.policy", APPEND, "")], INVALID_CONFIG, "one of: compact, delete"),
        (
            [("retention.ms", APPEND, "1")],
            INVALID_CONFIG,
            "retention.ms because its type is not LIST",
        ),
        (
            [("retention.ms", SUBTRACT, "1")],
            INVALID_CONFIG,
            "retention.ms because its type is not LIST",
        ),
        ([("no.such", APPEND, "1")], INVALID_CONFIG, "no.such because its type is not LIST"),
        ([("retention.ms", SET, None)], INVALID_REQUEST, "Null value not supported for : "),
        (sets(retention_ms=1) * 2, INVALID_REQUEST, "duplicate config keys"),
        ([("retention.ms", 7, "1")], INVALID_REQUEST, "unknown operation 7"),
        (
            sets(min_compaction_lag_ms=10, max_compaction_lag_ms=5),
            INVALID_CONFIG,
            "is greater than max.compaction.lag.ms",
        ),
        (sets(remote_storage_enable="true"), INVALID_CONFIG, "not support tiered storage"),
        (sets(compression_type="brotli"), INVALID_CONFIG, "Invalid value brotli for"),
    ],
)
async def test_what_a_topic_cannot_have_changes_nothing(
    changed: Client, operations: list[Operation], code: int, what: str
) -> None:
    before = await settings_of(changed, TOPIC, "t")

    answered, message = await alter(changed, TOPIC, "t", *sets(segment_ms=5), *operations)

    assert (code, True) == (answered, what in message), message
    assert before == await settings_of(changed, TOPIC, "t")


@pytest.mark.parametrize(
    ("name", "key", "code"),
    [
        ("missing", "retention.ms", UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", "no.such.key", INVALID_CONFIG),  # values are looked at first
        ("", "retention.ms", INVALID_REQUEST),
        ("a b", "retention.ms", INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_a_topic_must_be_there(changed: Client, name: str, key: str, code: int) -> None:
    assert code == (await alter(changed, TOPIC, name, (key, SET, "1")))[0]


# Brokers.


async def test_one_brokers_setting_wins_over_that_of_all(changed: Client, broker: Broker) -> None:
    await put(changed, BROKER, ALL, message_max_bytes=2_000_000)
    await put(changed, BROKER, "1", message_max_bytes=3_000_000)

    assert {
        "message.max.bytes": (
            "3000000",
            OF_BROKER,
            (
                ("message.max.bytes", "3000000", OF_BROKER),
                ("message.max.bytes", "2000000", OF_ALL_BROKERS),
                ("message.max.bytes", "1048588", DEFAULT),
            ),
        )
    } == await settings_of(changed, BROKER, "1", "message.max.bytes")
    assert {
        "message.max.bytes": (
            "2000000",
            OF_ALL_BROKERS,
            (("message.max.bytes", "2000000", OF_ALL_BROKERS),),
        )
    } == await settings_of(changed, BROKER, ALL, "message.max.bytes")
    assert 3_000_000 == broker.config.integer("message.max.bytes")

    await delete(changed, BROKER, "1", "message.max.bytes")

    assert 2_000_000 == broker.config.integer("message.max.bytes")
    assert ("2000000", OF_ALL_BROKERS) == await value_of(changed, TOPIC, "t", "max.message.bytes")


async def test_a_list_of_a_broker_begins_with_kafkas_default() -> None:
    async with (
        open_broker({"log.cleanup.policy": "compact"}) as broker,
        connect(broker.bootstrap_servers) as changed,
    ):
        await alter(changed, BROKER, "1", ("log.cleanup.policy", APPEND, "compact"))

        assert ("delete,compact", OF_BROKER) == await value_of(
            changed, BROKER, "1", "log.cleanup.policy"
        )


async def test_a_node_id_may_have_zeros_before_it(changed: Client) -> None:
    await put(changed, BROKER, "01", message_max_bytes=5)

    assert ("5", OF_BROKER) == await value_of(changed, BROKER, "1", "message.max.bytes")


@pytest.mark.parametrize(
    ("name", "operations", "code", "what"),
    [
        ("1", sets(log_dirs="/x"), INVALID_REQUEST, "log.dirs cannot be changed while"),
        (ALL, sets(auto_create_topics_enable="false"), INVALID_REQUEST, "cannot be changed"),
        ("1", sets(log_retention_hours=1), INVALID_REQUEST, "cannot be changed while"),
        ("1", sets(message_max_bytes="x"), INVALID_REQUEST, "Not a number of type INT"),
        ("1", sets(message_max_bytes=-1), INVALID_REQUEST, "must be at least 0"),
        (
            "1",
            [("message.max.bytes", SET, None)],
            INVALID_REQUEST,
            "Null value not supported for : ",
        ),
        ("1", [("message.max.bytes", APPEND, "1")], INVALID_CONFIG, "its type is not LIST"),
        ("1", [("no.such.key", SUBTRACT, "1")], INVALID_CONFIG, "its type is not LIST"),
        ("1", [("message.max.bytes", 9, "1")], INVALID_REQUEST, "unknown operation 9"),
        ("1", sets(num_io_threads=100), INVALID_REQUEST, "allowed: 4 to 16"),
        (ALL, sets(num_network_threads=100), INVALID_REQUEST, "allowed: 1 to 6"),
        ("1", sets(num_replica_fetchers=3), INVALID_REQUEST, "allowed: 1 to 2"),
        ("1", sets(num_io_threads=0), INVALID_REQUEST, "Value must be at least 1"),
        (ALL, sets(max_connections_per_ip=0), INVALID_REQUEST, "1 or more, or 0 when"),
        (ALL, sets(max_connections_per_ip_overrides="x"), INVALID_REQUEST, "HOST:COUNT"),
        (
            "1",
            [("listener.name.plaintext.max.connections", SET, "0")],
            INVALID_REQUEST,
            "1 or more",
        ),
        ("1", [("ssl.keystore.location", SET, "/x")], INVALID_REQUEST, "for a single listener"),
        ("1", sets(listeners="PLAINTEXT://:1"), INVALID_REQUEST, "listeners are open"),
        (ALL, sets(cordoned_log_dirs="/x"), INVALID_REQUEST, "cannot be set for all brokers"),
        (ALL, sets(compression_type="brotli"), INVALID_REQUEST, "Invalid value brotli for"),
        ("1", sets(max_connections=0), INVALID_REQUEST, "no client could connect any more"),
        (ALL, sets(max_connection_creation_rate=0), INVALID_REQUEST, "allowed: 1 or more"),
        ("1", sets(cordoned_log_dirs="/x"), INVALID_REQUEST, "is not in log.dirs"),
        (ALL, sets(log_cleaner_dedupe_buffer_size=1_048_576), INVALID_REQUEST, "for each of"),
        (ALL, sets(log_local_retention_ms=-1), INVALID_REQUEST, "not exceed log.retention.ms"),
        ("1", sets(remote_log_reader_threads=1), INVALID_REQUEST, "allowed: 5 to 20"),
        ("1", sets(min_insync_replicas=1), INVALID_CONFIG, "Broker-level min.insync.replicas"),
        (ALL, [("min.insync.replicas", DELETE, None)], INVALID_CONFIG, "cannot be removed"),
        (
            ALL,
            [("group.consumer.assignment.interval.ms", SET, "15001")],
            INVALID_REQUEST,
            "0 to 15000",
        ),
        ("2", sets(message_max_bytes=5), INVALID_REQUEST, "this is broker 1, not 2"),
        ("x", sets(message_max_bytes=5), INVALID_REQUEST, "invalid broker name 'x'"),
        # Python reads no number of so many digits.
        ("9" * 5000, sets(message_max_bytes=5), INVALID_REQUEST, "999'; a broker's name"),
        ("+-1", sets(message_max_bytes=5), INVALID_REQUEST, "invalid broker name '+-1'"),
    ],
)
async def test_what_a_broker_cannot_have_changes_nothing(
    changed: Client, name: str, operations: list[Operation], code: int, what: str
) -> None:
    before = await settings_of(changed, BROKER, "1")

    answered, message = await alter(changed, BROKER, name, *operations)

    assert (code, True) == (answered, what in message), message
    assert before == await settings_of(changed, BROKER, "1")


async def test_a_good_setting_beside_a_bad_one_is_not_taken(changed: Client) -> None:
    for name in ("1", ALL):
        settings = sets(log_retention_ms=5, message_max_bytes=-1)

        assert INVALID_REQUEST == (await alter(changed, BROKER, name, *settings))[0]
    assert ["min.insync.replicas"] == list(await settings_of(changed, BROKER, ALL))
    assert (None, DEFAULT) == await value_of(changed, BROKER, "1", "log.retention.ms")


@pytest.mark.parametrize(
    ("key", "type", "is_read_only", "is_sensitive"),
    [
        ("custom.key", 0, True, True),
        ("super.users", 0, True, True),
        ("listener.name.plaintext.custom", 0, True, True),
        ("listener.name.other.max.connections", 3, True, False),
        ("listener.name.plaintext.num.io.threads", 3, True, False),
        ("sasl.kerberos.service.name", 2, False, False),
        ("sasl.enabled.mechanisms", 7, False, False),
        ("sasl.jaas.config", 9, False, True),
        ("config.providers", 7, False, False),
    ],
)
async def test_what_kafka_stores_without_applying_it_is_stored_and_described(
    changed: Client,
    broker: Broker,
    caplog: pytest.LogCaptureFixture,
    key: str,
    type: int,
    is_read_only: bool,
    is_sensitive: bool,
) -> None:
    before = broker.config

    assert (0, "") == await alter(changed, BROKER, "1", (key, SET, "5"))

    [entry] = [each for each in (await describe(changed, BROKER, "1")).configs if each.name == key]
    assert (OF_BROKER, type) == (entry.config_source, entry.config_type)
    assert (is_read_only, is_sensitive) == (entry.read_only, entry.is_sensitive)
    assert (None if is_sensitive else "5") == entry.value
    assert key in caplog.text
    if key != "config.providers":  # which is reported with the others that are not applied
        assert f"altered settings that have no effect: {key}" in caplog.text
        assert before.originals == broker.config.originals
    await delete(changed, BROKER, "1", key)
    assert key not in await settings_of(changed, BROKER, "1") or not is_read_only


async def test_there_are_not_any_number_of_settings_that_nothing_reads(changed: Client) -> None:
    for number in range(2):
        some = [(f"custom.{number}.{each}", SET, "") for each in range(1000)]
        assert (0, "") == await alter(changed, BROKER, "1", *some)

    code, message = await alter(changed, BROKER, "1", ("custom.more", SET, ""))

    assert (INVALID_REQUEST, "too many settings: 2001; at most 2000 are allowed") == (code, message)


async def test_what_cannot_be_set_can_be_deleted(changed: Client) -> None:
    await delete(changed, BROKER, "1", "log.dirs", "no.such.key")


# Loggers.


async def test_the_level_of_a_logger_is_set_and_deleted(changed: Client) -> None:
    assert (0, "") == await alter(changed, LOGGER, "1", ("trionet.broker", SET, "ERROR"))
    assert ("ERROR", OF_LOGGER) == await value_of(changed, LOGGER, "1", "trionet.broker")

    await delete(changed, LOGGER, "1", "trionet.broker")

    above = await value_of(changed, LOGGER, "1", "trionet")
    assert above == await value_of(changed, LOGGER, "1", "trionet.broker")


@pytest.mark.parametrize(
    ("name", "operation", "code"),
    [
        ("1", ("no.such", SET, "INFO"), INVALID_CONFIG),
        ("1", ("trionet.broker", SET, "LOUD"), INVALID_CONFIG),
        ("1", ("trionet.broker", APPEND, "INFO"), INVALID_REQUEST),
        ("1", ("trionet.broker", 9, "INFO"), INVALID_REQUEST),
        ("1", ("trionet", DELETE, None), INVALID_REQUEST),
        ("2", ("trionet.broker", SET, "INFO"), INVALID_REQUEST),
        ("", ("trionet.broker", SET, "INFO"), INVALID_REQUEST),
    ],
)
async def test_a_level_must_be_one_of_a_logger_here(
    changed: Client, name: str, operation: Operation, code: int
) -> None:
    assert code == (await alter(changed, LOGGER, name, operation))[0]


# Requests.


async def test_a_check_changes_nothing(changed: Client) -> None:
    for type, name, operations in (
        (TOPIC, "t", sets(retention_ms=5)),
        (BROKER, "1", sets(message_max_bytes=5)),
        (BROKER, ALL, sets(message_max_bytes=5)),
        (LOGGER, "1", [("trionet.broker", SET, "TRACE")]),
    ):
        before = await settings_of(changed, type, name)

        assert (0, "") == await alter(changed, type, name, *operations, validate_only=True)
        assert before == await settings_of(changed, type, name)


@pytest.mark.parametrize(
    ("type", "name", "code"),
    [
        (TOPIC, "missing", UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", INVALID_CONFIG),
        (BROKER, "1", INVALID_REQUEST),
        (LOGGER, "1", INVALID_CONFIG),
    ],
)
async def test_a_check_finds_what_is_wrong(
    changed: Client, type: int, name: str, code: int
) -> None:
    wrong = ("retention.ms", SET, "1") if name == "missing" else ("message.max.bytes", SET, "x")

    assert code == (await alter(changed, type, name, wrong, validate_only=True))[0]


@pytest.mark.parametrize("type", [0, 5, CLIENT_METRICS, GROUP])
async def test_other_types_have_no_settings(changed: Client, type: int) -> None:
    code, message = await alter(changed, type, "x", ("interval.ms", SET, "1000"))

    assert INVALID_REQUEST == code
    assert "not supported; topics (2) and brokers (4) have settings" in message


async def test_each_resource_has_a_result_of_its_own(changed: Client) -> None:
    answers = await alter_each(
        changed,
        (TOPIC, "t", sets(retention_ms=5)),
        (TOPIC, "missing", sets(retention_ms=5)),
        (BROKER, "1", sets(message_max_bytes=5)),
        (BROKER, ALL, sets(message_max_bytes="x")),
    )

    assert [
        (TOPIC, "t", 0),
        (TOPIC, "missing", UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", 0),
        (BROKER, ALL, INVALID_REQUEST),
    ] == [answer[:3] for answer in answers]
    assert ("5", OF_TOPIC) == await value_of(changed, TOPIC, "t", "retention.ms")
    assert ("5", OF_BROKER) == await value_of(changed, BROKER, "1", "message.max.bytes")


async def test_a_resource_that_comes_twice_is_not_altered_at_all(changed: Client) -> None:
    answers = await alter_each(
        changed,
        (TOPIC, "t", sets(retention_ms=5)),
        (BROKER, "1", sets(message_max_bytes=5)),
        (TOPIC, "t", sets(retention_bytes=5)),
    )

    assert [INVALID_REQUEST, 0, INVALID_REQUEST] == [code for _, _, code, _ in answers]
    assert ("1000", OF_TOPIC) == await value_of(changed, TOPIC, "t", "retention.ms")


@pytest.mark.parametrize(("type", "name"), [(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1")])
async def test_nothing_to_do_is_done(changed: Client, type: int, name: str) -> None:
    assert (0, "") == await alter(changed, type, name)


async def test_of_two_that_alter_a_resource_at_once_neither_loses_its_change(
    broker: Broker, changed: Client
) -> None:
    async def set_one(key: str) -> None:
        async with connect(broker.bootstrap_servers) as other:
            assert (0, "") == await alter(other, TOPIC, "t", (key, SET, "77"))
            assert (0, "") == await alter(other, BROKER, "1", (f"log.{key}", SET, "77"))

    keys = ["retention.ms", "retention.bytes"]
    async with trio.open_nursery() as nursery:
        for key in keys:
            nursery.start_soon(set_one, key)

    for key in keys:
        assert ("77", OF_TOPIC) == await value_of(changed, TOPIC, "t", key)
        assert ("77", OF_BROKER) == await value_of(changed, BROKER, "1", f"log.{key}")


async def test_who_alters_very_much_leaves_the_others_their_turn(changed: Client) -> None:
    request = incremental_request(
        *((LOGGER, f"{number}", sets(trionet="LOUD")) for number in range(500))
    )

    assert 500 <= await turns_during(changed.call(request, 1))
