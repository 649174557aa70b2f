"""Small Kafka clients: a socket and the codecs, and nothing that would hide what is on the wire.

One works on a trio stream, one blocks, for tests whose broker runs beside them in a thread or a
process. A request's class tells its API; the version is the caller's choice.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, cast

import trio

from trionet.protocol.codec import ApiVersionCodec, Message, lookup
from trionet.protocol.header import decode_response_header, encode_request_header, frame
from trionet.protocol.messages.registry import APIS

CLIENT_ID = "test"
_READ_BYTES = 64 * 1024
# A test that waits for longer than this would not end by itself.
_BLOCKING_SECONDS = 30.0

_KEYS = {f"{row[1]}Request": key for key, row in APIS.items()}


def codec_for(request: Message, version: int) -> ApiVersionCodec:
    """What encodes this request and decodes its answer."""
    key = _KEYS[type(request).__name__]
    codec = lookup(key, version)
    assert codec is not None, f"{type(request).__name__} has no version {version}"
    return codec


def encode_request(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = CLIENT_ID
) -> bytes:
    """A request as one whole frame, its size prefix included."""
    codec = codec_for(request, version)
    chunks: list[Any] = [encode_request_header(codec, correlation_id, client_id)]
    codec.encode_request(request, chunks)
    return b"".join(cast(list[bytes], frame(chunks)))


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of ``127.0.0.1:9092`` or ``[::1]:9092``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class _Pipeline:
    """The requests that were sent and not answered yet, oldest first."""

    def __init__(self) -> None:
        self._next = 1
        self._sent: deque[tuple[ApiVersionCodec, int]] = deque()

    def encode(self, request: Message, version: int, client_id: str | None) -> bytes:
        correlation_id, self._next = self._next, self._next + 1
        self._sent.append((codec_for(request, version), correlation_id))
        return encode_request(request, version, correlation_id, client_id)

    def unanswered(self) -> None:
        """The newest request gets no answer (a Produce with acks=0)."""
        self._sent.pop()

    def decode(self, payload: bytes) -> Any:
        codec, expected = self._sent.popleft()
        correlation_id, position = decode_response_header(codec, payload)
        assert expected == correlation_id, f"{codec} was answered out of turn"
        return codec.decode_response(payload, position)


class Client:
    """A Kafka connection in trio; made by :func:`connect`.

    Raises EOFError from whatever waits for an answer when the broker ends the connection.
    """

    def __init__(self, stream: Any, client_id: str | None = CLIENT_ID) -> None:
        self.stream = stream
        self._client_id = client_id
        self._pipeline = _Pipeline()
        self._received = bytearray()

    async def call(self, request: Message, version: int) -> Any:
        """Send a request and wait for its answer."""
        await self.send(request, version)
        return await self.receive()

    async def send(self, request: Message, version: int) -> None:
        """Send a request; :meth:`receive` gives the answers, in the order of the requests."""
        await self.send_bytes(self._pipeline.encode(request, version, self._client_id))

    async def send_unanswered(self, request: Message, version: int) -> None:
        """Send a request that has no answer."""
        data = self._pipeline.encode(request, version, self._client_id)
        self._pipeline.unanswered()
        await self.send_bytes(data)

    async def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        return self._pipeline.decode(await self.receive_frame())

    async def send_bytes(self, data: bytes) -> None:
        try:
            await self.stream.send_all(data)
        except trio.BrokenResourceError as error:
            raise EOFError("the broker has ended the connection") from error

    async def receive_frame(self) -> bytes:
        """The next frame without its size."""
        size = int.from_bytes(await self._receive(4), "big")
        return await self._receive(size)

    async def receive_to_end(self) -> bytes:
        """Everything up to the end of the connection, be it an end of stream or a reset."""
        while await self._receive_some():
            pass
        return bytes(self._received)

    async def _receive(self, count: int) -> bytes:
        while len(self._received) < count:
            if not await self._receive_some():
                raise EOFError(f"the broker ended the connection before byte {count}")
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    async def _receive_some(self) -> bool:
        try:
            data = await self.stream.receive_some(_READ_BYTES)
        except trio.BrokenResourceError:
            return False
        self._received += data
        return bool(data)


@asynccontextmanager
async def connect(address: str, client_id: str | None = CLIENT_ID) -> AsyncIterator[Client]:
    """A connection to a broker, closed at the end of the block."""
    stream = await trio.open_tcp_stream(*host_and_port(address))
    async with stream:
        yield Client(stream, client_id)


class BlockingClient:
    """A Kafka connection of a synchronous program."""

    def __init__(self, address: str, client_id: str | None = CLIENT_ID) -> None:
        self.socket = socket.create_connection(host_and_port(address), timeout=_BLOCKING_SECONDS)
        self._client_id = client_id
        self._pipeline = _Pipeline()

    def call(self, request: Message, version: int) -> Any:
        """Send a request and wait for its answer."""
        self.send(request, version)
        return self.receive()

    def send(self, request: Message, version: int) -> None:
        """Send a request; :meth:`receive` gives the answers, in the order of the requests."""
        self.socket.sendall(self._pipeline.encode(request, version, self._client_id))

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet; EOFError if none can come."""
        size = int.from_bytes(self._receive(4), "big")
        return self._pipeline.decode(self._receive(size))

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                data = self.socket.recv(count - len(received))
            except ConnectionError as error:
                raise EOFError("the connection was reset") from error
            if not data:
                raise EOFError(f"the stream ended after {len(received)} of {count} bytes")
            received += data
        return bytes(received)

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
