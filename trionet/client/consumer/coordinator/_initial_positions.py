"""Where a consumer begins to read partitions that its group has assigned to it.

(Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import trio

from ....errors import TrionetError
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ...network._kafka_client import KafkaClient
from ..state._partition_state import NO_EPOCH, FetchPosition, FetchState, PartitionState
from ..state._subscription_state import SubscriptionState
from ._commits import Commits
from ._offset_prefetch import OffsetPrefetch


class InitialPositions:
    """Sets the positions of newly assigned partitions to the group's committed offsets.

    Args:
        client: begins to connect to the leaders meanwhile.
        subscription: has the partitions.
        prefetch: fetches the offsets.
        commits: takes note of each position that is a committed offset.
        retry_seconds: the wait after a failure.
        on_failure: called with the error if the offsets cannot be fetched.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscription: SubscriptionState,
        prefetch: OffsetPrefetch,
        commits: Commits,
        retry_seconds: float,
        on_failure: Callable[[TrionetError], object],
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._prefetch = prefetch
        self._commits = commits
        self._retry_seconds = retry_seconds
        self._on_failure = on_failure
        self._wanted = trio.Event()

    def find_soon(self) -> None:
        """Wake :meth:`run`: there may be partitions without a position."""
        self._wanted.set()

    def expect(self, assignment: bytes) -> None:
        """Prefetch offsets if this member leads the group; see :meth:`.OffsetPrefetch.expect`."""
        self._prefetch.expect(assignment)
        if self._prefetch.expected:
            self._wanted.set()

    async def run(self) -> None:
        """Set positions whenever :meth:`find_soon` was called, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            self._connect_to_leaders(self._prefetch.expected)
            await self._prefetch.fetch_expected()
            if wanted := self._subscription.assignment.initializing():
                self._connect_to_leaders(wanted)
                try:
                    states = {each: self._subscription.assignment.states[each] for each in wanted}
                    self._begin_at(states, await self._prefetch.fetch(wanted))
                except TrionetError as error:
                    self._wanted.set()
                    self._on_failure(error)
                    await trio.sleep(self._retry_seconds)

    def _connect_to_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to connect to the nodes to fetch from, while the offsets are being fetched."""
        cluster = self._client.metadata.cluster
        for node in {cluster.leader(*each) for each in partitions}:
            if node is not None:
                self._client.ready(node)

    def _begin_at(
        self,
        asked: Mapping[TopicPartition, PartitionState],
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None],
    ) -> None:
        for partition, committed in offsets.items():
            state = self._subscription.assignment.state(partition)
            if state is not asked[partition] or state.state is not FetchState.INITIALIZING:
                # It was given up while the request was in flight, or the user called seek().
                continue
            if committed is None:
                self._subscription.assignment.request_reset(partition)
                continue
            epoch = NO_EPOCH if committed.leader_epoch is None else committed.leader_epoch
            position = FetchPosition(committed.offset, epoch)
            self._subscription.assignment.seek(partition, position, is_valid=epoch == NO_EPOCH)
            self._commits.begin_at(partition)
