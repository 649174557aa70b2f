"""Requests and responses of well-behaved peers, as one processor moves them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.ranges import RangedFile
from support.serving import Serving, answer, echo, serving, undisturbed
from support.wire import Peer, frame
from trionet.metrics._request_times import now_ns
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import ConnectionId
from trionet.net.wire._readiness import ReadinessKind
from trionet.net.wire._transmission import FileRange, Send
from trionet.server import NO_OP, CloseConnection, Request, Response

MEGABYTE = 1024 * 1024


async def is_at_rest(rig: Serving) -> bool:
    """Whether no handler gets a request, however long one waits."""
    await wait_all_tasks_blocked(0.001)
    return not rig.requests.statistics().current_buffer_used


async def test_request_is_handed_over_and_its_response_comes_back_byte_for_byte(
    kind: ReadinessKind,
) -> None:
    """P1."""
    payload = bytes(range(256))
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(payload)
        request = await rig.receive(payload)
        request.respond(answer(bytes(request.payload[::-1])))

        assert payload[::-1] == await peer.receive_frame()
        peer.close()


async def test_empty_request_and_empty_response(kind: ReadinessKind) -> None:
    """S10: at the server size 0 is a frame; what it means is the handler's business."""
    async with serving(kind, handler=echo) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"")

        assert b"" == await peer.receive_frame()


async def test_large_request_and_large_response(kind: ReadinessKind) -> None:
    payload = bytes(range(256)) * (8 * MEGABYTE // 256)
    async with serving(kind, handler=echo) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        nursery.start_soon(peer.send_frames, payload)

        assert payload == await peer.receive_frame()


async def test_response_of_chunks_and_file_ranges_is_one_frame(
    kind: ReadinessKind, tmp_path: Path
) -> None:
    file = RangedFile.holding(tmp_path, bytes(range(256)) * 1000)
    payload = b"head" + bytes(range(256)) * 999 + b"tail"
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"fetch")
        (await rig.receive(b"fetch")).respond(
            Send([frame(payload)[:8], FileRange(file, 256, 999 * 256), b"tail"])
        )

        assert payload == await peer.receive_frame()
        peer.close()


