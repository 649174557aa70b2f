"""Options that begin with ``kafka.``: what reaches the client, what does not, and who is told."""

from __future__ import annotations

import logging

import pytest

from trionet.client.consumer._settings import consumer_settings
from trionet.client.producer._settings import producer_settings
from trionet.errors import ConfigError
from trionet.spark._options import SinkOptions, SourceOptions

NEEDED = {"kafka.bootstrap.servers": "host:9092", "subscribe": "t"}
SECURE = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
    ' username="u" password="p";',
    "ssl.truststore.location": "/trust.pem",
    "ssl.truststore.type": "PEM",
}


def source(**options: str) -> dict[str, str]:
    return SourceOptions.parse(NEEDED | prefixed(options), is_stream=True).client


def sink(**options: str) -> dict[str, str]:
    needed = {"kafka.bootstrap.servers": "host:9092"}
    return SinkOptions.parse(needed | prefixed(options)).client


def prefixed(options: dict[str, str]) -> dict[str, str]:
    return {f"kafka.{key}": text for key, text in options.items()}


@pytest.mark.parametrize(
    "options",
    [SECURE, {"request.timeout.ms": "3000"}, {"retry.backoff.ms": "7", "client.id": "me"}],
)
def test_settings_reach_the_client_as_they_were_given(options: dict[str, str]) -> None:
    assert {"bootstrap.servers": "host:9092", **options} == source(**options)
    assert {"bootstrap.servers": "host:9092", **options} == sink(**options)


def test_names_have_any_case() -> None:
    options = {"Kafka.Bootstrap.Servers": "host:9092", "subscribe": "t", "KAFKA.CLIENT.ID": "me"}

    actual = SourceOptions.parse(options, is_stream=True)

    assert {"bootstrap.servers": "host:9092", "client.id": "me"} == actual.client


def test_the_client_takes_what_was_checked() -> None:
    """OP13: the names and the values; what does not fit together is the client's to say."""
    options = {"isolation.level": "read_committed", "fetch.max.bytes": "1000000"}
    of_source, of_sink = source(**options), sink(**{"linger.ms": "50", "acks": "1"})

    fetch = consumer_settings(of_source, {}).fetch
    assert fetch.is_read_committed
    assert 1_000_000 == fetch.bytes_max
    settings = producer_settings(of_sink | {"enable.idempotence": "false"}, {})
    assert settings.linger_seconds == 0.05


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_an_isolation_level_is_read(level: str) -> None:
    """OR1: without one it is that of Kafka."""
    assert (level == "read_committed") == consumer_settings(
        source(**{"isolation.level": level}), {}
    ).fetch.is_read_committed
    assert not consumer_settings(source(), {}).fetch.is_read_committed


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("isolation.level", "read_sometimes", "isolation.level = 'read_sometimes' is not allowed"),
        ("request.timeout.ms", "soon", "allowed: an integer from 0"),
        ("sasl.kerberos.ticket.renew.jitter", "x", "allowed: a number"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(key: str, text: str, message: str) -> None:
    """OR1: at the load, with what is allowed."""
    with pytest.raises(ConfigError, match=rf"^option kafka\.{key}") as caught:
        source(**{key: text})

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "must be set, since its default is GSSAPI: Kerberos is not supported; docs/howto/"),
        ({"sasl.mechanism": "GSSAPI"}, "Kerberos is not supported; docs/howto/connect-to-a-secur"),
        ({"sasl.mechanism": "PLAIN"}, "requires a user name and a password"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.mechanism": "GUESSING"}, "allowed: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, O"),
    ],
)
def test_a_login_that_cannot_work_is_refused_at_the_load(
    options: dict[str, str], message: str
) -> None:
    """Also by a sink, whose client is opened by tasks alone."""
    for make in (source, sink):
        with pytest.raises(ConfigError, match=r"^option kafka\.sasl\.mechanism") as caught:
            make(**{"security.protocol": "SASL_SSL", **options})

        assert message in str(caught.value)


