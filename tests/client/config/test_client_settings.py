"""Every key that all clients have changes a setting of the NetworkClient.

From keys to how connections are protected: Kafka's spelling, librdkafka's, and what fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from trionet.client._backoff import ExponentialBackoff
from trionet.client.config._client_config import ClientConfig, read_config
from trionet.client.config._client_settings import client_settings, security_settings
from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from trionet.client.network._open_client import ClientSettings
from trionet.client.network._telemetry import TelemetrySettings
from trionet.client.security._settings import (
    IamLogin,
    RefreshSettings,
    SaslClientSettings,
    SecuritySettings,
    TokenEndpoint,
    TokenProvider,
)
from trionet.errors import ConfigError
from trionet.net.tls._tls_context import ClientTlsSettings
from trionet.net.wire._endpoint import SecurityProtocol


def config(**keywords: object) -> ClientConfig:
    return read_config(CONSUMER_KEYS, None, keywords)


def settings(**keywords: object) -> ClientSettings:
    return client_settings(config(**keywords), in_flight_max=5)


def test_without_anything_the_settings_are_the_defaults() -> None:
    """But for the metrics, which a NetworkClient of its own tells nobody."""
    assert ClientSettings(telemetry=TelemetrySettings(is_enabled=True)) == settings()


def test_what_goes_with_the_metrics_that_a_broker_asks_for() -> None:
    """KIP-714."""
    consumer = settings(client_rack="r1", group_id="g", enable_metrics_push=False)
    given = {"client_rack": "r1", "group_id": "g"}
    admin = client_settings(read_config(ADMIN_KEYS, None, {}), in_flight_max=5)

    assert TelemetrySettings(is_enabled=False, labels=given) == consumer.telemetry
    assert TelemetrySettings(is_enabled=False) == admin.telemetry


def test_a_producer_reads_into_smaller_buffers_and_an_admin_client_leaves_sooner() -> None:
    producer = client_settings(read_config(PRODUCER_KEYS, None, {}), in_flight_max=5)
    admin = client_settings(read_config(ADMIN_KEYS, None, {}), in_flight_max=5)

    assert 32_768 == producer.connections.receive_buffer_bytes
    assert 300.0 == admin.idle_seconds_max


@pytest.mark.parametrize(
    ("keywords", "path", "value"),
    [
        ({"client_id": "shop"}, "requests.client_id", "shop"),
        ({"client_id": ""}, "requests.client_id", "trionet"),
        ({"request_timeout_ms": 1500}, "requests.timeout_seconds", 1.5),
        ({"connections_max_idle_ms": 1500}, "idle_seconds_max", 1.5),
        ({"connections_max_idle_ms": -1}, "idle_seconds_max", math.inf),
        ({"metadata_max_age_ms": 1500}, "metadata.max_age_seconds", 1.5),
        (
            {"metadata_recovery_rebootstrap_trigger_ms": 1500},
            "metadata.rebootstrap_seconds",
            1.5,
        ),
        ({"metadata_recovery_strategy": "none"}, "metadata.rebootstrap_seconds", math.inf),
        ({"retry_backoff_ms": 7}, "metadata.retry", ExponentialBackoff(0.007, 1.0)),
        ({"retry_backoff_max_ms": 2000}, "metadata.retry", ExponentialBackoff(0.1, 2.0)),
        ({"reconnect_backoff_max_ms": 2000}, "times.reconnect", ExponentialBackoff(0.05, 2.0)),
        (
            {"reconnect_backoff_ms": 7, "reconnect_backoff_max_ms": 2000},
            "times.reconnect",
            ExponentialBackoff(0.007, 2.0),
        ),
        (
            {"socket_connection_setup_timeout_ms": 7},
            "times.setup",
            ExponentialBackoff(0.007, 30.0),
        ),
        (
            {"socket_connection_setup_timeout_max_ms": 60_000},
            "times.setup",
            ExponentialBackoff(10.0, 60.0),
        ),
        ({"metrics_num_samples": 7}, "metrics.samples", 7),
        ({"metrics_sample_window_ms": 1500}, "metrics.window_seconds", 1.5),
        ({"send_buffer_bytes": -1}, "connections.send_buffer_bytes", -1),
        ({"receive_buffer_bytes": 7}, "connections.receive_buffer_bytes", 7),
        ({"receive_message_max_bytes": 7000}, "connections.frame_bytes_max", 7000),
    ],
)
def test_a_key_changes_a_setting(keywords: dict[str, object], path: str, value: object) -> None:
    actual: object = settings(**keywords)
    for name in path.split("."):
        actual = getattr(actual, name)

    assert value == actual


@pytest.mark.parametrize("milliseconds", [20, 5000])
def test_setting_only_the_first_reconnect_wait_gives_one_that_does_not_grow(
    milliseconds: int,
) -> None:
    actual = settings(reconnect_backoff_ms=milliseconds)

    assert ExponentialBackoff(milliseconds / 1000, milliseconds / 1000) == actual.times.reconnect


def test_the_most_bounds_the_first_wait_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    actual = settings(retry_backoff_ms=5000)

    assert ExponentialBackoff(1.0, 1.0) == actual.metadata.retry
    assert ["retry.backoff.ms exceeds retry.backoff.max.ms; using the latter for both"] == (
        caplog.messages
    )


PACKAGE = "org.apache.kafka.common.security"


def security(
    config: Mapping[str, object], token_provider: TokenProvider | None = None
) -> SecuritySettings:
    return security_settings(read_config(ADMIN_KEYS, config, {}), token_provider)


def tls(**config: object) -> ClientTlsSettings:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return security({"security.protocol": "SSL", **given}).tls


def sasl(config: Mapping[str, object], token_provider: TokenProvider | None = None) -> object:
    return security({"security.protocol": "SASL_PLAINTEXT", **config}, token_provider).sasl


def error(config: Mapping[str, object], token_provider: TokenProvider | None = None) -> str:
    with pytest.raises(ConfigError) as raised:
        security({"security.protocol": "SASL_SSL", **config}, token_provider)
    return str(raised.value)


def token() -> str:
    return "token"


def test_without_anything_connections_are_in_the_clear() -> None:
    assert SecuritySettings() == security({})


def test_tls_has_kafkas_defaults() -> None:
    expected = SecuritySettings(protocol=SecurityProtocol.SSL)

    assert expected == security({"security.protocol": "ssl"})
    assert "https" == expected.tls.endpoint_identification_algorithm


def test_stores_are_kafkas() -> None:
    actual = tls(
        ssl_truststore_type="PKCS12",
        ssl_truststore_location="/trust.p12",
        ssl_truststore_password="1",
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=Path("/key.p12"),
        ssl_keystore_password="2",
        ssl_key_password="3",
        ssl_endpoint_identification_algorithm="",
    )

    assert actual == ClientTlsSettings(
        truststore_type="PKCS12",
        truststore_location="/trust.p12",
        truststore_password="1",
        keystore_type="PKCS12",
        keystore_location="/key.p12",
        keystore_password="2",
        key_password="3",
        endpoint_identification_algorithm="",
    )


def test_files_in_pem_are_those_of_librdkafka(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    key.write_text("a key")
    certificate.write_text("a certificate")

    actual = tls(
        ssl_ca_location="/ca.pem",
        ssl_key_location=key,
        ssl_certificate_location=certificate,
        ssl_key_password="3",
    )

    assert actual == ClientTlsSettings(
        truststore_type="PEM",
        truststore_location="/ca.pem",
        keystore_type="PEM",
        keystore_key="a key",
        keystore_certificate_chain="a certificate",
        key_password="3",
    )


def test_texts_in_pem_are_those_of_librdkafka() -> None:
    actual = tls(ssl_ca_pem="an authority", ssl_key_pem="a key", ssl_certificate_pem="a chain")

    assert actual == ClientTlsSettings(
        truststore_type="PEM",
        truststore_certificates="an authority",
        keystore_type="PEM",
        keystore_key="a key",
        keystore_certificate_chain="a chain",
    )


def test_without_tls_no_file_is_looked_at() -> None:
    assert SecuritySettings() == security({"ssl.key.location": "/nowhere"})


def test_a_user_of_plain_is_given_as_librdkafka_or_kafka_has_it() -> None:
    expected = SaslClientSettings(mechanism="PLAIN", user_name="ali", password="open sesame")
    jaas = f'{PACKAGE}.plain.PlainLoginModule required username="ali" password="open sesame";'

    both = {"sasl.mechanism": "PLAIN", "sasl.username": "ali", "sasl.password": "open sesame"}
    assert expected == sasl(both)
    assert expected == sasl({"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas})


def test_a_delegation_token_is_given_as_kafka_has_it() -> None:
    """KIP-48: the token's id and HMAC are user name and password of SCRAM."""
    module = f"{PACKAGE}.scram.ScramLoginModule"
    jaas = f'{module} required username="id" password="hmac" tokenauth="true";'

    actual = sasl({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas})

    assert actual == SaslClientSettings(
        mechanism="SCRAM-SHA-256", user_name="id", password="hmac", is_delegation_token=True
    )


