"""The settings of every client's NetworkClient, built from Kafka's keys and librdkafka's."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ..._util._logging import get_logger
from ..._util.files._regular_file import read_regular_file
from ...errors import ConfigError
from ...net.sasl import MECHANISMS
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl._jaas import LoginModule, parse_jaas
from ...net.tls._key_stores import STORE_BYTES_MAX
from ...net.tls._tls_context import ClientTlsSettings
from ...net.wire._endpoint import SecurityProtocol
from .._backoff import ExponentialBackoff
from .._client_metrics import MetricsSettings
from .._network_settings import ConnectionSettings, ConnectionTimes, MetadataTimes, RequestSettings
from ..network._open_client import ClientSettings
from ..network._telemetry import TelemetrySettings
from ..security._settings import (
    LOGIN_SECONDS,
    IamLogin,
    RefreshSettings,
    SaslClientSettings,
    SecuritySettings,
    TokenEndpoint,
    TokenProvider,
)
from ._client_config import ClientConfig
from ._keys import AWS_MSK_IAM, IAM_LOGIN_CALLBACKS, IAM_LOGIN_MODULE, KERBEROS

# Kafka: ClientTelemetryProvider.
_TELEMETRY_LABELS: Final = ("client.rack", "group.id", "group.instance.id", "transactional.id")

logger = get_logger("trionet.client")


def client_settings(
    config: ClientConfig, *, in_flight_max: int, token_provider: TokenProvider | None = None
) -> ClientSettings:
    """Return the settings of a client's NetworkClient.

    Args:
        config: the configuration of any client.
        in_flight_max: the maximum number of requests in flight per node.
        token_provider: returns the tokens for OAUTHBEARER.

    Raises:
        ConfigError: the security settings are inconsistent.
    """
    return ClientSettings(
        connections=ConnectionSettings(
            send_buffer_bytes=config.integer("send.buffer.bytes"),
            receive_buffer_bytes=config.integer("receive.buffer.bytes"),
            frame_bytes_max=config.integer("receive.message.max.bytes"),
        ),
        times=ConnectionTimes(
            reconnect=_reconnect_backoff(config),
            setup=_backoff(config, "socket.connection.setup.timeout"),
        ),
        metadata=MetadataTimes(
            max_age_seconds=config.seconds("metadata.max.age.ms"),
            retry=retry_backoff(config),
            rebootstrap_seconds=_rebootstrap_seconds(config),
        ),
        requests=RequestSettings(
            client_id=config.text("client.id") or RequestSettings().client_id,
            timeout_seconds=config.seconds("request.timeout.ms"),
            in_flight_max=in_flight_max,
        ),
        security=security_settings(config, token_provider),
        metrics=MetricsSettings(
            samples=config.integer("metrics.num.samples"),
            window_seconds=config.seconds("metrics.sample.window.ms"),
        ),
        telemetry=TelemetrySettings(
            is_enabled=config.flag("enable.metrics.push"), labels=_telemetry_labels(config)
        ),
        idle_seconds_max=config.seconds("connections.max.idle.ms"),
    )


def retry_backoff(config: ClientConfig) -> ExponentialBackoff:
    """Return the backoff between retries (KIP-580)."""
    return _backoff(config, "retry.backoff")


def _reconnect_backoff(config: ClientConfig) -> ExponentialBackoff:
    """Return the reconnect backoff; constant if only ``reconnect.backoff.ms`` is set (KIP-144).

    (Kafka: CommonClientConfigs.postProcessReconnectBackoffConfigs.)
    """
    if "reconnect.backoff.ms" in config.given and "reconnect.backoff.max.ms" not in config.given:
        seconds = config.seconds("reconnect.backoff.ms")
        return ExponentialBackoff(seconds, seconds)
    return _backoff(config, "reconnect.backoff")


def _backoff(config: ClientConfig, name: str) -> ExponentialBackoff:
    """Return the backoff that ``NAME.ms`` and ``NAME.max.ms`` set; the latter caps the former."""
    first, most = config.seconds(f"{name}.ms"), config.seconds(f"{name}.max.ms")
    if first > most:
        logger.warning("%s.ms exceeds %s.max.ms; using the latter for both", name, name)
    return ExponentialBackoff(min(first, most), most)


def _telemetry_labels(config: ClientConfig) -> dict[str, str]:
    """Return the labels of the client's telemetry (KIP-714)."""
    keys = [key for key in _TELEMETRY_LABELS if key in config.keys.applied]
    return {key.replace(".", "_"): text for key in keys if (text := config.optional(key))}


