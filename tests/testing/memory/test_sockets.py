"""Sockets in memory do what those of the kernel do: every test runs on both."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any, Literal

import pytest
import trio
import trio.testing

from support.wire import reset as reset_tcp
from trionet.net._network import SYSTEM, Network
from trionet.net.wire._connecting import Address, begin_connect, finish_connect
from trionet.net.wire._endpoint import Endpoint
from trionet.net.wire._readiness import HANGUP, READ, WRITE, Readiness
from trionet.testing import MemoryNetwork

Kind = Literal["system", "memory"]
ENDPOINT = Endpoint.parse("PLAINTEXT://127.0.0.1:0")


def network_of(kind: Kind) -> Network:
    return SYSTEM if kind == "system" else MemoryNetwork()


@pytest.fixture(params=["system", "memory"])
def network(request: pytest.FixtureRequest) -> Network:
    return network_of(request.param)


class Ends:
    """Both ends of a connection, and the readiness of the one that was accepted."""

    def __init__(self, near: Any, far: Any, readiness: Readiness) -> None:
        self.near = near
        self.far = far
        self.readiness = readiness

    async def events(self) -> int:
        """What the next poll with something to report says of the near end."""
        with trio.fail_after(5):
            while not (events := self.readiness.poll()):
                await self.readiness.park()
        [(_, bits)] = events
        return bits

    def reset_far(self) -> None:
        if isinstance(self.far, socket.socket):
            reset_tcp(self.far)
        else:
            self.far.reset()


async def connected(network: Network, **buffers: int) -> tuple[Any, Any]:
    """The accepted end, and the one that connected."""
    with closing(network.listen(ENDPOINT, backlog=5, receive_buffer_bytes=-1)) as listening:
        address = listening.getsockname()
        far = network.open_socket(address, **buffers)
        begin_connect(far, address)
        await network.wait_acceptable(listening)
        near: Any = listening.accept()[0]
        if isinstance(near, socket.socket):
            near.setblocking(False)
        async with network.open_readiness(None) as readiness:
            readiness.register(far.fileno(), WRITE)
            while not readiness.poll():
                await readiness.park()
            assert finish_connect(far)
            readiness.unregister(far.fileno())
    return near, far


@asynccontextmanager
async def ends(network: Network, interest: int = READ, **buffers: int) -> AsyncIterator[Ends]:
    near, far = await connected(network, **buffers)
    with near, far:
        async with network.open_readiness(None) as readiness:
            readiness.register(near.fileno(), interest)
            yield Ends(near, far, readiness)


async def test_bytes_arrive_in_order_and_in_any_pieces(network: Network) -> None:
    async with ends(network) as each:
        each.far.send(b"ab")
        each.far.send(b"cdef")
        assert READ == await each.events()

        assert b"abc" == each.near.recv(3)
        assert b"def" == each.near.recv(100)
        with pytest.raises(BlockingIOError):
            each.near.recv(1)
        assert [] == each.readiness.poll()


async def test_bytes_are_read_into_a_buffer(network: Network) -> None:
    async with ends(network) as each:
        each.far.sendmsg([b"ab", b"cd"])
        await each.events()
        buffer = bytearray(6)

        assert 4 == each.near.recv_into(memoryview(buffer))
        assert b"abcd\0\0" == bytes(buffer)


async def test_addresses_are_those_of_the_two_ends(network: Network) -> None:
    near, far = await connected(network)
    with near, far:
        assert far.getsockname() == near.getpeername()
        assert near.getsockname() == far.getpeername()
        assert "127.0.0.1" == near.getsockname()[0]


async def test_who_is_not_read_from_can_write_only_so_much(network: Network) -> None:
    async with ends(network, WRITE, receive_buffer_bytes=4096) as each:
        assert WRITE == await each.events()
        sent = fill(each.near)
        assert [] == each.readiness.poll()

        received = 0
        while received < sent:
            with trio.fail_after(5):
                await wait_readable(network, each.far)
            received += len(each.far.recv(1 << 20))
        assert WRITE == await each.events()
        assert 0 < each.near.send(b"x")


def fill(sock: Any) -> int:
    """Write until nothing more is taken; how many bytes were."""
    sent = 0
    while True:
        try:
            sent += sock.send(bytes(1 << 20))
        except BlockingIOError:
            return sent


async def wait_readable(network: Network, sock: Any) -> None:
    async with network.open_readiness(None) as readiness:
        readiness.register(sock.fileno(), READ)
        while not readiness.poll():
            await readiness.park()
        readiness.unregister(sock.fileno())


async def test_end_of_stream_comes_after_the_bytes_and_the_other_way_stays_open(
    network: Network,
) -> None:
    async with ends(network) as each:
        each.far.send(b"last")
        each.far.shutdown(socket.SHUT_WR)
        assert READ == await each.events() & READ

        assert b"last" == each.near.recv(100)
        assert READ == await each.events() & READ
        assert b"" == each.near.recv(100)
        assert 2 == each.near.send(b"ok")
        await wait_readable(network, each.far)
        assert b"ok" == each.far.recv(100)
        with pytest.raises(BrokenPipeError):
            each.far.send(b"more")


async def test_both_ways_closed_is_a_hang_up_whatever_the_interest(network: Network) -> None:
    async with ends(network, 0) as each:
        each.far.shutdown(socket.SHUT_WR)
        assert [] == each.readiness.poll()

        each.near.shutdown(socket.SHUT_WR)

        assert await each.events() & HANGUP


async def test_close_is_an_end_of_stream(network: Network) -> None:
    async with ends(network) as each:
        each.far.send(b"last")
        each.far.close()
        await each.events()

        assert (b"last", b"") == (each.near.recv(100), each.near.recv(100))


async def test_reset_is_an_error_once_and_an_end_from_then_on(network: Network) -> None:
    async with ends(network, 0) as each:
        each.reset_far()
        assert await each.events() & HANGUP

        with pytest.raises(ConnectionResetError):
            each.near.recv(1)
        assert b"" == each.near.recv(1)
        with pytest.raises(BrokenPipeError):
            each.near.send(b"x")
        with pytest.raises(OSError, match=r"(?i)not connected"):
            each.near.getpeername()


async def test_close_with_unread_bytes_is_a_reset(network: Network) -> None:
    async with ends(network, 0) as each:
        each.near.send(b"nobody reads this")
        await wait_readable(network, each.far)
        each.far.close()
        assert await each.events() & HANGUP

        with pytest.raises(ConnectionResetError):
            each.near.recv(1)


async def test_writing_to_a_closed_socket_gets_a_reset(network: Network) -> None:
    async with ends(network, 0) as each:
        each.far.close()
        assert [] == each.readiness.poll()

        assert 1 == each.near.send(b"x")

        assert await each.events() & HANGUP
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            each.near.send(b"y")


async def connect(network: Network, sock: Any, address: Address) -> None:
    begin_connect(sock, address)
    async with network.open_readiness(None) as readiness:
        readiness.register(sock.fileno(), WRITE)
        with trio.fail_after(5):
            while not readiness.poll():
                await readiness.park()
    finish_connect(sock)


async def test_no_listening_socket_is_an_error(network: Network) -> None:
    with closing(network.listen(ENDPOINT, backlog=1, receive_buffer_bytes=-1)) as listening:
        address = listening.getsockname()
    sock = network.open_socket(address)
    try:
        with pytest.raises(ConnectionRefusedError):
            await connect(network, sock, address)
    finally:
        sock.close()


async def test_connections_that_were_never_accepted_end_with_the_listening_socket(
    network: Network,
) -> None:
    async with network.open_readiness(None) as readiness:
        with closing(network.listen(ENDPOINT, backlog=5, receive_buffer_bytes=-1)) as listening:
            sock: Any = network.open_socket(listening.getsockname())
            begin_connect(sock, listening.getsockname())
            await network.wait_acceptable(listening)
        with sock:
            readiness.register(sock.fileno(), READ)
            with trio.fail_after(5):
                while not readiness.poll():
                    await readiness.park()

            with pytest.raises(ConnectionResetError):
                sock.recv(1)


async def test_an_address_is_taken_once(network: Network) -> None:
    with closing(network.listen(ENDPOINT, backlog=1, receive_buffer_bytes=-1)) as listening:
        taken = ENDPOINT.with_port(listening.getsockname()[1])

        with pytest.raises(OSError, match=r"cannot listen on PLAINTEXT://127\.0\.0\.1:") as refused:
            network.listen(taken, backlog=1, receive_buffer_bytes=-1)
    assert errno.EADDRINUSE == refused.value.errno
    network.listen(taken, backlog=1, receive_buffer_bytes=-1).close()


@pytest.mark.parametrize(
    "use",
    [
        lambda sock: sock.recv(1),
        lambda sock: sock.send(b"x"),
        lambda sock: sock.getsockname(),
        lambda sock: sock.shutdown(socket.SHUT_WR),
    ],
)
async def test_what_is_closed_stays_so(network: Network, use: Callable[[Any], object]) -> None:
    near, far = await connected(network)
    near.close()
    far.close()
    far.close()

    assert -1 == far.fileno()
    with pytest.raises(OSError) as refused:
        use(far)
    assert errno.EBADF == refused.value.errno


async def test_readiness_knows_what_is_registered(network: Network) -> None:
    async with ends(network) as each:
        near = each.near.fileno()
        with pytest.raises(FileExistsError):
            each.readiness.register(near, READ)
        each.readiness.unregister(near)
        with pytest.raises(FileNotFoundError):
            each.readiness.unregister(near)
        with pytest.raises(FileNotFoundError):
            each.readiness.modify(near, READ)
        each.far.send(b"x")
        assert [] == each.readiness.poll()
        each.readiness.register(near, READ)
        assert READ == await each.events()


async def test_more_events_than_asked_for_come_in_turn(network: Network) -> None:
    pairs = [await connected(network) for _ in range(4)]
    async with network.open_readiness(None) as readiness:
        for near, far in pairs:
            readiness.register(near.fileno(), READ)
            far.send(b"x")
        told = []
        for _ in range(2):
            told += readiness.poll(2)
        assert {near.fileno() for near, _ in pairs} == {fd for fd, _ in told}
    for each in pairs:
        for sock in each:
            sock.close()


async def test_a_park_ends_when_it_is_woken(network: Network) -> None:
    async with network.open_readiness(None) as readiness, trio.open_nursery() as nursery:
        nursery.start_soon(readiness.park)
        await trio.testing.wait_all_tasks_blocked()
        readiness.wakeup()
