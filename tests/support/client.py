"""The peers of :mod:`trionet.testing` that speak by hand, as most tests use them.

A request's class tells its API; the version is the caller's choice.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import trio

from trionet.protocol._codec import Message
from trionet.testing import BlockingRawPeer, RawPeer, open_raw_peer
from trionet.testing import _wire_peer as wire_peer
from trionet.testing._wire_peer import codec_for, host_and_port

__all__ = [
    "CLIENT_ID",
    "BlockingClient",
    "Client",
    "codec_for",
    "connect",
    "encode_request",
    "host_and_port",
    "local_port",
]

CLIENT_ID = "test"

Client = RawPeer


def encode_request(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = CLIENT_ID
) -> bytes:
    """A request as one whole frame, its size prefix included."""
    return wire_peer.encode_request(request, version, correlation_id, client_id)


@asynccontextmanager
async def connect(address: str, client_id: str | None = CLIENT_ID) -> AsyncIterator[Client]:
    """A connection to a broker, closed at the end of the block."""
    async with open_raw_peer(address, client_id) as client:
        yield client


def local_port(client: Client) -> int:
    """The port that a client of :func:`connect` connects from."""
    assert isinstance(client.stream, trio.SocketStream)
    port: int = client.stream.socket.getsockname()[1]
    return port


class BlockingClient(BlockingRawPeer):
    """A connection of a synchronous program that it opens and closes by itself."""

    def __init__(self, address: str, client_id: str | None = CLIENT_ID) -> None:
        connected = socket.create_connection(
            host_and_port(address), timeout=wire_peer.BLOCKING_SECONDS
        )
        super().__init__(connected, client_id)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