def test_tokens_come_from_a_function_and_are_refreshed_as_kafka_does() -> None:
    actual = sasl(
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": (
                f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.login.refresh.window.factor": 0.5,
            "sasl.login.refresh.window.jitter": 0,
            "sasl.login.refresh.min.period.seconds": 1,
            "sasl.login.refresh.buffer.seconds": 2,
        },
        token,
    )

    assert actual == SaslClientSettings(
        mechanism="OAUTHBEARER",
        token_provider=token,
        refresh=RefreshSettings(
            window_factor=0.5, window_jitter=0.0, min_period_seconds=1, buffer_seconds=2
        ),
    )


_PLAIN: Mapping[str, object] = {
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ali",
    "sasl.password": "open sesame",
}

_URL = "sasl.oauthbearer.token.endpoint.url"
_ID = "sasl.oauthbearer.client.credentials.client.id"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_TOKENS: Mapping[str, object] = {
    "sasl.mechanism": "OAUTHBEARER",
    _URL: "https://tokens.example/",
    _ID: "me",
    _SECRET: "open sesame",
}
_TOKEN_JAAS = (
    f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
    ' clientId="me" clientSecret="sesame" scope="kafka" extension_logicalCluster="lkc-1";'
)


def test_tokens_of_a_server_are_asked_for_as_either_kafka_has_it() -> None:
    new = sasl({**_TOKENS, "sasl.oauthbearer.scope": "kafka", "sasl.login.read.timeout.ms": 5})
    old = sasl(
        {"sasl.mechanism": "OAUTHBEARER", _URL: "https://a/", "sasl.jaas.config": _TOKEN_JAAS}
    )

    expected = TokenEndpoint(
        url="https://tokens.example/",
        client_id="me",
        client_secret="open sesame",
        scope="kafka",
        read_timeout_seconds=0.005,
    )
    assert isinstance(new, SaslClientSettings)
    assert expected == new.token_endpoint
    expected = TokenEndpoint(
        url="https://a/",
        client_id="me",
        client_secret="sesame",
        scope="kafka",
        extensions={"logicalCluster": "lkc-1"},
    )
    assert isinstance(old, SaslClientSettings)
    assert expected == old.token_endpoint


