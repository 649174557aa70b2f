"""Each fault ends its own connection, with its own reason; P60 is checked after each."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.ranges import RangedFile
from support.selecting import CountingReadiness
from support.serving import Serving, answer, serving, undisturbed
from support.wire import LOOPBACK, Peer, frame, reset
from trionet.net._channel import Channel
from trionet.net._selector import EMPTY_POLLS_BEFORE_PARK, Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.net.wire._transmission import FileRange, Send
from trionet.server import NO_OP, CloseConnection, Request, Response
from trionet.server._processor import Processor

MEGABYTE = 1024 * 1024

TLS_HELLO = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"


def only_processor(rig: Serving) -> tuple[Processor, Selector]:
    [processor] = rig.processors
    return processor, processor.selector


def counted(rig: Serving) -> CountingReadiness:
    """From here on the processor's use of its backend is counted, and can fail."""
    _, selector = only_processor(rig)
    counting = CountingReadiness(selector._steps.readiness)
    selector._steps.readiness = counting
    return counting


async def test_failing_poll_of_a_handlers_turn_ends_neither_handler_nor_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Responses that have been sent are not affected; the processor polls again by itself."""

    async def handle(request: Request) -> Response:
        if request.payload == b"second":
            counting.fail_once(OSError("no memory"))
        return answer(b"response")

    async with serving("poller", handler=handle, num_io_threads=1) as rig:
        counting = counted(rig)
        peers = [await rig.connect() for _ in range(2)]
        await wait_all_tasks_blocked()
        for _ in range(2):
            peers[0].send_now(frame(b"first"))
            peers[1].send_now(frame(b"second"))
            for peer in peers:
                assert b"response" == await peer.receive_frame()

    assert "a poll of processor 0 failed" in caplog.text


async def requested(rig: Serving, payload: bytes = b"a") -> tuple[Peer, Request]:
    """A new connection with a request that waits for its answer."""
    peer = await rig.connect()
    await peer.send_frames(payload)
    return peer, await rig.receive(payload)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff\xff\xff\xff", (1001).to_bytes(4, "big"), b"GET / HTTP/1.1\r\n\r\n", TLS_HELLO],
    ids=["negative", "one too large", "HTTP", "TLS"],
)
async def test_garbage_closes_the_connection_at_the_size(
    kind: ReadinessKind, garbage: bytes
) -> None:
    """P8, X2: before the body, without a request."""
    async with serving(kind, socket_request_max_bytes=1000) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send(garbage)

        assert b"" == await peer.receive_to_end()
        assert {CloseReason.INVALID_RECEIVE: 1} == rig.reasons()


async def test_request_of_exactly_the_largest_size_is_served(kind: ReadinessKind) -> None:
    """X3."""
    async with serving(kind, socket_request_max_bytes=1000) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(bytes(1000))
        (await rig.receive(bytes(1000))).respond(answer(b"served"))

        assert b"served" == await peer.receive_frame()
        peer.close()


async def test_each_reason_is_reached_by_its_own_fault(kind: ReadinessKind, tmp_path: Path) -> None:
    """P60: all faults at once, on eight connections of one processor."""
    short_file = RangedFile.holding(tmp_path, b"short")
    async with serving(kind) as rig, undisturbed(rig):
        reset(socket.create_connection((LOOPBACK, rig.server.endpoints[0].port)))
        closes, cut, resets, invalid = [await rig.connect() for _ in range(4)]
        requests = [await requested(rig) for _ in range(3)]
        closes.close()
        await cut.send(b"\0\0")
        cut.close()
        resets.reset()
        await invalid.send(b"\xff\xff\xff\xff")
        requests[0][1].respond(CloseConnection())
        requests[1][1].respond(Send([b"\0\0\0\x0a", FileRange(short_file, 0, 10)]))
        requests[2][1].respond(Send([]))
        await wait_all_tasks_blocked()

        expected = [
            CloseReason.REGISTER_FAILED,
            CloseReason.PEER_CLOSED,
            CloseReason.PEER_CLOSED_IN_FRAME,
            CloseReason.PEER_RESET,
            CloseReason.INVALID_RECEIVE,
            CloseReason.CLOSE_RESPONSE,
            CloseReason.SEND_FAILED,
            CloseReason.ERROR,
        ]
        assert dict.fromkeys(expected, 1) == rig.reasons()


@pytest.mark.parametrize("size", [0, 550_000, 20 * MEGABYTE])
async def test_peer_that_closes_before_its_response_leaves_nothing_in_flight(
    kind: ReadinessKind, size: int
) -> None:
    """P29, P39: whether the response goes nowhere or fails on the way."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)
        peer.close()
        await wait_all_tasks_blocked()

        request.respond(answer(bytes(size)))
        await wait_all_tasks_blocked()

        [reason] = rig.reasons()
        assert reason in (
            CloseReason.PEER_CLOSED,
            CloseReason.PEER_RESET,
            CloseReason.SEND_FAILED,
        )


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_peer_that_goes_during_its_response_fails_the_send(
    kind: ReadinessKind, how: str
) -> None:
    """P29, P31, P44: no completed Send shows, and what it had sent before is never delivered."""
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        (await rig.receive(b"1")).respond(NO_OP)
        responses = rig.server.statistics().responses
        (await rig.receive(b"2")).respond(answer(bytes(20 * MEGABYTE)))
        await peer.receive(10)
        getattr(peer, how)()
        await wait_all_tasks_blocked()

        assert {CloseReason.SEND_FAILED: 1} == rig.reasons()
        assert responses == rig.server.statistics().responses
        assert 0 == rig.requests.statistics().current_buffer_used


