"""What DescribeConfigs tells: the values below were read from a real Kafka 4.3."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trionet.broker.config._broker_config import BROKER_KEYS, BrokerConfig
from trionet.broker.config._describe import (
    ConfigEntry,
    ConfigSynonym,
    describe_all_brokers,
    describe_broker,
    describe_loggers,
    describe_topic,
)
from trionet.broker.config._dynamic_config import DynamicConfig
from trionet.broker.config._topic_keys import TOPIC_KEYS
from trionet.protocol._config_types import BOOLEAN, INT, LIST, LONG, PASSWORD, Password, Value

TOPIC, OWN, ALL_BROKERS, STATIC, DEFAULT = 1, 2, 3, 4, 5


def of_settings(settings: Mapping[str, object], **altered: Mapping[str, Value]) -> DynamicConfig:
    return DynamicConfig(BrokerConfig.from_settings(settings), **altered)


BROKER = of_settings(
    {
        "node.id": 1,
        "num.partitions": 2,
        "log.roll.hours": 24,
        "log.retention.minutes": 600,
        "log.flush.scheduler.interval.ms": 5000,
        "message.max.bytes": 2_000_000,
        "ssl.key.password": "hush-hush",
    }
)


# What was altered while the broker ran.
ALTERED = of_settings(
    {"message.max.bytes": 1_500_000, "log.retention.hours": 24},
    cluster={
        "message.max.bytes": 2_000_000,
        "log.retention.ms": 60_001,
        "listener.name.plaintext.max.connections": 1001,
    },
    own={
        "message.max.bytes": 3_000_000,
        "listener.name.plaintext.max.connections": 1000,
        "listener.name.plaintext.ssl.keystore.password": Password("hush-hush"),
    },
)


MAX_BYTES = "message.max.bytes"
FLUSH = "log.flush.scheduler.interval.ms"
IDLE = "listener.name.plaintext.connections.max.idle.ms"
CONNECTIONS = "listener.name.plaintext.max.connections"
STORE_PASSWORD = "listener.name.plaintext.ssl.keystore.password"


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def test_a_default_of_a_topic_is_shown_with_its_broker_key() -> None:
    assert by_name(describe_topic(BROKER, {}))["cleanup.policy"] == ConfigEntry(
        name="cleanup.policy",
        value="delete",
        source=DEFAULT,
        is_default=True,
        is_sensitive=False,
        read_only=False,
        type=LIST,
        synonyms=(ConfigSynonym("log.cleanup.policy", "delete", DEFAULT),),
    )


@pytest.mark.parametrize(
    ("broker", "name", "value", "kind", "synonyms"),
    [
        (BROKER, "remote.storage.enable", "false", BOOLEAN, []),
        (
            BROKER,
            "max.message.bytes",
            "2000000",
            INT,
            [(MAX_BYTES, "2000000", STATIC), (MAX_BYTES, "1048588", DEFAULT)],
        ),
        # As in Kafka, a value from another unit is a default without synonyms.
        (BROKER, "retention.ms", "36000000", LONG, []),
        (BROKER, "segment.ms", "86400000", LONG, []),
        (BROKER, "flush.ms", "5000", LONG, []),
        (BROKER, "segment.jitter.ms", "0", LONG, []),
        (
            ALTERED,
            "retention.ms",
            "60001",
            LONG,
            [
                ("log.retention.ms", "60001", ALL_BROKERS),
                ("log.retention.hours", "24", STATIC),
                ("log.retention.hours", "168", DEFAULT),
            ],
        ),
    ],
)
def test_a_topics_value_comes_from_the_brokers_or_from_its_own(
    broker: DynamicConfig, name: str, value: str, kind: int, synonyms: list[tuple[str, str, int]]
) -> None:
    source = synonyms[0][2] if synonyms else DEFAULT
    own = (name, "77000", TOPIC)

    entry = by_name(describe_topic(broker, {}))[name]
    assert (value, source, source == DEFAULT, kind) == (
        (entry.value, entry.source, entry.is_default, entry.type)
    )
    assert synonyms == [*entry.synonyms]
    altered = by_name(describe_topic(broker, {name: "77000"}))[name]
    assert ("77000", TOPIC, [own, *synonyms]) == (
        (altered.value, altered.source, [*altered.synonyms])
    )


def test_all_topic_keys_are_listed_and_the_internal_one_only_if_it_is_set() -> None:
    internal = "internal.segment.bytes"

    assert [name for name in TOPIC_KEYS if name != internal] == [
        *by_name(describe_topic(BROKER, {}))
    ]
    assert [*TOPIC_KEYS] == [*by_name(describe_topic(BROKER, {internal: "1024"}))]


@pytest.mark.parametrize(
    ("broker", "name", "value", "kind", "synonyms"),
    [
        (
            BROKER,
            "num.partitions",
            "2",
            INT,
            [("num.partitions", "2", STATIC), ("num.partitions", "1", DEFAULT)],
        ),
        # Settings come before defaults, and what precedes the key itself is left out.
        (BROKER, "log.retention.ms", None, LONG, []),
        (
            BROKER,
            "log.retention.minutes",
            "600",
            INT,
            [("log.retention.minutes", "600", STATIC), ("log.retention.hours", "168", DEFAULT)],
        ),
        (BROKER, "log.retention.hours", "168", INT, [("log.retention.hours", "168", DEFAULT)]),
        (
            BROKER,
            FLUSH,
            "5000",
            LONG,
            [(FLUSH, "5000", STATIC), (FLUSH, "9223372036854775807", DEFAULT)],
        ),
        (BROKER, "advertised.listeners", None, LIST, []),
        (BROKER, "ssl.key.password", None, PASSWORD, [("ssl.key.password", None, STATIC)]),
        (
            of_settings({IDLE: 5}),
            IDLE,
            "5",
            LONG,
            [(IDLE, "5", STATIC), ("connections.max.idle.ms", "600000", DEFAULT)],
        ),
        (
            ALTERED,
            MAX_BYTES,
            "3000000",
            INT,
            [
                (MAX_BYTES, "3000000", OWN),
                (MAX_BYTES, "2000000", ALL_BROKERS),
                (MAX_BYTES, "1500000", STATIC),
                (MAX_BYTES, "1048588", DEFAULT),
            ],
        ),
        (
            ALTERED,
            CONNECTIONS,
            "1000",
            INT,
            [
                (CONNECTIONS, "1000", OWN),
                (CONNECTIONS, "1001", ALL_BROKERS),
                ("max.connections", "2147483647", DEFAULT),
            ],
        ),
        (ALTERED, STORE_PASSWORD, None, PASSWORD, [(STORE_PASSWORD, None, OWN)]),
    ],
)
def test_a_brokers_value_is_shown_with_what_it_would_be_otherwise(
    broker: DynamicConfig,
    name: str,
    value: str | None,
    kind: int,
    synonyms: list[tuple[str, str | None, int]],
) -> None:
    entries = describe_broker(broker)
    entry = by_name(entries)[name]

    source = synonyms[0][2] if synonyms else DEFAULT
    assert (value, source, source == DEFAULT, kind, kind == PASSWORD) == (
        (entry.value, entry.source, entry.is_default, entry.type, entry.is_sensitive)
    )
    assert synonyms == [*entry.synonyms]
    assert "hush-hush" not in str(entries)


@pytest.mark.parametrize(
    "key", ["producer.id.expiration.check.interval.ms", "log.initial.task.delay.ms"]
)
def test_internal_keys_of_the_broker_are_listed_only_if_they_are_set(key: str) -> None:
    names = {entry.name for entry in describe_broker(BROKER)}
    names_if_set = {entry.name for entry in describe_broker(of_settings({key: 1000}))}

    assert key not in names
    assert names < set(BROKER_KEYS)
    assert names | {key} == names_if_set


def test_what_was_altered_for_all_brokers_is_reported_by_itself() -> None:
    entries = describe_all_brokers(ALTERED)

    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("listener.name.plaintext.max.connections", "1001", ALL_BROKERS),
        ("log.retention.ms", "60001", ALL_BROKERS),
        ("message.max.bytes", "2000000", ALL_BROKERS),
        ("min.insync.replicas", "1", ALL_BROKERS),
    ]
    assert entries[-2].synonyms == (ConfigSynonym("message.max.bytes", "2000000", ALL_BROKERS),)


def test_what_can_be_altered_is_not_read_only() -> None:
    can_be_altered = ("message.max.bytes", "num.io.threads")
    cannot = ("num.partitions", "log.retention.hours", "log.dirs", CONNECTIONS)
    read_only = {name: entry.read_only for name, entry in by_name(describe_broker(ALTERED)).items()}

    assert [False, False] == [read_only[name] for name in can_be_altered]
    assert [True] * len(cannot) == [read_only[name] for name in cannot]


def test_only_the_keys_that_are_wanted_are_listed() -> None:
    broker = of_settings({}, cluster={"message.max.bytes": 5, "log.roll.ms": 6})
    keys = {"message.max.bytes", "retention.ms", "no.such.key", "trionet"}

    assert ["message.max.bytes"] == [each.name for each in describe_broker(broker, keys)]
    assert ["message.max.bytes"] == [each.name for each in describe_all_brokers(broker, keys)]
    assert ["retention.ms"] == [each.name for each in describe_topic(broker, {}, keys)]
    levels = {"trionet": "INFO", "trionet.broker": "INFO"}
    assert ["trionet"] == [each.name for each in describe_loggers(levels, keys)]
