"""Prefetches committed offsets before the group has confirmed the assignment."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

import trio

from ....errors import ApiError, TrionetError
from ..._api_errors import is_retriable
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ..assignors._consumer_protocol import decode_assignment
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation
from ._committed_offsets import CommittedOffsets

LOGGER: Final = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


class OffsetPrefetch:
    """Prefetches the offsets of what a group's leader assigns to itself.

    The leader knows its assignment before the response to SyncGroup, so it fetches the committed
    offsets at the same time: one round trip less to the first record. No other member can change
    them in between: after the response to JoinGroup the coordinator rejects commits of an older
    generation, and commits of the new one come after SyncGroup. They are used once, in the
    generation in which they were fetched.

    Args:
        offsets: fetches them.
        member: provides the generation.
        subscription: the partitions that are assigned already.

    Attributes:
        expected: the partitions to fetch offsets of.
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
        """Prefetch for this assignment, which this member is about to get as the leader."""
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
        """Discard prefetched offsets: this consumer commits, and they may be outdated."""
        self._found = {}
        self._generation = Generation()

    async def fetch(self, wanted: Collection[TopicPartition]) -> Offsets:
        """The committed offsets of assigned partitions, prefetched or fetched now.

        Raises as :meth:`.CommittedOffsets.fetch` does.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        found, self._found = self._found, {}
        if self._generation == self._member.generation:
            if isinstance(found, ApiError):
                raise found
            if found.keys() >= set(wanted):
                return {each: found[each] for each in wanted}
        return await self._offsets.fetch(wanted)
