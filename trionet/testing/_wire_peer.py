"""Low-level peers for Kafka's protocol: a connection and the generated codecs, nothing more.

One class uses a trio stream, the other a blocking socket. They do not retry, track
metadata or check anything: they send requests exactly as the test passes them. A request's class
determines the API; the test chooses the version.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, cast

import trio

from .._util._trio_task import check_trio
from ..protocol._codec import ApiVersionCodec, api_key_of, lookup, schema_versions
from ..protocol._header import decode_response_header, encode_request_header, frame
from ..protocol._wire import Chunk, Message

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

CLIENT_ID: Final = "raw-peer"
# The timeout of a blocking read or write, so that a hanging test fails.
BLOCKING_SECONDS: Final = 30.0
_READ_BYTES: Final = 64 * 1024
_SIZE_BYTES: Final = 4


def codec_for(request: Message, version: int) -> ApiVersionCodec:
    """Return the codec for a request and its response.

    Raises:
        ValueError: the message is not a request, or its API has no such version.
    """
    key = api_key_of(request)
    codec = lookup(key, version)
    if codec is None:
        versions, name = schema_versions(key), type(request).__name__
        raise ValueError(
            f"{name} has no version {version}; allowed: {versions[0]} to {versions[-1]}"
        )
    return codec


def encode_request(
    request: Message, version: int, correlation_id: int = 1, client_id: str | None = CLIENT_ID
) -> bytes:
    """Encode a request as a frame, with its size prefix.

    Raises:
        ValueError: the message is not a request, or its API has no such version.
        LocalProtocolError: a value does not fit into its field.
    """
    codec = codec_for(request, version)
    chunks: list[Chunk] = [encode_request_header(codec, correlation_id, client_id)]
    codec.encode_request(request, chunks)
    return b"".join(cast(list[bytes], frame(chunks)))


def host_and_port(address: str) -> tuple[str, int]:
    """Split an address, such as ``127.0.0.1:9092`` or ``[::1]:9092``, into host and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class _Pipeline:
    """Encodes requests, and decodes each response as that to the oldest pending request."""

    def __init__(self, client_id: str | None) -> None:
        self._client_id = client_id
        self._next = 1
        self._sent: deque[tuple[ApiVersionCodec, int]] = deque()

    def encode(self, request: Message, version: int, *, has_response: bool = True) -> bytes:
        data = encode_request(request, version, self._next, self._client_id)
        if has_response:
            self._sent.append((codec_for(request, version), self._next))
        self._next += 1
        return data

    def decode(self, payload: bytes) -> Any:
        codec, expected = self._sent.popleft()
        correlation_id, position = decode_response_header(codec, payload)
        assert expected == correlation_id, f"response to {codec} is out of order"
        return codec.decode_response(payload, position)


class RawPeer:
    """A low-level Kafka connection over a trio stream.

    Every method except :meth:`receive_to_end` raises EOFError if the peer closes the connection.

    Args:
        stream: the stream to use: TCP, TLS or in memory; the caller closes it.
        client_id: the client id of the requests.

    Attributes:
        stream: the stream of the connection.
    """

    def __init__(self, stream: trio.abc.Stream, client_id: str | None = CLIENT_ID) -> None:
        self.stream = stream
        self._pipeline = _Pipeline(client_id)
        self._received = bytearray()

    async def call(self, request: Message, version: int) -> Any:
        """Send a request and wait for its response.

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer closed the connection before the response was complete.
            WireFormatError: the response is malformed.

        Cancellation: the request may have been sent; close the connection.
        """
        await self.send(request, version)
        return await self.receive()

    async def send(self, request: Message, version: int) -> None:
        """Send a request; :meth:`receive` returns its response.

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer has closed the connection.

        Cancellation: part of the request may have been sent; close the connection.
        """
        await self.send_bytes(self._pipeline.encode(request, version))

    async def send_unanswered(self, request: Message, version: int) -> None:
        """Send a request that has no response (a Produce with acks=0).

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer has closed the connection.

        Cancellation: part of the data may have been sent; close the connection.
        """
        await self.send_bytes(self._pipeline.encode(request, version, has_response=False))

    async def send_bytes(self, data: bytes) -> None:
        """Send raw bytes.

        Args:
            data: the bytes, which need not be a complete frame.

        Raises:
            EOFError: the peer has closed the connection.

        Cancellation: part of the data may have been sent; close the connection.
        """
        try:
            await self.stream.send_all(data)
        except trio.BrokenResourceError as error:
            raise EOFError("connection closed by the peer") from error

    async def send_frame(self, payload: bytes) -> None:
        """Send a payload with its size prefix.

        Args:
            payload: the header and body of a request.

        Raises:
            EOFError: the peer has closed the connection.

        Cancellation: part of the data may have been sent; close the connection.
        """
        await self.send_bytes(len(payload).to_bytes(_SIZE_BYTES, "big") + payload)

    async def receive(self) -> Any:
        """Receive and decode the response to the oldest pending request.

        Raises:
            EOFError: the peer closed the connection before the response was complete.
            WireFormatError: the response is malformed.

        Cancellation: part of the response may already have been consumed; close the connection.
        """
        return self._pipeline.decode(await self.receive_frame())

    async def receive_frame(self) -> bytes:
        """Receive the next frame, without its size prefix.

        Raises:
            EOFError: the peer closed the connection before the response was complete.

        Cancellation: part of the response may already have been consumed; close the connection.
        """
        size = int.from_bytes(await self._receive(_SIZE_BYTES), "big")
        return await self._receive(size)

    async def receive_to_end(self) -> bytes:
        """Receive all remaining bytes until the peer closes or resets the connection.

        Safe to cancel: the bytes received so far are kept for the next call.
        """
        while await self._receive_some():
            pass
        return bytes(self._received)

    async def _receive(self, count: int) -> bytes:
        await trio.lowlevel.checkpoint()
        while len(self._received) < count:
            if not await self._receive_some():
                raise EOFError(
                    f"connection closed by the peer after {len(self._received)} of {count} bytes"
                )
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    async def _receive_some(self) -> bool:
        await trio.lowlevel.checkpoint()
        try:
            data = await self.stream.receive_some(_READ_BYTES)
        except trio.BrokenResourceError:
            return False
        self._received += data
        return bool(data)


