"""Settings of an admin client, in seconds; each attribute names Kafka's key."""

from __future__ import annotations

from typing import Final

import attrs

from ..._backoff import ExponentialBackoff
from ...network._opening import ClientSettings

INT_MAX: Final = 2**31 - 1


@attrs.frozen(kw_only=True)
class AdminSettings:
    """All settings of an admin client; the defaults are Kafka's.

    Attributes:
        client: settings of the NetworkClient.
        controllers: controllers to use instead of brokers (``bootstrap.controllers``, KIP-919).
        api_seconds: the timeout of a call, including its retries (``default.api.timeout.ms``).
        retries: the maximum number of retries (``retries``).
        retry: the backoff between retries (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        unknown_topic_seconds: how long to retry after UNKNOWN_TOPIC_OR_PARTITION, since not all
            brokers know a new topic at once. Kafka's own client retries for
            ``default.api.timeout.ms``, even if the name is misspelt.
    """

    client: ClientSettings = attrs.field(factory=lambda: ClientSettings(idle_seconds_max=300.0))
    controllers: tuple[str, ...] = ()
    api_seconds: float = 60.0
    retries: int = INT_MAX
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    unknown_topic_seconds: float = 5.0
