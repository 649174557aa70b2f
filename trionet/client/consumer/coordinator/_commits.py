"""What a consumer commits: what it is told to, and what its user's loop has finished with.

(Kafka: ConsumerCoordinator.commitOffsetsSync, maybeAutoCommitOffsetsAsync.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import trio

from ....errors import TrionetError
from ..._offset_and_metadata import OffsetAndMetadata
from ..._topic_partition import TopicPartition
from ..state._partition_state import NO_EPOCH, FetchPosition, PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation
from ._committed_offsets import CommittedOffsets
from ._group_settings import GroupSettings

LOGGER: Final = logging.getLogger(__name__)


class Commits:
    """See the module; one commit is under way at a time.

    Args:
        offsets: at the coordinator.
        subscription: whose positions are committed.
        member: the consumer's.
        settings: of the group.
        is_gone: whether a partition is there no more; by itself nothing is committed of it. Kafka's
            consumer holds up the rebalance that such a partition causes, to try again.
    """

    def __init__(
        self,
        offsets: CommittedOffsets,
        subscription: SubscriptionState,
        member: ClassicMember,
        settings: GroupSettings,
        is_gone: Callable[[TopicPartition], bool],
    ) -> None:
        self._offsets = offsets
        self._subscription = subscription
        self._member = member
        self._settings = settings
        self._is_gone = is_gone
        self._committing = trio.Lock()
        self._settled: dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]] = {}

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None) -> None:
        """Commit offsets, or those behind all that was handed out.

        See :meth:`.CommittedOffsets.commit`.
        """
        if offsets is None:
            offsets = _committable(self._subscription.positions())
        if not offsets:
            await trio.lowlevel.checkpoint()
            return
        generation = self._generation()
        # What is in hand may be among them: nothing less is committed by itself.
        finished = self._finished()
        async with self._committing:
            await self._offsets.commit(offsets, generation)
            self._settled.update((each, finished[each]) for each in offsets if each in finished)

    async def commit_finished(self) -> None:
        """Commit what the user's loop has finished with, if that is wished and is anything new.

        What is refused is told in the log.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._settings.auto_commit_seconds is None:
            return
        async with self._committing:
            # Of a partition that was another's meanwhile, nothing is known any more.
            settled = self._settled
            new = {each: at for each, at in self._finished().items() if settled.get(each) != at}
            if not new:
                return
            offsets = {each: offset for each, (_, offset) in new.items()}
            try:
                await self._offsets.commit(offsets, self._generation(), is_gone=self._is_gone)
            except TrionetError as error:
                group_id = self._settings.group_id
                LOGGER.warning("group %s: auto-commit failed: %s", group_id, error)
            else:
                settled.update(new)

    def begin_at(self, partition: TopicPartition) -> None:
        """The position of this partition is the one that the group has committed.

        Until the user has finished with more, nothing is to be committed by itself: it would cost a
        request after each rebalance, and replace the metadata that came with the offset.
        """
        self._settled[partition] = self._finished()[partition]

    async def commit_regularly(self, seconds: float) -> None:
        """Commit what is finished again and again, until cancelled."""
        while True:
            await trio.sleep(seconds)
            if not self._subscription.is_group_managed or self._member.is_stable:
                await self.commit_finished()  # else nothing could be, until the next generation

    def _generation(self) -> Generation:
        return self._offsets.generation(as_member=self._subscription.is_group_managed)

    def _finished(self) -> dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]]:
        states = self._subscription.partitions
        finished = _committable(self._subscription.finished_positions())
        return {each: (states[each], offset) for each, offset in finished.items()}


def _committable(
    positions: Mapping[TopicPartition, FetchPosition],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        each: OffsetAndMetadata(offset, "", None if epoch == NO_EPOCH else epoch)
        for each, (offset, epoch) in positions.items()
    }
