"""The handler tasks: what a handler may do wrong, and how requests are shared out."""

from __future__ import annotations

import time
from collections import Counter

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import answer, echo, serving
from support.wire import frame, open_sockets
from trionet.metrics._request_times import LOCAL, now_ns
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, Request, Response
from trionet.server._handler_pool import REQUESTS_PER_WAKEUP_MAX


@pytest.mark.slow
@pytest.mark.parametrize("handlers", [1, 2, 8])
async def test_more_requests_than_one_wake_up_serves_are_all_served(
    kind: ReadinessKind, handlers: int
) -> None:
    """All of them come in one turn of the loop, and no handler ever waits for anything."""
    count = 3 * REQUESTS_PER_WAKEUP_MAX
    async with serving(kind, num_io_threads=handlers) as rig:
        peers = [await rig.connect() for _ in range(count)]
        await wait_all_tasks_blocked()
        for peer in peers:
            peer.send_now(frame(b"x"))

        for _ in peers:
            (await rig.receive(b"x")).respond(NO_OP)


async def test_handler_takes_many_requests_in_one_pass_of_the_scheduler(
    kind: ReadinessKind,
) -> None:
    """A pass costs ten times as much as taking a request."""
    passes = 0
    seen: Counter[int] = Counter()
    gate, all_handled = trio.Event(), trio.Event()

    async def count() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async def handle(request: Request) -> Response:
        if request.payload == b"first":
            await gate.wait()
        seen[passes] += 1
        if seen.total() == REQUESTS_PER_WAKEUP_MAX + 10:
            all_handled.set()
        return NO_OP

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        rig.server.request_channel.ns_per_wakeup_max = 2**62  # however slow this machine is
        first, *peers = [await rig.connect() for _ in range(REQUESTS_PER_WAKEUP_MAX + 10)]
        await first.send_frames(b"first")
        await wait_all_tasks_blocked()
        for peer in peers:
            peer.send_now(frame(b"x"))
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            gate.set()
            await all_handled.wait()
            nursery.cancel_scope.cancel()

    # The counting task may run before or after the handler in a pass: two passes can look like one.
    assert max(seen.values()) >= REQUESTS_PER_WAKEUP_MAX


async def test_handler_continues_with_what_arrived_while_it_handled_several_requests() -> None:
    """A pass of the scheduler between the two would cost as much as three small requests."""
    clock = 0
    seen: dict[bytes, int] = {}

    async def count() -> None:
        nonlocal clock
        while True:
            await trio.lowlevel.checkpoint()
            clock += 1

    async def handle(request: Request) -> Response:
        seen[bytes(request.payload)] = clock
        if len(seen) == 2:
            later.send_now(frame(b"later"))
        return answer(b"response")

    # The epoll is polled at once; with a trio wait for each socket it takes a pass to see data.
    async with serving("poller", handler=handle, num_io_threads=1) as rig:
        rig.server.request_channel.ns_per_wakeup_max = 2**62  # however slow this machine is
        later, *peers = [await rig.connect() for _ in range(3)]
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            for number, peer in enumerate(peers):
                peer.send_now(frame(b"%d" % number))
            for peer in [*peers, later]:
                assert b"response" == await peer.receive_frame()
            nursery.cancel_scope.cancel()

    assert seen[b"later"] == seen[b"1"]


async def test_requests_that_a_held_up_handler_has_read_go_to_another(kind: ReadinessKind) -> None:
    """Its processor may be parked, and the sockets have nothing more to report."""

    async def handle(request: Request) -> Response:
        if request.payload == b"blocks":
            await trio.sleep_forever()
        elif request.payload == b"second":
            for peer, payload in zip(late, [b"blocks", b"waits"], strict=True):
                peer.send_now(frame(payload))
        return answer(b"response")

    async with serving(kind, handler=handle, num_io_threads=2) as rig:
        first, second, *late = [await rig.connect() for _ in range(4)]
        await wait_all_tasks_blocked()
        first.send_now(frame(b"first"))
        second.send_now(frame(b"second"))

        for peer in (first, second, late[1]):
            assert b"response" == await peer.receive_frame()


