"""An admin client's settings, and how they are built from Kafka's keys.

Times are in seconds; each attribute's description names Kafka's key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import attrs

from ..._backoff import ExponentialBackoff
from ...config._client_config import ClientConfig, check_nothing_beside, read_config
from ...config._client_settings import client_settings, retry_backoff
from ...config._keys import ADMIN_KEYS
from ...network._open_client import ClientSettings
from ...security._settings import TokenProvider

INT_MAX: Final = 2**31 - 1

logger = logging.getLogger("trionet.client")

_IN_FLIGHT_MAX: Final = 1_000_000
"""Effectively no limit, as in KafkaAdminClient: calls do not wait for each other."""


@attrs.frozen(kw_only=True)
class AdminSettings:
    """All settings of an admin client; the defaults are Kafka's.

    Attributes:
        client: the NetworkClient's settings.
        controllers: controllers to use instead of brokers (``bootstrap.controllers``, KIP-919).
        api_timeout_seconds: the timeout of a call, including its retries
            (``default.api.timeout.ms``).
        retries: the maximum number of retries per call (``retries``).
        retry: the backoff between retries (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        unknown_topic_seconds: how long to retry after UNKNOWN_TOPIC_OR_PARTITION, since some
            brokers learn about a new topic later than others. Kafka's own client retries for
            ``default.api.timeout.ms``, even if the name is misspelt.
    """

    client: ClientSettings = attrs.field(factory=lambda: ClientSettings(idle_seconds_max=300.0))
    controllers: tuple[str, ...] = ()
    api_timeout_seconds: float = 60.0
    retries: int = INT_MAX
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    unknown_topic_seconds: float = 5.0


def admin_settings(
    config: Mapping[str, object] | AdminSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> AdminSettings:
    """Build and check an admin client's settings.

    Args:
        config: see :func:`.read_config`; or a settings object, which is returned unchanged.
        keywords: see :func:`.read_config`.
        token_provider: returns the tokens for OAUTHBEARER.

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
        api_timeout_seconds=_api_timeout_seconds(read),
        retries=read.integer("retries"),
        retry=retry_backoff(read),
    )
    read.report()
    return settings


def _api_timeout_seconds(config: ClientConfig) -> float:
    """Return the timeout of a call; at least ``request.timeout.ms`` if only that key is set.

    (Kafka: KafkaAdminClient.configureDefaultApiTimeoutMs.)
    """
    key = "default.api.timeout.ms"
    call, request = config.seconds(key), config.seconds("request.timeout.ms")
    if key in config.given or call >= request:
        return call
    logger.warning(
        "%s is not set, and its default is lower than request.timeout.ms;"
        " using request.timeout.ms for both",
        key,
    )
    return request
