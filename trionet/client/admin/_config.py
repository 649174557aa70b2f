"""From Kafka's keys to the settings of an admin client."""

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
"""Calls do not wait for one another: KafkaAdminClient knows no limit either."""


def admin_settings(
    config: Mapping[str, object] | AdminSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> AdminSettings:
    """Check settings as a whole.

    Args:
        config: see :func:`.read_config`; or settings that are made already, which are all.
        keywords: see :func:`.read_config`.
        token_provider: gives the tokens of OAUTHBEARER.

    Raises:
        TypeError: there is more than settings that are made already.
        ConfigError: a key is unknown, a value is not allowed, or values do not fit each other; says
            which are.
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
    """Whoever only lets a request take longer lets a call take as long.

    (Kafka: KafkaAdminClient.configureDefaultApiTimeoutMs.)
    """
    key = "default.api.timeout.ms"
    call, request = config.seconds(key), config.seconds("request.timeout.ms")
    if key in config.given or call >= request:
        return call
    logger.warning("request.timeout.ms is more than %s, which is not set: taken for both", key)
    return request
