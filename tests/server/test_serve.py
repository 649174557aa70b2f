"""`trionet.serve()`: what a handler may respond, what its errors do, and how a server ends."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trionet
from support.ranges import RangedFile
from support.served import ANYWHERE, Rig, serving_with
from support.wire import Peer, frame, listens_on, open_sockets
from trionet.errors import LocalProtocolError
from trionet.net._channel_state import MuteState
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, CloseConnection, FileRange, Request, Send
from trionet.server._dialect import JOINED_BYTES_MAX

MEGABYTE = 1024 * 1024


async def shout(request: Request) -> bytes:
    return bytes(request.payload).upper()


async def ask(peer: Peer, payload: bytes) -> bytes:
    """One request and the payload of its answer."""
    await peer.send_frames(payload)
    return await peer.receive_frame()


# Responses.


async def test_bytes_are_the_payload_of_the_response(kind: ReadinessKind) -> None:
    async with serving_with(shout, kind) as rig:
        peer = await rig.connect()

        assert b"HELLO" == await ask(peer, b"hello")
        assert b"" == await ask(peer, b"")


@pytest.mark.parametrize("size", [0, 1, JOINED_BYTES_MAX, JOINED_BYTES_MAX + 1, 5 * MEGABYTE])
async def test_a_payload_can_be_given_back_as_it_came(kind: ReadinessKind, size: int) -> None:
    """A large one is a bytearray, which is a response as well."""

    async def echo(request: Request) -> bytes | bytearray:
        return request.payload

    payload = b"a" * size
    async with serving_with(echo, kind) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        nursery.start_soon(peer.send_frames, payload)

        assert payload == await peer.receive_frame()


async def test_a_send_is_a_whole_frame_and_may_hold_files(
    kind: ReadinessKind, tmp_path: Path
) -> None:
    file = RangedFile.holding(tmp_path, b"0123456789")

    async def some_of_the_file(request: Request) -> Send:
        part = FileRange(file, 2, 5)
        return Send([(len(part) + 2).to_bytes(4, "big"), b"<", part, b">"])

    async with serving_with(some_of_the_file, kind) as rig:
        peer = await rig.connect()

        assert b"<23456>" == await ask(peer, b"?")


async def test_none_is_no_response_and_reading_goes_on(kind: ReadinessKind) -> None:
    """P10: at once, so that what was sent together is handled one after the other."""
    seen = []

    async def only_questions(request: Request) -> bytes | None:
        seen.append(bytes(request.payload))
        return b"yes" if request.payload == b"really?" else None

    async with serving_with(only_questions, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"one", b"two", b"really?")

        assert b"yes" == await peer.receive_frame()
        assert [b"one", b"two", b"really?"] == seen
        assert 3 == rig.served.statistics().requests


@pytest.mark.parametrize(
    ("answer", "reason", "detail"),
    [
        (CloseConnection(), CloseReason.CLOSE_RESPONSE, ""),
        (
            CloseConnection(CloseReason.INVALID_REQUEST, "no such word"),
            CloseReason.INVALID_REQUEST,
            "no such word",
        ),
    ],
)
async def test_close_connection_closes_it_with_its_reason(
    kind: ReadinessKind, answer: CloseConnection, reason: CloseReason, detail: str
) -> None:
    async def close(request: Request) -> CloseConnection:
        return answer

    async with serving_with(close, kind) as rig:
        peer, other = await rig.connect(), await rig.connect()
        await peer.send_frames(b"one", b"two")

        assert b"" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert (reason, detail, 1) == (closed.reason, closed.detail, closed.requests)
        assert 1 == rig.served.statistics().connections
        other.close()


async def test_responses_come_in_the_order_of_the_requests(kind: ReadinessKind) -> None:
    """X10: the next request of a connection is handled when the response before it has left."""
    at_work = 0

    async def one_at_a_time(request: Request) -> bytes:
        nonlocal at_work
        at_work += 1
        assert 1 == at_work
        for _ in range(5 - int(request.payload)):
            await trio.lowlevel.checkpoint()
        at_work -= 1
        return bytes(request.payload)

    async with serving_with(one_at_a_time, kind, num_io_threads=5) as rig:
        peer = await rig.connect()
        await peer.send_frames(*(b"%d" % number for number in range(5)))

        assert [b"0", b"1", b"2", b"3", b"4"] == [await peer.receive_frame() for _ in range(5)]


async def test_a_handler_that_waits_holds_up_only_its_own_connection(
    kind: ReadinessKind,
) -> None:
    may_go_on = trio.Event()

    async def handle(request: Request) -> bytes:
        if request.payload == b"wait":
            await may_go_on.wait()
        return bytes(request.payload)

    async with serving_with(handle, kind) as rig:
        waiting, other = await rig.connect(), await rig.connect()
        await waiting.send_frames(b"wait", b"behind it")
        await wait_all_tasks_blocked()

        assert b"meanwhile" == await ask(other, b"meanwhile")
        assert 2 == rig.served.statistics().requests
        may_go_on.set()
        assert b"wait" == await waiting.receive_frame()
        assert b"behind it" == await waiting.receive_frame()


# Errors.


async def test_an_exception_closes_its_connection_and_no_other(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async def divide(request: Request) -> bytes:
        return b"%d" % (12 // int(request.payload))

    async with serving_with(divide, kind) as rig:
        peer, other = await rig.connect(), await rig.connect()
        assert b"4" == await ask(other, b"3")

        await peer.send_frames(b"0", b"1")

        assert b"" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert CloseReason.HANDLER_FAILED is closed.reason
        assert "ZeroDivisionError('integer division or modulo by zero')" == closed.detail
        assert 1 == closed.requests
        assert {CloseReason.HANDLER_FAILED: 1} == rig.reasons()
        assert b"6" == await ask(other, b"2")
    [record] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    begin = "[SocketServer broker 0] unexpected error while handling a request from 127.0.0.1:"
    assert record.getMessage().startswith(begin)
    assert record.exc_info is not None
    assert ZeroDivisionError is record.exc_info[0]


@pytest.mark.parametrize(
    "wrong",
    ["text", 5, memoryview(b"abc"), [b"chunks"], NO_OP, ...],
    ids=lambda wrong: type(wrong).__name__,
)
async def test_another_response_is_an_error_that_says_which_are_allowed(
    kind: ReadinessKind, wrong: Any
) -> None:
    async def answer_wrongly(request: Request) -> Any:
        return wrong

    async with serving_with(answer_wrongly, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")

        assert b"" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert CloseReason.HANDLER_FAILED is closed.reason
        assert type(wrong).__name__ in closed.detail
        assert "allowed: bytes, bytearray, Send, CloseConnection or None" in closed.detail


async def test_a_response_to_a_peer_that_has_gone_is_dropped(kind: ReadinessKind) -> None:
    may_go_on = trio.Event()

    async def wait(request: Request) -> bytes:
        await may_go_on.wait()
        return b"too late"

    async with serving_with(wait, kind) as rig:
        peer, other = await rig.connect(), await rig.connect()
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()
        peer.reset()
        await wait_all_tasks_blocked()
        may_go_on.set()

        assert b"too late" == await ask(other, b"b")
        statistics = rig.served.statistics()
        assert (1, 0) == (statistics.connections, statistics.response_queue_size)


async def test_what_is_no_exception_ends_the_server_and_leaves_it_as_it_is(
    kind: ReadinessKind,
) -> None:
    """A KeyboardInterrupt, for one; and the nursery inside does not show."""

    class Emergency(BaseException):
        pass

    async def pull_the_plug(request: Request) -> None:
        raise Emergency

    raised: tuple[BaseException, ...] = ()
    before = open_sockets()
    try:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                served = await nursery.start(trionet.serve, pull_the_plug, [ANYWHERE])
                with await Peer.connect(served[0].port) as peer:
                    await peer.send_frames(b"a")
                    await peer.receive_to_end()
    except* Emergency as group:  # that of the nursery here, with nothing in between
        raised = group.exceptions

    assert [Emergency] == [type(error) for error in raised]
    assert before == open_sockets()


# Throttling.


class Throttled:
    """A handler that throttles, and what it kept."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> bytes | None:
        self.requests.append(request)
        if request.payload == b"throttle":
            request.start_throttling()
        elif request.payload == b"and back":
            request.start_throttling()
            request.end_throttling()
        return self.answer

    def mute_state(self) -> MuteState:
        state: MuteState = self.requests[0].channel.muting.state
        return state


