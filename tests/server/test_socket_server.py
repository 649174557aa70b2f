"""Start and end of a server: what is promised before, during and after."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.selecting import CountingReadiness
from support.serving import Serving, answer, echo, listener, serving
from support.wire import LOOPBACK, Peer, frame, listens_on, open_sockets
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, Request, Response, ServerConfig, SocketServer

MEGABYTE = 1024 * 1024


async def test_started_means_that_connections_are_served(kind: ReadinessKind) -> None:
    """KAFKA-6893: processors first, then acceptors; the ports are those that were bound."""
    config = ServerConfig(readiness=kind)
    server = SocketServer(echo, [listener(), listener(name="OTHER")], config)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            endpoints = await nursery.start(server.run)
            assert server.endpoints == endpoints
            assert ["PLAINTEXT", "OTHER"] == [endpoint.listener_name for endpoint in endpoints]

            for endpoint in endpoints:
                with await Peer.connect(endpoint.port) as peer:
                    await peer.send_frames(b"a")
                    assert b"a" == await peer.receive_frame()
            nursery.cancel_scope.cancel()


async def test_who_connects_as_soon_as_the_port_is_open_is_served(kind: ReadinessKind) -> None:
    """KAFKA-6893: the many processors are there before the acceptor looks for one."""
    with bound_elsewhere() as reserved:
        port = reserved.getsockname()[1]
    config = ServerConfig(num_network_threads=50, readiness=kind)
    server = SocketServer(echo, [listener(port)], config)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            while True:
                await trio.lowlevel.checkpoint()
                if listens_on(port):
                    break

            with await Peer.connect(port) as peer:
                await peer.send_frames(b"a")
                assert b"a" == await peer.receive_frame()
            nursery.cancel_scope.cancel()


async def test_tasks_have_names_as_kafka_threads_have(kind: ReadinessKind) -> None:
    names: set[str] = set()

    async def handle(request: Request) -> Response:
        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        tasks = set(nursery.child_tasks)
        for task in nursery.child_tasks:
            for inner in task.child_nurseries:
                tasks |= inner.child_tasks
        names.update(task.name for task in tasks)
        return NO_OP

    async with serving(kind, handler=handle, num_network_threads=2) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await wait_all_tasks_blocked()
        endpoint = rig.server.endpoints[0]

    assert {
        "data-plane-kafka-request-handler-0-0",
        "data-plane-kafka-request-handler-0-1",
        "data-plane-kafka-network-thread-0-L0-PLAINTEXT-0",
        "data-plane-kafka-network-thread-0-L0-PLAINTEXT-1",
        f"data-plane-kafka-socket-acceptor-L0-PLAINTEXT-{endpoint.port}",
    } <= names


async def test_listener_that_cannot_be_bound_fails_the_start(kind: ReadinessKind) -> None:
    """P57: also the second of two; the first is closed again, and nothing runs."""
    with bound_elsewhere() as taken:
        before = open_sockets()
        endpoints = [listener(), listener(taken.getsockname()[1], name="OTHER")]
        server = SocketServer(echo, endpoints, ServerConfig(readiness=kind))

        with pytest.raises(OSError, match="cannot listen on OTHER://127"):
            await server.run()

        assert before == open_sockets()


def bound_elsewhere(port: int = 0) -> socket.socket:
    return socket.create_server((LOOPBACK, port))


async def test_stop_after_a_failed_start_returns(kind: ReadinessKind) -> None:
    with trio.fail_after(5), bound_elsewhere() as taken:
        config = ServerConfig(readiness=kind)
        server = SocketServer(echo, [listener(taken.getsockname()[1])], config)
        with pytest.raises(OSError, match="Address already in use"):
            await server.run()

        await server.stop()


async def test_port_is_open_from_the_start_to_the_stop(kind: ReadinessKind) -> None:
    """P58: neither before nor after; each listener from its own start on."""
    with bound_elsewhere() as reserved:
        port = reserved.getsockname()[1]
    server = SocketServer(echo, [listener(port)], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            assert not listens_on(port)
            await nursery.start(server.run)
            assert listens_on(port)
            await server.stop()
    assert not listens_on(port)


async def test_listeners_need_not_start_together(kind: ReadinessKind) -> None:
    """One serves while another is not open yet; then both do."""
    with bound_elsewhere() as reserved:
        later = listener(reserved.getsockname()[1], name="LATER")
    async with serving(kind) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"early")
        with pytest.raises(ConnectionRefusedError):
            await Peer.connect(later.port)

        assert later == await rig.server.add_listener(later)

        await rig.exchange(await rig.connect(1), b"late")
        await rig.exchange(peer, b"still")


async def test_stop_before_the_start_returns_and_nothing_starts_any_more(
    kind: ReadinessKind,
) -> None:
    """P30: also where somebody waits for the start."""
    before = open_sockets()
    with bound_elsewhere() as reserved:
        port = reserved.getsockname()[1]
    server = SocketServer(echo, [listener(port)], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        await server.stop()
        assert not server.processors

        with bound_elsewhere(port):  # so that a start would fail
            await server.run()
            async with trio.open_nursery() as nursery:
                assert server.endpoints == await nursery.start(server.run)

    assert before == open_sockets()


async def test_stop_closes_connections_and_listening_sockets(kind: ReadinessKind) -> None:
    """P19."""
    async with serving(kind, listeners=2) as rig:
        peers = [await rig.connect(number) for number in (0, 1, 0)]
        await rig.exchange(peers[0], b"a")
        assert all(listens_on(endpoint.port) for endpoint in rig.server.endpoints)

        await rig.server.stop()

        for peer in peers:
            assert b"" == await peer.receive_to_end()
        for endpoint in rig.server.endpoints:
            assert not listens_on(endpoint.port)
        assert {CloseReason.SERVER_SHUTDOWN: 3} == rig.reasons()
        assert 0 == rig.server.statistics().connections


async def test_write_to_a_stopped_server_fails(kind: ReadinessKind) -> None:
    """P19."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"a")

        await rig.server.stop()

        assert b"" == await peer.receive_to_end()
        await peer.send_frames(b"provokes the reset")
        await wait_all_tasks_blocked()
        with pytest.raises(OSError, match="Broken pipe"):
            await peer.send_frames(b"meets it")


