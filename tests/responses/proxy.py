"""A host between the clients and the broker of a network in memory, which changes responses.

It also says that it serves the APIs that the broker does not, and responds to them at random.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import trio

from responses.changing import (
    any_response,
    change_response,
    encoded_response,
    has_any,
    response_layout,
)
from trionet.net.wire._endpoint import Endpoint
from trionet.protocol._codec import ApiVersionCodec, lookup, schema_versions
from trionet.protocol._header import (
    decode_request_header,
    decode_response_header,
    encode_response_header,
    skip_tags,
)
from trionet.protocol._wire import Message
from trionet.protocol.messages.api_versions import ApiVersion
from trionet.protocol.messages.registry import APIS
from trionet.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from trionet.protocol.messages.sasl_handshake import SaslHandshakeResponse
from trionet.testing import MemoryNetwork, MemoryStream

#: In one run, each API has one of these shares of its responses changed.
_SHARES = (0.0, 0.02, 0.1, 0.3, 1.0)
_WRONG_ID_SHARE = 0.01
#: In so many runs it serves APIs of its own.
_OWN_SHARE = 0.5
#: With them, a client's credentials are accepted, for two seconds.
_AUTHENTICATED: Final[dict[str, Message]] = {
    "SaslHandshake": SaslHandshakeResponse(mechanisms=["PLAIN"]),
    "SaslAuthenticate": SaslAuthenticateResponse(session_lifetime_ms=2000),
}


class Expected(NamedTuple):
    """The response that is next on a connection; ``is_own`` if the broker gives none."""

    codec: ApiVersionCodec | None
    correlation_id: int
    is_own: bool


class ChangingProxy:
    """See the module; run by :func:`open_proxy`.

    Args:
        network: where it is.
        broker: the address of the broker.
        rng: decides which responses are changed, and how.
        kept: the names of fields that are not changed.
        is_secured: clients have to authenticate, by PLAIN, with the proxy.

    Attributes:
        changes: what it has changed so far.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        broker: str,
        rng: random.Random,
        kept: Collection[str],
        *,
        is_secured: bool,
    ) -> None:
        self.changes: list[str] = []
        self._network = network
        self._broker = broker
        self._rng = rng
        self._kept = kept
        self._shares: dict[str, float] = {}
        # The APIs that only the proxy serves, if it does in this run.
        self._own: dict[int, range] = {}
        self._has_own = is_secured or rng.random() < _OWN_SHARE

    async def serve(self, nursery: trio.Nursery, address: str) -> None:
        """Take connections until cancelled."""
        endpoint = Endpoint.parse(f"PLAINTEXT://{address}")
        with self._network.listen(endpoint, backlog=50, receive_buffer_bytes=-1) as listening:
            while True:
                await self._network.wait_acceptable(listening)
                client = MemoryStream(listening.accept()[0])
                nursery.start_soon(self._connect, client)

    async def _connect(self, client: MemoryStream) -> None:
        async with client, await self._network.open_stream(self._broker) as broker:
            expect, expected = trio.open_memory_channel[Expected](math.inf)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_requests, client, broker, expect)
                    await self._pass_responses(broker, client, expected)
                    nursery.cancel_scope.cancel()
            except* trio.BrokenResourceError:
                pass  # one side is gone, and now so is the other

    async def _pass_requests(
        self, client: MemoryStream, broker: MemoryStream, expect: trio.MemorySendChannel[Expected]
    ) -> None:
        with expect:
            frames = Frames(client)
            while (payload := await frames.receive()) is not None:
                key, version, correlation_id, _, pos = decode_request_header(payload)
                codec = lookup(key, version)
                if not _is_without_response(codec, payload, pos):
                    expect.send_nowait(Expected(codec, correlation_id, key in self._own))
                if key not in self._own:
                    await broker.send_all(_framed(payload))
        await broker.send_eof()

    async def _pass_responses(
        self,
        broker: MemoryStream,
        client: MemoryStream,
        expected: trio.MemoryReceiveChannel[Expected],
    ) -> None:
        frames = Frames(broker)
        async for each in expected:
            if each.is_own:
                await client.send_all(_framed(self._own_response(each)))
                continue
            payload = await frames.receive()
            if payload is None:
                return
            await client.send_all(_framed(self._response(each, payload)))

    def _own_response(self, expected: Expected) -> bytes:
        codec = expected.codec
        assert codec is not None
        head = encode_response_header(codec, expected.correlation_id)
        authenticated = _AUTHENTICATED.get(codec.name)
        if authenticated is not None:
            return self._changed(codec, head, encoded_response(codec, authenticated))
        change = any_response(codec, self._rng)
        self.changes.append(change.description)
        return head + change.body

    def _response(self, expected: Expected, payload: bytes) -> bytes:
        codec = expected.codec
        if codec is None:
            return payload
        _, pos = decode_response_header(codec, payload)
        body = payload[pos:]
        if codec.name == "ApiVersions" and self._has_own:
            body = self._with_own(codec, body)
        return self._changed(codec, payload[:pos], body)

    def _changed(self, codec: ApiVersionCodec, head: bytes, body: bytes) -> bytes:
        if not self._changes(codec.name):
            return head + body
        if self._rng.random() < _WRONG_ID_SHARE:
            self.changes.append(f"{codec.name} v{codec.version}: another correlation id")
            return self._rng.randbytes(4) + head[4:] + body
        change = change_response(codec, body, self._rng, self._kept)
        self.changes.append(change.description)
        return head + change.body

    def _with_own(self, codec: ApiVersionCodec, body: bytes) -> bytes:
        """Add the APIs that the broker does not serve."""
        response = codec.decode_response(body, 0)
        served = {each.api_key for each in response.api_keys}
        for key in sorted(APIS.keys() - served):
            versions = schema_versions(key)
            newest = lookup(key, versions[-1]) if versions else None
            if newest is not None and not (
                self._kept and has_any(response_layout(newest), self._kept)
            ):
                self._own[key] = versions
        response.api_keys += [
            ApiVersion(api_key=key, min_version=versions[0], max_version=versions[-1])
            for key, versions in self._own.items()
        ]
        return encoded_response(codec, response)

    def _changes(self, name: str) -> bool:
        if name not in self._shares:
            self._shares[name] = self._rng.choice(_SHARES)
        return self._rng.random() < self._shares[name]


def _is_without_response(codec: ApiVersionCodec | None, payload: bytes, pos: int) -> bool:
    if codec is None or codec.name != "Produce":
        return False
    body: Any = codec.decode_request(payload, skip_tags(payload, pos) if codec.flexible else pos)
    return bool(body.acks == 0)


class Frames:
    """The payloads that arrive on a stream."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self._received = bytearray()

    async def receive(self) -> bytes | None:
        """The next payload; None at the end of the stream."""
        received = self._received
        while len(received) < max(4, end := 4 + int.from_bytes(received[:4], "big")):
            data = await self._stream.receive_some()
            if not data:
                return None
            received += data
        payload = bytes(received[4:end])
        del received[:end]
        return payload


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@asynccontextmanager
async def open_proxy(
    network: MemoryNetwork,
    address: str,
    broker: str,
    rng: random.Random,
    kept: Collection[str] = (),
    *,
    is_secured: bool = False,
) -> AsyncIterator[ChangingProxy]:
    """Stand at ``address`` before a broker for as long as the block runs."""
    async with trio.open_nursery() as nursery:
        proxy = ChangingProxy(network, broker, rng, kept, is_secured=is_secured)
        nursery.start_soon(proxy.serve, nursery, address)
        yield proxy
        nursery.cancel_scope.cancel()