@asynccontextmanager
async def open_raw_peer(address: str, client_id: str | None = CLIENT_ID) -> AsyncIterator[RawPeer]:
    """Connect to a broker without TLS, and close the connection at the end of the block.

    Args:
        address: ``host:port``; an IPv6 host must be in brackets.
        client_id: the client id of the requests; None for null.

    Raises:
        OSError: the connection cannot be established.
        RuntimeError: trio does not run the calling task.

    Cancellation: the connection is closed immediately.
    """
    check_trio("clients", "a program without trio uses trionet.testing.raw_peer()")
    stream = await trio.open_tcp_stream(*host_and_port(address))
    async with stream:
        yield RawPeer(stream, client_id)


class BlockingRawPeer:
    """A low-level Kafka connection over a blocking socket; see :class:`RawPeer`.

    Args:
        sock: the connected socket to use, with or without TLS; the caller closes it.
        client_id: the client id of the requests.

    Attributes:
        socket: the socket of the connection.
    """

    def __init__(self, sock: socket.socket, client_id: str | None = CLIENT_ID) -> None:
        self.socket = sock
        self._pipeline = _Pipeline(client_id)

    def call(self, request: Message, version: int) -> Any:
        """Send a request and wait for its response.

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer closed the connection before the response was complete.
            WireFormatError: the response is malformed.
            TimeoutError: no data arrived within the socket's timeout, 30 s for :func:`raw_peer`.
        """
        self.send(request, version)
        return self.receive()

    def send(self, request: Message, version: int) -> None:
        """Send a request; :meth:`receive` returns its response.

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer has closed the connection.
            TimeoutError: the socket's timeout expired before all data was sent.
        """
        self.send_bytes(self._pipeline.encode(request, version))

    def send_unanswered(self, request: Message, version: int) -> None:
        """Send a request that has no response (a Produce with acks=0).

        Args:
            request: a request of :mod:`trionet.protocol.messages`.
            version: the API version in which to encode the request.

        Raises:
            ValueError: the message is not a request, or its API has no such version.
            LocalProtocolError: a value does not fit into its field.
            EOFError: the peer has closed the connection.
            TimeoutError: the socket's timeout expired before all data was sent.
        """
        self.send_bytes(self._pipeline.encode(request, version, has_response=False))

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes.

        Args:
            data: the bytes, which need not be a complete frame.

        Raises:
            EOFError: the peer has closed the connection.
            TimeoutError: the socket's timeout expired before all data was sent.
        """
        try:
            self.socket.sendall(data)
        except ConnectionError as error:
            raise EOFError("connection closed by the peer") from error

    def send_frame(self, payload: bytes) -> None:
        """Send a payload with its size prefix.

        Args:
            payload: the header and body of a request.

        Raises:
            EOFError: the peer has closed the connection.
            TimeoutError: the socket's timeout expired before all data was sent.
        """
        self.send_bytes(len(payload).to_bytes(_SIZE_BYTES, "big") + payload)

    def receive(self) -> Any:
        """Receive and decode the response to the oldest pending request.

        Raises:
            EOFError: the peer closed the connection before the response was complete.
            WireFormatError: the response is malformed.
            TimeoutError: no data arrived within the socket's timeout, 30 s for :func:`raw_peer`.
        """
        return self._pipeline.decode(self.receive_frame())

    def receive_frame(self) -> bytes:
        """Receive the next frame, without its size prefix.

        Raises:
            EOFError: the peer closed the connection before the response was complete.
            TimeoutError: no data arrived within the socket's timeout, 30 s for :func:`raw_peer`.
        """
        size = int.from_bytes(self._receive(_SIZE_BYTES), "big")
        return self._receive(size)

    def receive_to_end(self) -> bytes:
        """Receive all remaining bytes until the peer closes or resets the connection.

        Raises:
            TimeoutError: no data arrived within the socket's timeout, 30 s for :func:`raw_peer`.
        """
        received = bytearray()
        while data := self._receive_some(_READ_BYTES):
            received += data
        return bytes(received)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            data = self._receive_some(count - len(received))
            if not data:
                raise EOFError(
                    f"connection closed by the peer after {len(received)} of {count} bytes"
                )
            received += data
        return bytes(received)

    def _receive_some(self, count: int) -> bytes:
        try:
            return self.socket.recv(count)
        except ConnectionError:
            return b""


@contextmanager
def raw_peer(address: str, client_id: str | None = CLIENT_ID) -> Iterator[BlockingRawPeer]:
    """Connect to a broker without TLS, and close the connection at the end of the block.

    The socket's timeout is 30 s.

    Args:
        address: ``host:port``; an IPv6 host must be in brackets.
        client_id: the client id of the requests; None for null.

    Raises:
        OSError: the connection cannot be established.
    """
    with socket.create_connection(host_and_port(address), timeout=BLOCKING_SECONDS) as sock:
        yield BlockingRawPeer(sock, client_id)