def _rebootstrap_seconds(config: ClientConfig) -> float:
    if config.text("metadata.recovery.strategy") == "none":
        return math.inf
    return config.seconds("metadata.recovery.rebootstrap.trigger.ms")


_LOGIN_MODULES: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    IAM_LOGIN_MODULE,
)
# librdkafka's keys, and the prefix of Kafka's keys for the same settings.
_TRUST: Final = (("ssl.ca.location", "ssl.ca.pem"), "ssl.truststore.")
_KEY: Final = (
    ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem"),
    "ssl.keystore.",
)


def security_settings(
    config: ClientConfig, token_provider: TokenProvider | None = None
) -> SecuritySettings:
    """Return a client's TLS and SASL settings.

    Args:
        config: the configuration of any client.
        token_provider: returns the tokens for OAUTHBEARER.

    Raises:
        ConfigError: a setting is missing or inconsistent with others, or a PEM file cannot be
            read. The message never contains a secret.
    """
    protocol = SecurityProtocol(config.text("security.protocol"))
    uses_tls = protocol.has_tls
    uses_sasl = protocol.has_sasl
    if token_provider is not None and not uses_sasl:
        raise ConfigError(
            f"a token provider cannot be used with security.protocol = {protocol.value}; allowed:"
            " SASL_PLAINTEXT, SASL_SSL"
        )
    _warn_unused(config, ("ssl.",) * (not uses_tls) + ("sasl.",) * (not uses_sasl))
    return SecuritySettings(
        protocol=protocol,
        # Without TLS no file is read.
        tls=_tls(config) if uses_tls else ClientTlsSettings(),
        sasl=_sasl(config, token_provider) if uses_sasl else None,
    )


def check_sasl(config: ClientConfig) -> None:
    """Check the settings of SASL, for a protocol that has it, without reading a file.

    Raises:
        ConfigError: they are inconsistent, or the mechanism is not supported.
    """
    _sasl(config, None)


def _warn_unused(config: ClientConfig, prefixes: tuple[str, ...]) -> None:
    """Warn about settings that have no effect with this ``security.protocol``."""
    unused = [key for key in config.given if key.startswith(prefixes)]
    if unused:
        protocol = config.text("security.protocol")
        logger.warning(
            "settings not used with security.protocol=%s: %s", protocol, ", ".join(unused)
        )


def _tls(config: ClientConfig) -> ClientTlsSettings:
    for theirs, prefix in (_TRUST, _KEY):
        _check_one_spelling(config, theirs, prefix)
    if "ssl.ca.pem" in config.given and "ssl.ca.location" in config.given:
        raise _both("ssl.ca")
    has_ca = any(key in config.given for key in _TRUST[0])
    has_pem_key = any(key in config.given for key in _KEY[0])
    return ClientTlsSettings(
        keystore_type="PEM" if has_pem_key else config.text("ssl.keystore.type"),
        keystore_location=config.optional("ssl.keystore.location"),
        keystore_password=config.optional("ssl.keystore.password"),
        keystore_key=_pem(config, "ssl.key") or config.optional("ssl.keystore.key"),
        keystore_certificate_chain=(
            _pem(config, "ssl.certificate") or config.optional("ssl.keystore.certificate.chain")
        ),
        key_password=config.optional("ssl.key.password"),
        truststore_type="PEM" if has_ca else config.text("ssl.truststore.type"),
        truststore_location=(
            config.optional("ssl.ca.location") or config.optional("ssl.truststore.location")
        ),
        truststore_password=config.optional("ssl.truststore.password"),
        truststore_certificates=(
            config.optional("ssl.ca.pem") or config.optional("ssl.truststore.certificates")
        ),
        enabled_protocols=config.names("ssl.enabled.protocols"),
        cipher_suites=config.names("ssl.cipher.suites"),
        endpoint_identification_algorithm=config.text("ssl.endpoint.identification.algorithm"),
    )


def _check_one_spelling(config: ClientConfig, theirs: tuple[str, ...], prefix: str) -> None:
    used = [key for key in config.given if key in theirs]
    kafkas = [key for key in config.given if key.startswith(prefix)]
    if used and kafkas:
        raise ConfigError(
            f"{used[0]} and {kafkas[0]} cannot both be set; use either librdkafka's settings"
            f" ({used[0]} and the like) or Kafka's ({prefix}...)"
        )


def _pem(config: ClientConfig, name: str) -> str | None:
    """Return the value of ``NAME.pem``, or the content of the file ``NAME.location``."""
    text, location = config.optional(f"{name}.pem"), config.optional(f"{name}.location")
    if text and location:
        raise _both(name)
    if not location:
        return text
    try:
        return read_regular_file(location, STORE_BYTES_MAX).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {name}.location = {location!r}: {error}") from error