async def test_others_have_their_turn_between_requests_that_take_long(
    kind: ReadinessKind,
) -> None:
    """However many wait: a handler goes on for two milliseconds after a wake-up."""
    passes = 0
    seen: set[int] = set()
    left = 20
    all_handled = trio.Event()

    async def handle(request: Request) -> Response:
        nonlocal left
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass
        seen.add(passes)
        left -= 1
        if not left:
            all_handled.set()
        return NO_OP

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(left)]
        await wait_all_tasks_blocked()
        for peer in peers:
            peer.send_now(frame(b"x"))
        while not all_handled.is_set():
            await trio.lowlevel.checkpoint()
            passes += 1

    assert len(seen) >= 3


async def test_handler_that_is_held_up_keeps_no_other_request_waiting(
    kind: ReadinessKind,
) -> None:
    """Requests that came together with the one that it waits with included."""

    async def handle(request: Request) -> Response:
        if request.payload == b"waits":
            await trio.sleep_forever()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=2) as rig:
        peers = [await rig.connect() for _ in range(20)]
        await wait_all_tasks_blocked()
        peers[0].send_now(frame(b"waits"))
        for peer in peers[1:]:
            peer.send_now(frame(b"a"))

        for peer in peers[1:]:
            assert b"a" == await peer.receive_frame()


async def test_handler_that_is_kept_busy_takes_the_next_request_without_being_woken(
    kind: ReadinessKind,
) -> None:
    """It looks into its batch a few times more before it waits for another."""
    tasks: list[str] = []

    async def handle(request: Request) -> Response:
        tasks.append(trio.lowlevel.current_task().name)
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=8) as rig:
        peer = await rig.connect()
        await peer.send_frames(*[b"x"] * 50)
        for _ in range(50):
            assert b"x" == await peer.receive_frame()

    assert 50 == len(tasks)
    assert 1 == len(set(tasks))


async def test_handlers_without_requests_wait_in_the_channel(kind: ReadinessKind) -> None:
    async with serving(kind, handler=echo, num_io_threads=3) as rig:
        peer = await rig.connect()
        for _ in range(5):
            await peer.send_frames(b"x")
            assert b"x" == await peer.receive_frame()
        await wait_all_tasks_blocked()

        channel = rig.server.request_channel
        assert 3 == channel.idle_handlers == channel.incoming.statistics().tasks_waiting_receive


async def test_responses_of_a_handler_that_is_held_up_leave_without_it(
    kind: ReadinessKind,
) -> None:
    """It responds to the first of two requests that came together, and waits with the second."""
    handled = []

    async def handle(request: Request) -> Response:
        handled.append(bytes(request.payload))
        if len(handled) == 2:
            await trio.sleep_forever()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(2)]
        await wait_all_tasks_blocked()
        for number, peer in enumerate(peers):
            peer.send_now(frame(b"%d" % number))
        await wait_all_tasks_blocked()

        assert handled[0] == await peers[int(handled[0])].receive_frame()


async def test_request_staged_after_one_with_a_response_is_handled_without_another_event(
    kind: ReadinessKind,
) -> None:
    """The handler sends the response itself, while the loop is parked: that wakes the loop."""

    async def handle(request: Request) -> Response:
        await wait_all_tasks_blocked()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        peer = await rig.connect()
        payloads = [b"%d" % number for number in range(5)]
        peer.send_now(b"".join(map(frame, payloads)))

        assert payloads == [await peer.receive_frame() for _ in payloads]


def is_quick(request: Request) -> bool:
    return request.payload != b"waits"


def is_in_a_processor() -> bool:
    return "network-thread" in trio.lowlevel.current_task().name


async def test_lone_request_that_needs_no_wait_gets_a_response_in_the_turn_that_brought_it(
    kind: ReadinessKind,
) -> None:
    """A handler would take a pass of the scheduler more."""
    places = []

    async def handle(request: Request) -> Response:
        places.append(is_in_a_processor())
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, never_waits=is_quick) as rig:
        peer = await rig.connect()
        for payload in (b"quick", b"waits", b"quick"):
            await peer.send_frames(payload)
            assert payload == await peer.receive_frame()

    assert [True, False, True] == places


async def test_requests_that_came_together_are_for_a_handler(kind: ReadinessKind) -> None:
    """One pass of the scheduler is for all of them, and others have their turn at its bound."""
    places = []

    async def handle(request: Request) -> Response:
        places.append(is_in_a_processor())
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, never_waits=is_quick) as rig:
        peers = [await rig.connect() for _ in range(10)]
        await wait_all_tasks_blocked()
        for peer in peers:
            peer.send_now(frame(b"quick"))
        for peer in peers:
            assert b"quick" == await peer.receive_frame()

    assert [False] * 10 == places


