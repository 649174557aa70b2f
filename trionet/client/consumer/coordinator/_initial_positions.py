"""The initial positions in partitions that a group has assigned to a consumer.

(Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import trio

from ...._util._logging import get_logger
from ....errors import ApiError, TrionetError
from ..._api_errors import is_retriable
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ...network._kafka_client import KafkaClient
from ..assignors._consumer_protocol import decode_assignment
from ..records._chunk import NO_EPOCH, FetchPosition
from ..state._partition_state import FetchState, PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation
from ._commits import Commits
from ._committed_offsets import CommittedOffsets

LOGGER: Final = get_logger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


class OffsetPrefetch:
    """Prefetches the committed offsets of the partitions that a leader assigns to itself.

    The leader knows its assignment before the SyncGroup response. It fetches the committed offsets
    while it waits for that response, which saves a round trip before the first record. No other
    member can change the offsets in between: after the JoinGroup response, the coordinator rejects
    commits of older generations, and members commit in the new generation only after SyncGroup.
    Prefetched offsets are used once, in the generation in which they were fetched.

    Args:
        offsets: fetches the offsets.
        member: provides the generation.
        subscription: provides the partitions that are already assigned.

    Attributes:
        expected: the partitions whose offsets are to be prefetched.
    """

    def __init__(
        self,
        offsets: CommittedOffsets,
        member: ClassicMember,
        subscription: SubscriptionState,
    ) -> None:
        self._offsets = offsets
        self._member = member
        self._subscription = subscription
        self._generation = Generation()
        self._found: Offsets | ApiError = {}
        self.expected: frozenset[TopicPartition] = frozenset()

    def expect(self, assignment: bytes) -> None:
        """Record this leader's own encoded assignment, whose offsets are to be prefetched."""
        self._found = {}
        self.expected = (
            frozenset(decode_assignment(assignment)) - self._subscription.assignment.partitions
        )
        self._generation = self._member.generation

    async def fetch_expected(self) -> None:
        """Prefetch the offsets of the expected partitions; :meth:`fetch` raises any errors."""
        await trio.lowlevel.checkpoint_if_cancelled()
        expected, self.expected = self.expected, frozenset()
        if not expected:
            return
        generation = self._generation
        found: Offsets | ApiError = {}
        try:
            found = await self._offsets.fetch_once(expected)
        except ApiError as error:
            if not is_retriable(error):
                found = error
        except TrionetError as error:
            LOGGER.debug("could not prefetch committed offsets: %s", error)
        if generation == self._generation:
            self._found = found

    def forget(self) -> None:
        """Discard prefetched offsets, since a commit by this consumer may make them stale."""
        self._found = {}
        self._generation = Generation()

    async def fetch(self, wanted: Collection[TopicPartition]) -> Offsets:
        """Return the committed offsets of assigned partitions, fetching them unless prefetched.

        Raises the same errors as :meth:`.CommittedOffsets.fetch`.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        found, self._found = self._found, {}
        if self._generation == self._member.generation:
            if isinstance(found, ApiError):
                raise found
            if found.keys() >= set(wanted):
                return {each: found[each] for each in wanted}
        return await self._offsets.fetch(wanted)


class InitialPositions:
    """A background task that sets the positions in new partitions to the committed offsets.

    Args:
        client: connects to the leaders of the partitions.
        subscription: provides the partitions.
        prefetch: fetches the offsets.
        commits: records which positions are committed offsets.
        retry_seconds: the delay before a retry.
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
        """Wake :meth:`run`, because some partitions may have no position yet."""
        self._wanted.set()

    def expect(self, assignment: bytes) -> None:
        """Start a prefetch for the leader; see :meth:`.OffsetPrefetch.expect`."""
        self._prefetch.expect(assignment)
        if self._prefetch.expected:
            self._wanted.set()

    async def run(self) -> None:
        """Set positions after each call to :meth:`find_soon`, until cancelled."""
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
        """Start connecting to the leaders of partitions while the offsets are being fetched."""
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
            self._commits.begin_at(partition, committed)
