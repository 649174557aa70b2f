"""The channels of a Selector that wait for memory for their next frame (KIP-72)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ._channel import Channel
from .wire._memory_pool import MemoryPool

Shuffle = Callable[[list[Any]], None]
"""Shuffles a list in place."""


class Starved:
    """Keeps the channels that got no memory from a pool until there is some.

    Args:
        pool: provides the memory; None for no limit.
        wake: called when there may be memory again.
        shuffle: decides which channel is first; None for any order.

    Attributes:
        channels: the waiting channels.
    """

    __slots__ = ("_pool", "_wake", "channels", "shuffle")

    def __init__(
        self, pool: MemoryPool | None, wake: Callable[[], None], shuffle: Shuffle | None
    ) -> None:
        self.shuffle = shuffle or random.shuffle
        self._pool = pool
        self._wake = wake
        self.channels: dict[Channel, None] = {}

    def add(self, channel: Channel) -> None:
        """Keep a channel whose frame found no memory."""
        assert self._pool is not None
        self.channels[channel] = None
        self._pool.wake_when_available(self._wake)

    def take(self) -> list[Channel]:
        """The channels that may try again now, in an order that favours none of them."""
        assert self._pool is not None
        if self._pool.is_depleted:
            self._pool.wake_when_available(self._wake)
            return []
        channels = list(self.channels)
        self.shuffle(channels)  # there may not be enough for all, and not always for the same
        self.channels.clear()
        return channels

    def release(self, channel: Channel, now: float) -> None:
        """Give back what a channel holds; it has ended, or its frame was no request."""
        lease = channel.take_lease()
        if lease is not None and self._pool is not None:
            self._pool.release(lease, now)
