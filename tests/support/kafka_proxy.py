"""A proxy between Kafka clients and any brokers, real or our own, that disturbs single batches.

Clients stay on it: wherever a response names the address of a broker, it gets one of the proxy's.
Responses leave in the order of their requests, also those that the proxy gives itself.
"""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import attrs
import trio

from support.produce_fates import PASSED, Arrivals, FatefulProduce, FateOf
from support.wire import LOOPBACK
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._header import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    frame,
    skip_tags,
)
from trionet.protocol._wire import Chunk, Message

Address = tuple[str, int]

_READ_BYTES = 64 * 1024
#: A client has several requests under way: those after one whose response is lost are met by their
#: own fates, and their responses are lost with it.
_ENDS_AFTER_SECONDS = 0.01

#: Where responses name brokers, by the API's name.
_NAMING: dict[str, Callable[[Any], Iterable[Any]]] = {
    "Metadata": lambda body: body.brokers,
    "DescribeCluster": lambda body: body.brokers,
    "FindCoordinator": lambda body: [body, *body.coordinators],
    "Produce": lambda body: body.node_endpoints,  # KIP-951
    "Fetch": lambda body: body.node_endpoints,
}


class KafkaProxy:
    """See the module; made by :func:`open_kafka_proxy`.

    Args:
        nursery: of its connections.

    Attributes:
        fate_of: decides what becomes of each batch; by default all are passed on.
        arrivals: the batches that clients have sent so far.
        rewrite: changes a response that names brokers, after its addresses are the proxy's.
        topics: names by topic id, from Metadata responses.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.fate_of: FateOf = lambda _: PASSED
        self.arrivals = Arrivals()
        self.rewrite: Callable[[str, Any], None] = lambda _name, _body: None
        self.topics: dict[bytes, str] = {}
        self._nursery = nursery
        self._ports: dict[Address, int] = {}

    def address_of(self, broker: Address) -> Address:
        """Where the proxy stands in for a broker; it listens there from now on."""
        if broker not in self._ports:
            listening = socket.create_server((LOOPBACK, 0))
            listening.setblocking(False)
            self._ports[broker] = listening.getsockname()[1]
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))

            async def connect(client: trio.SocketStream) -> None:
                await self._connect(client, broker)

            self._nursery.start_soon(trio.serve_listeners, connect, [listener])
        return LOOPBACK, self._ports[broker]

    async def _connect(self, client: trio.SocketStream, address: Address) -> None:
        async with client:
            try:
                async with await trio.open_tcp_stream(*address) as broker:
                    await _Connection(self, client, broker).run()
            except* (OSError, trio.BrokenResourceError):
                pass  # one side is gone, and now so is the other

    def redirect(self, name: str, body: Any) -> None:
        """Put the proxy's own addresses into a response."""
        if name == "Metadata":
            self.topics |= {each.topic_id: each.name or "" for each in body.topics}
        for each in _NAMING[name](body):
            if each.host and each.port > 0:
                each.host, each.port = self.address_of((each.host, each.port))


@attrs.frozen
class _Expected:
    """The response that is next on a connection.

    Attributes:
        codec: of it.
        correlation_id: of its request.
        produce: what becomes of it, if it is one to a Produce request.
    """

    codec: ApiVersionCodec | None
    correlation_id: int
    produce: FatefulProduce | None = None


class _Connection:
    def __init__(
        self, proxy: KafkaProxy, client: trio.SocketStream, broker: trio.SocketStream
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._expect, self._expected = trio.open_memory_channel[_Expected](math.inf)
        self._reading = trio.CancelScope()
        self._ends_at = math.inf

    async def run(self) -> None:
        """Until one side has ended, or a fate has ended it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pass_requests)
            await self._pass_responses()
            nursery.cancel_scope.cancel()

    # Requests.

    async def _pass_requests(self) -> None:
        frames = _Frames(self._client)
        with self._expect:
            while True:
                # Only reading ends in the middle: each response that is expected comes.
                payload = None
                with trio.CancelScope(deadline=self._ends_at) as self._reading:
                    payload = await frames.receive()
                if payload is None or not await self._pass_request(payload):
                    return

    async def _pass_request(self, payload: bytes) -> bool:
        """Whether the connection goes on."""
        key, version, correlation_id, client_id, pos = decode_request_header(payload)
        codec = lookup(key, version)
        if codec is None or codec.name != "Produce":
            self._expect.send_nowait(_Expected(codec, correlation_id))
            await self._broker.send_all(_framed(payload))
            return True
        body = codec.decode_request(payload, skip_tags(payload, pos) if codec.flexible else pos)
        proxy = self._proxy
        produce = FatefulProduce(body, proxy.topics, proxy.arrivals, proxy.fate_of)
        await trio.sleep(produce.delay_seconds)
        if body.acks or produce.is_request_lost:
            self._expect.send_nowait(_Expected(codec, correlation_id, produce))
        if produce.is_passed_on:
            header = encode_request_header(codec, correlation_id, client_id)
            await self._broker.send_all(_encoded(header, codec.encode_request, body))
        return not produce.is_request_lost

    # Responses.

    async def _pass_responses(self) -> None:
        frames = _Frames(self._broker)
        async for expected in self._expected:
            produce = expected.produce
            if produce is not None and produce.is_request_lost:
                return
            payload = None
            if produce is None or produce.is_passed_on:
                payload = await frames.receive()
                if payload is None:
                    return
            if produce is not None and produce.is_response_lost and self._ends_at == math.inf:
                self._ends_at = trio.current_time() + _ENDS_AFTER_SECONDS
                self._reading.deadline = self._ends_at
            if self._ends_at == math.inf:
                await self._client.send_all(self._response(expected, payload))

    def _response(self, expected: _Expected, payload: bytes | None) -> bytes:
        codec = expected.codec
        if codec is None or codec.name not in _NAMING:
            assert payload is not None
            return _framed(payload)
        body: Any = None
        if payload is not None:
            _, pos = decode_response_header(codec, payload)
            body = codec.decode_response(payload, pos)
        if expected.produce is not None:
            body = expected.produce.response(body)
        self._proxy.redirect(codec.name, body)
        self._proxy.rewrite(codec.name, body)
        header = encode_response_header(codec, expected.correlation_id)
        return _encoded(header, codec.encode_response, body)


class _Frames:
    """The payloads that arrive on a stream."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def receive(self) -> bytes | None:
        """The next payload; None at the end of the stream."""
        received = self._received
        while True:
            end = 4 + int.from_bytes(received[:4], "big")
            if len(received) >= max(4, end):
                payload = bytes(received[4:end])
                del received[:end]
                return payload
            data = await self._stream.receive_some(_READ_BYTES)
            if not data:
                return None
            received += data


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def _encoded(header: bytes, encode: Callable[[Any, list[Chunk]], None], body: Message) -> bytes:
    chunks: list[Chunk] = [header]
    encode(body, chunks)
    return b"".join(cast(list[bytes], frame(chunks)))


@asynccontextmanager
async def open_kafka_proxy(bootstrap_servers: str) -> AsyncIterator[tuple[str, KafkaProxy]]:
    """Stand between clients and a cluster for as long as the block runs.

    Args:
        bootstrap_servers: of the cluster; one server.

    Returns:
        The bootstrap server for the clients, and the proxy.
    """
    host, _, port = bootstrap_servers.partition(":")
    async with trio.open_nursery() as nursery:
        proxy = KafkaProxy(nursery)
        yield "{}:{}".format(*proxy.address_of((host, int(port)))), proxy
        nursery.cancel_scope.cancel()