def test_amazon_msk_has_the_settings_of_java() -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        ),
    }

    assert {"bootstrap.servers": "host:9092", **options} == source(**options) == sink(**options)


@pytest.mark.parametrize("servers", ["host", "host:0", "host:9092,host2:port", ","])
def test_unreachable_servers_are_refused(servers: str) -> None:
    """At the load, not after the time of a connect."""
    with pytest.raises(ConfigError, match=r"option kafka\.bootstrap\.servers"):
        source(**{"bootstrap.servers": servers})


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("auto.offset.reset", ["someValue", "none", "earliest", "latest"]),
        ("enable.auto.commit", ["someValue", "false"]),
        ("interceptor.classes", ["someValue"]),
        ("key.deserializer", ["someValue"]),
        ("value.deserializer", ["someValue"]),
    ],
)
def test_what_spark_decides_is_refused_by_a_source(key: str, texts: list[str]) -> None:
    """OP6: whatever its value, with what to do instead."""
    for text in texts:
        with pytest.raises(ConfigError, match=rf"'kafka\.{key}' is not supported: "):
            source(**{key: text})


@pytest.mark.parametrize("key", ["key.serializer", "value.serializer"])
def test_what_spark_decides_is_refused_by_a_sink(key: str) -> None:
    """OP16, SI7: keys and values are bytes."""
    with pytest.raises(ConfigError, match=rf"Kafka option 'kafka\.{key}' is not supported"):
        sink(**{key: "foo"})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("security.protocl", "unknown key; the closest match is security.protocol"),
        ("socket.timeout.ms", "is librdkafka's name; use Kafka's: request.timeout.ms"),
        ("ssl.engine.factory.class", "is not supported; leave it out"),
        ("group.protocol", "is not supported; set it to classic"),
    ],
)
def test_what_the_client_does_not_have_is_an_error(key: str, message: str) -> None:
    """A setting of security that is silently ignored is worse than none."""
    with pytest.raises(ConfigError, match=rf"^option kafka\.{key}") as caught:
        source(**{key: "consumer"})

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("partitioner.class", "pass the partition with each record"),
        ("sasl.mechansm", "unknown key; the closest match is sasl.mechanism"),
    ],
)
def test_what_the_producer_does_not_have_is_an_error(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^option kafka\.{key}") as caught:
        sink(**{key: "7"})

    assert message in str(caught.value)


def test_sink_writes_no_transactions() -> None:
    with pytest.raises(ConfigError, match=r"only with delivery\.guarantee=exactly-once"):
        sink(**{"transactional.id": "orders"})


@pytest.mark.parametrize(
    "key", ["sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key"]
)
def test_a_secret_is_in_no_representation(key: str) -> None:
    """Spark's own errors show what a reader holds."""
    needed, given = {"kafka.bootstrap.servers": "host:9092"}, prefixed({key: "secret"})
    of_source = SourceOptions.parse(NEEDED | given, is_stream=True)
    of_sink = SinkOptions.parse(needed | given)

    for options in (of_source, of_sink):
        assert "secret" == options.client[key]
        assert "secret" not in repr(options)
        assert f"'{key}': '[hidden]'" in repr(options)
        assert "host:9092" in repr(options)


def test_a_secret_is_in_no_error() -> None:
    with pytest.raises(ConfigError) as caught:
        source(**{"sasl.password": "secret", "sasl.mechanism": "GUESSING"})

    assert "secret" not in str(caught.value)


def test_what_only_groups_need_has_no_meaning_and_that_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "trionet"):
        actual = source(**{"session.timeout.ms": "1000", "max.poll.records": "5"})

    assert {"bootstrap.servers": "host:9092"} == actual
    assert [
        "these options have no effect on a source: kafka.max.poll.records, kafka.session.timeout.ms"
    ] == caplog.messages
