"""Sets the initial positions of partitions that a group has assigned to its consumer.

(Kafka: ConsumerCoordinator.initWithCommittedOffsetsIfNeeded.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import trio

from ....errors import ApiError, TrionetError
from ..._api_errors import is_retriable
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ...network._kafka_client import KafkaClient
from ..assignors._consumer_protocol import decode_assignment
from ..state._partition_state import NO_EPOCH, FetchPosition, FetchState, PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation
from ._commits import Commits
from ._committed_offsets import CommittedOffsets

LOGGER: Final = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


class OffsetPrefetch:
    """Prefetches the committed offsets of the partitions that a group's leader assigns to itself.

    The leader knows its assignment before the response to SyncGroup, so it fetches the committed
    offsets at the same time, which saves a round trip before the first record. No other member can
    change the offsets in between: after the response to JoinGroup, the coordinator rejects commits
    of an older generation, and commits of the new one follow SyncGroup. Prefetched offsets are used
    once, in the generation in which they were fetched.

    Args:
        offsets: fetches the offsets.
        member: provides the generation.
        subscription: provides the partitions that are already assigned.

    Attributes:
        expected: the partitions whose offsets are to be fetched.
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
        """Prefetch the offsets of the assignment that this member is about to get as the leader."""
        self._found = {}
        self.expected = (
            frozenset(decode_assignment(assignment)) - self._subscription.assignment.partitions
        )
        self._generation = self._member.generation

    async def fetch_expected(self) -> None:
        """Fetch the offsets of the expected partitions; errors are kept for :meth:`fetch`."""
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
        """Discard prefetched offsets, which a commit of this consumer may have made outdated."""
        self._found = {}
        self._generation = Generation()

    async def fetch(self, wanted: Collection[TopicPartition]) -> Offsets:
        """Return the committed offsets of assigned partitions: prefetched, or fetched now.

        For errors, see :meth:`.CommittedOffsets.fetch`.
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
    """Sets the positions of newly assigned partitions to the group's committed offsets.

    Args:
        client: starts connecting to the leaders meanwhile.
        subscription: provides the partitions.
        prefetch: fetches the offsets.
        commits: records each position that is a committed offset.
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
        """Wake :meth:`run`, since there may be partitions without a position."""
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
        """Start connecting to the nodes to fetch from, while the offsets are being fetched."""
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
