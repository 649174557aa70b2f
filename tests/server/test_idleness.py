"""`connections.max.idle.ms` over real connections, in virtual time."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.serving import Serving, answer, serving
from support.wire import Peer, frame
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, Request, Response

IDLE = CloseReason.IDLE
LIMIT_MS = 1000
LIMIT = LIMIT_MS / 1000


async def pass_time(clock: MockClock, seconds: float) -> None:
    """Let time go by, and everything happen that it brings."""
    clock.jump(seconds)
    await wait_all_tasks_blocked()


async def requested(rig: Serving, *payloads: bytes) -> tuple[Peer, Request]:
    """A new connection that sent requests together, the first of which is with the test."""
    peer = await rig.connect()
    await peer.send_frames(*payloads)
    return peer, await rig.receive(payloads[0])


async def test_a_connection_without_requests_is_closed(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """P12, S17, S18: after the idle time, and not at it; it never became readable."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peer = await rig.connect()
        await wait_all_tasks_blocked()

        await pass_time(mock_clock, LIMIT)
        assert {} == rig.reasons()
        await pass_time(mock_clock, 0.001)

        assert {IDLE: 1} == rig.reasons()
        assert b"" == await peer.receive_to_end()
        assert 0 == rig.server.quotas.total


async def test_the_time_counts_from_the_last_use(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """S17: of the sent response, as of the received request."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peer = await rig.connect()
        await pass_time(mock_clock, 0.9 * LIMIT)
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        await pass_time(mock_clock, 0.9 * LIMIT)
        request.respond(answer(b"a"))
        assert b"a" == await peer.receive_frame()

        await pass_time(mock_clock, 0.9 * LIMIT)
        assert {} == rig.reasons()
        await pass_time(mock_clock, 0.2 * LIMIT)

        assert {IDLE: 1} == rig.reasons()


async def test_a_response_that_a_handler_took_long_for_counts_from_when_it_left(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """S17: it leaves before the loop has looked at the clock."""
    may_answer = trio.Event()

    async def handle(request: Request) -> Response:
        await may_answer.wait()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, connections_max_idle_ms=LIMIT_MS) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()
        await pass_time(mock_clock, 0.9 * LIMIT)
        may_answer.set()
        assert b"a" == await peer.receive_frame()

        await pass_time(mock_clock, 0.9 * LIMIT)

        assert {} == rig.reasons()


async def test_minus_1_keeps_connections_for_ever(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """X8."""
    async with serving(kind, connections_max_idle_ms=-1) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"a")

        await pass_time(mock_clock, 9)  # of the 10 seconds that the rig lasts

        await rig.exchange(peer, b"b")


async def test_idle_connections_expire_in_the_order_of_their_last_use(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """X8: all of them, one in each poll, the least recently used first."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peers = [await rig.connect() for _ in range(5)]
        for number in (3, 0, 4, 1, 2):
            await pass_time(mock_clock, 0.01)
            await rig.exchange(peers[number], b"a")

        await pass_time(mock_clock, 2 * LIMIT)

        assert {IDLE: 5} == rig.reasons()
        ended = [one.peer for _, one in reversed(rig.server.closed_connections.page(5))]
        order = [f"127.0.0.1:{peers[number].port}" for number in (3, 0, 4, 1, 2)]
        assert order == ended


async def test_a_connection_whose_request_is_worked_on_expires_and_its_response_is_dropped(
    kind: ReadinessKind, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """P13, P32, X11: the peer sees the end; the request is timed, and nothing of it is kept."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peer, request = await requested(rig, b"a")
        await pass_time(mock_clock, 1.1 * LIMIT)
        assert b"" == await peer.receive_to_end()
        assert {IDLE: 1} == rig.reasons()
        assert 0 == rig.server.times.requests

        request.respond(answer(b"late"))
        await wait_all_tasks_blocked()

        assert 1 == rig.server.times.requests
        assert f"dropping a response: {request.connection_id} is closed" in caplog.text
        assert 0 == rig.server.statistics().responses
        assert 0 == rig.processors[0].counts.in_flight
        await rig.exchange(await rig.connect(), b"another")


async def test_requests_after_that_one_are_never_delivered(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """P14: neither the one that came with it nor the one that waits in the socket."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peer, request = await requested(rig, b"1", b"2")
        await peer.send_frames(b"3")
        await pass_time(mock_clock, 1.1 * LIMIT)
        assert {IDLE: 1} == rig.reasons()

        request.respond(NO_OP)
        await wait_all_tasks_blocked()

        assert 0 == rig.requests.statistics().current_buffer_used
        assert 1 == rig.server.statistics().requests


async def test_requests_that_wait_to_be_read_come_before_the_end(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """S23: however far the clock jumps, five frames that were sent in time are delivered."""
    async with serving(kind, connections_max_idle_ms=LIMIT_MS) as rig:
        peer = await rig.connect()
        await wait_all_tasks_blocked()

        peer.send_now(b"".join(frame(b"%d" % number) for number in range(5)))
        mock_clock.jump(5 * LIMIT)
        for number in range(5):
            request = await rig.receive(b"%d" % number)
            assert {} == rig.reasons()
            request.respond(NO_OP)

        await pass_time(mock_clock, 1.1 * LIMIT)
        assert {IDLE: 1} == rig.reasons()
