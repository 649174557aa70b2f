"""The network task of a consumer, which sends its requests and polls the client.

(Kafka: ConsumerNetworkThread.) It runs in the background, independently of the task that reads
records.
"""

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
from .offsets._position_validation import PositionValidator
from .state._pending_errors import PendingErrors
from .state._subscription_state import SubscriptionState

logger = logging.getLogger("trionet.client.consumer")

#: Topic errors that only the user can resolve.
_FINAL = frozenset({error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.INVALID_TOPIC_EXCEPTION})


class NetworkTask:
    """The loop that lets each part of a consumer send requests, and then polls the client.

    Args:
        client: polled only by this task.
        subscriptions: holds the assigned partitions.
        errors: collects the errors that the user's next call raises.
        workers: the parts that send requests between two polls.
        find_offsets: called while some partition needs its committed offset.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        workers: tuple[OffsetReset | PositionValidator | Fetcher, ...],
        find_offsets: Callable[[], None],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._errors = errors
        self._workers = workers
        self._find_offsets = find_offsets
        self._updates = -1
        self._error: TrionetError | None = None

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            seconds = self._work(trio.current_time())
            await self._client.poll(seconds)

    def _work(self, now: float) -> float:
        """Send the requests that are due. Returns the seconds until further requests are due."""
        self._check_metadata()
        if not self._subscriptions.assignment.states:
            return math.inf
        if self._subscriptions.assignment.initializing():
            self._find_offsets()
        return min((each.send(now) for each in self._workers), default=math.inf)

    def _check_metadata(self) -> None:
        metadata = self._client.metadata
        error = metadata.error
        if error is not self._error:
            self._error = error
            self._errors.add_if_final(error)
        if metadata.updates == self._updates:
            return
        self._updates = metadata.updates
        for topic in metadata.cluster.topics.values():
            if topic.error_code in _FINAL:
                self._errors.add(api_error(topic.error_code, f"topic {topic.name}"))
        self._subscriptions.assignment.validate_positions_of_new_leaders(metadata.cluster)
