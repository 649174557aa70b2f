"""What a user wants to be told of rebalances (Kafka: ConsumerRebalanceListener)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import attrs
import trio

from ..._topic_partition import TopicPartition

RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[None] | None]
"""Told of partitions, in the order of their names; plain or async."""


@attrs.frozen(kw_only=True)
class RebalanceCallbacks:
    """What is called in a rebalance, in the task that asks for records, before any is handed out.

    Whatever they raise is raised by that call for a record; the rebalance goes on with the next
    one. A callback that is cancelled is called once more with the same partitions.

    Attributes:
        assigned: partitions were added.
        revoked: partitions are to be given up; they are still this member's, and offsets may be
            committed.
        lost: partitions are another member's by now, since this one was thrown out of the group;
            ``revoked`` is called without.
    """

    assigned: RebalanceCallback | None = None
    revoked: RebalanceCallback | None = None
    lost: RebalanceCallback | None = None

    async def tell_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``assigned``, even for nothing, as Kafka does: the rebalance is over."""
        await _call(self.assigned, partitions)

    async def tell_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``revoked``."""
        await _call(self.revoked, partitions)

    async def tell_lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``lost``."""
        await _call(self.lost or self.revoked, partitions)


async def _call(callback: RebalanceCallback | None, partitions: Iterable[TopicPartition]) -> None:
    await trio.lowlevel.checkpoint_if_cancelled()
    if callback is None:
        return
    outcome = callback(sorted(partitions))
    if inspect.isawaitable(outcome):
        await outcome
