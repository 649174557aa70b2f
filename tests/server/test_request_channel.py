"""The queue between processors and handlers: bounded, in order, and no wake-up is lost."""

from __future__ import annotations

import select
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import answer, serving
from support.wire import Peer, frame
from trionet.errors import LocalProtocolError
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import Request, RequestChannel, Response


async def test_requests_are_taken_in_the_order_in_which_they_came(kind: ReadinessKind) -> None:
    async with serving(kind, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(20)]
        for number, peer in enumerate(peers):
            await peer.send_frames(b"%d" % number)
            await wait_all_tasks_blocked()

        payloads = [(await rig.requests.receive()).payload for _ in peers]

    assert [b"%d" % number for number in range(20)] == payloads


async def test_empty_channel_has_nothing_to_take_and_no_task_to_wake() -> None:
    channel = RequestChannel(5)

    channel.call_handler()

    assert channel.take() is None
    assert not channel.has_taker
    assert 0 == channel.incoming.statistics().current_buffer_used
    assert 0 == len(channel)


async def test_fewer_handlers_are_wanted_while_requests_are_on_their_way(
    kind: ReadinessKind,
) -> None:
    """What has idle handlers look whether they are wanted is not taken for the requests."""
    async with serving(kind, num_io_threads=4) as rig:
        peers = [await rig.connect() for _ in range(20)]
        await wait_all_tasks_blocked()
        for number, peer in enumerate(peers):
            peer.send_now(frame(b"%d" % number))
            if number % 3 == 0:
                rig.server.resize_handlers(2 + number % 2)
                await trio.lowlevel.checkpoint()

        numbers = sorted([int((await rig.requests.receive()).payload) for _ in peers])
        assert list(range(20)) == numbers
        assert 0 == rig.server.statistics().unexpected_errors


async def test_handler_that_is_to_end_may_run_before_the_one_that_was_given_the_requests(
    kind: ReadinessKind,
) -> None:
    """Trio runs tasks that were woken in the same pass in any order."""
    async with serving(kind) as rig:
        peers = [await rig.connect() for _ in range(2)]
        for peer in peers:
            await peer.send_frames(b"x")
        first, second = [await rig.receive(b"x") for _ in peers]
        channel = RequestChannel(5)
        items: list[list[Request]] = []

        async def idle() -> None:
            items.append(await channel.incoming.receive())

        async with trio.open_nursery() as handlers:
            handlers.start_soon(idle)
            handlers.start_soon(idle)
            await wait_all_tasks_blocked()
            channel.offer(first)
            channel.call_handler()
            channel.wake_all_handlers()
        to_end, with_request = sorted(items, key=len)

        channel.received(to_end)
        assert first is channel.take()
        channel.offer(second)
        channel.call_handler()
        channel.received(with_request)
        channel.call_handler()

        assert 1 == channel.incoming.statistics().current_buffer_used


class Gate:
    """A handler that is held up until it is let go, one request at a time."""

    def __init__(self) -> None:
        self.permits = trio.Semaphore(0)
        self.waiting: list[bytes] = []
        self.handled: list[bytes] = []

    async def __call__(self, request: Request) -> Response:
        self.waiting.append(bytes(request.payload))
        await self.permits.acquire()
        self.waiting.remove(bytes(request.payload))
        self.handled.append(bytes(request.payload))
        return answer(bytes(request.payload))

    def open(self, count: int = 100) -> None:
        for _ in range(count):
            self.permits.release()


async def send_one_by_one(peers: list[Peer], *payloads: bytes) -> None:
    """Let the server come to rest between two requests, so that their order is known."""
    for peer, payload in zip(peers, payloads, strict=True):
        await peer.send_frames(payload)
        await wait_all_tasks_blocked()


async def test_full_channel_stops_reading_and_goes_on_when_a_handler_takes_one(
    kind: ReadinessKind,
) -> None:
    """R4: of five requests one is with the handler, one waits, one is held; two stay unread."""
    gate = Gate()
    async with serving(kind, handler=gate, num_io_threads=1, queued_max_requests=1) as rig:
        peers = [await rig.connect() for _ in range(5)]
        await send_one_by_one(peers, b"0", b"1", b"2", b"3", b"4")
        statistics = rig.server.statistics()
        assert [b"0"] == gate.waiting
        assert 1 == statistics.request_queue_size
        assert 3 == statistics.requests
        assert 1 == statistics.request_queue_full
        assert 3 * 5 == statistics.bytes_received

        gate.open()

        for number, peer in enumerate(peers):
            assert b"%d" % number == await peer.receive_frame()
        assert [b"0", b"1", b"2"] == gate.handled[:3]
        assert 0 == rig.server.statistics().request_queue_size


