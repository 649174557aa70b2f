"""The layers of a broker's settings, and which settings can be changed while it runs.

That the lists are those of the real Kafka is tested in test_broker_keys.py.
"""

from __future__ import annotations

import logging

import pytest

from trionet.broker.config._broker_config import BROKER_KEYS, BrokerConfig
from trionet.broker.config._dynamic_config import (
    DYNAMIC,
    LISTENER_LIMITS,
    PER_BROKER,
    STORES,
    THREADS,
    DynamicConfig,
    check_group,
    read_settings,
    redacted,
    store_group,
    takes_effect,
)
from trionet.errors import ConfigError
from trionet.protocol._config_types import HIDDEN, Password, Value

STATIC = BrokerConfig.from_settings({"message.max.bytes": 1, "num.io.threads": 4})


def test_without_changes_what_counts_is_what_the_broker_was_started_with() -> None:
    assert STATIC is DynamicConfig(STATIC).current


def test_one_brokers_setting_wins_over_that_of_all_and_that_over_the_static_one() -> None:
    config = DynamicConfig(
        STATIC,
        cluster={"message.max.bytes": 2, "log.segment.bytes": 2_000_000},
        own={"message.max.bytes": 3},
    )

    assert 3 == config.current.integer("message.max.bytes")
    assert 2_000_000 == config.current.integer("log.segment.bytes")
    assert 4 == config.current.integer("num.io.threads")
    assert 1 == config.static.integer("message.max.bytes")


def test_settings_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.retention\.ms must be -1 or at least 1"):
        DynamicConfig(STATIC, cluster={"log.retention.ms": 0})


def test_what_was_altered_is_restored_from_its_texts() -> None:
    config = DynamicConfig.restore(
        STATIC, {"message.max.bytes": "2", "log.retention.ms": "9"}, {"message.max.bytes": "3"}
    )

    assert {"message.max.bytes": 2, "log.retention.ms": 9} == config.cluster
    assert {"message.max.bytes": 3} == config.own


def test_those_that_do_not_fit_the_others_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "trionet.broker"):
        config = DynamicConfig.restore(
            STATIC, {"log.retention.ms": "0"}, {"message.max.bytes": "9"}
        )

    assert ({}, {"message.max.bytes": 9}) == (config.cluster, config.own)
    assert "ignoring an altered setting, log.retention.ms: " in caplog.text


def test_a_stored_setting_may_not_fit_what_the_broker_is_started_with(
    caplog: pytest.LogCaptureFixture,
) -> None:
    static = BrokerConfig.from_settings({"log.cleaner.threads": 4})

    config = DynamicConfig.restore(
        static, {"log.cleaner.dedupe.buffer.size": "3000000", "log.roll.ms": "5"}, {}
    )

    assert {"log.roll.ms": 5} == config.cluster
    assert "log.cleaner.dedupe.buffer.size = 3000000 must be more than 1048576" in caplog.text


def test_settings_that_fit_only_together_stay_beside_one_that_fits_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    static = BrokerConfig.from_settings({"log.cleaner.threads": 4})
    cluster = {"log.cleaner.dedupe.buffer.size": "3000000", "log.retention.ms": "0"}

    config = DynamicConfig.restore(static, cluster, {"log.cleaner.threads": "2"})

    assert {"log.cleaner.dedupe.buffer.size": 3_000_000} == config.cluster
    assert {"log.cleaner.threads": 2} == config.own
    assert 1 == caplog.text.count("ignoring an altered setting")


def test_settings_without_effect_fit_all_others_however_many_they_are() -> None:
    """To try each with those before it would take longer than a test may."""
    custom = {f"listener.name.l{number}.max.connections": "5" for number in range(10_000)}

    config = DynamicConfig.restore(STATIC, {}, {**custom, "log.retention.ms": "0"})

    assert dict.fromkeys(custom, 5) == config.own


BROKER = BrokerConfig.from_settings(
    {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
    }
)


def value(key: str, text: str, *, for_all_brokers: bool = False) -> Value:
    values, problems = read_settings(BROKER, {key: text}, for_all_brokers=for_all_brokers)
    assert {} == problems
    return values[key]


def problem(key: str, text: str, *, for_all_brokers: bool = False) -> str:
    values, problems = read_settings(BROKER, {key: text}, for_all_brokers=for_all_brokers)
    assert {} == values
    return str(problems[key])


def test_kafka_has_so_many_keys_that_can_be_changed() -> None:
    assert 102 == len(DYNAMIC)
    assert PER_BROKER | STORES | LISTENER_LIMITS | set(THREADS) <= DYNAMIC <= set(BROKER_KEYS)


