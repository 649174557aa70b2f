"""Binding, accepting and handing over; the server goes on whatever accepting runs into."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import echo, listener, serving, undisturbed
from support.wire import LOOPBACK, Peer, open_sockets, reset, tcp_pair
from trionet.net._network import SYSTEM
from trionet.net._selector import Selector
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import ConnectionId, Endpoint, bind
from trionet.net.wire._readiness import ReadinessKind, open_readiness
from trionet.net.wire._transport import PlaintextTransport
from trionet.server import Request, ServerConfig, SocketServer
from trionet.server._acceptor import Acceptor
from trionet.server._channel_builder import PLAINTEXT, ChannelBuilder
from trionet.server._processor import Processor

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no dual-stack IPv6 here")


@contextmanager
def bound(endpoint: Endpoint, *, backlog: int = 50, buffer: int = -1) -> Iterator[socket.socket]:
    with bind(endpoint, backlog=backlog, receive_buffer_bytes=buffer) as sock:
        yield sock


def connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def test_port_0_takes_a_free_one() -> None:
    with bound(listener()) as sock:
        assert connects(LOOPBACK, sock.getsockname()[1])


def test_listening_socket_does_not_block() -> None:
    with bound(listener()) as sock:
        assert 0 == sock.gettimeout()


def test_name_of_a_host_is_looked_up() -> None:
    with bound(listener(host="localhost")) as sock:
        assert LOOPBACK == sock.getsockname()[0]


@needs_ipv6
@pytest.mark.parametrize("host", ["", "::", "0:0:0:0:0:0:0:0"])
def test_wildcard_listens_on_both_protocols(host: str) -> None:
    with bound(listener(host=host)) as sock:
        port = sock.getsockname()[1]

        assert connects(LOOPBACK, port)
        assert connects("::1", port)


@needs_ipv6
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::ffff:127.0.0.1"])
def test_ipv4_address_listens_on_ipv4_only(host: str) -> None:
    with bound(listener(host=host)) as sock:
        port = sock.getsockname()[1]

        assert connects(LOOPBACK, port)
        assert not connects("::1", port)


def test_wildcard_listens_on_ipv4_where_there_is_no_dual_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)

    with bound(listener(host="")) as sock:
        assert socket.AF_INET == sock.family
        assert connects(LOOPBACK, sock.getsockname()[1])


@needs_ipv6
def test_ipv6_address_listens_on_ipv6_only() -> None:
    with bound(listener(host="::1")) as sock:
        port = sock.getsockname()[1]

        assert connects("::1", port)
        assert not connects(LOOPBACK, port)


def test_port_in_use_is_an_error_that_says_where_and_why() -> None:
    """KAFKA-16703: and the socket of the failed attempt is closed."""
    with bound(listener()) as taken:
        port = taken.getsockname()[1]
        before = open_sockets()

        with pytest.raises(OSError, match="Address already in use") as caught:
            bind(listener(port), backlog=1, receive_buffer_bytes=-1)

        assert errno.EADDRINUSE == caught.value.errno
        assert f"cannot listen on PLAINTEXT://127.0.0.1:{port}: " in str(caught.value)
        assert before == open_sockets()


def test_name_without_an_address_is_an_error_that_says_which() -> None:
    with pytest.raises(OSError, match="cannot listen on PLAINTEXT://no such host:0: "):
        bind(listener(host="no such host"), backlog=1, receive_buffer_bytes=-1)


def test_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(OSError, match=r"cannot listen on PLAINTEXT://192\.0\.2\.1:0: ") as caught:
        bind(listener(host="192.0.2.1"), backlog=1, receive_buffer_bytes=-1)

    assert errno.EADDRNOTAVAIL == caught.value.errno


@pytest.mark.parametrize(("platform", "reuse"), [("linux", 1), ("win32", 0)])
def test_port_can_be_taken_again_at_once_but_not_shared(
    monkeypatch: pytest.MonkeyPatch, platform: str, reuse: int
) -> None:
    """KAFKA-14908: what allows the one on POSIX would allow the other on Windows."""
    monkeypatch.setattr("trionet.net.wire._endpoint.sys.platform", platform)

    with bound(listener()) as sock:
        assert reuse == sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


def test_as_many_connections_as_the_backlog_wait_without_an_acceptor() -> None:
    """P55."""
    with bound(listener(), backlog=128) as sock, ExitStack() as opened:
        for _ in range(128):
            address = (LOOPBACK, sock.getsockname()[1])
            opened.enter_context(socket.create_connection(address, timeout=5))


def test_receive_buffer_is_set_unless_minus_1() -> None:
    """X16, KAFKA-724: of the listening socket, whose connections inherit it."""
    with socket.socket() as plain:
        default = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    with bound(listener(), buffer=-1) as sock:
        assert default == sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    with bound(listener(), buffer=20_000) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (20_000, 40_000)


def socket_of(request: Request) -> socket.socket:
    transport = request.channel.transport
    assert isinstance(transport, PlaintextTransport)
    return transport._socket


def buffer_sizes(sock: socket.socket) -> tuple[int, int]:
    """For sending, for receiving."""
    return (
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
    )


@pytest.mark.parametrize(("buffer", "expected"), [(-1, None), (30_000, 60_000)])
async def test_accepted_sockets_have_their_options(
    kind: ReadinessKind, buffer: int, expected: int | None
) -> None:
    """X16, KAFKA-2096: no delay, keep-alive, both buffer sizes unless -1; Linux doubles them."""
    async with serving(
        kind, socket_send_buffer_bytes=buffer, socket_receive_buffer_bytes=buffer
    ) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"a")
        sock = socket_of(await rig.receive(b"a"))

        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        sizes = buffer_sizes(sock)
        with ExitStack() as opened:
            untouched, _ = map(opened.enter_context, tcp_pair())
            assert ((expected, expected) if expected else buffer_sizes(untouched)) == sizes
        assert 0 == sock.gettimeout()


def processor_of(request: Request) -> int:
    id = ConnectionId.parse(request.channel.id)
    assert id is not None
    return id.processor


async def test_connections_go_to_the_processors_in_turn(kind: ReadinessKind) -> None:
    """X1: 0, 1, 2, 0, …"""
    processors = []
    async with serving(kind, num_network_threads=3) as rig:
        for number in range(7):
            peer = await rig.connect()
            await peer.send_frames(b"%d" % number)
            processors.append(processor_of(await rig.receive(b"%d" % number)))

    assert [0, 1, 2, 0, 1, 2, 0] == processors


async def test_each_listener_has_processors_of_its_own(kind: ReadinessKind) -> None:
    """Their numbers go on from listener to listener; each takes turns by itself."""
    seen = []
    async with serving(kind, listeners=2, num_network_threads=2) as rig:
        for number in (0, 1, 0, 1, 0, 1):
            peer = await rig.connect(number)
            await peer.send_frames(b"a")
            request = await rig.receive(b"a")
            seen.append((request.listener_name, processor_of(request)))

    assert [("L0", 0), ("L1", 2), ("L0", 1), ("L1", 3), ("L0", 0), ("L1", 2)] == seen


async def test_connection_is_served_when_its_peer_says_nothing_first(kind: ReadinessKind) -> None:
    """It is set up without waiting for data."""
    async with serving(kind) as rig:
        await rig.connect()
        await wait_all_tasks_blocked()

        assert 1 == rig.server.statistics().connections


async def test_peer_that_is_gone_before_it_is_served_costs_no_other(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """P23, P36: its socket is closed and not counted as a connection; the next one works.

    No warning: whoever connects and resets would fill the disk with them.
    """
    caplog.set_level(logging.DEBUG, "trionet.server")
    async with serving(kind) as rig, undisturbed(rig):
        sock = socket.create_connection((LOOPBACK, rig.server.endpoints[0].port))
        reset(sock)
        after = socket.create_connection((LOOPBACK, rig.server.endpoints[0].port))
        with Peer(after) as peer:
            await rig.exchange(peer, b"after")

        assert {CloseReason.REGISTER_FAILED: 1} == rig.reasons()
        assert {CloseReason.REGISTER_FAILED: 1} == rig.server.closed_connections.by_reason
        assert not rig.server.closed_connections.page(10)  # or a storm would fill it with them
        [record] = [each for each in caplog.records if "could not set up" in each.message]
        assert logging.DEBUG == record.levelno


class Listening(socket.socket):
    """A listening socket that can fail where a test wants it."""

    errors: list[OSError]
    accepted_type: type[socket.socket] = socket.socket

    def accept(self) -> tuple[socket.socket, object]:
        if self.errors:
            raise self.errors.pop(0)
        sock, address = super().accept()
        return self.accepted_type(fileno=sock.detach()), address


def failing(errors: list[OSError], accepted_type: type[socket.socket]) -> Callable[..., Listening]:
    """What replaces `bind` to get such a listening socket."""

    def bind_failing(endpoint: Endpoint, **options: int) -> Listening:
        sock = Listening(fileno=bind(endpoint, **options).detach())
        sock.errors = errors
        sock.accepted_type = accepted_type
        sock.setblocking(False)
        return sock

    return bind_failing


async def test_connection_that_is_aborted_while_it_waits_is_passed_over(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[OSError] = [ConnectionAbortedError(errno.ECONNABORTED, "aborted")] * 3
    monkeypatch.setattr(SYSTEM, "listen", failing(errors, socket.socket))
    async with serving(kind) as rig:
        await rig.exchange(await rig.connect(), b"a")

    assert [] == errors


async def test_socket_that_cannot_be_configured_is_closed(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P23, KAFKA-13457: its peer sees the end; it never was a connection."""
    caplog.set_level(logging.INFO)

    class FailsOnce(socket.socket):
        failures = 1

        def setsockopt(self, *arguments: object) -> None:
            if FailsOnce.failures:
                FailsOnce.failures -= 1
                raise OSError("option refused")
            super().setsockopt(*arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(SYSTEM, "listen", failing([], FailsOnce))
    async with serving(kind) as rig:
        unlucky = await rig.connect()
        assert b"" == await unlucky.receive_to_end()
        assert 0 == rig.server.statistics().connections_created
        assert "failed while being accepted: option refused" in caplog.text

        await rig.exchange(await rig.connect(), b"next")


async def test_broken_listening_socket_does_not_end_the_server(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connections go on; a line each second and a metric say that no other gets in."""
    errors = [OSError(errno.ENOTSOCK, "not a socket")] * 3
    monkeypatch.setattr(SYSTEM, "listen", failing(errors, socket.socket))
    async with serving(kind) as rig:
        await rig.exchange(await rig.connect(), b"when it works again")

        assert 3 == rig.server.statistics().unexpected_errors
    assert 1 == caplog.text.count("accepting on L0://")


async def test_lack_of_descriptors_makes_the_acceptor_wait(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """EMFILE: the old connections are served meanwhile, the new one as soon as there is room."""
    async with serving(kind) as rig, undisturbed(rig):
        old = await rig.connect()
        await rig.exchange(old, b"old")
        sock = socket.socket()
        probe = os.dup(sock.fileno())
        os.close(probe)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (probe, limits[1]))
            sock.connect((LOOPBACK, rig.server.endpoints[0].port))
            await wait_all_tasks_blocked(0.001)
            assert "Too many open files; retrying" in caplog.text
            await rig.exchange(old, b"still")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

        with Peer(sock) as new:
            await rig.exchange(new, b"new")
        old.close()


async def test_lack_of_descriptors_is_logged_once_a_second_however_long_it_lasts(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [OSError(errno.EMFILE, "Too many open files")] * 5
    monkeypatch.setattr(SYSTEM, "listen", failing(errors, socket.socket))
    async with serving(kind) as rig:
        await rig.exchange(await rig.connect(), b"when there is room again")

    assert [] == errors
    assert 0 < caplog.text.count("cannot accept on L0://") < 5


async def test_socket_for_a_processor_that_has_ended_is_closed(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """KAFKA-2353: no connection is lost without being closed, on no path; and the acceptor goes
    on, also where each connection is logged with the options of its socket (KAFKA-2351)."""
    caplog.set_level(logging.DEBUG, "trionet.server")
    shared = SocketServer(echo, [listener()], ServerConfig(readiness=kind))._shared
    shared.quotas.add_listener("PLAINTEXT")
    builder = ChannelBuilder(listener(), PLAINTEXT, 100, None)
    with trio.fail_after(5):
        async with open_readiness(kind) as readiness:
            processor = Processor(0, listener(), builder, shared, Selector(readiness))
            processor.end()
            await processor.run()
        listening = bind(listener(), backlog=5, receive_buffer_bytes=-1)
        config = ServerConfig(socket_send_buffer_bytes=-1, socket_receive_buffer_bytes=-1)
        lot, nobody = trio.lowlevel.ParkingLot(), cast(Any, None)
        acceptor = Acceptor(
            listener(), listening, shared, config, lot, SYSTEM, nobody, nobody, nobody
        )
        acceptor.processors.append(processor)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acceptor.run)
            for _ in range(2):
                with await Peer.connect(listening.getsockname()[1]) as peer:
                    assert b"" == await peer.receive_to_end()
            nursery.cancel_scope.cancel()
        assert 0 == shared.quotas.total


async def test_listeners_and_accepted_connections_are_logged(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    """With the processor, and the sizes of the buffers: the actual ones and those asked for."""
    caplog.set_level(logging.DEBUG, "trionet.server")
    async with serving(
        kind, socket_send_buffer_bytes=30_000, socket_receive_buffer_bytes=40_000
    ) as rig:
        await rig.exchange(await rig.connect(), b"a")
        endpoint = rig.server.endpoints[0]

    prefix = "[SocketServer broker 0] "
    assert f"{prefix}started listener {endpoint}" in caplog.messages
    assert (
        f"{prefix}accepted a connection from 127.0.0.1 on {endpoint} for processor 0, "
        "sendBufferSize [actual|requested]: [60000|30000] "
        "recvBufferSize [actual|requested]: [80000|40000]"
    ) in caplog.messages
