"""A consumer's network task, which sends requests to partition leaders and polls the client.

(Kafka: ConsumerNetworkThread.) The task runs in the background, independently of the task that
reads records.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from ..._util._logging import get_logger
from ...errors import TrionetError
from ...protocol import error_codes
from .._api_errors import api_error
from ..network._kafka_client import KafkaClient
from .fetch._fetcher import Fetcher
from .offsets._position_requests import OffsetReset, PositionValidator, missing_partition
from .state._pending_errors import PendingErrors
from .state._subscription_state import SubscriptionState

logger = get_logger("trionet.client.consumer")

#: Topic errors that only the user can resolve.
_FINAL = frozenset({error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.INVALID_TOPIC_EXCEPTION})


class NetworkTask:
    """A loop that has each worker send the requests that are due, and then polls the client.

    Args:
        client: polled only by this task.
        subscriptions: holds the assigned partitions.
        errors: collects errors, which the user's next request for a record raises.
        workers: the parts of the consumer that send requests between polls.
        find_offsets: called while any partition still lacks an initial position.
        notify: called after each update of the metadata.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        workers: tuple[OffsetReset | PositionValidator | Fetcher, ...],
        find_offsets: Callable[[], None],
        notify: Callable[[], object],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._errors = errors
        self._workers = workers
        self._find_offsets = find_offsets
        self._notify = notify
        self._updates = -1
        self._error: TrionetError | None = None
        self._missing = ""

    async def run(self) -> None:
        """Send requests and poll the client until it is closed."""
        await trio.lowlevel.checkpoint()
        while not self._client.is_closed:
            seconds = self._work(trio.current_time())
            await self._client.poll(seconds)

    def _work(self, now: float) -> float:
        """Send the requests that are due, and return the seconds until more are due."""
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
        self._add_topic_errors()
        assignment = self._subscriptions.assignment
        missing = missing_partition(metadata.cluster, assignment.states)
        if missing and missing != self._missing:
            logger.warning("%s; waiting for it", missing)
        self._missing = missing
        assignment.validate_positions_of_new_leaders(metadata.cluster)
        self._notify()

    def _add_topic_errors(self) -> None:
        """Add the errors of the topics to read; a look-up raises those of its own topics."""
        topics = self._subscriptions.subscribed_topics
        for topic in self._client.metadata.cluster.topics.values():
            if topic.error_code in _FINAL and (topics is None or topic.name in topics):
                self._errors.add(api_error(topic.error_code, f"topic {topic.name}"))
