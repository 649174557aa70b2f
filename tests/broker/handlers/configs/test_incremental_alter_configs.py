"""IncrementalAlterConfigs: the error codes below are those that a real Kafka 4.3 gave."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from support.calls import create_topic
from support.client import Client, connect
from support.config_calls import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DEFAULT,
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
    alter_each,
    delete,
    incremental_request,
    put,
    sets,
    settings_of,
    value_of,
)
from support.turns import turns_during
from trionet import Broker, open_broker
from trionet.protocol.error_codes import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    UNKNOWN_TOPIC_OR_PARTITION,
)

ALL = ""


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", retention_ms=1000)
        yield client


# Topics.


@pytest.mark.parametrize("version", [0, 1])
async def test_keys_of_a_topic_are_set_and_deleted_and_the_others_stay(
    client: Client, version: int
) -> None:
    answer = await alter(client, TOPIC, "t", *sets(segment_ms=5), version=version)

    assert (0, "") == answer
    assert ("5", OF_TOPIC) == await value_of(client, TOPIC, "t", "segment.ms")
    assert ("1000", OF_TOPIC) == await value_of(client, TOPIC, "t", "retention.ms")

    await delete(client, TOPIC, "t", "retention.ms", "no.such.key")

    assert ("604800000", DEFAULT) == await value_of(client, TOPIC, "t", "retention.ms")
    assert ("5", OF_TOPIC) == await value_of(client, TOPIC, "t", "segment.ms")


async def test_a_list_of_a_topic_is_appended_to_and_subtracted_from(client: Client) -> None:
    async def policy(operation: int, value: str) -> str | None:
        assert (0, "") == await alter(client, TOPIC, "t", ("cleanup.policy", operation, value))
        return (await value_of(client, TOPIC, "t", "cleanup.policy"))[0]

    assert "delete,compact" == await policy(APPEND, "compact")
    assert "delete,compact" == await policy(APPEND, "compact,delete")
    assert "compact" == await policy(SUBTRACT, "delete")
    assert "" == await policy(SUBTRACT, "compact")


async def test_a_value_is_kept_as_its_type_prints_it(client: Client) -> None:
    await put(client, TOPIC, "t", retention_bytes=" +12 ")

    assert ("12", OF_TOPIC) == await value_of(client, TOPIC, "t", "retention.bytes")


@pytest.mark.parametrize(
    ("operations", "code", "what"),
    [
        ([("no.such", SET, "1")], INVALID_CONFIG, "no.such: unknown topic key"),
        ([("retention.ms", SET, "x")], INVALID_CONFIG, "retention.ms = 'x' is not allowed"),
        ([("retention.ms", SET, "-2")], INVALID_CONFIG, "allowed: an integer from -1"),
        ([("cleanup.policy", APPEND, "x")], INVALID_CONFIG, "allowed: any of compact, delete"),
        ([("cleanup.policy", APPEND, "")], INVALID_CONFIG, "allowed: any of compact, delete"),
        ([("retention.ms", APPEND, "1")], INVALID_CONFIG, "retention.ms is not a list"),
        ([("retention.ms", SUBTRACT, "1")], INVALID_CONFIG, "retention.ms is not a list"),
        ([("no.such", APPEND, "1")], INVALID_CONFIG, "no.such is not a list"),
        ([("retention.ms", SET, None)], INVALID_REQUEST, "the value is missing"),
        (sets(retention_ms=1) * 2, INVALID_REQUEST, "duplicate key"),
        ([("retention.ms", 7, "1")], INVALID_REQUEST, "unknown operation 7"),
        (
            sets(min_compaction_lag_ms=10, max_compaction_lag_ms=5),
            INVALID_CONFIG,
            "is greater than max.compaction.lag.ms",
        ),
        (sets(remote_storage_enable="true"), INVALID_CONFIG, "not support tiered storage"),
        (sets(compression_type="brotli"), INVALID_CONFIG, "'brotli' is not allowed"),
    ],
)
async def test_what_a_topic_cannot_have_changes_nothing(
    client: Client, operations: list[Operation], code: int, what: str
) -> None:
    before = await settings_of(client, TOPIC, "t")

    answered, message = await alter(client, TOPIC, "t", *sets(segment_ms=5), *operations)

    assert (code, True) == (answered, what in message), message
    assert before == await settings_of(client, TOPIC, "t")


@pytest.mark.parametrize(
    ("name", "key", "code"),
    [
        ("missing", "retention.ms", UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", "no.such.key", INVALID_CONFIG),  # values are looked at first
        ("", "retention.ms", INVALID_REQUEST),
        ("a b", "retention.ms", INVALID_TOPIC_EXCEPTION),
    ],
)
async def test_a_topic_must_be_there(client: Client, name: str, key: str, code: int) -> None:
    assert code == (await alter(client, TOPIC, name, (key, SET, "1")))[0]


# Brokers.


async def test_one_brokers_setting_wins_over_that_of_all(client: Client, broker: Broker) -> None:
    await put(client, BROKER, ALL, message_max_bytes=2_000_000)
    await put(client, BROKER, "1", message_max_bytes=3_000_000)

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
    } == await settings_of(client, BROKER, "1", "message.max.bytes")
    assert {
        "message.max.bytes": (
            "2000000",
            OF_ALL_BROKERS,
            (("message.max.bytes", "2000000", OF_ALL_BROKERS),),
        )
    } == await settings_of(client, BROKER, ALL)
    assert 3_000_000 == broker.config.integer("message.max.bytes")

    await delete(client, BROKER, "1", "message.max.bytes")

    assert 2_000_000 == broker.config.integer("message.max.bytes")
    assert ("2000000", OF_ALL_BROKERS) == await value_of(client, TOPIC, "t", "max.message.bytes")


async def test_a_list_of_a_broker_begins_with_kafkas_default() -> None:
    async with (
        open_broker({"log.cleanup.policy": "compact"}) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await alter(client, BROKER, "1", ("log.cleanup.policy", APPEND, "compact"))

        assert ("delete,compact", OF_BROKER) == await value_of(
            client, BROKER, "1", "log.cleanup.policy"
        )


async def test_a_node_id_may_have_zeros_before_it(client: Client) -> None:
    await put(client, BROKER, "01", message_max_bytes=5)

    assert ("5", OF_BROKER) == await value_of(client, BROKER, "1", "message.max.bytes")


@pytest.mark.parametrize(
    ("name", "operations", "code", "what"),
    [
        ("1", sets(log_dirs="/x"), INVALID_REQUEST, "log.dirs cannot be changed while"),
        (ALL, sets(auto_create_topics_enable="false"), INVALID_REQUEST, "cannot be changed"),
        ("1", sets(log_retention_hours=1), INVALID_REQUEST, "cannot be changed while"),
        ("1", sets(message_max_bytes="x"), INVALID_REQUEST, "allowed: an integer from 0"),
        ("1", sets(message_max_bytes=-1), INVALID_REQUEST, "allowed: an integer from 0"),
        ("1", [("message.max.bytes", SET, None)], INVALID_REQUEST, "the value is missing"),
        ("1", [("message.max.bytes", APPEND, "1")], INVALID_CONFIG, "is not a list"),
        ("1", [("no.such.key", SUBTRACT, "1")], INVALID_CONFIG, "is not a list"),
        ("1", [("message.max.bytes", 9, "1")], INVALID_REQUEST, "unknown operation 9"),
        ("1", sets(num_io_threads=100), INVALID_REQUEST, "allowed: 4 to 16"),
        (ALL, sets(num_network_threads=100), INVALID_REQUEST, "allowed: 1 to 6"),
        ("1", sets(num_replica_fetchers=3), INVALID_REQUEST, "allowed: 1 to 2"),
        ("1", sets(num_io_threads=0), INVALID_REQUEST, "from 1 to"),
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
        # Kafka keeps these for classes that are plugged in; here nothing would read them.
        ("1", sets(no_such_key=1), INVALID_REQUEST, "no.such.key: unknown key"),
        (ALL, sets(compression_type="brotli"), INVALID_REQUEST, "'brotli' is not allowed"),
        ("2", sets(message_max_bytes=5), INVALID_REQUEST, "this is broker 1, not 2"),
        ("x", sets(message_max_bytes=5), INVALID_REQUEST, "invalid broker name 'x'"),
        # Python reads no number of so many digits.
        ("9" * 5000, sets(message_max_bytes=5), INVALID_REQUEST, "999'; a broker's name"),
        ("+-1", sets(message_max_bytes=5), INVALID_REQUEST, "invalid broker name '+-1'"),
    ],
)
async def test_what_a_broker_cannot_have_changes_nothing(
    client: Client, name: str, operations: list[Operation], code: int, what: str
) -> None:
    before = await settings_of(client, BROKER, "1")

    answered, message = await alter(client, BROKER, name, *operations)

    assert (code, True) == (answered, what in message), message
    assert before == await settings_of(client, BROKER, "1")


async def test_a_good_setting_beside_a_bad_one_is_not_taken(client: Client) -> None:
    for name in ("1", ALL):
        settings = sets(log_retention_ms=5, message_max_bytes=-1)

        assert INVALID_REQUEST == (await alter(client, BROKER, name, *settings))[0]
    assert {} == await settings_of(client, BROKER, ALL)
    assert (None, DEFAULT) == await value_of(client, BROKER, "1", "log.retention.ms")


async def test_what_cannot_be_set_can_be_deleted(client: Client) -> None:
    await delete(client, BROKER, "1", "log.dirs", "no.such.key")


# Loggers.


async def test_the_level_of_a_logger_is_set_and_deleted(client: Client) -> None:
    assert (0, "") == await alter(client, LOGGER, "1", ("trionet.broker", SET, "ERROR"))
    assert ("ERROR", OF_LOGGER) == await value_of(client, LOGGER, "1", "trionet.broker")

    await delete(client, LOGGER, "1", "trionet.broker")

    above = await value_of(client, LOGGER, "1", "trionet")
    assert above == await value_of(client, LOGGER, "1", "trionet.broker")


@pytest.mark.parametrize(
    ("name", "operation", "code"),
    [
        ("1", ("no.such", SET, "INFO"), INVALID_CONFIG),
        ("1", ("trionet.broker", SET, "LOUD"), INVALID_CONFIG),
        ("1", ("trionet.broker", APPEND, "INFO"), INVALID_REQUEST),
        ("1", ("trionet.broker", 9, "INFO"), INVALID_REQUEST),
        ("2", ("trionet.broker", SET, "INFO"), INVALID_REQUEST),
        ("", ("trionet.broker", SET, "INFO"), INVALID_REQUEST),
    ],
)
async def test_a_level_must_be_one_of_a_logger_here(
    client: Client, name: str, operation: Operation, code: int
) -> None:
    assert code == (await alter(client, LOGGER, name, operation))[0]


# Requests.


async def test_a_check_changes_nothing(client: Client) -> None:
    for type, name, operations in (
        (TOPIC, "t", sets(retention_ms=5)),
        (BROKER, "1", sets(message_max_bytes=5)),
        (BROKER, ALL, sets(message_max_bytes=5)),
        (LOGGER, "1", [("trionet.broker", SET, "TRACE")]),
    ):
        before = await settings_of(client, type, name)

        assert (0, "") == await alter(client, type, name, *operations, validate_only=True)
        assert before == await settings_of(client, type, name)


@pytest.mark.parametrize(
    ("type", "name", "code"),
    [
        (TOPIC, "missing", UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", INVALID_CONFIG),
        (BROKER, "1", INVALID_REQUEST),
        (LOGGER, "1", INVALID_CONFIG),
    ],
)
async def test_a_check_finds_what_is_wrong(client: Client, type: int, name: str, code: int) -> None:
    wrong = ("retention.ms", SET, "1") if name == "missing" else ("message.max.bytes", SET, "x")

    assert code == (await alter(client, type, name, wrong, validate_only=True))[0]


@pytest.mark.parametrize("type", [0, 5, CLIENT_METRICS, GROUP])
async def test_other_types_have_no_settings(client: Client, type: int) -> None:
    code, message = await alter(client, type, "x", ("interval.ms", SET, "1000"))

    assert INVALID_REQUEST == code
    assert "not supported; topics (2) and brokers (4) have settings" in message


async def test_each_resource_has_a_result_of_its_own(client: Client) -> None:
    answers = await alter_each(
        client,
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
    assert ("5", OF_TOPIC) == await value_of(client, TOPIC, "t", "retention.ms")
    assert ("5", OF_BROKER) == await value_of(client, BROKER, "1", "message.max.bytes")


async def test_a_resource_that_comes_twice_is_not_altered_at_all(client: Client) -> None:
    answers = await alter_each(
        client,
        (TOPIC, "t", sets(retention_ms=5)),
        (BROKER, "1", sets(message_max_bytes=5)),
        (TOPIC, "t", sets(retention_bytes=5)),
    )

    assert [INVALID_REQUEST, 0, INVALID_REQUEST] == [code for _, _, code, _ in answers]
    assert ("1000", OF_TOPIC) == await value_of(client, TOPIC, "t", "retention.ms")


@pytest.mark.parametrize(("type", "name"), [(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1")])
async def test_nothing_to_do_is_done(client: Client, type: int, name: str) -> None:
    assert (0, "") == await alter(client, type, name)


async def test_of_two_that_alter_a_resource_at_once_neither_loses_its_change(
    broker: Broker, client: Client
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
        assert ("77", OF_TOPIC) == await value_of(client, TOPIC, "t", key)
        assert ("77", OF_BROKER) == await value_of(client, BROKER, "1", f"log.{key}")


async def test_who_alters_very_much_leaves_the_others_their_turn(client: Client) -> None:
    request = incremental_request(
        *((LOGGER, f"{number}", sets(trionet="LOUD")) for number in range(500))
    )

    assert 500 <= await turns_during(client.call(request, 1))
