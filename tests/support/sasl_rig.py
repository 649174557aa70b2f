"""A server that asks who its peers are by SASL, for tests over real connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trio.testing import wait_all_tasks_blocked

from support.sasl import decoded, exchange, handshake, plain, request, token
from support.serving import Serving, answer, serving
from support.tls import server_context
from support.wire import Peer
from trionet.net._selector_counters import SelectorCounters
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.server._channel_builder import ListenerSecurity

METADATA = request(api_keys.METADATA, 1, MetadataRequest())
ALICE = plain("alice", "secret")
DELAY = 0.25


class Rig:
    """A server that asks who its peers are."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.connect = serving.connect

    async def authenticated(self, data: bytes = ALICE, version: int = 1) -> Peer:
        """A connection that PLAIN has let in."""
        peer = await self.connect()
        await ask(peer, handshake("PLAIN", version))
        told = await ask(peer, token(data) if version else data)
        if version:
            assert error_codes.NONE == decoded(told, api_keys.SASL_AUTHENTICATE, 2).error_code
        return peer

    async def is_served(self, peer: Peer, principal: str = "User:alice") -> None:
        """One request and its response, on behalf of somebody."""
        await peer.send_frames(METADATA)
        found = await self.serving.receive(METADATA)
        assert principal == str(found.principal)
        found.respond(answer(b"served"))
        assert b"served" == await peer.receive_frame()

    async def is_well(self) -> None:
        """Another connection gets in and is served."""
        peer = await self.authenticated()
        await self.is_served(peer)
        peer.close()
        await wait_all_tasks_blocked()

    @property
    def counters(self) -> SelectorCounters:
        return self.serving.processors[0].selector.counters


@asynccontextmanager
async def authenticating(
    protocol: str, limits: dict[str, Any] | None = None, **changes: Any
) -> AsyncIterator[Rig]:
    """A server; changes are of the SASL settings, limits of the server's."""
    context = server_context()
    security = ListenerSecurity(
        tls_context=(lambda: context) if protocol == "SASL_SSL" else None,
        authenticator=lambda identity: exchange(**changes),
    )
    async with serving("poller", security=security, **(limits or {})) as found:
        yield Rig(found)


async def ask(peer: Peer, payload: bytes) -> bytes:
    await peer.send_frames(payload)
    return await peer.receive_frame()
