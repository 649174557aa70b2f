"""Sets of channels of one Selector: open, in a poll's result, or waiting for memory."""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from ._channel import Channel
from .wire._framing import Frame
from .wire._memory_pool import MemoryPool


class Channels:
    """The open channels, in the order in which they were added.

    Attributes:
        by_fd: the channels, keyed by file descriptor.
    """

    __slots__ = ("_by_id", "_received_before", "_sent_before", "by_fd")

    def __init__(self) -> None:
        self.by_fd: dict[Any, Channel] = {}  # an int as a key would be boxed at each lookup
        self._by_id: dict[str, Channel] = {}
        self._received_before = self._sent_before = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._by_id.values())

    def get(self, id: str) -> Channel | None:
        """Return the channel with this id, or None."""
        return self._by_id.get(id)

    @property
    def bytes_received(self) -> int:
        """Bytes read from the sockets of all channels, including closed ones."""
        return self._received_before + sum(each.bytes_received for each in self._by_id.values())

    @property
    def bytes_sent(self) -> int:
        """Bytes written to the sockets of all channels, including closed ones."""
        return self._sent_before + sum(each.bytes_sent for each in self._by_id.values())

    def add(self, channel: Channel) -> None:
        """Add a channel; its id and its file descriptor must not be in use."""
        self.by_fd[channel.fd] = channel
        self._by_id[channel.id] = channel

    def remove(self, channel: Channel) -> None:
        """Remove a channel; its bytes stay in the totals."""
        self._received_before += channel.bytes_received
        self._sent_before += channel.bytes_sent
        del self._by_id[channel.id]
        del self.by_fd[channel.fd]


class PollResult:
    """The result of one poll; valid until the next poll.

    Attributes:
        connected: channels whose outgoing connection was established; their TLS handshake and
            authentication may still be incomplete.
        completed_receives: ``(channel, frame)`` pairs, at most one per channel.
        completed_sends: channels whose Send was completed during the poll.
        disconnected: channels closed since the last poll, without duplicates, except those that
            their owner closed with :meth:`.Selector.close`.
    """

    __slots__ = ("completed_receives", "completed_sends", "connected", "disconnected")

    def __init__(self) -> None:
        self.connected: list[Channel] = []
        self.completed_receives: list[tuple[Channel, Frame]] = []
        self.completed_sends: list[Channel] = []
        self.disconnected: list[Channel] = []

    @property
    def is_empty(self) -> bool:
        return not (
            self.completed_receives or self.completed_sends or self.disconnected or self.connected
        )


Shuffle = Callable[[list[Any]], None]
"""Shuffles a list in place."""


class Starved:
    """The channels that are waiting for memory from a pool.

    Args:
        pool: provides the memory; None for no limit.
        wake: called when memory may be available again.
        shuffle: shuffles a list in place; None for ``random.shuffle``.

    Attributes:
        channels: the waiting channels.
        shuffle: shuffles a list in place.
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
        """Add a channel whose frame was refused a lease."""
        assert self._pool is not None
        self.channels[channel] = None
        self._pool.wake_when_available(self._wake)

    def take(self) -> list[Channel]:
        """Remove and return the channels that may try again now, in random order."""
        assert self._pool is not None
        if self._pool.available <= 0:
            self._pool.wake_when_available(self._wake)
            return []
        channels = list(self.channels)
        self.shuffle(channels)  # the memory may not be enough for all
        self.channels.clear()
        return channels

    def release(self, channel: Channel, now: float) -> None:
        """Release the lease of a channel that was closed, or whose frame was not a request."""
        lease = channel.take_lease()
        if lease is not None and self._pool is not None:
            self._pool.release(lease, now)