async def test_a_throttled_connection_gets_its_response_and_is_not_read(
    kind: ReadinessKind,
) -> None:
    """P16: until the throttle ends; what it sent meanwhile is handled then."""
    handler = Throttled(b"answer")
    async with serving_with(handler, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"throttle", b"staged")
        assert b"answer" == await peer.receive_frame()
        await peer.send_frames(b"in the socket")
        await wait_all_tasks_blocked()
        assert 1 == len(handler.requests)
        assert MuteState.MUTED_AND_THROTTLED is handler.mute_state()

        handler.requests[0].end_throttling()

        assert b"answer" == await peer.receive_frame()
        assert b"answer" == await peer.receive_frame()
        assert [b"staged", b"in the socket"] == [bytes(r.payload) for r in handler.requests[1:]]
        assert MuteState.NOT_MUTED is handler.mute_state()


async def test_a_throttled_connection_without_a_response_is_not_read_either(
    kind: ReadinessKind,
) -> None:
    """P18."""
    handler = Throttled(None)
    async with serving_with(handler, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"throttle", b"staged")
        await wait_all_tasks_blocked()
        assert 1 == len(handler.requests)
        assert MuteState.MUTED_AND_THROTTLED is handler.mute_state()

        handler.requests[0].end_throttling()
        await wait_all_tasks_blocked()

        assert 2 == len(handler.requests)