async def test_pipelined_requests_that_need_no_wait_get_responses_in_their_order(
    kind: ReadinessKind,
) -> None:
    async def handle(request: Request) -> Response:
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, never_waits=is_quick) as rig:
        peer = await rig.connect()
        payloads = [b"waits" if number % 3 == 2 else b"%d" % number for number in range(50)]
        peer.send_now(b"".join(map(frame, payloads)))

        assert payloads == [await peer.receive_frame() for _ in payloads]


async def test_requests_that_need_no_wait_are_not_handled_beside_num_io_threads_others(
    kind: ReadinessKind,
) -> None:
    gate = trio.Event()
    handled = []

    async def handle(request: Request) -> Response:
        handled.append(bytes(request.payload))
        if request.payload == b"waits":
            await gate.wait()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, never_waits=is_quick, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(2)]
        await peers[0].send_frames(b"waits")
        await wait_all_tasks_blocked()
        await peers[1].send_frames(b"quick")
        await wait_all_tasks_blocked()
        assert [b"waits"] == handled

        gate.set()

        assert b"quick" == await peers[1].receive_frame()


async def test_request_that_may_need_a_wait_is_for_a_handler(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """Only cancellation leaves the loop of a processor (design 3.2)."""
    places = []

    async def handle(request: Request) -> Response:
        places.append(is_in_a_processor())
        return answer(bytes(request.payload))

    def fails(request: Request) -> bool:
        raise ZeroDivisionError("bug")

    async with serving(kind, handler=handle, never_waits=fails) as rig:
        peer = await rig.connect()
        for payload in (b"one", b"two"):
            await peer.send_frames(payload)
            assert payload == await peer.receive_frame()

    assert [False, False] == places
    assert "could not determine" in caplog.text


async def test_processor_handles_only_the_request_that_was_alone() -> None:
    """The responses of a held-up handler, sent with its own, bring requests that may wait."""
    handled: list[bytes] = []
    by_then: list[bytes] = []

    async def handle(request: Request) -> Response:
        handled.append(bytes(request.payload))
        if request.payload == b"waits":
            await meanwhile()
        return answer(bytes(request.payload))

    async def meanwhile() -> None:
        for peer in busy:
            peer.send_now(frame(b"next"))
        alone.send_now(frame(b"alone"))
        other = rig.processors[1]
        other.process_completed_receives(other.selector.poll_now(1).completed_receives)
        await other.serve_lone_request(is_quick)
        by_then.extend(handled)

    async with serving("poller", handler=handle, listeners=2, num_io_threads=2) as rig:
        rig.server.request_channel.ns_per_wakeup_max = 2**62  # however slow this machine is
        peers = [await rig.connect() for _ in range(3)]
        alone = await rig.connect(1)
        await wait_all_tasks_blocked()
        for peer, payload in zip(peers, (b"first", b"second", b"waits"), strict=True):
            peer.send_now(frame(payload))
        busy = peers[:2]
        for peer in busy:
            await peer.receive_frame()
            assert b"next" == await peer.receive_frame()

    assert [b"first", b"second", b"waits", b"alone"] == by_then


async def test_handler_that_raises_in_a_processor_closes_its_connection_only(
    kind: ReadinessKind,
) -> None:
    async def handle(request: Request) -> Response:
        if request.payload == b"raise":
            raise ZeroDivisionError("bug")
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, never_waits=is_quick) as rig:
        other = await rig.connect()
        peer = await rig.connect()
        await peer.send_frames(b"raise")
        assert b"" == await peer.receive_to_end()
        await other.send_frames(b"fine")

        assert b"fine" == await other.receive_frame()
        assert {CloseReason.HANDLER_FAILED: 1} == rig.reasons()


