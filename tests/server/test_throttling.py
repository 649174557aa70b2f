"""Requests of clients that exceed a quota: answered at once, and not read for a while (KIP-219)."""

from __future__ import annotations

from time import perf_counter_ns

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from support.serving import Serving, answer, serving, undisturbed
from support.tls import server_context
from support.wire import Peer, frame
from trionet.errors import LocalProtocolError
from trionet.metrics._request_times import THROTTLE, TOTAL
from trionet.net._channel_state import MuteState
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, Request, Response
from trionet.server._channel_builder import PLAINTEXT, ListenerSecurity


async def throttled(rig: Serving) -> tuple[Peer, Request]:
    """A new connection that is throttled because of its first request; a second one follows."""
    peer = await rig.connect()
    await peer.send_frames(b"1", b"2")
    request = await rig.receive(b"1")
    request.start_throttling()
    return peer, request


def state_of(request: Request) -> MuteState:
    state: MuteState = request.channel.muting.state
    return state


async def is_silent(rig: Serving) -> bool:
    await wait_all_tasks_blocked(0.001)
    return not rig.requests.statistics().current_buffer_used


async def test_a_response_leaves_at_once_and_the_channel_stays_throttled(
    kind: ReadinessKind,
) -> None:
    """P16: the next request is read when the throttle is over."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await throttled(rig)
        assert MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING is state_of(request)

        request.respond(answer(b"one"))

        assert b"one" == await peer.receive_frame()
        assert await is_silent(rig)
        assert MuteState.MUTED_AND_THROTTLED is state_of(request)
        request.end_throttling()
        (await rig.receive(b"2")).respond(answer(b"two"))
        assert b"two" == await peer.receive_frame()
        assert MuteState.NOT_MUTED is state_of(request)
        peer.close()


async def test_no_response_leaves_the_channel_throttled(kind: ReadinessKind) -> None:
    """P18: as P16."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await throttled(rig)

        request.respond(NO_OP)

        assert await is_silent(rig)
        assert MuteState.MUTED_AND_THROTTLED is state_of(request)
        request.end_throttling()
        (await rig.receive(b"2")).respond(NO_OP)
        await wait_all_tasks_blocked()
        assert MuteState.NOT_MUTED is state_of(request)
        peer.close()


@pytest.mark.parametrize("response", [answer(b"one"), NO_OP], ids=["an answer", "none"])
async def test_a_response_after_the_throttle_mutes_nothing(
    kind: ReadinessKind, response: Response
) -> None:
    """P17, P18: it is the response that lets the next request through."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await throttled(rig)
        request.end_throttling()
        assert await is_silent(rig)
        assert MuteState.MUTED_AND_RESPONSE_PENDING is state_of(request)

        request.respond(NO_OP if response is NO_OP else answer(b"one"))

        following = await rig.receive(b"2")
        assert MuteState.MUTED_AND_RESPONSE_PENDING is state_of(following)
        following.respond(NO_OP)
        await wait_all_tasks_blocked()
        assert MuteState.NOT_MUTED is state_of(request)
        peer.close()


async def test_a_throttle_is_timed_from_its_begin_to_its_end(kind: ReadinessKind) -> None:
    """KAFKA-9652: it is measured, not made of other times; nothing of it is in the total."""
    async with serving(kind) as rig:
        peer, request = await throttled(rig)
        request.respond(answer(b"one"))
        assert b"one" == await peer.receive_frame()
        assert await is_silent(rig)
        times = rig.server.times
        total = times.sum_ns(TOTAL)
        began = perf_counter_ns()
        assert await is_silent(rig)
        at_least = perf_counter_ns() - began
        assert 0 == times.sum_ns(THROTTLE)

        request.end_throttling()

        assert at_least < times.sum_ns(THROTTLE)
        assert (1, total) == (times.requests, times.sum_ns(TOTAL))


async def test_a_request_that_comes_during_the_throttle_stays_in_the_socket(
    kind: ReadinessKind,
) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1")
        request = await rig.receive(b"1")
        request.start_throttling()
        request.respond(NO_OP)
        received = rig.server.statistics().bytes_received
        await peer.send_frames(b"2")

        assert await is_silent(rig)
        assert received == rig.server.statistics().bytes_received

        request.end_throttling()
        (await rig.receive(b"2")).respond(NO_OP)
        peer.close()


async def test_a_throttle_of_a_connection_that_is_gone_ends_without_a_word(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await throttled(rig)
        request.respond(answer(bytes(20 * 1024 * 1024)))
        await peer.receive(10)
        peer.reset()
        await wait_all_tasks_blocked()
        assert {CloseReason.SEND_FAILED: 1} == rig.reasons()

        request.end_throttling()

        assert not caplog.records


async def test_a_throttled_connection_expires_like_any_other(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """P13: a throttle is no use of a connection."""
    async with serving(kind, connections_max_idle_ms=1000) as rig:
        peer, request = await throttled(rig)
        request.respond(answer(b"one"))
        assert b"one" == await peer.receive_frame()

        mock_clock.jump(1.1)

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.IDLE: 1} == rig.reasons()
        request.end_throttling()
        assert await is_silent(rig)


async def test_a_stop_does_not_wait_for_a_throttle(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer, request = await throttled(rig)
        request.respond(answer(b"one"))

        await rig.server.stop()

        assert frame(b"one") == await peer.receive_to_end()


async def test_throttles_are_not_nested_and_end_once(kind: ReadinessKind) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await throttled(rig)
        with pytest.raises(LocalProtocolError, match="THROTTLE_STARTED is not valid"):
            request.start_throttling()
        request.end_throttling()
        with pytest.raises(LocalProtocolError, match="is not throttled"):
            request.end_throttling()

        request.respond(NO_OP)
        following = await rig.receive(b"2")
        with pytest.raises(LocalProtocolError, match="cannot be throttled: its response"):
            request.start_throttling()
        following.respond(NO_OP)
        peer.close()


@pytest.mark.parametrize("has_tls", [False, True], ids=["plaintext", "TLS"])
@pytest.mark.parametrize("was_throttled", [False, True], ids=["never throttled", "ended"])
async def test_an_earlier_request_cannot_end_the_throttle_of_a_later_one(
    kind: ReadinessKind, was_throttled: bool, has_tls: bool
) -> None:
    context = server_context()
    security = ListenerSecurity(tls_context=lambda: context) if has_tls else PLAINTEXT
    async with serving(kind, security=security) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        earlier = await rig.receive(b"1")
        if was_throttled:
            earlier.start_throttling()
            earlier.end_throttling()
        earlier.respond(NO_OP)
        later = await rig.receive(b"2")
        later.start_throttling()
        later.respond(NO_OP)
        assert await is_silent(rig)

        with pytest.raises(LocalProtocolError, match="is not throttled"):
            earlier.end_throttling()

        assert await is_silent(rig)
        assert MuteState.MUTED_AND_THROTTLED is state_of(later)
        later.end_throttling()
        (await rig.receive(b"3")).respond(NO_OP)
        peer.close()
