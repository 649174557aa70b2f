"""Committed offsets that are asked for before the group has confirmed whose the partitions are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

import trio

from ....errors import ApiError, TrionetError
from ..._api_errors import is_retriable
from ..._offset_and_metadata import OffsetAndMetadata
from ..._topic_partition import TopicPartition
from ..assignors._consumer_protocol import decode_assignment
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation
from ._committed_offsets import CommittedOffsets

LOGGER: Final = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


class OffsetsAhead:
    """What a group's leader gives itself needs no answer to be known.

    So it asks for the committed offsets right behind its SyncGroup, which is one round trip less to
    the first record. Nobody else can change them meanwhile: from the answer to JoinGroup on the
    coordinator takes no commit of an older generation, and those of the new one come after
    SyncGroup. They are used once, in the generation that they were asked for in.

    Args:
        offsets: asks.
        member: whose generation counts.
        subscription: has what is assigned already.
        on_expected: called when :meth:`look` has something to do.

    Attributes:
        expected: the partitions to ask for.
    """

    def __init__(
        self,
        offsets: CommittedOffsets,
        member: ClassicMember,
        subscription: SubscriptionState,
        on_expected: Callable[[], object],
    ) -> None:
        self._offsets = offsets
        self._member = member
        self._subscription = subscription
        self._on_expected = on_expected
        self._generation = Generation()
        self._found: Offsets | ApiError = {}
        self.expected: frozenset[TopicPartition] = frozenset()

    def expect(self, assignment: bytes) -> None:
        """This member leads, and is about to give itself this."""
        self._found = {}
        self.expected = frozenset(decode_assignment(assignment)) - self._subscription.assigned
        self._generation = self._member.generation
        if self.expected:
            self._on_expected()

    async def look(self) -> None:
        """Ask for what is expected, if anything is; never raises what the answer says."""
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
            LOGGER.debug("committed offsets could not be asked for ahead: %s", error)
        if generation == self._generation:
            self._found = found

    def forget(self) -> None:
        """This consumer commits: what was asked for may not be so any more."""
        self._found = {}
        self._generation = Generation()

    async def fetch(self, wanted: Collection[TopicPartition]) -> Offsets:
        """The committed offsets of assigned partitions, asked for ahead or now.

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
