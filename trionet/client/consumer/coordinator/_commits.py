"""Commits by the user, and auto-commits of finished records.

(Kafka: ConsumerCoordinator.commitOffsetsSync, maybeAutoCommitOffsetsAsync.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import trio

from ...._util._logging import get_logger
from ....errors import TrionetError
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ..records._chunk import NO_EPOCH, FetchPosition
from ..state._partition_state import PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation, GroupSettings
from ._committed_offsets import CommittedOffsets, never

LOGGER: Final = get_logger(__name__)

#: How often unchanged offsets are committed again. A commit that was delayed on a lost connection
#: may arrive after later ones and set the group back. Kafka's consumer repeats them at each
#: ``auto.commit.interval.ms``, which costs a request every five seconds while nothing is read.
REPEAT_SECONDS: Final = 30.0


class Commits:
    """One consumer's commits, which run one at a time.

    Args:
        offsets: sends commits to the coordinator.
        subscription: provides the positions.
        member: the consumer's group membership.
        settings: the group settings.
        is_gone: returns whether a partition no longer exists. Auto-commits omit such partitions,
            whereas Kafka's consumer retries the commit, which delays rebalances.
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
        # The group's offsets, as this consumer has found or committed them.
        self._stored: dict[TopicPartition, OffsetAndMetadata] = {}

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None,
        *,
        omits_gone: bool = False,
    ) -> None:
        """Commit these offsets, or if None, the positions after all records returned so far.

        The records before these offsets count as finished from the call on: the program says so,
        whatever becomes of the request. See :meth:`.CommittedOffsets.commit`.

        Args:
            offsets: the offset to commit for each partition.
            omits_gone: whether to omit partitions that no longer exist. By default they are
                committed like the others, so that a user who commits gets the error.
        """
        if offsets is None:
            offsets = committable(self._subscription.assignment.positions())
        if not offsets:
            await trio.lowlevel.checkpoint()
            return
        _finish(self._subscription.assignment.states, offsets)
        # The program may also commit lower or higher offsets: no auto-commit replaces these before
        # more records are finished.
        finished = self._finished()
        generation = self._generation()
        async with self._committing:
            for each in offsets:  # what is stored is not known if this is cancelled
                self._stored.pop(each, None)
            is_gone = self._is_gone if omits_gone else never
            await self._offsets.commit(offsets, generation, is_gone=is_gone)
            self._settled.update((each, finished[each]) for each in offsets if each in finished)
            self._stored.update(offsets)

    def take(self) -> tuple[dict[TopicPartition, OffsetAndMetadata], Callable[[], None]]:
        """Return the positions after all records returned so far, for a transaction to commit.

        The second result is to be called when it has committed them, which finishes the records: an
        aborted transaction has handled nothing.
        """
        offsets = committable(self._subscription.assignment.positions())
        states = dict(self._subscription.assignment.states)
        for each in offsets:
            states[each].sent()
        return offsets, partial(_finish, states, offsets)

    async def commit_finished(self, *, repeats: bool = False) -> None:
        """Auto-commit the offsets of newly finished records, if auto-commit is enabled.

        Errors are logged, not raised.

        Args:
            repeats: whether to commit unchanged offsets of assigned partitions again, too.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._settings.auto_commit_seconds is None or not (repeats or self._new()):
            return
        async with self._committing:
            new = self._new()
            offsets = {each: offset for each, (_, offset) in new.items()}
            if repeats:
                offsets = {
                    each: self._stored[each] for each in self._finished() if each in self._stored
                } | offsets
            if not offsets:
                return
            try:
                await self._offsets.commit(offsets, self._generation(), is_gone=self._is_gone)
            except TrionetError as error:
                level = logging.WARNING if new else logging.DEBUG
                LOGGER.log(
                    level, "group %s: auto-commit failed: %s", self._settings.group_id, error
                )
            else:
                self._settled.update(new)
                self._stored.update(offsets)

    def _new(self) -> dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]]:
        """Return the offsets after finished records that have not been committed yet.

        A partition that belonged to another member in between has a new state, and so is committed
        again.
        """
        settled = self._settled
        return {each: at for each, at in self._finished().items() if settled.get(each) != at}

    def begin_at(self, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Record that the position in a partition is the group's committed offset.

        The position is not auto-committed until the user has finished more records. Committing it
        again would cost a request after each rebalance, and would discard the metadata of the
        committed offset.

        Args:
            partition: the partition.
            committed: its committed offset.
        """
        state = self._subscription.assignment.states[partition]
        assert state.finished is not None
        [offset] = committable({partition: state.finished}).values()
        self._settled[partition] = state, offset
        self._stored[partition] = committed

    async def commit_regularly(self, seconds: float) -> None:
        """Auto-commit periodically until cancelled."""
        repeated_at = trio.current_time()
        while True:
            await trio.sleep(seconds)
            if not self._subscription.is_group_managed or self._member.is_stable:
                now = trio.current_time()
                repeats = now - repeated_at >= REPEAT_SECONDS
                await self.commit_finished(repeats=repeats)
                repeated_at = now if repeats else repeated_at
            # else it would fail until the next generation

    def _generation(self) -> Generation:
        return self._offsets.generation(as_member=self._subscription.is_group_managed)

    def _finished(self) -> dict[TopicPartition, tuple[PartitionState, OffsetAndMetadata]]:
        states = self._subscription.assignment.states
        finished = committable(self._subscription.assignment.finished_positions())
        return {each: (states[each], offset) for each, offset in finished.items()}


def _finish(
    states: Mapping[TopicPartition, PartitionState],
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> None:
    for each, (offset, _, _) in offsets.items():
        if each in states:
            states[each].commit(offset)


def committable(
    positions: Mapping[TopicPartition, FetchPosition],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return positions as offsets to commit."""
    return {
        each: OffsetAndMetadata(offset, "", None if epoch == NO_EPOCH else epoch)
        for each, (offset, epoch) in positions.items()
    }