@pytest.mark.parametrize("for_all_brokers", [True, False])
def test_settings_are_read_as_their_types(for_all_brokers: bool) -> None:
    assert 5 == value("message.max.bytes", " 5 ", for_all_brokers=for_all_brokers)
    assert ("compact", "delete") == value(
        "log.cleanup.policy", "compact, delete", for_all_brokers=for_all_brokers
    )
    assert 7 == value("listener.name.secure.max.connections", "7", for_all_brokers=for_all_brokers)
    assert 100 == value("leader.replication.throttled.rate", "100", for_all_brokers=for_all_brokers)


def test_one_bad_setting_leaves_the_others_readable() -> None:
    values, problems = read_settings(
        BROKER, {"message.max.bytes": "x", "log.retention.ms": "9"}, for_all_brokers=False
    )

    assert {"log.retention.ms": 9} == values
    assert ["message.max.bytes"] == list(problems)
    assert "Not a number of type INT" in str(problems["message.max.bytes"])


AT_THE_START = "cannot be changed while the broker is running"
OF_NEW_LISTENERS = "cannot be changed while listeners are open"
SECURE = "listener.name.secure"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("node.id", AT_THE_START),
        ("log.dirs", AT_THE_START),
        ("log.retention.hours", AT_THE_START),
        ("advertised.listeners", AT_THE_START),
        ("num.partitions", AT_THE_START),
        ("metrics.listener", AT_THE_START),
        ("listeners", OF_NEW_LISTENERS),
        ("listener.security.protocol.map", OF_NEW_LISTENERS),
        ("ssl.client.auth", "String must be one of: required, requested, none"),
        (f"{SECURE}.ssl.client.auth", "String must be one of: required, requested, none"),
        ("metric.reporters", "no classes can be loaded"),
        ("principal.builder.class", "no classes can be loaded"),
        ("cordoned.log.dirs", "is not in log.dirs"),
    ],
)
def test_what_kafka_cannot_change_is_refused(key: str, message: str) -> None:
    assert message in problem(key, "1")


@pytest.mark.parametrize(
    "key",
    [
        "mesage.max.bytes",
        "super.users",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.kerberos.service.name",
        "ssl.cipher.suites",
        f"{SECURE}.scram-sha-256.sasl.jaas.config",
        f"{SECURE}.connections.max.reauth.ms",
        f"{SECURE}.message.max.bytes",
        f"{SECURE}.no.such.key",
        "listener.name.other.max.connections",
        "listener.name.SECURE.max.connections",
        "listener.name.plaintext.ssl.keystore.location",
    ],
)
def test_what_kafka_accepts_without_applying_it_is_stored_without_effect(key: str) -> None:
    config = DynamicConfig(BROKER, own={key: value(key, "1")})

    assert not takes_effect(BROKER, key)
    assert BROKER is config.current


def test_keys_of_a_listener_are_those_of_one_broker_except_for_its_limits() -> None:
    for key in sorted(LISTENER_LIMITS):
        assert 1 == value(f"{SECURE}.{key}", "1", for_all_brokers=True)
    for key in ("custom", "sasl.enabled.mechanisms"):
        assert "cannot be set for all brokers" in problem(
            f"{SECURE}.{key}", "1", for_all_brokers=True
        )


@pytest.mark.parametrize("listener", ["", "listener.name.plaintext.", "listener.name.later."])
@pytest.mark.parametrize("limit", ["max.connections", "max.connection.creation.rate"])
def test_no_client_can_shut_out_all(listener: str, limit: str) -> None:
    key = listener + limit

    assert "no client could connect any more to change it" in problem(key, "0")
    assert 1 == value(key, "1")


def test_of_classes_only_the_default_and_none_are_allowed() -> None:
    assert () == value("metric.reporters", "")
    default = BROKER_KEYS["metric.reporters"][2]
    assert default == value("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter")


@pytest.mark.parametrize("key", sorted(STORES))
def test_certificates_are_those_of_one_listener_of_one_broker(key: str) -> None:
    of_listener = f"listener.name.secure.{key}"

    assert value(of_listener, "x") in ("x", Password("x"))
    assert f"set listener.name.LISTENER.{key}" in problem(key, "x")
    assert "cannot be set for all brokers" in problem(of_listener, "x", for_all_brokers=True)


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert "5" == redacted("message.max.bytes", "5")
    assert HIDDEN == redacted("listener.name.secure.ssl.keystore.password", "hush")
    assert HIDDEN == redacted("no.such.key", "hush")


def test_settings_that_are_checked_together_have_one_name() -> None:
    store = "listener.name.secure.ssl.keystore"

    assert store_group("SECURE") == check_group(f"{store}.key") == check_group(f"{store}.location")
    assert store_group("SECURE") != check_group("listener.name.other.ssl.keystore.key")
    assert check_group("max.connections.per.ip") == check_group("max.connections.per.ip.overrides")
    for key in ("max.connections", "listener.name.secure.max.connections", "log.retention.ms"):
        assert key == check_group(key)