def _both(name: str) -> ConfigError:
    return ConfigError(f"{name}.pem and {name}.location cannot both be set")


def _sasl(config: ClientConfig, token_provider: TokenProvider | None) -> SaslClientSettings:
    if "sasl.mechanism" not in config.given:
        raise ConfigError(
            f"sasl.mechanism must be set, since its default is GSSAPI: {KERBEROS}; allowed:"
            f" {', '.join(MECHANISMS)}, {AWS_MSK_IAM}"
        )
    mechanism = config.text("sasl.mechanism")
    if token_provider is not None and mechanism != oauthbearer.NAME:
        raise ConfigError(
            f"a token provider cannot be used with sasl.mechanism = {mechanism}; allowed:"
            " OAUTHBEARER"
        )
    options = _jaas_options(config)
    if token_provider is None and _is_iam(config, mechanism):
        for key in ("sasl.username", "sasl.password", _URL):
            if config.optional(key):
                raise ConfigError(
                    f"{key} cannot be used with {AWS_MSK_IAM}, whose credentials are AWS's; they"
                    " come from the environment, or from the options of sasl.jaas.config"
                )
        return SaslClientSettings(
            mechanism=oauthbearer.NAME, iam=iam_login(options), refresh=_refresh(config)
        )
    endpoint = None
    if mechanism == oauthbearer.NAME:
        endpoint = token_endpoint(config, options)
    elif "sasl.oauthbearer.token.endpoint.url" in config.given:
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url cannot be used with sasl.mechanism ="
            f" {mechanism}; allowed: OAUTHBEARER"
        )
    user_name, password, is_token = _credentials(config, options)
    return SaslClientSettings(
        mechanism=mechanism,
        user_name=user_name,
        password=password,
        is_delegation_token=is_token,
        token_provider=token_provider,
        token_endpoint=endpoint,
        refresh=_refresh(config),
    )


def _jaas_options(config: ClientConfig) -> Mapping[str, str]:
    jaas = config.optional("sasl.jaas.config")
    if jaas is None:
        return {}
    if config.optional("sasl.username") or config.optional("sasl.password"):
        raise ConfigError(
            "sasl.jaas.config cannot be combined with sasl.username or sasl.password; set one or"
            " the other"
        )
    return _login_module(jaas).options


def _credentials(config: ClientConfig, options: Mapping[str, str]) -> tuple[str, str, bool]:
    """Return the user name, password, and whether they are a delegation token's (KIP-48)."""
    user_name = config.optional("sasl.username") or ""
    password = config.optional("sasl.password") or ""
    if config.optional("sasl.jaas.config") is None:
        return user_name, password, False
    is_token = options.get("tokenauth", "").lower() == "true"
    return options.get("username", ""), options.get("password", ""), is_token


def _login_module(text: str) -> LoginModule:
    module = parse_jaas(text)
    if module.name.rpartition(".")[2] == "Krb5LoginModule":
        raise ConfigError(f"sasl.jaas.config: {KERBEROS}")
    if module.name not in _LOGIN_MODULES:
        raise ConfigError(
            f"sasl.jaas.config: unsupported login module {module.name}; allowed:"
            f" {', '.join(_LOGIN_MODULES)}"
        )
    return module


def _refresh(config: ClientConfig) -> RefreshSettings:
    return RefreshSettings(
        window_factor=_fraction(config, "sasl.login.refresh.window.factor", 0.5, 1.0),
        window_jitter=_fraction(config, "sasl.login.refresh.window.jitter", 0.0, 0.25),
        min_period_seconds=config.integer("sasl.login.refresh.min.period.seconds"),
        buffer_seconds=config.integer("sasl.login.refresh.buffer.seconds"),
    )


def _fraction(config: ClientConfig, key: str, least: float, most: float) -> float:
    value = config[key]
    assert isinstance(value, float)
    if not least <= value <= most:
        raise ConfigError(f"{key} = {value} must be between {least} and {most}")
    return value


#: The options of Java's login module for Amazon MSK.
_IAM_OPTIONS: Final = {
    "awsProfileName": "profile_name",
    "awsRoleArn": "role_arn",
    "awsRoleSessionName": "role_session_name",
    "awsRoleExternalId": "role_external_id",
    "awsRoleAccessKeyId": "access_key_id",
    "awsRoleSecretAccessKey": "secret_access_key",
    "awsRoleSessionToken": "session_token",
    "awsStsRegion": "sts_region",
}
#: AWS's library for Python has settings of its own for these.
_IAM_WITHOUT_EFFECT: Final = frozenset({"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"})


