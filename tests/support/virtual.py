"""Kafka connections and hosts of a network in memory, and what went over one."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from support.client import CLIENT_ID, Client
from trionet.net.wire._connecting import Address
from trionet.testing import MemoryNetwork, NetworkEvent
from trionet.testing.memory._medium import Mark
from trionet.testing.memory._socket import MemorySocket


@asynccontextmanager
async def connect_in_memory(
    network: MemoryNetwork,
    address: str,
    client_id: str | None = CLIENT_ID,
    *,
    local_host: str | None = None,
) -> AsyncIterator[Client]:
    """A connection to a broker on a network in memory, closed at the end of the block."""
    async with await network.open_stream(address, local_host=local_host) as stream:
        yield Client(stream, client_id)


class Digest:
    """A hash of everything that happened on a network, times and bytes included."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.events = 0

    def add(self, event: NetworkEvent) -> None:
        self.events += 1
        at, what, local, remote, data = event.at, event.what, event.local, event.remote, event.data
        self._hash.update(f"{at!r} {what} {local} {remote} {len(data)} ".encode() + data)

    def note(self, text: str) -> None:
        """Something that a test wants to be the same, too."""
        self._hash.update(text.encode())

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


class MemoryHost:
    """One host of a network in memory: all connections of its clients come from its address.

    Without it, all clients of a network share one address.

    Args:
        network: where it is.
        address: an IP address that no other host has.

    Attributes:
        is_dead: it was killed, and connects to nothing any more.
    """

    is_virtual = True

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self.address = address
        self.is_dead = False
        self.rng = network.rng
        self.shuffle = network.shuffle
        self.now_ms = network.now_ms
        self.listen = network.listen
        self.wait_acceptable = network.wait_acceptable
        self.open_readiness = network.open_readiness
        self.transport = network.transport
        self.resolve = network.resolve
        self._network = network

    def open_socket(
        self, address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
    ) -> MemorySocket:
        """Create an unconnected socket of this host."""
        del address, send_buffer_bytes, receive_buffer_bytes
        if self.is_dead:
            raise OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
        return self._network._new_socket(self.address, None)

    def kill(self, *, is_silent: bool) -> None:
        """Cut all connections, as when the process is killed.

        What still runs of the process finds its connections reset, and says nothing more.

        Args:
            is_silent: peers notice it only when they send, as after a power failure.
        """
        self.is_dead = True
        for sock in self._network.open_sockets:
            if sock.host == self.address:
                if sock.peer is not None and not is_silent:
                    sock.peer._receive_reset()
                sock.incoming.drop()
                sock.incoming.is_held = False
                sock.incoming.put(Mark.RESET, trio.current_time())
                sock.notify()
