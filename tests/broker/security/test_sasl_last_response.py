"""Why a client was not let in: it can read that before its connection ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from support.sasl import decoded, exchange, handshake, plain, token
from support.serving import Serving, serving
from support.tls import server_context
from support.wire import Peer
from trionet.net import _preparing as preparing
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import api_keys, error_codes
from trionet.server._channel_builder import ListenerSecurity

DELAY, LINGER = 0.25, 0.5
FAILED = CloseReason.AUTHENTICATION_FAILED


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def protocol(request: pytest.FixtureRequest) -> str:
    param: str = request.param
    return param


@asynccontextmanager
async def lingering(protocol: str) -> AsyncIterator[Serving]:
    context = server_context()
    security = ListenerSecurity(
        tls_context=(lambda: context) if protocol == "SASL_SSL" else None,
        authenticator=lambda _: exchange(failure_linger_seconds=LINGER),
    )
    async with serving("poller", security=security) as found:
        yield found


async def refused(server: Serving) -> Peer:
    """A client whose wrong password has arrived."""
    peer = await server.connect()
    await peer.send_frames(handshake("PLAIN"))
    await peer.receive_frame()
    await peer.send_frames(token(plain("alice", "wrong")))
    await wait_all_tasks_blocked()
    return peer


async def read_why(peer: Peer) -> None:
    told = decoded(await peer.receive_frame(), api_keys.SASL_AUTHENTICATE, 2)
    assert error_codes.SASL_AUTHENTICATION_FAILED == told.error_code


async def test_the_end_does_not_come_with_the_response(
    protocol: str, mock_clock: MockClock
) -> None:
    """A26: kafka-python forgets a response that comes with an end of the stream."""
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)
        mock_clock.jump(0.9 * LINGER)
        await wait_all_tasks_blocked()
        assert 1 == server.server.statistics().connections

        mock_clock.jump(0.2 * LINGER)

        assert b"" == await peer.receive_to_end()
        assert {FAILED: 1} == server.reasons()


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_who_has_read_it_and_leaves_is_let_go_at_once(
    protocol: str, how: str, mock_clock: MockClock
) -> None:
    """A27: and it still counts as one who failed to authenticate."""
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)

        getattr(peer, how)()
        await wait_all_tasks_blocked()

        assert 0 == server.server.statistics().connections
        assert {FAILED: 1} == server.reasons()
        mock_clock.jump(2 * LINGER)
        await wait_all_tasks_blocked()
        assert {FAILED: 1} == server.reasons()


async def test_what_it_goes_on_to_send_is_nobodys(protocol: str, mock_clock: MockClock) -> None:
    async with lingering(protocol) as server:
        peer = await refused(server)
        mock_clock.jump(1.1 * DELAY)
        await read_why(peer)

        await peer.send_frames(handshake("PLAIN"), token(plain("alice", "secret")))
        await wait_all_tasks_blocked()
        mock_clock.jump(1.1 * LINGER)

        assert b"" == await peer.receive_to_end()
        assert 0 == server.server.statistics().requests
        assert {FAILED: 1} == server.reasons()


async def test_only_so_many_wait(
    protocol: str, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more, and the first of them is told at once, or ended."""
    monkeypatch.setattr(preparing, "PREPARING_MAX", 2)
    async with lingering(protocol) as server:
        peers = []
        for _ in range(3):
            mock_clock.jump(0.01)
            peers.append(await refused(server))

        await read_why(peers[0])
        assert {} == server.reasons()
        mock_clock.jump(1.1 * DELAY)
        for peer in peers[1:]:
            await read_why(peer)

        assert b"" == await peers[0].receive_to_end()
        assert {FAILED: 1} == server.reasons()
