"""Build an admin client's settings from Kafka's keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ..config._client_config import ClientConfig, check_nothing_beside, read_config
from ..config._client_settings import client_settings, retry_backoff
from ..config._keys import ADMIN_KEYS
from ..security._settings import TokenProvider
from .calls._settings import AdminSettings

logger = logging.getLogger("trionet.client")

_IN_FLIGHT_MAX: Final = 1_000_000
"""Calls do not wait for each other; KafkaAdminClient has no limit either."""


def admin_settings(
    config: Mapping[str, object] | AdminSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> AdminSettings:
    """Build and check an admin client's settings.

    Args:
        config: see :func:`.read_config`; or a settings object, which is returned as it is.
        keywords: see :func:`.read_config`.
        token_provider: returns the tokens of OAUTHBEARER.

    Raises:
        TypeError: a settings object is combined with other settings.
        ConfigError: a key is unknown, a value is not allowed, or values are inconsistent.
    """
    if isinstance(config, AdminSettings):
        check_nothing_beside(keywords, token_provider)
        return config
    read = read_config(ADMIN_KEYS, config, keywords)
    settings = AdminSettings(
        client=client_settings(read, in_flight_max=_IN_FLIGHT_MAX, token_provider=token_provider),
        controllers=read.names("bootstrap.controllers"),
        api_seconds=_api_seconds(read),
        retries=read.integer("retries"),
        retry=retry_backoff(read),
    )
    read.report()
    return settings


def _api_seconds(config: ClientConfig) -> float:
    """The timeout of a call, raised to ``request.timeout.ms`` if only that was set.

    (Kafka: KafkaAdminClient.configureDefaultApiTimeoutMs.)
    """
    key = "default.api.timeout.ms"
    call, request = config.seconds(key), config.seconds("request.timeout.ms")
    if key in config.given or call >= request:
        return call
    logger.warning(
        "request.timeout.ms is larger than %s, which is not set; it is used for both", key
    )
    return request