def _is_iam(config: ClientConfig, mechanism: str) -> bool:
    handler = config.given.get("sasl.login.callback.handler.class")
    return mechanism == AWS_MSK_IAM or (
        mechanism == oauthbearer.NAME and handler == IAM_LOGIN_CALLBACKS
    )


def iam_login(options: Mapping[str, str]) -> IamLogin:
    """Return where the AWS credentials for Amazon MSK come from.

    Args:
        options: the options of ``sasl.jaas.config``, whose values are not in the errors.

    Raises:
        ConfigError: an option is unknown, or has no effect beside another.
    """
    known = _IAM_OPTIONS.keys() | _IAM_WITHOUT_EFFECT
    if unknown := sorted(options.keys() - known):
        raise ConfigError(
            f"sasl.jaas.config: unknown option {unknown[0]} for Amazon MSK; allowed:"
            f" {', '.join(sorted(known))}"
        )
    of_role = [each for each in _IAM_OPTIONS if each != "awsProfileName" and each in options]
    if of_role and "awsRoleArn" not in options:
        raise ConfigError(f"sasl.jaas.config: {of_role[0]} requires awsRoleArn")
    if of_role and "awsProfileName" in options:
        raise ConfigError("sasl.jaas.config: awsProfileName and awsRoleArn cannot both be set")
    return IamLogin(**{_IAM_OPTIONS[key]: options[key] for key in options if key in _IAM_OPTIONS})


_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105
_SCOPE: Final = "sasl.oauthbearer.scope"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_EXTENSION: Final = "extension_"
_CHARACTERS: Final = re.compile("[!-~]+")


def token_endpoint(config: ClientConfig, options: Mapping[str, str]) -> TokenEndpoint | None:
    """Return the settings of the token endpoint; None if no endpoint is configured.

    Args:
        config: the configuration of any client.
        options: the options of ``sasl.jaas.config``, where older Kafka clients expect the
            credentials.

    Raises:
        ConfigError: a setting is missing, is set both in ``config`` and in ``options``, or the URL
            is invalid.
    """
    client_id = _one_of(config, _ID, options, "clientId")
    secret = _one_of(config, _SECRET, options, "clientSecret")
    scope = _one_of(config, _SCOPE, options, "scope")
    url = config.optional(_URL)
    if url is None:
        if client_id or secret or scope:
            raise ConfigError(f"a client id, client secret or scope for tokens requires {_URL}")
        return None
    _check_url(url)
    if urlsplit(url).scheme != "file" and not (client_id and secret):
        raise ConfigError(f"{_URL} requires {_ID} and {_SECRET}")
    connect, read = "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"
    return TokenEndpoint(
        url=url,
        client_id=client_id,
        client_secret=secret,
        scope=scope,
        has_encoded_header=config.flag("sasl.oauthbearer.header.urlencode"),
        extensions={
            key.removeprefix(_EXTENSION): value
            for key, value in options.items()
            if key.startswith(_EXTENSION)
        },
        connect_timeout_seconds=config.seconds(connect)
        if connect in config.given
        else LOGIN_SECONDS,
        read_timeout_seconds=config.seconds(read) if read in config.given else LOGIN_SECONDS,
        retry=ExponentialBackoff(
            config.seconds("sasl.login.retry.backoff.ms"),
            config.seconds("sasl.login.retry.backoff.max.ms"),
        ),
    )


def _one_of(config: ClientConfig, key: str, options: Mapping[str, str], option: str) -> str:
    value, other = config.optional(key), options.get(option)
    if value and other:
        raise ConfigError(f"{key} and {option} of sasl.jaas.config cannot both be set")
    return value or other or ""


def _check_url(url: str) -> None:
    allowed = "allowed: https://HOST/PATH, http://HOST/PATH or file:///PATH"
    try:
        parts = urlsplit(url)
        is_server = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ConfigError(f"invalid {_URL}: {error}; {allowed}") from error
    if "@" in parts.netloc:  # the URL appears in errors and logs
        raise ConfigError(f"{_URL} must not contain credentials; set {_ID} and {_SECRET} instead")
    is_server = is_server and _CHARACTERS.fullmatch(url) is not None
    if parts.scheme != "file" and not is_server:
        raise ConfigError(f"invalid {_URL} = {url!r}; {allowed}")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        logger.warning("%s does not use https: the client secret is sent unencrypted", _URL)
