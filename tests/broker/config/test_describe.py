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


def topic_entry(name: str, **overrides: str) -> ConfigEntry:
    own = {key.replace("_", "."): value for key, value in overrides.items()}
    return {entry.name: entry for entry in describe_topic(BROKER, own)}[name]


def broker_entry(name: str) -> ConfigEntry:
    return {entry.name: entry for entry in describe_broker(BROKER)}[name]


def test_a_default_of_a_topic_is_shown_with_its_broker_key() -> None:
    assert topic_entry("cleanup.policy") == ConfigEntry(
        name="cleanup.policy",
        value="delete",
        source=DEFAULT,
        is_default=True,
        is_sensitive=False,
        read_only=False,
        type=LIST,
        documentation=None,
        synonyms=(ConfigSynonym("log.cleanup.policy", "delete", DEFAULT),),
    )


def test_a_brokers_setting_is_the_source_of_its_topics_value() -> None:
    entry = topic_entry("max.message.bytes")

    assert (entry.value, entry.source, entry.is_default) == ("2000000", STATIC, False)
    assert entry.synonyms == (
        ConfigSynonym("message.max.bytes", "2000000", STATIC),
        ConfigSynonym("message.max.bytes", "1048588", DEFAULT),
    )


def test_a_topics_own_setting_comes_first() -> None:
    entry = topic_entry("max.message.bytes", max_message_bytes="77")

    assert (entry.value, entry.source, entry.type) == ("77", TOPIC, INT)
    assert entry.synonyms == (
        ConfigSynonym("max.message.bytes", "77", TOPIC),
        ConfigSynonym("message.max.bytes", "2000000", STATIC),
        ConfigSynonym("message.max.bytes", "1048588", DEFAULT),
    )


def test_a_value_from_another_unit_is_reported_as_a_default_without_synonyms_as_kafka_does() -> (
    None
):
    for name, value in (
        ("retention.ms", "36000000"),
        ("segment.ms", "86400000"),
        ("flush.ms", "5000"),
        ("segment.jitter.ms", "0"),
    ):
        entry = topic_entry(name)
        assert (entry.value, entry.source, entry.synonyms) == (value, DEFAULT, ())
    own = topic_entry("retention.ms", retention_ms="1000")
    assert own.synonyms == (ConfigSynonym("retention.ms", "1000", TOPIC),)


def test_keys_of_a_topic_alone_have_no_synonyms() -> None:
    entry = topic_entry("remote.storage.enable")

    assert (entry.value, entry.type, entry.synonyms) == ("false", BOOLEAN, ())


def test_all_topic_keys_are_listed_and_the_internal_one_only_if_it_is_set() -> None:
    told = [entry.name for entry in describe_topic(BROKER, {})]
    told_if_set = [
        entry.name for entry in describe_topic(BROKER, {"internal.segment.bytes": "1024"})
    ]

    assert told == [name for name in TOPIC_KEYS if name != "internal.segment.bytes"]
    assert told_if_set == list(TOPIC_KEYS)


def test_a_brokers_setting_is_shown_with_its_default() -> None:
    entry = broker_entry("num.partitions")

    assert (entry.value, entry.source, entry.is_default, entry.read_only) == (
        "2",
        STATIC,
        False,
        True,
    )
    assert entry.synonyms == (
        ConfigSynonym("num.partitions", "2", STATIC),
        ConfigSynonym("num.partitions", "1", DEFAULT),
    )


def test_settings_come_before_defaults_and_what_precedes_the_key_itself_is_left_out() -> None:
    assert broker_entry("log.retention.ms").synonyms == ()
    assert broker_entry("log.retention.minutes").synonyms == (
        ConfigSynonym("log.retention.minutes", "600", STATIC),
        ConfigSynonym("log.retention.hours", "168", DEFAULT),
    )
    assert broker_entry("log.retention.hours").synonyms == (
        ConfigSynonym("log.retention.hours", "168", DEFAULT),
    )
    assert broker_entry("log.flush.scheduler.interval.ms").synonyms == (
        ConfigSynonym("log.flush.scheduler.interval.ms", "5000", STATIC),
        ConfigSynonym("log.flush.scheduler.interval.ms", "9223372036854775807", DEFAULT),
    )


def test_a_key_without_value_is_a_default() -> None:
    entry = broker_entry("advertised.listeners")

    assert (entry.value, entry.source, entry.is_default, entry.type) == (None, DEFAULT, True, LIST)


def test_passwords_are_never_shown() -> None:
    entry = broker_entry("ssl.key.password")

    assert (entry.value, entry.is_sensitive, entry.source, entry.type) == (
        None,
        True,
        STATIC,
        PASSWORD,
    )
    assert entry.synonyms == (ConfigSynonym("ssl.key.password", None, STATIC),)
    assert "hush-hush" not in str(describe_broker(BROKER))


