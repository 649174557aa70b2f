"""A server of Jafka's client, every byte of which is the test's."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import trio

from support.wire import LOOPBACK, Peer
from trionet import JafkaClient, open_jafka_client
from trionet.jafka._codec import decode_request
from trionet.jafka._requests import JafkaRequest


class RawServer:
    """A listening socket, and the connections that it has accepted, of which the last one talks."""

    def __init__(self) -> None:
        self._listening = socket.create_server((LOOPBACK, 0))
        self._listening.setblocking(False)
        self.address = f"{LOOPBACK}:{self._listening.getsockname()[1]}"
        self._peers: list[Peer] = []

    @property
    def peer(self) -> Peer:
        return self._peers[-1]

    async def accept(self) -> Peer:
        await trio.lowlevel.wait_readable(self._listening)
        self._peers.append(Peer(self._listening.accept()[0]))
        return self.peer

    async def requests(self, count: int) -> list[JafkaRequest]:
        """The next requests."""
        return [decode_request(await self.peer.receive_frame()) for _ in range(count)]

    def stop_listening(self) -> None:
        self._listening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._listening.close()
        for peer in self._peers:
            peer.close()


@asynccontextmanager
async def client_of_raw_server(
    *, response_bytes_max: int = 1_000_000
) -> AsyncIterator[tuple[JafkaClient, RawServer]]:
    """A client, and the server that it is connected to."""
    with trio.fail_after(20), RawServer() as server:
        async with open_jafka_client(
            server.address, response_bytes_max=response_bytes_max
        ) as client:
            await server.accept()
            yield client, server
