"""The user's rebalance callbacks (Kafka: ConsumerRebalanceListener)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import attrs
import trio

from ..._topic_partition import TopicPartition

RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[None] | None]
"""Called with partitions, sorted; plain or async."""


@attrs.frozen(kw_only=True)
class RebalanceCallbacks:
    """The callbacks of a rebalance, called in the task that reads records before any is handed out.

    An error that they raise is raised by that call for a record; the rebalance continues with the
    next one. A callback that is cancelled is called again with the same partitions.

    Attributes:
        assigned: called with partitions that were added.
        revoked: called with partitions that are about to be given up; they still belong to this
            member, and their offsets may be committed.
        lost: called with partitions that may belong to another member already, since this one was
            removed from the group; ``revoked`` is called without it.
    """

    assigned: RebalanceCallback | None = None
    revoked: RebalanceCallback | None = None
    lost: RebalanceCallback | None = None

    async def call_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``assigned``, even without partitions, as Kafka does: the rebalance is over."""
        await _call(self.assigned, partitions)

    async def call_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``revoked``."""
        await _call(self.revoked, partitions)

    async def call_lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``lost``."""
        await _call(self.lost or self.revoked, partitions)


async def _call(callback: RebalanceCallback | None, partitions: Iterable[TopicPartition]) -> None:
    await trio.lowlevel.checkpoint_if_cancelled()
    if callback is None:
        return
    outcome = callback(sorted(partitions))
    if inspect.isawaitable(outcome):
        await outcome
