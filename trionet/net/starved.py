"""The channels of a Selector whose next frame has no memory yet (KIP-72)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from .channel import Channel
from .memory_pool import MemoryPool
from .readiness import READ

Shuffle = Callable[[list[Any]], None]
"""Puts a list in any order."""


class Waker(Protocol):
    """What is needed here of a Selector."""

    def watch(self, channel: Channel, interest: int) -> None: ...

    def continue_at_once(self, channel: Channel) -> None: ...

    def wakeup(self) -> None: ...


class Starved:
    """Stops reading channels for which a pool has nothing left, until it has.

    Args:
        selector: whose channels they are.
        pool: where the memory comes from; None for no limit.
        shuffle: decides who is first; None for any order.

    Attributes:
        shuffle: puts a list in any order.
        channels: those that wait.
    """

    __slots__ = ("_pool", "_selector", "channels", "shuffle")

    def __init__(
        self,
        selector: Waker,
        pool: MemoryPool | None,
        shuffle: Shuffle | None,
    ) -> None:
        self.shuffle = shuffle or random.shuffle
        self._selector = selector
        self._pool = pool
        self.channels: dict[Channel, None] = {}

    def add(self, channel: Channel) -> None:
        """A frame of this channel found no memory."""
        assert self._pool is not None
        self.channels[channel] = None
        self._pool.wake_when_available(self._selector.wakeup)
        self._selector.watch(channel, channel.interest & ~READ)

    def release(self, channel: Channel, now: float) -> None:
        """Give back what the channel holds; it has ended, or its frame was no request."""
        lease = channel.take_lease()
        if lease is not None and self._pool is not None:
            self._pool.release(lease, now)

    def feed(self) -> None:
        """Read them again, if there is memory."""
        assert self._pool is not None
        if self._pool.is_depleted:
            self._pool.wake_when_available(self._selector.wakeup)
            return
        channels = list(self.channels)
        self.shuffle(channels)  # there may not be enough for all, and not always for the same
        self.channels.clear()
        for channel in channels:
            channel.is_out_of_memory = False
            self._selector.watch(channel, channel.interest | READ)
            if channel.has_buffered or channel.closing is not None:
                self._selector.continue_at_once(channel)
