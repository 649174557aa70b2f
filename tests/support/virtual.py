"""Kafka connections over a network in memory, and what went over one."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.client import CLIENT_ID, Client
from trionet.testing import MemoryNetwork, NetworkEvent


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
