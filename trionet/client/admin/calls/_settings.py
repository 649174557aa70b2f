"""The settings of an admin client, in seconds; each attribute names Kafka's key."""

from __future__ import annotations

from typing import Final

import attrs

from ..._backoff import ExponentialBackoff
from ...network._opening import ClientSettings

INT_MAX: Final = 2**31 - 1


@attrs.frozen(kw_only=True)
class AdminSettings:
    """All settings of an admin client; Kafka's defaults without.

    Attributes:
        client: how it talks to the brokers.
        controllers: these are asked in place of brokers (``bootstrap.controllers``, KIP-919).
        api_seconds: how long a call may take, with all its attempts (``default.api.timeout.ms``).
        retries: how often a request is made again (``retries``).
        retry: the wait before that (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        unknown_topic_seconds: how long a topic that a broker does not know is asked for again: a
            new one is known to all brokers a moment after it was made. Kafka's own client goes on
            until ``default.api.timeout.ms``, also for a name that is misspelt.
    """

    client: ClientSettings = attrs.field(factory=lambda: ClientSettings(idle_seconds_max=300.0))
    controllers: tuple[str, ...] = ()
    api_seconds: float = 60.0
    retries: int = INT_MAX
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    unknown_topic_seconds: float = 5.0