_IAM = "software.amazon.msk.auth.iam"


def test_amazon_msk_has_the_settings_of_java() -> None:
    """Both of its mechanisms: here they are one."""
    options = 'awsRoleArn="arn:aws:iam::1:role/r" awsStsRegion=eu-west-1 awsDebugCreds=true'
    by_iam = {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f"{_IAM}.IAMLoginModule required {options};",
        "sasl.client.callback.handler.class": f"{_IAM}.IAMClientCallbackHandler",
    }
    handler = f"{_IAM}.IAMOAuthBearerLoginCallbackHandler"
    by_token = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required {options};",
        "sasl.login.callback.handler.class": handler,
        "sasl.client.callback.handler.class": handler,
    }

    expected = SaslClientSettings(
        mechanism="OAUTHBEARER",
        iam=IamLogin(role_arn="arn:aws:iam::1:role/r", sts_region="eu-west-1"),
    )
    assert expected == sasl(by_iam) == sasl(by_token)
    assert IamLogin() == getattr(sasl({"sasl.mechanism": "AWS_MSK_IAM"}), "iam", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("awsProfile=p", "unknown option awsProfile for Amazon MSK; allowed: awsDebugCreds, "),
        ("username=a password=b", "unknown option password"),
        ("awsRoleSessionName=p", "awsRoleSessionName requires awsRoleArn"),
        ("awsRoleArn=r awsProfileName=p", "awsProfileName and awsRoleArn cannot both be set"),
    ],
)
def test_options_for_amazon_msk_that_do_not_fit_are_refused(options: str, message: str) -> None:
    jaas = f"{_IAM}.IAMLoginModule required {options};"

    with pytest.raises(ConfigError, match=message):
        sasl({"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": jaas})