async def test_requests_that_are_held_together_keep_their_order(kind: ReadinessKind) -> None:
    """Two processors have the same room in view: one fills it, and the other holds its four."""
    gate = Gate()
    async with serving(
        kind, handler=gate, num_network_threads=2, num_io_threads=1, queued_max_requests=4
    ) as rig:
        peers = [await rig.connect() for _ in range(9)]
        await wait_all_tasks_blocked()
        await send_one_by_one(peers[:1], b"with it")
        for number, peer in enumerate(peers[1:]):
            peer.send_now(frame(b"%d" % number))
        for channel in [
            each for processor in rig.processors for each in processor.selector.channels
        ][1:]:
            select.select([channel.fd], [], [], 5)  # all have arrived before the loop looks
        await wait_all_tasks_blocked()
        waiting = [bytes(request.payload) for request in rig.server.request_channel.requests]
        held = [bytes(request.payload) for each in rig.processors for request in each._held]
        assert [4, 4] == [len(waiting), len(held)]

        gate.open()

        for peer in peers:
            await peer.receive_frame()
        assert [b"with it", *waiting, *held] == gate.handled


async def test_responses_go_out_while_the_channel_is_full(kind: ReadinessKind) -> None:
    """Neither side waits for the other: the response that makes room can always leave."""
    held: list[Request] = []
    gate = Gate()

    async def handle(request: Request) -> Response | None:
        if request.payload == b"later":
            held.append(request)
            return None
        return await gate(request)

    async with serving(kind, handler=handle, num_io_threads=1, queued_max_requests=1) as rig:
        peers = [await rig.connect() for _ in range(4)]
        await send_one_by_one(peers, b"later", b"1", b"2", b"3")
        assert 1 == rig.server.statistics().request_queue_full

        held[0].respond(answer(b"now"))

        assert b"now" == await peers[0].receive_frame()
        gate.open()
        assert b"3" == await peers[3].receive_frame()


async def test_no_processor_waits_for_room_that_another_was_woken_for(
    kind: ReadinessKind,
) -> None:
    """Two processors wait for room in the channel; the first has looked in vain meanwhile.

    Looked at again and again, it must not use up the wake-ups of the second.
    """
    gate = Gate()
    async with serving(
        kind, handler=gate, num_network_threads=2, num_io_threads=1, queued_max_requests=1
    ) as rig:
        peers = [await rig.connect() for _ in range(5)]  # in turn: 0, 1, 0, 1, 0
        await send_one_by_one([peers[0], peers[2], peers[4]], b"with it", b"waits", b"held by 0")
        for _ in range(6):
            await rig.connect()  # every second one makes processor 0 look again
            await wait_all_tasks_blocked()
        await send_one_by_one([peers[1]], b"held by 1")
        assert 2 == rig.server.statistics().request_queue_full

        gate.open()

        assert b"held by 1" == await peers[1].receive_frame()
        assert b"held by 0" == await peers[4].receive_frame()


async def test_all_handlers_may_be_held_up_while_requests_wait(kind: ReadinessKind) -> None:
    """The loop parks, and whoever is free first takes the next."""
    gate = Gate()
    async with serving(kind, handler=gate, num_io_threads=3) as rig:
        peers = [await rig.connect() for _ in range(8)]
        await send_one_by_one(peers, *[b"%d" % number for number in range(8)])
        assert 3 == len(gate.waiting)
        assert 5 == rig.server.statistics().request_queue_size

        for expected in (4, 5, 6, 7, 8):
            gate.open(1)
            await wait_all_tasks_blocked()
            assert expected == len(gate.handled) + len(gate.waiting)
        gate.open()

        for number, peer in enumerate(peers):
            assert b"%d" % number == await peer.receive_frame()