async def test_reset_of_a_waiting_peer_closes_it_at_once_and_drops_its_response() -> None:
    """X11: with the poller, if it had sent nothing else; a warning, and nothing is kept."""
    async with serving("poller") as rig, undisturbed(rig):
        peer, request = await requested(rig)
        peer.reset()
        await wait_all_tasks_blocked()
        assert {CloseReason.PEER_RESET: 1} == rig.reasons()

        request.respond(answer(b"too late"))
        await wait_all_tasks_blocked()

        assert {CloseReason.PEER_RESET: 1} == rig.reasons()


async def test_reset_of_a_waiting_peer_shows_with_its_response() -> None:
    """P31: with the socket backend, which sees no hang-up of a connection that it does not read."""
    async with serving("socket") as rig, undisturbed(rig):
        peer, request = await requested(rig)
        peer.reset()
        await wait_all_tasks_blocked()
        assert {} == rig.reasons()

        request.respond(answer(b"finds out"))
        await wait_all_tasks_blocked()

        assert {CloseReason.SEND_FAILED: 1} == rig.reasons()


async def test_peer_that_leaves_before_its_response_is_no_warning(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """A consumer that is closed while its Fetch waits."""
    caplog.set_level(logging.DEBUG)
    async with serving(kind) as rig, undisturbed(rig):
        for leave in (Peer.close, Peer.reset):
            peer, request = await requested(rig)
            leave(peer)
            await wait_all_tasks_blocked()
            _, selector = only_processor(rig)
            if request.channel.close_reason is None:  # the socket backend does not see it
                selector.disconnect(request.channel, CloseReason.PEER_CLOSED)
            request.respond(answer(b"too late"))
            await wait_all_tasks_blocked()

            assert f"{request.channel.id} disconnected before its response" in caplog.text
    assert [] == [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_response_that_is_dropped_because_we_closed_the_connection_is_a_warning(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """X11."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)
        _, selector = only_processor(rig)
        selector.disconnect(request.channel, CloseReason.LOCAL_CLOSE)
        assert b"" == await peer.receive_to_end()

        request.respond(answer(b"too late"))
        await wait_all_tasks_blocked()

        assert f"dropping a response: {request.channel.id} is closed" in caplog.text


async def test_nothing_is_said_where_nothing_was_to_be_sent(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """A no-op to a connection that is gone (acks=0) is no lost answer."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)
        _, selector = only_processor(rig)
        selector.disconnect(request.channel, CloseReason.LOCAL_CLOSE)
        assert b"" == await peer.receive_to_end()

        request.respond(NO_OP)
        await wait_all_tasks_blocked()

        assert not caplog.records


async def test_a_thousand_resets_of_waiting_peers_leave_the_loop_idle() -> None:
    """Counted in polls; with the poller, since the socket backend does not see them."""
    async with serving("poller") as rig, undisturbed(rig):
        peers = [await rig.connect() for _ in range(1000)]
        for peer in peers:
            await peer.send_frames(b"a")
        requests = [await rig.receive(b"a") for _ in peers]
        await wait_all_tasks_blocked()
        counting = counted(rig)

        for peer in peers:
            peer.reset()
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()

        assert {CloseReason.PEER_RESET: 1000} == rig.reasons()
        assert counting.polls <= 1001 * (2 + EMPTY_POLLS_BEFORE_PARK)
        polls = counting.polls
        await wait_all_tasks_blocked(0.005)
        assert polls == counting.polls
        for request in requests:
            request.respond(NO_OP)


@pytest.mark.parametrize("fault", ["a file that is closed", "no byte at all"])
async def test_first_of_two_responses_fails_and_the_second_goes_out(
    kind: ReadinessKind, tmp_path: Path, fault: str
) -> None:
    """P37, KAFKA-5790: both get responses in one turn, and the fault is a file's or our own."""
    closed = RangedFile.holding(tmp_path, b"x")
    closed.close()
    bad = Send([] if fault == "no byte at all" else [b"\0\0\0\1", FileRange(closed, 0, 1)])
    async with serving(kind) as rig, undisturbed(rig):
        unlucky, first = await requested(rig)
        lucky, second = await requested(rig)

        first.respond(bad)
        second.respond(answer(b"out"))

        assert b"out" == await lucky.receive_frame()
        assert await unlucky.receive_to_end() in (b"", b"\0\0\0\1")
        lucky.close()


async def test_connection_that_the_backend_has_lost_ends_alone(kind: ReadinessKind) -> None:
    """P38: a cancelled key, found out by a Send that needs it."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)
        _, selector = only_processor(rig)
        selector._steps.readiness.unregister(request.channel.fd)

        request.respond(answer(bytes(20 * MEGABYTE)))
        await peer.receive_to_end()
        await wait_all_tasks_blocked()

        assert 1 == sum(rig.reasons().values())


class Unmeasurable(bytes):
    """A frame of which no request can be made."""

    def __len__(self) -> int:
        raise ZeroDivisionError("bug")


def stage(rig: Serving, channel: Channel, payload: bytes) -> None:
    """Give a channel a frame, which the next poll returns."""
    _, selector = only_processor(rig)
    channel.staged.append(payload)
    channel.has_staged = True
    selector._steps.read_again(channel)
    selector.wakeup()


async def test_first_of_two_receives_cannot_be_handed_over(kind: ReadinessKind) -> None:
    """P48: its connection closes, the other is served."""
    async with serving(kind) as rig, undisturbed(rig):
        peers = [await rig.connect() for _ in range(2)]
        await wait_all_tasks_blocked()
        _, selector = only_processor(rig)
        own = list(selector.channels)[-2:]
        for channel, payload in zip(own, (Unmeasurable(b"a"), b"a"), strict=True):
            stage(rig, channel, payload)

        (await rig.receive(b"a")).respond(NO_OP)
        await wait_all_tasks_blocked()

        assert {CloseReason.ERROR: 1} == rig.reasons()
        for peer in peers:
            peer.close()


async def test_memory_of_a_request_that_cannot_be_handed_over_is_given_back(
    kind: ReadinessKind,
) -> None:
    async with (
        serving(kind, queued_max_request_bytes=MEGABYTE, socket_request_max_bytes=MEGABYTE) as rig,
        undisturbed(rig),
    ):
        peer = await rig.connect()
        pool = rig.server.pool
        assert pool is not None
        await wait_all_tasks_blocked()
        channel = list(only_processor(rig)[1].channels)[-1]
        channel.lease = pool.try_allocate(MEGABYTE, trio.current_time())

        stage(rig, channel, Unmeasurable(b"a"))
        assert b"" == await peer.receive_to_end()
        await wait_all_tasks_blocked()

        assert {CloseReason.ERROR: 1} == rig.reasons()
        assert 0 == pool.used


async def test_first_of_two_completed_sends_belongs_to_no_request(kind: ReadinessKind) -> None:
    """P49, X12: what completes with nothing in flight ends its channel, the other goes on."""
    async with serving(kind) as rig, undisturbed(rig):
        processor, selector = only_processor(rig)
        pairs = [await requested(rig) for _ in range(2)]
        stranger, known = [request.channel for _, request in pairs]
        for channel in (stranger, known):
            assert not selector.send(channel, Send([frame(bytes(20 * MEGABYTE))]))
        stranger.attachment.request = None
        processor.counts.in_flight -= 1

        async with trio.open_nursery() as nursery:
            for peer, _ in pairs:
                nursery.start_soon(peer.receive_frame)
        await pairs[1][0].send_frames(b"next")

        (await rig.receive(b"next")).respond(NO_OP)
        assert {CloseReason.ERROR: 1} == rig.reasons()
        assert b"" == await pairs[0][0].receive_to_end()
        pairs[1][0].close()


async def test_disconnected_channel_that_cannot_be_forgotten_does_not_hide_the_next(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P50."""
    async with serving(kind) as rig, undisturbed(rig):
        processor, selector = only_processor(rig)
        (peer, odd), (_, real) = await requested(rig), await requested(rig)
        selector.close(real.channel, CloseReason.IDLE)

        processor.process_disconnected([odd.channel, real.channel])

        assert {CloseReason.IDLE: 1} == rig.reasons()
        assert "forgetting a connection failed; the server keeps running" in caplog.text
        odd.respond(answer(b"still"))
        assert b"still" == await peer.receive_frame()
        peer.close()


async def test_poll_that_fails_once_costs_no_connection(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P51, KAFKA-5607: old connections and new ones are served, nothing is lost."""
    async with serving(kind) as rig, undisturbed(rig):
        counting = counted(rig)
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2")
        first = await rig.receive(b"1")

        counting.fail_once(OSError("no memory for events"))
        first.respond(answer(b"answer"))

        assert b"answer" == await peer.receive_frame()
        (await rig.receive(b"2")).respond(NO_OP)
        assert "a poll of processor 0 failed; the server keeps running" in caplog.text
        peer.close()


@pytest.mark.parametrize("response", ["text", 7, answer])
async def test_handler_that_returns_no_response_closes_the_connection(
    kind: ReadinessKind, response: object
) -> None:
    async def handle(request: Request) -> Response:
        return cast(Response, response if request.payload == b"a" else answer(b"b"))

    async with serving(kind, handler=handle) as rig:
        with await rig.connect() as peer, await rig.connect() as other:
            await peer.send_frames(b"a")

            assert b"" == await peer.receive_to_end()
            await other.send_frames(b"b")
            assert b"b" == await other.receive_frame()
            assert {CloseReason.HANDLER_FAILED: 1} == rig.reasons()


@pytest.mark.parametrize("response", ["text", 7, answer])
async def test_what_is_no_response_is_refused_and_the_request_still_waits_for_one(
    kind: ReadinessKind, response: object
) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)

        with pytest.raises(TypeError):
            request.respond(cast(Response, response))
        request.respond(answer(b"late"))

        assert b"late" == await peer.receive_frame()
        peer.close()


async def test_response_without_a_byte_closes_the_connection(kind: ReadinessKind) -> None:
    """Not even a size: the peer would wait for ever."""
    async with serving(kind) as rig, undisturbed(rig):
        peer, request = await requested(rig)

        request.respond(Send([]))

        assert b"" == await peer.receive_to_end()


async def test_response_that_was_given_to_another_request_closes_the_connection(
    kind: ReadinessKind,
) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        (one, first), (two, second) = await requested(rig), await requested(rig)
        send = answer(b"once")

        first.respond(send)
        assert b"once" == await one.receive_frame()
        second.respond(send)

        assert b"" == await two.receive_to_end()
        one.close()


async def test_connections_that_end_while_their_requests_wait_for_room_are_forgotten(
    kind: ReadinessKind,
) -> None:
    """The channel is full, one request is held: all are still handled, their responses dropped."""
    permits = trio.Semaphore(0)
    payloads = []

    async def handle(request: Request) -> Response:
        payloads.append(bytes(request.payload))
        await permits.acquire()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1, queued_max_requests=1) as rig:
        peers = [await rig.connect() for _ in range(4)]
        for number, peer in enumerate(peers):
            await peer.send_frames(b"%d" % number)
            await wait_all_tasks_blocked()
        for peer in peers:
            peer.reset()
        await wait_all_tasks_blocked()
        for _ in range(10):
            permits.release()

        last = await rig.connect()
        await last.send_frames(b"last")
        assert b"last" == await last.receive_frame()
        await wait_all_tasks_blocked()

        assert [b"0", b"1", b"2"] == payloads[:3]
        [processor] = rig.processors
        assert 0 == processor.counts.in_flight
        assert 1 == processor.counts.connection_count
