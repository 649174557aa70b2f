"""A client's security settings, built from Kafka's and librdkafka's keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ..._util._regular_file import read_regular_file
from ...errors import ConfigError
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl._jaas import LoginModule, parse_jaas
from ...net.tls._key_stores import STORE_BYTES_MAX
from ...net.tls._tls_context import ClientTlsSettings
from ...net.wire._endpoint import SecurityProtocol
from ..security._settings import (
    MECHANISMS,
    RefreshSettings,
    SaslClientSettings,
    SecuritySettings,
    TokenProvider,
)
from ._client_config import ClientConfig
from ._token_endpoint_settings import token_endpoint

logger = logging.getLogger("trionet.client")

_LOGIN_MODULES: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
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
            "sasl.mechanism must be set, since Kafka's default GSSAPI is not supported; allowed:"
            f" {', '.join(MECHANISMS)}"
        )
    mechanism = config.text("sasl.mechanism")
    if token_provider is not None and mechanism != oauthbearer.NAME:
        raise ConfigError(
            f"a token provider cannot be used with sasl.mechanism = {mechanism}; allowed:"
            " OAUTHBEARER"
        )
    options = _jaas_options(config)
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
