"""Whoever sends more than gets a response waits in TCP, and the server's memory stays what is set.

The measured tests have a server in a process of its own, whose peak of memory is the figure, so
that not a single moment is missed. 200 clients send 1 MB each, which without a bound takes 200 MB.
"""

from __future__ import annotations

import select
import sys

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from faults.program import Program, observed, program
from faults.words import HOLD, KEEP
from support.serving import answer, serving
from support.wire import Peer, frame
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import Request, Response

MEGABYTE = 1024 * 1024
CLIENTS = 200
# What the bounds do not count: a megabyte for each frame in progress, the sockets, what the
# allocator cannot use.
SLACK = 24 * MEGABYTE


async def test_memory_of_requests_outlives_their_processor_by_their_handlers_only(
    kind: ReadinessKind,
) -> None:
    """Of a large request that is handled, that waits and that is held when its listener is removed:
    all of it is back when the last handler is."""
    answered = trio.Event()

    async def handle(request: Request) -> Response:
        await answered.wait()
        return answer(bytes(request.payload[:1]))

    async with serving(
        kind,
        handler=handle,
        num_io_threads=1,
        queued_max_requests=1,
        queued_max_request_bytes=10 * MEGABYTE,
        socket_request_max_bytes=MEGABYTE,
    ) as rig:
        pool = rig.server.pool
        assert pool is not None
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                peer = await rig.connect()
                nursery.start_soon(peer.send_frames, bytes(MEGABYTE // 2))
        await wait_all_tasks_blocked(0.01)
        assert pool.used >= 3 * MEGABYTE // 2

        await rig.server.remove_listener("L0")
        answered.set()
        await wait_all_tasks_blocked(0.01)
        assert 0 == pool.used


async def test_no_more_is_read_in_one_poll_than_there_is_room_for(kind: ReadinessKind) -> None:
    """All 30 requests are there at once; one is handled, two wait, and one is held."""
    answered = trio.Event()

    async def handle(request: Request) -> Response:
        await answered.wait()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1, queued_max_requests=2) as rig:
        peers = [await rig.connect() for _ in range(30)]
        await wait_all_tasks_blocked()
        for number, peer in enumerate(peers):
            peer.send_now(frame(b"%d" % number))
        for channel in rig.processors[0].selector.channels:
            select.select([channel.fd], [], [], 5)  # all have arrived before the loop looks
        await wait_all_tasks_blocked()

        assert 4 == rig.server.statistics().requests

        answered.set()
        answers = [await peer.receive_frame() for peer in peers]

    assert [b"%d" % number for number in range(30)] == answers


async def test_a_handler_that_makes_room_during_a_poll_has_no_more_read(
    kind: ReadinessKind,
) -> None:
    """What is held is in memory; the handlers drain the queue while the processor waits."""
    most = 0

    async def handle(request: Request) -> Response:
        nonlocal most
        await trio.lowlevel.checkpoint()
        most = max(most, len(rig.processors[0]._held))
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=2, queued_max_requests=5) as rig:
        peers = [await rig.connect() for _ in range(200)]
        for _ in range(3):
            for number, peer in enumerate(peers):
                peer.send_now(frame(b"%d" % number))
            answers = [await peer.receive_frame() for peer in peers]
            assert [b"%d" % number for number in range(200)] == answers

    assert most <= 5


async def test_a_payload_stays_with_its_handler_when_the_peer_goes() -> None:
    """And so does its share of the memory, which is given back with the answer."""
    limit = 2 * MEGABYTE
    async with serving(
        "poller",  # the other one does not hear of a peer that nobody reads
        num_io_threads=1,
        queued_max_request_bytes=limit,
        socket_request_max_bytes=limit,
    ) as rig:
        peer = await rig.connect()
        await peer.send_frames(bytes(MEGABYTE))
        request = await rig.requests.receive()
        assert rig.server.pool is not None

        peer.reset()
        while not rig.reasons():
            await wait_all_tasks_blocked()

        assert bytes(MEGABYTE) == request.payload
        request.respond(answer(b"nobody hears it"))
        while rig.server.pool.used:
            await wait_all_tasks_blocked()