async def test_pipelined_requests_get_responses_one_after_the_other(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        for payload in (b"1", b"2", b"3"):
            request = await rig.receive(payload)
            assert await is_at_rest(rig)
            request.respond(answer(payload))

            assert payload == await peer.receive_frame()


async def test_request_without_a_response_lets_the_next_one_through(kind: ReadinessKind) -> None:
    """P10: three pipelined requests, each delivered after the no-op before it."""
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2", b"3")
        for payload in (b"1", b"2", b"3"):
            request = await rig.receive(payload)
            assert await is_at_rest(rig)
            request.respond(NO_OP)
        assert await is_at_rest(rig)
        assert len(frame(b"! before")) == rig.server.statistics().bytes_sent
        peer.close()


async def test_second_request_stays_in_the_socket_until_the_first_has_its_response(
    kind: ReadinessKind,
) -> None:
    """X6."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"first")
        request = await rig.receive(b"first")
        await peer.send_frames(b"second")
        assert await is_at_rest(rig)
        assert len(frame(b"first")) == rig.server.statistics().bytes_received

        request.respond(answer(b"answer"))

        await rig.receive(b"second")


async def test_channel_is_muted_until_the_last_byte_of_the_response_has_left(
    kind: ReadinessKind,
) -> None:
    """A peer that does not read its response gets no further request through."""
    async with serving(kind, socket_send_buffer_bytes=10_000) as rig:
        peer = await rig.connect(receive_buffer_bytes=10_000)
        await peer.send_frames(b"1", b"2")
        (await rig.receive(b"1")).respond(answer(bytes(MEGABYTE)))
        assert await is_at_rest(rig)
        assert 0 == rig.server.statistics().responses

        assert bytes(MEGABYTE) == await peer.receive_frame()

        await rig.receive(b"2")
        assert 1 == rig.server.statistics().responses


async def test_slow_peer_keeps_no_other_waiting(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        slow, quick = await rig.connect(), await rig.connect()
        await slow.send_frames(b"slow")
        (await rig.receive(b"slow")).respond(answer(bytes(20 * MEGABYTE)))

        await rig.exchange(quick, b"a")


async def test_response_may_come_later_and_in_another_order(kind: ReadinessKind) -> None:
    """Requests of different connections are independent."""
    async with serving(kind) as rig:
        peers = [await rig.connect() for _ in range(5)]
        for number, peer in enumerate(peers):
            await peer.send_frames(b"%d" % number)
        requests = [await rig.requests.receive() for _ in peers]
        await wait_all_tasks_blocked()

        for request in sorted(requests, key=lambda request: request.payload, reverse=True):
            request.respond(answer(bytes(request.payload)))

        for number, peer in enumerate(peers):
            assert b"%d" % number == await peer.receive_frame()


async def test_requests_of_one_connection_never_run_at_the_same_time(kind: ReadinessKind) -> None:
    """X10: whatever is pipelined, and however many handlers are idle."""
    running: Counter[str] = Counter()
    together = []

    async def handle(request: Request) -> Response:
        running[request.channel.id] += 1
        together.append((running[request.channel.id], len(+running)))
        for _ in range(3):
            await trio.lowlevel.checkpoint()
        running[request.channel.id] -= 1
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=8) as rig:
        peers = [await rig.connect() for _ in range(3)]
        for peer in peers:
            await peer.send_frames(*[b"%d" % number for number in range(50)])
        for peer in peers:
            for number in range(50):
                assert b"%d" % number == await peer.receive_frame()

    assert {1} == {same for same, _ in together}
    assert max(different for _, different in together) > 1


async def test_connection_ids_name_the_processor_and_count(kind: ReadinessKind) -> None:
    """P11: five connections of processor 0 have the indexes 0 to 4."""
    async with serving(kind) as rig:
        peers = []
        for index in range(5):
            peer = await rig.connect()
            peers.append(peer)
            await peer.send_frames(b"a")
            request = await rig.receive(b"a")

            port = rig.server.endpoints[0].port
            expected = ConnectionId("127.0.0.1", port, "127.0.0.1", peer.port, 0, index)
            assert expected == ConnectionId.parse(request.channel.id)


async def test_connection_index_starts_again_after_the_largest_int32(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        rig.processors[0]._next_index = 2**31 - 1
        indexes = []
        for _ in range(2):
            peer = await rig.connect()
            await peer.send_frames(b"a")
            id = ConnectionId.parse((await rig.receive(b"a")).channel.id)
            assert id is not None
            indexes.append(id.index)

    assert [2**31 - 1, 0] == indexes


async def test_response_never_reaches_a_later_connection_of_the_same_peer(
    kind: ReadinessKind,
) -> None:
    """KAFKA-5595: same addresses, same descriptor, another connection."""
    async with serving(kind) as rig, undisturbed(rig):
        old = await rig.connect()
        port = old.port
        await old.send_frames(b"old")
        request = await rig.receive(b"old")
        old.reset()
        await wait_all_tasks_blocked()
        with await Peer.connect(rig.server.endpoints[0].port, local_port=port) as new:
            await rig.exchange(new, b"new")

            request.respond(answer(b"for the old one"))

            await rig.exchange(new, b"again")


@pytest.mark.parametrize("count", [0, 3, 10])
@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (b"", CloseReason.PEER_CLOSED),
        (b"\0\0\0", CloseReason.PEER_CLOSED_IN_FRAME),
        (frame(bytes(10))[:-1], CloseReason.PEER_CLOSED_IN_FRAME),
        (frame(bytes(10_000))[:-1], CloseReason.PEER_CLOSED_IN_FRAME),
    ],
    ids=["nothing", "a part of a size", "a part of a frame", "a part of a large frame"],
)
async def test_whole_requests_before_the_end_are_delivered_when_each_has_its_response(
    kind: ReadinessKind, count: int, rest: bytes, reason: CloseReason
) -> None:
    """P9, P40, P41, P42, P43, P45: each after the no-op before it; then the channel closes."""
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        payloads = [b"%d" % number for number in range(count)]
        await peer.send(b"".join(map(frame, payloads)) + rest)
        peer.close()

        for payload in payloads:
            request = await rig.receive(payload)
            assert await is_at_rest(rig)
            request.respond(NO_OP)
        assert await is_at_rest(rig)

        assert {reason: 1} == rig.reasons()


async def test_peer_that_sends_no_more_gets_its_responses(kind: ReadinessKind) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"1", b"2")
        peer.finish()
        for payload in (b"1", b"2"):
            (await rig.receive(payload)).respond(answer(payload))

        assert frame(b"1") + frame(b"2") == await peer.receive_to_end()
        await wait_all_tasks_blocked()
        assert {CloseReason.PEER_CLOSED: 1} == rig.reasons()


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (CloseConnection(), CloseReason.CLOSE_RESPONSE),
        (CloseConnection(CloseReason.INVALID_REQUEST, "why"), CloseReason.INVALID_REQUEST),
        (CloseConnection(CloseReason.UNSUPPORTED_VERSION), CloseReason.UNSUPPORTED_VERSION),
    ],
)
async def test_handler_may_close_the_connection_instead_of_responding(
    kind: ReadinessKind, response: CloseConnection, reason: CloseReason
) -> None:
    async with serving(kind) as rig, undisturbed(rig):
        peer = await rig.connect()
        await peer.send_frames(b"a", b"never delivered")
        (await rig.receive(b"a")).respond(response)

        assert b"" == await peer.receive_to_end()
        assert await is_at_rest(rig)
        assert {reason: 1} == rig.reasons()


async def test_request_is_not_kept_when_it_has_its_response(kind: ReadinessKind) -> None:
    """A parked loop and idle handlers hold no buffer of the last request."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(bytes(MEGABYTE))
        request = await rig.requests.receive()
        request.respond(answer(b"a"))
        payload = request.payload
        del request
        assert b"a" == await peer.receive_frame()
        await wait_all_tasks_blocked()

        references = sys.getrefcount(payload)

    assert 2 == references  # the name above, and the argument


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_request_knows_how_long_its_processor_read_and_wrote_for_it(
    kind: ReadinessKind, is_wanted: bool
) -> None:
    """KIP-124: networkThreadTimeNanos, for quotas and accounts; the time of its handler not."""
    async with serving(kind, times_connections=is_wanted) as rig:
        peer = await rig.connect()
        began_ns = now_ns()
        for _ in range(3):  # for each of them anew
            await peer.send_frames(b"a")
            request = await rig.receive(b"a")
            assert 0 == request.network_thread_ns
            request.respond(answer(bytes(MEGABYTE)))
            assert MEGABYTE == len(await peer.receive_frame())
            spent_ns, began_ns = now_ns() - began_ns, now_ns()

            if is_wanted:
                assert 0 < request.network_thread_ns < spent_ns
            else:
                assert 0 == request.network_thread_ns


async def test_statistics_count_what_happened(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer, other = await rig.connect(), await rig.connect()
        await rig.exchange(peer, b"ab")
        await other.send_frames(b"c")
        (await rig.receive(b"c")).respond(NO_OP)
        other.close()
        await peer.send_frames(b"defg")
        await rig.receive(b"defg")
        await wait_all_tasks_blocked()

        statistics = rig.server.statistics()

    assert 1 == statistics.connections
    assert 2 == statistics.connections_created
    assert {CloseReason.PEER_CLOSED: 1} == statistics.closed
    assert 3 == statistics.requests
    assert 1 == statistics.responses
    assert len(frame(b"? ab") + frame(b"c") + frame(b"defg")) == statistics.bytes_received
    assert len(frame(b"! ab")) == statistics.bytes_sent
    assert 0 == statistics.request_queue_size
    assert 0 == statistics.response_queue_size
    assert 0 == statistics.request_queue_full
