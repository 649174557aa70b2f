"""Outgoing connections of a Selector: made, refused, broken on the way, and nothing left behind."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from trio.testing import MockClock

from support.selecting import Selecting, selecting
from support.wire import LOOPBACK, Peer, frame, open_sockets, reset
from trionet.errors import LocalProtocolError
from trionet.net._channel import Channel
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._connecting import Address, open_socket, resolve
from trionet.net.wire._readiness import READ, WRITE, ReadinessKind
from trionet.net.wire._transmission import Send
from trionet.net.wire._transport import PlaintextTransport


@contextmanager
def listening(backlog: int = 50) -> Iterator[tuple[socket.socket, Address]]:
    with socket.create_server((LOOPBACK, 0), backlog=backlog) as sock:
        yield sock, sock.getsockname()


def nobody() -> Address:
    """Where nobody listens."""
    with listening() as (_, address):
        return address


def begin(
    rig: Selecting, address: Address, id: str = "c", sock: socket.socket | None = None
) -> Channel:
    """A channel that is on its way."""
    sock = sock or open_socket(address)
    channel = Channel(id, PlaintextTransport(sock), 1000, connects=True)
    rig.selector.connect(channel, sock, address)
    return channel


@asynccontextmanager
async def connecting(
    kind: ReadinessKind,
) -> AsyncIterator[tuple[Selecting, socket.socket, Address]]:
    """A selector and a listening socket; nothing may be left of what they do."""
    with listening() as (sock, address):
        before = open_sockets()
        async with selecting(kind, authentication_seconds_max=1) as rig:
            yield rig, sock, address
            assert not len(rig.selector._steps.preparing._in_progress)
        assert before == open_sockets()


def accepted(rig: Selecting, sock: socket.socket) -> Peer:
    return rig._opened.enter_context(Peer(sock.accept()[0]))


async def test_a_connection_is_made_and_works(kind: ReadinessKind) -> None:
    """S28: told of once, and counted."""
    async with connecting(kind) as (rig, sock, address):
        channels = [begin(rig, address, f"c{number}") for number in range(5)]
        assert not any(channel.is_ready for channel in channels)

        connected: list[Channel] = []
        while len(connected) < 5:
            connected += (await rig.poll()).connected

        assert sorted(channel.id for channel in channels) == sorted(c.id for c in connected)
        assert (5, 5) == (len(rig.selector.channels), rig.selector.counters.connected)
        assert all(channel.is_ready and channel.interest == READ for channel in channels)
        peer = accepted(rig, sock)
        await peer.send_frames(b"hello")
        [(channel, payload)] = (await rig.poll()).completed_receives
        assert b"hello" == payload
        assert rig.selector.send(channel, Send([frame(b"you")]))
        assert b"you" == await peer.receive_frame()
        assert await rig.is_quiet()


async def test_a_refused_connection_is_reported_as_disconnected(kind: ReadinessKind) -> None:
    """S6: once, with its reason; the id is free again."""
    async with connecting(kind) as (rig, _, address):
        channel = begin(rig, nobody())

        result = await rig.poll()

        assert ([], [channel]) == (result.connected, result.disconnected)
        assert CloseReason.NOT_CONNECTED is channel.close_reason
        assert "refused" in channel.close_detail
        assert 0 == rig.selector.counters.connected
        again = begin(rig, address)
        assert [again] == (await rig.poll()).connected


async def test_a_name_without_an_address_is_an_error() -> None:
    """S5: it says which name."""
    with pytest.raises(OSError, match="no such host has no address: "):
        await resolve("no such host", 9092)


async def test_a_name_without_an_address_is_shown_on_one_line() -> None:
    with pytest.raises(OSError, match="has no address") as failed:
        await resolve(f"\x1b[2J\n{'a' * 64}", 9092)

    assert str(failed.value).startswith(r"\x1b[2J\naaa")
    assert str(failed.value).isprintable()


async def test_an_address_is_its_own() -> None:
    assert [(LOOPBACK, 9092)] == await resolve(LOOPBACK, 9092)


async def test_a_name_in_place_of_an_address_is_an_error(kind: ReadinessKind) -> None:
    """S5: looking it up would make the loop wait; nothing is kept."""
    async with connecting(kind) as (rig, _, _):
        with pytest.raises(OSError, match=r"not known|not supported"):
            begin(rig, ("localhost", 9092))

        assert 0 == len(rig.selector.channels)


async def test_an_id_in_use_cannot_connect_again(kind: ReadinessKind) -> None:
    """S13: whether it is connected yet or not; the first one is not touched."""
    async with connecting(kind) as (rig, _, address):
        channel = begin(rig, address)
        with pytest.raises(LocalProtocolError, match="id c is already registered"):
            begin(rig, address)
        assert [channel] == (await rig.poll()).connected
        with pytest.raises(LocalProtocolError, match="id c is already registered"):
            begin(rig, address)

        assert [channel] == list(rig.selector.channels)


async def test_only_a_channel_that_was_made_to_connect_can(kind: ReadinessKind) -> None:
    """One of a connection that exists would never be reported as connected."""
    async with connecting(kind) as (rig, _, address):
        sock = open_socket(address)
        channel = Channel("c", PlaintextTransport(sock), 1000)

        with pytest.raises(LocalProtocolError, match="not created with connects=True"):
            rig.selector.connect(channel, sock, address)

        assert sock.fileno() == -1
        assert 0 == len(rig.selector.channels)


class Immediate(socket.socket):
    """A socket that is connected at once, as some systems do it for the loopback."""

    def connect_ex(self, address: object) -> int:
        self.setblocking(True)
        super().connect(address)  # type: ignore[arg-type]
        self.setblocking(False)
        return 0


@pytest.mark.parametrize("closes", ["before the poll", "after it", "never"])
async def test_a_connection_that_is_made_at_once(kind: ReadinessKind, closes: str) -> None:
    """S19, KAFKA-3378: the next poll tells of it; closed before or after that it leaves nothing."""
    async with connecting(kind) as (rig, _, address):
        channel = begin(rig, address, sock=Immediate(socket.AF_INET))
        if closes == "before the poll":
            rig.selector.close(channel)
            assert await rig.is_quiet()
            return

        assert [channel] == (await rig.poll()).connected
        if closes == "after it":
            rig.selector.close(channel)

        assert await rig.is_quiet()
        assert (0 if closes == "after it" else 1) == len(rig.selector.channels)


async def test_a_connect_that_fails_late_leaves_nothing(kind: ReadinessKind) -> None:
    """S20, KAFKA-7712: its socket is closed, its id is free."""
    async with connecting(kind) as (rig, _, address):

        def refuse(fd: int, interest: int) -> None:
            raise OSError(f"no room to watch {fd} for {interest}")

        register = rig.readiness.register
        rig.readiness.register = refuse  # type: ignore[method-assign]
        sock = open_socket(address)
        with pytest.raises(OSError, match="no room"):
            begin(rig, address, sock=sock)

        assert sock.fileno() == -1
        assert 0 == len(rig.selector.channels)
        assert not rig.selector.channels.by_fd
        assert not len(rig.selector._steps.preparing._in_progress)
        rig.readiness.register = register  # type: ignore[method-assign]
        again = begin(rig, address)
        assert [again] == (await rig.poll()).connected


async def test_a_connection_that_breaks_before_it_is_reported(kind: ReadinessKind) -> None:
    """S27: only disconnected, not connected."""
    async with connecting(kind) as (rig, sock, address):
        channel = begin(rig, address)
        reset(sock.accept()[0])

        result = await rig.poll()

        assert ([], [channel]) == (result.connected, result.disconnected)


async def test_a_connection_that_is_made_and_breaks_in_one_poll(kind: ReadinessKind) -> None:
    """S27, KAFKA-5417: as far as the caller sees it."""
    async with connecting(kind) as (rig, sock, address):
        channel = begin(rig, address)
        peer = sock.accept()[0]
        rig.selector._steps.on_event(channel, WRITE)
        assert channel.is_ready

        rig.selector.disconnect(channel, CloseReason.PEER_RESET)
        reset(peer)
        result = await rig.poll()

        assert ([], [channel]) == (result.connected, result.disconnected)


async def test_a_connection_that_is_never_made_is_given_up(
    kind: ReadinessKind, mock_clock: MockClock
) -> None:
    """Where the peer drops what it has no room for."""
    with listening(backlog=0) as (_, address):
        async with selecting(kind, authentication_seconds_max=1) as rig:
            channels = [begin(rig, address, f"c{number}") for number in range(3)]
            for _ in range(20):
                await rig.selector.poll(seconds_max=0)
            waiting = [channel for channel in channels if not channel.is_ready]
            assert waiting

            mock_clock.jump(1.1)
            ended: list[Channel] = []
            while len(ended) < len(waiting):
                ended += (await rig.poll()).disconnected

            assert waiting == ended
            assert CloseReason.NOT_CONNECTED is ended[0].close_reason
            assert "took too long" in ended[0].close_detail


async def test_a_socket_that_is_called_writable_too_early_is_not_taken_for_connected(
    kind: ReadinessKind,
) -> None:
    """KAFKA-3378: whether the connection is made is asked of the socket itself."""
    with listening(backlog=0) as (_, address):
        async with selecting(kind) as rig:
            channels = [begin(rig, address, f"c{number}") for number in range(3)]
            for _ in range(20):
                await rig.selector.poll(seconds_max=0)
            waiting = [channel for channel in channels if not channel.is_ready]
            assert waiting
            rig.readiness.spurious = [(channel.fd, WRITE) for channel in waiting]

            assert (await rig.selector.poll(seconds_max=0)).is_empty

            assert not any(channel.is_ready for channel in waiting)
            assert all(channel.is_open for channel in waiting)


async def test_closing_all_includes_what_is_on_its_way(kind: ReadinessKind) -> None:
    async with connecting(kind) as (rig, _, address):
        channel = begin(rig, address)

        assert [channel] == rig.selector.close_all(CloseReason.LOCAL_CLOSE)


def test_sockets_have_their_options() -> None:
    """X16: no delay, keep-alive, both buffer sizes unless -1; Linux doubles them."""
    with socket.socket() as plain:
        default = plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    for size, expected in ((30_000, {60_000, 30_000}), (-1, {default})):
        with open_socket((LOOPBACK, 1), send_buffer_bytes=size, receive_buffer_bytes=size) as sock:
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in expected
            assert 0 == sock.gettimeout()


async def test_an_ipv6_address_gets_a_socket_of_its_kind(kind: ReadinessKind) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as sock:
        async with selecting(kind) as rig:
            channel = begin(rig, sock.getsockname())

            assert [channel] == (await rig.poll()).connected