@pytest.mark.parametrize(
    "key", ["producer.id.expiration.check.interval.ms", "log.initial.task.delay.ms"]
)
def test_internal_keys_of_the_broker_are_listed_only_if_they_are_set(key: str) -> None:
    names = {entry.name for entry in describe_broker(BROKER)}
    names_if_set = {entry.name for entry in describe_broker(of_settings({key: 1000}))}

    assert key not in names
    assert names < set(BROKER_KEYS)
    assert names | {key} == names_if_set


def test_a_listeners_own_setting_is_reported() -> None:
    key = "listener.name.plaintext.connections.max.idle.ms"
    entries = {entry.name: entry for entry in describe_broker(of_settings({key: 5}))}

    assert (entries[key].value, entries[key].type, entries[key].source) == ("5", LONG, STATIC)
    assert entries[key].synonyms[:1] == (ConfigSynonym(key, "5", STATIC),)
    assert entries[key].synonyms[1:] == (
        ConfigSynonym("connections.max.idle.ms", "600000", DEFAULT),
    )


# What follows was altered while the broker ran.

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


def altered_entry(name: str) -> ConfigEntry:
    return {entry.name: entry for entry in describe_broker(ALTERED)}[name]


def test_one_brokers_setting_comes_before_that_of_all_and_before_the_static_one() -> None:
    entry = altered_entry("message.max.bytes")

    assert (entry.value, entry.source, entry.is_default) == ("3000000", OWN, False)
    assert entry.synonyms == (
        ConfigSynonym("message.max.bytes", "3000000", OWN),
        ConfigSynonym("message.max.bytes", "2000000", ALL_BROKERS),
        ConfigSynonym("message.max.bytes", "1500000", STATIC),
        ConfigSynonym("message.max.bytes", "1048588", DEFAULT),
    )


def test_an_altered_setting_of_the_broker_is_the_source_of_its_topics_value() -> None:
    entries = {entry.name: entry for entry in describe_topic(ALTERED, {"segment.ms": "7"})}

    assert (entries["retention.ms"].value, entries["retention.ms"].source) == ("60001", ALL_BROKERS)
    assert entries["retention.ms"].synonyms == (
        ConfigSynonym("log.retention.ms", "60001", ALL_BROKERS),
        ConfigSynonym("log.retention.hours", "24", STATIC),
        ConfigSynonym("log.retention.hours", "168", DEFAULT),
    )
    assert (entries["max.message.bytes"].value, entries["max.message.bytes"].source) == (
        "3000000",
        OWN,
    )
    assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("7", TOPIC)


def test_an_altered_setting_of_a_listener_is_reported_with_those_after_it() -> None:
    name = "listener.name.plaintext.max.connections"
    entry = altered_entry(name)

    assert (entry.value, entry.type, entry.read_only) == ("1000", INT, True)
    assert entry.synonyms == (
        ConfigSynonym(name, "1000", OWN),
        ConfigSynonym(name, "1001", ALL_BROKERS),
        ConfigSynonym("max.connections", "2147483647", DEFAULT),
    )


def test_an_altered_password_is_not_shown() -> None:
    name = "listener.name.plaintext.ssl.keystore.password"
    entry = altered_entry(name)

    assert (entry.value, entry.is_sensitive, entry.type) == (None, True, PASSWORD)
    assert entry.synonyms == (ConfigSynonym(name, None, OWN),)


def test_what_was_altered_for_all_brokers_is_reported_by_itself() -> None:
    entries = describe_all_brokers(ALTERED)

    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("listener.name.plaintext.max.connections", "1001", ALL_BROKERS),
        ("log.retention.ms", "60001", ALL_BROKERS),
        ("message.max.bytes", "2000000", ALL_BROKERS),
    ]
    assert entries[-1].synonyms == (ConfigSynonym("message.max.bytes", "2000000", ALL_BROKERS),)


def test_what_can_be_altered_is_not_read_only() -> None:
    assert not altered_entry("message.max.bytes").read_only
    assert not altered_entry("num.io.threads").read_only
    assert altered_entry("log.retention.hours").read_only
    assert altered_entry("log.dirs").read_only


def test_only_the_keys_that_are_wanted_are_listed() -> None:
    broker = of_settings({}, cluster={"message.max.bytes": 5, "log.roll.ms": 6})
    keys = {"message.max.bytes", "retention.ms", "no.such.key", "trionet"}

    assert ["message.max.bytes"] == [each.name for each in describe_broker(broker, keys)]
    assert ["message.max.bytes"] == [each.name for each in describe_all_brokers(broker, keys)]
    assert ["retention.ms"] == [each.name for each in describe_topic(broker, {}, keys)]
    levels = {"trionet": "INFO", "trionet.broker": "INFO"}
    assert ["trionet"] == [each.name for each in describe_loggers(levels, keys)]