async def test_handler_that_raises_closes_its_connection(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """As client callbacks (X14): the handler task goes on, with its next request."""

    async def handle(request: Request) -> Response:
        if request.payload == b"raise":
            raise ZeroDivisionError("bug")
        if request.payload == b"raise several":
            raise ExceptionGroup("bugs", [ValueError(), TypeError()])
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        for payload in (b"raise", b"raise several"):
            peer = await rig.connect()
            await peer.send_frames(payload, b"never handled")
            assert b"" == await peer.receive_to_end()
        peer = await rig.connect()
        await peer.send_frames(b"fine")

        assert b"fine" == await peer.receive_frame()
        assert {CloseReason.HANDLER_FAILED: 2} == rig.reasons()
        assert 3 == rig.server.statistics().requests
        begin = "[SocketServer broker 0] unexpected error while handling a request from 127.0.0.1:"
        assert [True, True] == [text.startswith(begin) for text in caplog.messages]
        assert [True, True] == [
            text.endswith("; closing the connection") for text in caplog.messages
        ]


@pytest.mark.parametrize("how", ["returns an answer", "raises", "is answered later"])
async def test_local_time_is_what_the_handler_took(kind: ReadinessKind, how: str) -> None:
    """Of each request of a wake-up only its own, so that all together are no longer than that."""
    count = 10
    spent_ns = 0
    requests: list[Request] = []
    all_handled = trio.Event()

    async def handle(request: Request) -> Response | None:
        nonlocal spent_ns
        began_ns = now_ns()
        await trio.sleep(0.001)
        spent_ns += now_ns() - began_ns
        requests.append(request)
        if len(requests) == count:
            all_handled.set()
        if how == "raises":
            raise ZeroDivisionError
        return answer(b"a") if how == "returns an answer" else None

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(count)]
        await wait_all_tasks_blocked()
        sent_ns = now_ns()
        for peer in peers:
            peer.send_now(frame(b"x"))
        await all_handled.wait()
        await wait_all_tasks_blocked()
        if how == "is answered later":
            for request in requests:
                request.respond(NO_OP)
        await wait_all_tasks_blocked()

        assert count == rig.server.times.requests
        assert spent_ns <= rig.server.times.sum_ns(LOCAL) <= now_ns() - sent_ns


class Fatal(BaseException):
    """What no boundary may swallow, as KeyboardInterrupt."""


async def test_fatal_error_in_a_handler_ends_the_server(kind: ReadinessKind) -> None:
    """P52: everything is closed, and the error travels up."""
    before = open_sockets()

    async def handle(request: Request) -> Response:
        raise Fatal

    with pytest.RaisesGroup(Fatal, flatten_subgroups=True):
        async with serving(kind, handler=handle) as rig:
            peer = await rig.connect()
            await peer.send_frames(b"a")
            await trio.sleep_forever()

    assert before == open_sockets()
    assert {CloseReason.SERVER_SHUTDOWN: 1} == rig.reasons()


async def test_handler_that_raises_after_its_response_has_responded(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(request: Request) -> Response:
        request.respond(answer(b"the answer"))
        raise ZeroDivisionError("bug")

    async with serving(kind, handler=handle) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2")

        assert b"the answer" == await peer.receive_frame()
        assert b"the answer" == await peer.receive_frame()
        assert {} == rig.reasons()
        assert "ZeroDivisionError" in caplog.text
        assert [True, True] == [
            text.endswith("; it already has a response") for text in caplog.messages
        ]


async def test_handler_that_responds_and_returns_a_response_too_has_responded_once(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(request: Request) -> Response:
        request.respond(answer(b"first"))
        return answer(b"second")

    async with serving(kind, handler=handle) as rig:
        peer = await rig.connect()
        for _ in range(2):
            await peer.send_frames(b"a")
            assert b"first" == await peer.receive_frame()

        assert "already has a response" in caplog.text


async def test_time_of_handlers_is_counted_as_it_passes_however_many_there_are(
    kind: ReadinessKind,
) -> None:
    """While there are four, and then two; and none any more when the server has ended."""
    before_ns = now_ns()
    async with serving(kind, num_io_threads=4) as rig:
        started_ns = now_ns()
        await trio.sleep(0.02)
        resizing_ns = now_ns()
        rig.server.resize_handlers(2)
        await wait_all_tasks_blocked()
        resized_ns = now_ns()
        await trio.sleep(0.01)
        told_ns = now_ns()
        told = rig.server.handler_seconds() * 1e9
        told_after_ns = now_ns()

        least = 4 * (resizing_ns - started_ns) + 2 * (told_ns - resizing_ns)
        most = 4 * (resized_ns - before_ns) + 2 * (told_after_ns - resized_ns)
        assert least <= told <= most

    ended = rig.server.handler_seconds()
    assert ended == rig.server.handler_seconds()