@pytest.mark.parametrize(
    "key", ["sasl.username", "sasl.password", "sasl.oauthbearer.token.endpoint.url"]
)
def test_credentials_of_other_mechanisms_are_refused_for_amazon_msk(key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} cannot be used with AWS_MSK_IAM"):
        sasl({"sasl.mechanism": "AWS_MSK_IAM", key: "http://127.0.0.1/"})


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.mechanism": "GSSAPI"},
        {},
        {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
        },
    ],
)
def test_kerberos_is_refused_with_the_page_that_says_what_to_use(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"Kerberos .*docs/howto/connect-to-a-secured-cluster"):
        sasl(given)


def test_secret_that_is_sent_in_the_clear_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sasl({**_TOKENS, _URL: "http://localhost/"})
    assert [] == caplog.messages
    sasl({**_TOKENS, _URL: "http://tokens.example/"})

    assert "the client secret is sent unencrypted" in caplog.text


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, r"sasl.mechanism must be set, since its default is GSSAPI: Kerberos is not supported"),
        ({"sasl.mechanism": "PLAIN"}, "requires a user name and a password"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "requires either a function that returns tokens"),
        (
            {**_TOKENS, "sasl.mechanism": "PLAIN"},
            "cannot be used with sasl.mechanism = PLAIN; allowed: OAUTHBEARER",
        ),
        ({**_TOKENS, _SECRET: None}, f"requires {_ID} and {_SECRET}"),
        ({**_TOKENS, _URL: None}, f"requires {_URL}"),
        ({**_TOKENS, _URL: "ftp://a/b"}, "allowed: https://HOST/PATH"),
        ({**_TOKENS, _URL: "https://a:x/b"}, "allowed: https://HOST/PATH"),
        (
            {**_TOKENS, _URL: "https://me:sesame@a/b"},
            f"{_URL} must not contain credentials; set {_ID}",
        ),
        ({**_TOKENS, _URL: "https://a/b c"}, "allowed: https://HOST/PATH"),
        (
            {**_TOKENS, "sasl.jaas.config": _TOKEN_JAAS},
            "clientId of sasl.jaas.config cannot both be set",
        ),
        (
            {**_PLAIN, "sasl.jaas.config": "x"},
            "cannot be combined with sasl.username or sasl.password",
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "org.example.Mine required;"},
            "unsupported login module org.example.Mine",
        ),
        (
            {**_PLAIN, "ssl.ca.pem": "a", "ssl.ca.location": "b"},
            "ssl.ca.pem and ssl.ca.location cannot both be set",
        ),
        (
            {**_PLAIN, "ssl.ca.location": "/ca.pem", "ssl.truststore.type": "PEM"},
            "ssl.ca.location and ssl.truststore.type cannot both be set",
        ),
        (
            {**_PLAIN, "ssl.key.pem": "a", "ssl.keystore.location": "b"},
            "ssl.key.pem and ssl.keystore.location cannot both be set",
        ),
        (
            {**_PLAIN, "ssl.key.pem": "a", "ssl.key.location": "b"},
            "ssl.key.pem and ssl.key.location cannot both be set",
        ),
        ({**_PLAIN, "ssl.key.location": "/nowhere"}, "cannot read ssl.key.location = '/nowhere'"),
        (
            {**_PLAIN, "sasl.login.refresh.window.factor": 0.4},
            "sasl.login.refresh.window.factor = 0.4 must be between 0.5 and 1.0",
        ),
    ],
)
def test_what_does_not_fit_is_an_error(config: Mapping[str, object], said: str) -> None:
    actual = error(config)

    assert said in actual
    assert "sesame" not in actual


def test_a_token_provider_is_for_tokens() -> None:
    assert "allowed: OAUTHBEARER" in error(_PLAIN, token)
    assert "allowed: SASL_PLAINTEXT, SASL_SSL" in error({"security.protocol": "SSL"}, token)


def test_what_is_said_of_security_that_is_not_asked_for_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    security({"sasl.username": "ada", "sasl.password": "sesame", "ssl.ca.location": "ca.pem"})

    assert (
        "not used with security.protocol=PLAINTEXT: sasl.username, sasl.password, ssl.ca.location"
        in caplog.text
    )
    assert "sesame" not in caplog.text