async def test_every_handler_is_used_when_requests_come_together(kind: ReadinessKind) -> None:
    """One is woken a turn; each that is held up is followed by another, before the loop parks."""
    gate = Gate()
    async with serving(kind, handler=gate, num_io_threads=12) as rig:
        peers = [await rig.connect() for _ in range(12)]
        await wait_all_tasks_blocked()
        for number, peer in enumerate(peers):
            peer.send_now(frame(b"%d" % number))
        await wait_all_tasks_blocked()

        assert 12 == len(gate.waiting)
        gate.open()


async def test_all_who_wait_for_room_are_woken_once(kind: ReadinessKind) -> None:
    """However often each has asked, since any of them may have found room by itself."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        channel = RequestChannel(2)
        woken: list[int] = []
        wakes = [partial(woken.append, number) for number in range(3)]
        assert channel.offer(request)
        assert channel.offer(request)
        assert not channel.offer(request)
        for wake in [*wakes[:2], *wakes[:2]]:
            channel.wake_when_free(wake)

        channel.take()
        assert [0, 1] == woken
        channel.take()
        assert [0, 1] == woken


async def test_responses_can_be_sent_without_waiting_for_the_loop(kind: ReadinessKind) -> None:
    """A handler does so when it has drained the queue: no other task runs in between."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a", b"b")
        (await rig.receive(b"a")).respond(answer(b"now"))
        assert 0 == rig.server.statistics().responses

        rig.server.request_channel.send_responses(may_poll=False)

        assert 1 == rig.server.statistics().responses
        assert b"now" == await peer.receive_frame()
        await rig.receive(b"b")


async def test_responses_that_come_later_travel_as_one_batch(kind: ReadinessKind) -> None:
    """One item of the processor's memory channel, and one wake-up, for all of a turn."""
    async with serving(kind) as rig:
        peers = [await rig.connect() for _ in range(3)]
        [processor] = rig.processors
        travelling = processor.responses._incoming.statistics
        for _ in range(2):
            for peer in peers:
                await peer.send_frames(b"a")
            requests = [await rig.receive(b"a") for _ in peers]
            await wait_all_tasks_blocked()

            for request in requests:
                request.respond(answer(b"b"))

            assert (1, 3) == (travelling().current_buffer_used, len(processor.responses))
            for peer in peers:
                assert b"b" == await peer.receive_frame()
            assert (0, 0) == (travelling().current_buffer_used, len(processor.responses))


async def test_responses_of_a_handler_need_no_channel(kind: ReadinessKind) -> None:
    """It has them sent itself when it has drained the requests."""
    travelling: list[int] = []

    async def handle(request: Request) -> Response:
        travelling.append(request.responses._incoming.statistics().current_buffer_used)
        return answer(b"b")

    async with serving(kind, handler=handle, num_io_threads=1) as rig:
        peers = [await rig.connect() for _ in range(3)]
        await wait_all_tasks_blocked()
        for peer in peers:
            peer.send_now(frame(b"a"))
        for peer in peers:
            assert b"b" == await peer.receive_frame()

    assert [0, 0, 0] == travelling


async def test_response_that_comes_just_before_the_loop_parks_is_sent(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two wakes the processor, which must see the second before it parks again."""
    monkeypatch.setattr("trionet.net._selector.EMPTY_POLLS_BEFORE_PARK", 0)
    async with serving(kind) as rig:
        peers = [await rig.connect() for _ in range(2)]
        for _ in range(30):
            for peer in peers:
                await peer.send_frames(b"a")
            first, second = [await rig.receive(b"a") for _ in peers]
            await wait_all_tasks_blocked()

            first.respond(answer(b"b"))
            await trio.lowlevel.checkpoint()
            second.respond(answer(b"b"))

            for peer in peers:
                assert b"b" == await peer.receive_frame()


async def test_request_gets_one_response(kind: ReadinessKind) -> None:
    """Answering twice is an error of the second; the first response leaves."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        request.respond(answer(b"first"))

        with pytest.raises(LocalProtocolError, match="already has a response"):
            request.respond(answer(b"second"))

        assert b"first" == await peer.receive_frame()
        await rig.exchange(peer, b"next")


async def test_request_prints_who_asked_and_how_much(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"abc")
        request = await rig.receive(b"abc")

        assert f"<Request of {request.channel.id}, 3 bytes>" == repr(request)
