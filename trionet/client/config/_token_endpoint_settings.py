"""The settings of a token endpoint (an OAuth server or a file), built from Kafka's keys."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ...errors import ConfigError
from .._backoff import ExponentialBackoff
from ..security._settings import LOGIN_SECONDS, TokenEndpoint
from ._client_config import ClientConfig

logger = logging.getLogger("trionet.client")

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
