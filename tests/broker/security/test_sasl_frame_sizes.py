"""``sasl.server.max.receive.size``: the largest frame of who is not known, or not any more."""

from __future__ import annotations

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from support.sasl import handshake, token
from support.sasl_rig import ALICE, DELAY, ask, authenticating
from support.serving import answer
from support.wire import frame
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import UNLIMITED


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def protocol(request: pytest.FixtureRequest) -> str:
    param: str = request.param
    return param


@pytest.mark.parametrize("after_handshake", [False, True])
async def test_the_largest_frame_before_authentication(
    protocol: str, after_handshake: bool, mock_clock: MockClock
) -> None:
    """A5: a normal exchange fits in 1,024 bytes, a larger frame ends it; later ones are free."""
    async with authenticating(protocol, frame_bytes_max=1024) as rig:
        peer = await rig.authenticated()
        await peer.send_frames(bytes(100_000))
        (await rig.serving.receive(bytes(100_000))).respond(answer(b"large"))
        assert b"large" == await peer.receive_frame()

        other = await rig.connect()
        if after_handshake:
            await ask(other, handshake("PLAIN"))
            await other.send_frames(token(bytes(1100)))
        else:
            await other.send_frames(handshake("PLAIN" * 250))
        await wait_all_tasks_blocked()
        mock_clock.jump(1.1 * DELAY)

        assert b"" == await other.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.serving.reasons()
        assert 1 == rig.counters.authentication_failures
        await rig.is_served(peer)


@pytest.mark.parametrize("comes_at_once", [False, True])
async def test_the_largest_frame_while_a_client_authenticates_again(
    protocol: str, comes_at_once: bool, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka: SaslServerAuthenticator limits those frames, too; the log names the setting."""
    caplog.set_level("DEBUG")
    too_large = token(bytes(1100))
    async with authenticating(protocol, frame_bytes_max=1024, session_ms={"PLAIN": 60_000}) as rig:
        peer = await rig.authenticated()
        await rig.is_served(peer)

        if comes_at_once:
            await peer.send_frames(handshake("PLAIN"), too_large)
            await peer.receive_frame()
        else:
            await ask(peer, handshake("PLAIN"))
            await peer.send(frame(too_large)[:4])  # before a byte of it is there
        await wait_all_tasks_blocked()
        mock_clock.jump(1.1 * DELAY)

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.serving.reasons()
        assert 1 == rig.counters.reauthentication_failures
        assert 0 == rig.counters.authentication_failures
        assert "larger than 1024, the limit that sasl.server.max.receive.size sets" in caplog.text
        await rig.is_well()


async def test_the_frames_of_a_client_that_authenticated_again_are_free(protocol: str) -> None:
    async with authenticating(protocol, frame_bytes_max=1024, session_ms={"PLAIN": 60_000}) as rig:
        peer = await rig.authenticated()
        await ask(peer, handshake("PLAIN"))
        await ask(peer, token(ALICE))

        await peer.send_frames(bytes(100_000))

        (await rig.serving.receive(bytes(100_000))).respond(answer(b"large"))
        assert b"large" == await peer.receive_frame()


async def test_without_a_limit_frames_before_authentication_are_as_large_as_requests(
    protocol: str,
) -> None:
    """NetworkReceive.UNLIMITED; also of a client that authenticates again."""
    limits = {"PLAIN": 60_000}
    async with authenticating(protocol, frame_bytes_max=UNLIMITED, session_ms=limits) as rig:
        peer = await rig.authenticated()

        await ask(peer, handshake("PLAIN"))
        await ask(peer, token(ALICE))
        await rig.is_served(peer)
