"""The open channels of one Selector, and the bytes transferred by all it has ever had."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterator

from ._channel import Channel


class Channels:
    """The open channels, in the order in which they were added.

    Attributes:
        by_fd: the channel of each descriptor.
    """

    __slots__ = ("_by_id", "_received_before", "_sent_before", "by_fd")

    def __init__(self) -> None:
        self.by_fd: dict[int, Channel] = {}
        self._by_id: dict[str, Channel] = {}
        self._received_before = self._sent_before = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._by_id.values())

    def get(self, id: str) -> Channel | None:
        """Return the channel with this id; None if there is none."""
        return self._by_id.get(id)

    @property
    def bytes_received(self) -> int:
        """Bytes read from the sockets of all channels, past and present."""
        return self._received_before + sum(each.bytes_received for each in self._by_id.values())

    @property
    def bytes_sent(self) -> int:
        """Bytes written to the sockets of all channels, past and present."""
        return self._sent_before + sum(each.bytes_sent for each in self._by_id.values())

    def add(self, channel: Channel) -> None:
        """Add a channel whose id and descriptor are not in use."""
        self.by_fd[channel.fd] = channel
        self._by_id[channel.id] = channel

    def remove(self, channel: Channel) -> None:
        """Remove a channel; its bytes stay in the totals."""
        self._received_before += channel.bytes_received
        self._sent_before += channel.bytes_sent
        del self._by_id[channel.id]
        del self.by_fd[channel.fd]