async def test_memory_of_a_request_that_waits_is_back_when_its_peer_goes() -> None:
    """Its handler has returned, and its response would come at any later time, or never."""
    limit = 2 * MEGABYTE
    async with serving(
        "poller",  # the other one notices no hang-up of a socket that is not read
        queued_max_request_bytes=limit,
        socket_request_max_bytes=limit,
    ) as rig:
        peer = await rig.connect()
        await peer.send_frames(bytes(MEGABYTE))
        await rig.requests.receive()
        await wait_all_tasks_blocked()
        assert rig.server.pool is not None
        assert MEGABYTE == rig.server.pool.used

        peer.reset()
        await wait_all_tasks_blocked()

        assert 0 == rig.server.pool.used


async def test_memory_of_a_request_is_back_if_its_processor_ends_just_after_its_response(
    kind: ReadinessKind,
) -> None:
    """The handler responds itself, and goes on after that."""

    async def handle(request: Request) -> None:
        request.respond(answer(b"response"))
        rig.processors[0].end()
        await wait_all_tasks_blocked()

    async with serving(
        kind, handler=handle, queued_max_request_bytes=MEGABYTE, socket_request_max_bytes=MEGABYTE
    ) as rig:
        peer = await rig.connect()
        await peer.send_frames(bytes(MEGABYTE // 2))
        assert b"" == await peer.receive_to_end()

        pool = rig.server.pool
        assert pool is not None
        assert 0 == pool.used


async def test_a_loop_that_waits_keeps_no_payload_that_was_released(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(bytes(MEGABYTE))
        request = await rig.requests.receive()
        payload = request.payload
        request.release()
        await wait_all_tasks_blocked()

        references = sys.getrefcount(payload)

    assert 2 == references  # the name above, and the argument


async def send_megabytes(server: Program, word: bytes) -> int:
    """Have all clients send a request that waits; then let them have their responses.

    Returns:
        How many requests the server took in before it answered the first.
    """
    clients = [await Peer.connect(server.started["PLAIN"]) for _ in range(CLIENTS)]

    async def exchange(client: Peer) -> None:
        with client:
            await client.send(frame(word + bytes(MEGABYTE - len(word))))
            assert b"" == await client.receive_frame()

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(exchange, client)
        full = await trio.to_thread.run_sync(server.ask, "settle")
        assert 0 < full["requests"] < CLIENTS
        assert 0 < full["held"]["in flight"] == full["requests"]
        await trio.to_thread.run_sync(server.ask, "answer")
    requests: int = full["requests"]
    return requests


def measured(word: bytes, **config: int) -> tuple[int, int]:
    """Requests that were taken in unanswered, and the memory that all of it took, in bytes."""
    with program("server", {"config": config}) as server:
        before = observed(server, "settle")
        requests = trio.run(send_megabytes, server, word)
        after = observed(server, "empty")
        assert not any(after["held"].values()), after["held"]
        assert after["requests"] == CLIENTS
        assert {"PEER_CLOSED": CLIENTS} == after["closed"]
        grown = after["peak"] - before["peak"]
    print(f"{config}: {requests} requests taken, {grown / MEGABYTE:.1f} MiB at the peak")
    return requests, grown


@pytest.mark.slow
@pytest.mark.parametrize("word", [HOLD, KEEP])
def test_memory_of_pending_requests_is_bounded_in_bytes(word: bytes) -> None:
    """A handler that never returns, and one that returns and never answers; 16 MB for requests."""
    bound = 16 * MEGABYTE

    requests, grown = measured(
        word, queued_max_request_bytes=bound, socket_request_max_bytes=2 * MEGABYTE
    )

    assert requests == bound // MEGABYTE
    assert grown < bound + SLACK


@pytest.mark.slow
def test_memory_of_pending_requests_is_bounded_in_number() -> None:
    """A handler that never returns: what it holds, what waits, and what each processor holds."""
    handlers, queued, processors = 4, 8, 3

    requests, grown = measured(
        HOLD, num_io_threads=handlers, queued_max_requests=queued, num_network_threads=processors
    )

    assert handlers + queued < requests <= handlers + queued + processors * queued
    assert grown < (handlers + queued + processors * queued) * MEGABYTE + 2 * SLACK
