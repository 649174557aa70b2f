"""What a consumer does behind its user's back: poll the client, find positions, fetch."""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import trio

from ...errors import TrionetError
from ...protocol import error_codes
from .._api_errors import api_error
from ..network._kafka_client import KafkaClient
from .fetch._fetcher import Fetcher
from .offsets._offset_reset import OffsetReset
from .offsets._position_validation import Validation
from .state._pending_errors import Failures
from .state._subscription_state import SubscriptionState

logger = logging.getLogger("trionet.client.consumer")

#: What a topic's metadata say that only the user can do something about.
_FINAL = frozenset({error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.INVALID_TOPIC_EXCEPTION})


class Background:
    """See the module.

    Args:
        client: polled here, and by nobody else.
        subscriptions: what is wanted.
        failures: what the user has to be told.
        workers: what sends requests between two polls.
        look_for_offsets: called while committed offsets have to be asked for.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        failures: Failures,
        workers: tuple[OffsetReset | Validation | Fetcher, ...],
        look_for_offsets: Callable[[], None],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._failures = failures
        self._workers = workers
        self._look_for_offsets = look_for_offsets
        self._updates = -1
        self._error: TrionetError | None = None

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            seconds = self._work(trio.current_time())
            await self._client.poll(seconds)

    def _work(self, now: float) -> float:
        """Send what is due; seconds until something else is, if nothing happens before."""
        self._look_at_metadata()
        if not self._subscriptions.partitions:
            return math.inf
        if self._subscriptions.initializing():
            self._look_for_offsets()
        return min((each.send(now) for each in self._workers), default=math.inf)

    def _look_at_metadata(self) -> None:
        metadata = self._client.metadata
        error = metadata.error
        if error is not self._error:
            self._error = error
            self._failures.add_if_final(error)
        if metadata.updates == self._updates:
            return
        self._updates = metadata.updates
        for topic in metadata.cluster.topics.values():
            if topic.error_code in _FINAL:
                self._failures.add(api_error(topic.error_code, f"topic {topic.name}"))
        self._subscriptions.look_at_leaders(metadata.cluster)