async def stopping(rig: Serving, nursery: trio.Nursery) -> None:
    """Begin a graceful stop, and let it come to where it waits."""
    nursery.start_soon(rig.server.stop)
    await wait_all_tasks_blocked()


async def test_owed_response_leaves_before_the_connection_closes(kind: ReadinessKind) -> None:
    async with serving(kind) as rig, trio.open_nursery() as nursery:
        peer, idle = await rig.connect(), await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        await stopping(rig, nursery)
        assert not listens_on(rig.server.endpoints[0].port)
        assert 2 == rig.server.statistics().connections

        request.respond(answer(b"owed"))

        assert frame(b"owed") == await peer.receive_to_end()
        assert b"" == await idle.receive_to_end()


async def test_request_that_comes_during_the_stop_is_not_read(kind: ReadinessKind) -> None:
    """Nor is one that waits behind a response, be it staged or in the socket."""
    async with serving(kind) as rig, trio.open_nursery() as nursery:
        peer, late = await rig.connect(), await rig.connect()
        await peer.send_frames(b"1", b"staged")
        request = await rig.receive(b"1")
        await stopping(rig, nursery)
        await peer.send_frames(b"in the socket")
        await late.send_frames(b"late")
        await wait_all_tasks_blocked()

        request.respond(answer(b"owed"))

        assert frame(b"owed") == await peer.receive_to_end()
        assert b"" == await late.receive_to_end()
        assert 1 == rig.server.statistics().requests


async def test_large_response_to_a_slow_peer_leaves_whole(kind: ReadinessKind) -> None:
    async with serving(kind) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        (await rig.receive(b"a")).respond(answer(bytes(20 * MEGABYTE)))
        await stopping(rig, nursery)
        assert 1 == rig.server.statistics().connections

        assert frame(bytes(20 * MEGABYTE)) == await peer.receive_to_end()


async def test_queued_and_held_requests_get_responses_before_the_end(kind: ReadinessKind) -> None:
    permits = trio.Semaphore(0)

    async def handle(request: Request) -> Response:
        await permits.acquire()
        return answer(bytes(request.payload))

    async with serving(kind, handler=handle, num_io_threads=1, queued_max_requests=1) as rig:
        peers = [await rig.connect() for _ in range(4)]
        for number, peer in enumerate(peers):
            await peer.send_frames(b"%d" % number)
            await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            await stopping(rig, nursery)
            for _ in peers:
                permits.release()

            for number, peer in enumerate(peers[:3]):
                assert frame(b"%d" % number) == await peer.receive_to_end()
            assert b"" == await peers[3].receive_to_end()  # was never read


@pytest.mark.parametrize("response", [NO_OP, answer(b"x")])
async def test_stop_ends_when_nothing_is_owed_any_more(
    kind: ReadinessKind, response: Response
) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        async with trio.open_nursery() as nursery:
            await stopping(rig, nursery)

            request.respond(NO_OP if response is NO_OP else answer(b"x"))


