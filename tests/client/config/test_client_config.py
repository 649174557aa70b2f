"""What a client is given becomes a configuration, or an error that says what is wrong."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

import pytest

from trionet.client.config._client_config import ClientConfig, read_config
from trionet.client.config._keys import CONSUMER_KEYS, PRODUCER_KEYS
from trionet.errors import ConfigError
from trionet.protocol._config_types import Password


def read(config: Mapping[str, object] | None = None, **keywords: object) -> ClientConfig:
    return read_config(PRODUCER_KEYS, config, keywords)


@pytest.mark.parametrize(
    ("config", "keywords", "given"),
    [
        ({"linger.ms": 7}, {}, {"linger.ms": 7}),
        ({}, {"linger_ms": 7}, {"linger.ms": 7}),
        # Keywords win, and of two spellings the later.
        ({"linger.ms": 7, "acks": "0"}, {"linger_ms": 9}, {"linger.ms": 9, "acks": "0"}),
        ({"linger.ms": 7, "linger_ms": 9}, {}, {"linger.ms": 9}),
        ({"linger.ms": 7}, {"linger_ms": None}, {}),
        # As in a properties file.
        (
            {"linger.ms": " 7 ", "enable.idempotence": "False"},
            {},
            {"linger.ms": 7, "enable.idempotence": False},
        ),
    ],
)
def test_what_is_given_is_read(
    config: dict[str, object], keywords: dict[str, object], given: dict[str, object]
) -> None:
    actual = read(config, **keywords)

    assert given == actual.given
    assert given.get("linger.ms", 5) == actual.integer("linger.ms")


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("acks", 1, "1"),
        ("acks", -1, "-1"),
        ("security.protocol", "plaintext", "PLAINTEXT"),
        ("metadata.recovery.strategy", "NONE", "none"),
        ("ssl.endpoint.identification.algorithm", "HTTPS", "https"),
        ("ssl.keystore.type", "pkcs12", "PKCS12"),
        ("ssl.truststore.type", "Pem", "PEM"),
    ],
)
def test_what_kafka_compares_without_regard_to_case_and_numbers_of_acks(
    key: str, raw: object, value: str
) -> None:
    assert value == read({key: raw})[key]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"acks": 2}, "acks = '2' is not allowed; allowed: one of all, -1, 0, 1"),
        ({"acks": True}, "acks = True is not allowed; allowed: one of all, -1, 0, 1"),
        (
            {"linger.ms": -1},
            "linger.ms = -1 is not allowed; allowed: an integer from 0 to 9223372036854775807",
        ),
        (
            {"compression.type": "brotli"},
            (
                "compression.type = 'brotli' is not allowed; allowed: one of none, gzip, snappy,"
                " lz4, zstd"
            ),
        ),
        (
            {"sasl.mechanism": "GSSAPI"},
            (
                "sasl.mechanism = GSSAPI: Kerberos is not supported;"
                " docs/howto/connect-to-a-secured-cluster.md says under Kerberos what to use"
                " in its place"
            ),
        ),
        (
            {"sasl.mechanism": "PLAINTEXT"},
            (
                "sasl.mechanism = 'PLAINTEXT' is not allowed; allowed: one of PLAIN,"
                " SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM"
            ),
        ),
        (
            {"transaction.two.phase.commit.enable": True},
            (
                "transaction.two.phase.commit.enable = 'true' is not supported; set it to false,"
                " since trionet takes no part in other systems' transactions (KIP-939)"
            ),
        ),
        (
            {"partitioner.class": "org.example.Mine"},
            (
                "partitioner.class = 'org.example.Mine' is not supported; leave it out,"
                " and pass the partition with each record"
            ),
        ),
        ({"client.id": "a\udcff"}, r"client.id = 'a\udcff' cannot be encoded as UTF-8"),
        (
            {"transactional.id": "ä" * 2**14},
            "transactional.id has 32768 bytes; allowed: at most 32767",
        ),
    ],
)
def test_what_is_not_allowed_is_an_error_that_says_what_is(
    config: dict[str, object], error: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(config)

    assert error == str(raised.value)


def test_the_name_of_a_file_may_be_any_bytes() -> None:
    assert "/\udcff" == read({"ssl.keystore.location": "/\udcff"})["ssl.keystore.location"]


def test_an_error_never_quotes_a_secret() -> None:
    with pytest.raises(ConfigError) as raised:
        read({"sasl.password": 12345})

    assert "sasl.password = [hidden] is not allowed; allowed: a string" == str(raised.value)


def test_what_is_refused_may_be_said_when_it_asks_for_nothing() -> None:
    given = {"group.protocol": "CLASSIC", "interceptor.classes": "", "group.remote.assignor": None}

    actual = read_config(CONSUMER_KEYS, given, {})

    assert {"group.protocol": "classic", "interceptor.classes": ()} == actual.given


def test_what_has_no_meaning_here_is_listed_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trionet.client")
    config = read({"key.serializer": "org.example.Json", "linger.ms": 1, "ssl.provider": "Sun"})

    config.report()

    assert [
        "settings that have no effect for this producer: key.serializer, ssl.provider"
    ] == caplog.messages


def test_nothing_is_said_of_what_has_an_effect(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trionet.client")

    read({"linger.ms": 1}).report()

    assert [] == caplog.messages


def test_secrets_are_not_shown() -> None:
    config = read({"sasl.password": "open sesame", "sasl.username": "ali"})

    assert Password("open sesame") == config["sasl.password"]
    assert "open sesame" == config.optional("sasl.password")
    assert "ClientConfig(sasl.password=[hidden], sasl.username=ali)" == repr(config)


def test_milliseconds_become_seconds_and_negative_ones_never_end() -> None:
    assert 1.5 == read(connections_max_idle_ms=1500).seconds("connections.max.idle.ms")
    assert math.inf == read(connections_max_idle_ms=-1).seconds("connections.max.idle.ms")


def test_an_empty_text_is_as_none_where_a_text_is_optional() -> None:
    assert read(sasl_username="").optional("sasl.username") is None
