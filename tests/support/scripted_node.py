"""A node that responds to a client as a test says, on a network in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import trio

from trionet.net.wire._connecting import Address
from trionet.net.wire._endpoint import Endpoint
from trionet.protocol._codec import lookup, schema_versions
from trionet.protocol._header import (
    decode_request_header,
    encode_response_header,
    frame,
    skip_tags,
)
from trionet.protocol._wire import Chunk, Message
from trionet.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from trionet.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from trionet.protocol.messages.registry import APIS
from trionet.testing import MemoryNetwork, MemoryStream

PORT = 9092


class Seen(NamedTuple):
    """A request as it came."""

    name: str
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    stream: MemoryStream

    async def respond(self, body: Message) -> None:
        """Respond to a request that was met with silence."""
        await self.stream.send_all(encoded(self.name, self.version, self.correlation_id, body))


class Answer(NamedTuple):
    """A response in another version than that of the question, or to another question."""

    body: Message
    version: int
    correlation_id: int | None = None


class Hangup:
    """In place of a response: the end of the connection."""


Reply = Callable[[Seen], "Message | Answer | Hangup | bytes | None"]
"""The answer to a request; bytes travel as they are, and None is silence."""


class ScriptedNode:
    """One node.

    Args:
        network: where it is.
        node_id: its id.
        host: its address.
        brokers: the nodes it tells of: id and host; itself alone by default.

    Attributes:
        replies: what its responses are, by the API's name.
        seen: the requests that came.
        silent: connections on which nothing gets a response any more.
        ranges: the versions it serves, by API key; what has codecs by default.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        node_id: int = 1,
        host: str = "10.0.0.1",
        brokers: Iterable[tuple[int, str]] = (),
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.brokers = list(brokers) or [(node_id, host)]
        self.ranges = {
            key: (schema_versions(key)[0], schema_versions(key)[-1])
            for key in APIS
            if schema_versions(key)
        }
        self.replies: dict[str, Reply] = {
            "ApiVersions": lambda _: self.api_versions(),
            "Metadata": lambda _: self.metadata(),
        }
        self.seen: list[Seen] = []
        self.silent: set[MemoryStream] = set()
        self._network = network

    def last(self, name: str) -> Seen:
        """The newest request of an API."""
        return [each for each in self.seen if each.name == name][-1]

    @property
    def address(self) -> str:
        return f"{self.host}:{PORT}"

    def names(self) -> list[str]:
        """The APIs that were asked for, in their order."""
        return [each.name for each in self.seen]

    def api_versions(self, error_code: int = 0) -> ApiVersionsResponse:
        ranges = [
            ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, (oldest, newest) in self.ranges.items()
        ]
        return ApiVersionsResponse(error_code=error_code, api_keys=ranges)

    def metadata(self, error_code: int = 0) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node_id, host=host, port=PORT)
            for node_id, host in self.brokers
        ]
        return MetadataResponse(brokers=brokers, controller_id=self.node_id, error_code=error_code)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen, and respond to what comes, for as long as the block runs."""
        endpoint = Endpoint.parse(f"PLAINTEXT://{self.address}")
        with self._network.listen(endpoint, backlog=5, receive_buffer_bytes=-1) as listening:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._accept, listening, nursery)
                yield
                nursery.cancel_scope.cancel()

    async def _accept(self, listening: Any, nursery: trio.Nursery) -> None:
        while True:
            await self._network.wait_acceptable(listening)
            try:
                stream = MemoryStream(listening.accept()[0])
            except OSError:
                return  # the host was killed
            nursery.start_soon(self._serve, stream)

    async def _serve(self, stream: MemoryStream) -> None:
        async with stream:
            received = b""
            try:
                while data := await stream.receive_some():
                    received += data
                    while len(received) >= 4 and len(received) >= 4 + _size(received):
                        payload, received = (
                            received[4 : 4 + _size(received)],
                            received[4 + _size(received) :],
                        )
                        await self._answer(stream, payload)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

    async def _answer(self, stream: MemoryStream, payload: bytes) -> None:
        seen = _decoded(payload, stream)
        self.seen.append(seen)
        if stream in self.silent:
            return
        answer = self.replies.get(seen.name)
        reply = answer(seen) if answer is not None else None
        if isinstance(reply, bytes):
            await stream.send_all(reply)
        elif isinstance(reply, Hangup):
            await stream.aclose()
        elif isinstance(reply, Answer):
            correlation_id = (
                seen.correlation_id if reply.correlation_id is None else reply.correlation_id
            )
            await stream.send_all(encoded(seen.name, reply.version, correlation_id, reply.body))
        elif reply is not None:
            await stream.send_all(encoded(seen.name, seen.version, seen.correlation_id, reply))


_KEYS = {row[1]: key for key, row in APIS.items()}


def _size(data: bytes) -> int:
    return int.from_bytes(data[:4], "big")


def _decoded(payload: bytes, stream: MemoryStream) -> Seen:
    key, version, correlation_id, client_id, pos = decode_request_header(payload)
    codec = lookup(key, version)
    assert codec is not None, f"API {key} has no version {version}"
    if codec.flexible:
        pos = skip_tags(payload, pos)
    body = codec.decode_request(payload, pos)
    return Seen(codec.name, version, correlation_id, client_id, body, stream)


def encoded(name: str, version: int, correlation_id: int, body: Message) -> bytes:
    """A response as it travels."""
    codec = lookup(_KEYS[name], version)
    assert codec is not None
    chunks: list[Chunk] = [encode_response_header(codec, correlation_id)]
    codec.encode_response(body, chunks)
    return b"".join(cast(list[bytes], frame(chunks)))


class NamedNetwork(MemoryNetwork):
    """Hosts that have names.

    Attributes:
        names: the addresses of each name.
        lookups: the names that were looked up, in their order.
    """

    def __init__(self, **names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.lookups: list[str] = []

    async def resolve(self, host: str, port: int) -> list[Address]:
        await trio.lowlevel.checkpoint()
        self.lookups.append(host)
        if not self.names.get(host):
            raise OSError(f"{host} has no address")
        return [(address, port) for address in self.names[host]]