async def test_stop_does_not_wait_for_a_peer_that_is_gone(kind: ReadinessKind) -> None:
    """Its reset shows in its Send at the latest, which the socket backend needs."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        (await rig.receive(b"a")).respond(answer(bytes(20 * MEGABYTE)))
        async with trio.open_nursery() as nursery:
            await stopping(rig, nursery)

            peer.reset()

        assert {CloseReason.SEND_FAILED: 1} == rig.reasons()


async def test_stop_does_not_wait_for_a_channel_that_fails_to_be_unmuted(
    kind: ReadinessKind,
) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        selector = rig.processors[0].selector
        counting = selector._steps.readiness = CountingReadiness(selector._steps.readiness)
        await peer.send_frames(b"unwanted")
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            await stopping(rig, nursery)
            counting.refused = request.channel.fd

            request.respond(NO_OP)

        assert {CloseReason.ERROR: 1} == rig.reasons()


async def test_stop_can_be_asked_for_more_than_once(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.server.stop)
            nursery.start_soon(rig.server.stop)
        await rig.server.stop()


async def test_server_goes_on_stopping_when_the_wait_for_it_is_cancelled(
    kind: ReadinessKind,
) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        with trio.move_on_after(0):
            await rig.server.stop()
        await wait_all_tasks_blocked()
        assert not listens_on(rig.server.endpoints[0].port)

        request.respond(answer(b"owed"))

        assert frame(b"owed") == await peer.receive_to_end()
        await rig.server.stop()


async def test_cancelling_a_graceful_stop_ends_the_server_at_once(kind: ReadinessKind) -> None:
    async with serving(kind) as rig, trio.open_nursery() as nursery:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        await rig.receive(b"a")
        await stopping(rig, nursery)

        # The end of the block cancels the server, and `serving` looks for open sockets.
        nursery.cancel_scope.cancel()


async def test_response_after_the_end_is_dropped_without_a_word(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever finishes a request late need not know that the server has gone."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")

    request.respond(answer(b"late"))

    assert 0 == rig.server.statistics().response_queue_size
    assert not caplog.records


async def test_every_connection_ends_with_one_reason(kind: ReadinessKind) -> None:
    async with serving(kind, num_network_threads=3) as rig:
        peers = [await rig.connect() for _ in range(30)]
        for peer in peers[:10]:
            peer.close()
        for peer in peers[10:20]:
            await peer.send(b"\xff\xff\xff\xff")

        await rig.server.stop()

    statistics = rig.server.statistics()
    assert statistics.connections_created == sum(statistics.closed.values())
    assert 30 == statistics.connections_created


async def test_connection_that_ended_in_the_very_last_turn_is_counted(
    kind: ReadinessKind,
) -> None:
    """Closed between two polls, and the server is cancelled before the next."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        request = await rig.receive(b"a")
        selector = rig.processors[0].selector
        selector.disconnect(request.channel, CloseReason.IDLE)

    assert {CloseReason.IDLE: 1} == rig.reasons()


def make_busy(rig: Serving, opened: ExitStack) -> None:
    """Have something of everything going on, without letting the server run."""
    port = rig.server.endpoints[0].port
    for number in range(70):
        peer = opened.enter_context(socket.create_connection((LOOPBACK, port), timeout=5))
        match number % 4:
            case 0:
                peer.sendall(frame(b"a") * 3)
            case 1:
                peer.sendall(frame(bytes(20_000))[:-1])
            case 2:
                peer.sendall(b"\xff\xff\xff\xff")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancelled", "stopped"])
async def test_server_ended_at_any_moment_leaves_no_socket_open(
    kind: ReadinessKind, how: str
) -> None:
    """Each round ends the server one pass of the scheduler later."""

    async def handle(request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        return answer(bytes(MEGABYTE // 4))

    for passes in range(25):
        async with serving(
            kind, handler=handle, num_network_threads=2, socket_send_buffer_bytes=20_000
        ) as rig:
            make_busy(rig, rig._opened)
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            if how == "stopped":
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(rig.server.stop)
                        await wait_all_tasks_blocked()
                        scope.cancel()
        # `serving` has compared the open sockets with those before it.
        statistics = rig.server.statistics()
        assert statistics.connections_created == sum(statistics.closed.values())


async def test_start_cancelled_at_any_moment_leaves_no_socket_open(kind: ReadinessKind) -> None:
    before = open_sockets()
    for passes in range(20):
        server = SocketServer(
            echo, [listener(), listener(name="OTHER")], ServerConfig(readiness=kind)
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        assert before == open_sockets()


async def test_server_that_was_stopped_stays_stopped(kind: ReadinessKind) -> None:
    server = SocketServer(echo, [listener()], ServerConfig(readiness=kind))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            await server.stop()
        await server.run()