@pytest.mark.parametrize("answer", [b"answer", None])
async def test_a_throttle_that_is_over_before_the_response_changes_nothing(
    kind: ReadinessKind, answer: bytes | None
) -> None:
    """P17, P18."""
    handler = Throttled(answer)
    async with serving_with(handler, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"and back", b"next")
        await wait_all_tasks_blocked()

        assert 2 == len(handler.requests)
        assert MuteState.NOT_MUTED is handler.mute_state()


async def test_throttling_a_request_that_has_its_response_is_an_error(kind: ReadinessKind) -> None:
    handler = Throttled(b"answer")
    async with serving_with(handler, kind) as rig:
        peer = await rig.connect()
        await ask(peer, b"a")
        await wait_all_tasks_blocked()

        with pytest.raises(LocalProtocolError, match="cannot be throttled: its response"):
            handler.requests[0].start_throttling()
        with pytest.raises(LocalProtocolError, match="is not throttled"):
            handler.requests[0].end_throttling()


async def test_throttling_a_connection_that_has_gone_does_nothing(kind: ReadinessKind) -> None:
    """Nobody can know that it has, so it is no error."""
    may_go_on = trio.Event()
    done = trio.Event()

    async def throttle_late(request: Request) -> bytes:
        await may_go_on.wait()
        request.start_throttling()
        request.end_throttling()
        done.set()
        return b"answer"

    async with serving_with(throttle_late, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()
        await rig.served.server.remove_listener("PLAINTEXT")
        may_go_on.set()

        await done.wait()


async def test_a_throttled_connection_is_closed_by_a_stop(kind: ReadinessKind) -> None:
    handler = Throttled(b"answer")
    async with serving_with(handler, kind) as rig:
        peer = await rig.connect()
        await ask(peer, b"throttle")

        await rig.served.stop()

        assert b"" == await peer.receive_to_end()
        handler.requests[0].end_throttling()


# The end.


async def test_cancelling_ends_handlers_and_connections_at_once(kind: ReadinessKind) -> None:
    ended = []

    async def wait(request: Request) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            ended.append(bytes(request.payload))
            raise

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            served: trionet.server.Served = await nursery.start(trionet.serve, wait, [ANYWHERE])
            with await Peer.connect(served[0].port) as peer:
                await peer.send_frames(b"a")
                await wait_all_tasks_blocked()

                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    assert b"" == await peer.receive_to_end()

    assert [b"a"] == ended
    assert {CloseReason.SERVER_SHUTDOWN: 1} == served.statistics().closed
    assert not listens_on(served[0].port)


async def stopping(rig: Rig, nursery: trio.Nursery) -> None:
    """Begin a graceful stop, and let it come to where it waits."""
    nursery.start_soon(rig.served.stop)
    await wait_all_tasks_blocked()


def held_up() -> tuple[trio.Event, Callable[[Request], Awaitable[bytes]]]:
    """A handler that waits for the event before it responds."""
    may_go_on = trio.Event()

    async def handle(request: Request) -> bytes:
        await may_go_on.wait()
        return b"answer"

    return may_go_on, handle


async def test_stop_lets_responses_leave_and_then_serve_returns(kind: ReadinessKind) -> None:
    may_go_on, handle = held_up()
    async with serving_with(handle, kind) as rig, trio.open_nursery() as nursery:
        peer, idle = await rig.connect(), await rig.connect()
        await peer.send_frames(b"a", b"never read")
        await stopping(rig, nursery)
        assert not listens_on(rig.served[0].port)
        assert rig.is_serving()

        may_go_on.set()

        assert frame(b"answer") == await peer.receive_to_end()
        assert b"" == await idle.receive_to_end()
        await wait_all_tasks_blocked()
        assert not rig.is_serving()
        assert {CloseReason.SERVER_SHUTDOWN: 2} == rig.reasons()


async def test_a_stop_goes_on_when_the_wait_for_it_is_cancelled(kind: ReadinessKind) -> None:
    may_go_on, handle = held_up()
    async with serving_with(handle, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await rig.served.stop()

        may_go_on.set()

        assert frame(b"answer") == await peer.receive_to_end()
        await wait_all_tasks_blocked()
        assert not rig.is_serving()


async def test_a_stopped_server_can_be_asked_what_it_did(kind: ReadinessKind) -> None:
    async with serving_with(shout, kind) as rig:
        peer = await rig.connect()
        for _ in range(3):
            await ask(peer, b"hello")
        await rig.served.stop()
        await rig.served.stop()

        statistics = rig.served.statistics()
    assert (0, 1) == (statistics.connections, statistics.connections_created)
    assert (3, 3) == (statistics.requests, statistics.responses)
    assert (27, 27) == (statistics.bytes_received, statistics.bytes_sent)
    assert {CloseReason.SERVER_SHUTDOWN: 1} == statistics.closed
    assert (0, 0, 0) == (
        statistics.request_queue_size,
        statistics.response_queue_size,
        statistics.request_queue_full,
    )


@pytest.mark.parametrize("where", ["the handler", "a task that it waits for"])
async def test_a_handler_cannot_wait_for_the_stop_that_waits_for_it(
    kind: ReadinessKind, where: str
) -> None:
    async def stop(request: Request) -> bytes:
        if where == "the handler":
            await rig.served.stop()
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rig.served.stop)
        return b"answer"

    async with serving_with(stop, kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")

        assert b"" == await peer.receive_to_end()
        closed = await rig.last_closed()
        assert CloseReason.HANDLER_FAILED is closed.reason
        assert "stop() was called in a handler, but waits for the responses" in closed.detail
        assert rig.is_serving()


async def test_nor_can_one_wait_for_a_stop_that_has_begun(kind: ReadinessKind) -> None:
    may_go_on = trio.Event()

    async def stop(request: Request) -> bytes:
        await may_go_on.wait()
        await rig.served.stop()
        return b"answer"

    async with serving_with(stop, kind) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await stopping(rig, nursery)

        may_go_on.set()

        assert b"" == await peer.receive_to_end()
        await wait_all_tasks_blocked()
        assert {CloseReason.HANDLER_FAILED: 1} == rig.reasons()
        assert not rig.is_serving()


async def test_a_handler_may_start_a_task_that_stops_the_server(kind: ReadinessKind) -> None:
    async with trio.open_nursery() as nursery:

        async def stop(request: Request) -> bytes:
            nursery.start_soon(rig.served.stop)
            return b"answer"

        async with serving_with(stop, kind) as rig:
            peer = await rig.connect()
            await peer.send_frames(b"a")

            assert frame(b"answer") == await peer.receive_to_end()
            await wait_all_tasks_blocked()
            assert not rig.is_serving()
