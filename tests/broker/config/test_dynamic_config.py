"""The layers of a broker's settings, and which settings can be changed while it runs.

That the lists are those of the real Kafka is tested in test_broker_keys.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

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


def test_if_they_do_not_fit_each_other_all_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "trionet.broker"):
        config = DynamicConfig.restore(
            STATIC, {"log.retention.ms": "0"}, {"message.max.bytes": "9"}
        )

    assert STATIC is config.current
    assert "ignoring all altered settings: log.retention.ms" in caplog.text


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
    assert "allowed: an integer from 0" in str(problems["message.max.bytes"])


AT_THE_START = "cannot be changed while the broker is running"
OF_NEW_LISTENERS = "cannot be changed while listeners are open"
OF_OPEN_LISTENER = "cannot be changed while the listener is open; allowed: max.connection"
NOT_THERE = "does not name an existing listener; allowed, in lower case: plaintext, secure"
SECURE = "listener.name.secure"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("node.id", AT_THE_START),
        ("log.dirs", AT_THE_START),
        ("log.retention.hours", AT_THE_START),
        ("advertised.listeners", AT_THE_START),
        ("num.partitions", AT_THE_START),
        ("mesage.max.bytes", "unknown key; the closest match is message.max.bytes"),
        ("listeners", OF_NEW_LISTENERS),
        ("principal.builder.class", OF_NEW_LISTENERS),
        ("sasl.enabled.mechanisms", OF_NEW_LISTENERS),
        ("sasl.jaas.config", OF_NEW_LISTENERS),
        ("ssl.cipher.suites", OF_NEW_LISTENERS),
        ("ssl.client.auth", OF_NEW_LISTENERS),
        (f"{SECURE}.ssl.client.auth", OF_OPEN_LISTENER),
        (f"{SECURE}.scram-sha-256.sasl.jaas.config", OF_OPEN_LISTENER),
        (f"{SECURE}.connections.max.reauth.ms", OF_OPEN_LISTENER),
        (f"{SECURE}.message.max.bytes", OF_OPEN_LISTENER),
        (f"{SECURE}.no.such.key", OF_OPEN_LISTENER),
        ("listener.name.other.max.connections", NOT_THERE),
        ("listener.name.SECURE.max.connections", NOT_THERE),
        ("metric.reporters", "no classes can be loaded"),
        ("config.providers", "no classes can be loaded"),
    ],
)
def test_what_cannot_change_while_the_broker_runs_is_refused(key: str, message: str) -> None:
    assert message in problem(key, "1")


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
    assert "the listener uses PLAINTEXT, not TLS" in problem(f"listener.name.plaintext.{key}", "x")


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert "5" == redacted("message.max.bytes", "5")
    assert HIDDEN == redacted("listener.name.secure.ssl.keystore.password", "hush")
    assert HIDDEN == redacted("no.such.key", "hush")


def test_only_the_first_of_many_unknown_keys_is_compared_with_all_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To compare one takes 5 ms, and a request may have any number of them."""
    compared: list[str] = []

    def compare(key: str, known: Iterable[str], n: int, cutoff: float) -> list[str]:
        compared.append(key)
        return []

    monkeypatch.setattr("difflib.get_close_matches", compare)
    texts = dict.fromkeys(["message.max.bytes", *(f"unknown{n}" for n in range(100))], "1")

    with pytest.raises(ConfigError, match="unknown0: unknown key"):
        read_settings(BROKER, texts, for_all_brokers=False, altered=texts)

    assert ["unknown0"] == compared


def test_settings_that_are_checked_together_have_one_name() -> None:
    store = "listener.name.secure.ssl.keystore"

    assert store_group("SECURE") == check_group(f"{store}.key") == check_group(f"{store}.location")
    assert store_group("SECURE") != check_group("listener.name.other.ssl.keystore.key")
    assert check_group("max.connections.per.ip") == check_group("max.connections.per.ip.overrides")
    for key in ("max.connections", "listener.name.secure.max.connections", "log.retention.ms"):
        assert key == check_group(key)
