"""A Selector over real sockets, with a peer at the far end of each channel."""

from __future__ import annotations

import math
import select
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Literal, cast

import trio
from trio.testing import wait_all_tasks_blocked

from support.tls import TlsClient, server_context, shake_hands
from support.tls_peer import TlsPeer
from support.wire import Peer, tcp_pair
from trionet.net._channel import Channel
from trionet.net._channels import PollResult, Shuffle
from trionet.net._selector import Selector
from trionet.net.tls._tls_transport import TlsTransport
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import Frame
from trionet.net.wire._memory_pool import MemoryPool
from trionet.net.wire._readiness import EVENTS_MAX, READ, Readiness, ReadinessKind, open_readiness
from trionet.net.wire._transport import PlaintextTransport, TransportLayer

FRAME_BYTES_MAX = 100 * 1024 * 1024

Link = Literal["poller", "socket", "poller under TLS", "socket under TLS"]
"""A readiness backend, and whether connections are under TLS."""


class CountingReadiness:
    """A backend that counts how often it is used, and can be told to fail.

    Attributes:
        refused: a descriptor that cannot be modified any more.
        spurious: events that the next poll reports besides the true ones.
    """

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self.polls = 0
        self.parks = 0
        self.modifications: list[tuple[int, int]] = []
        self.refused = -1
        self.spurious: list[tuple[int, int]] = []
        self._error: OSError | None = None

    def fail_once(self, error: OSError) -> None:
        """Raise this from the next poll."""
        self._error = error

    def register(self, fd: int, interest: int) -> None:
        self._readiness.register(fd, interest)

    def modify(self, fd: int, interest: int) -> None:
        self.modifications.append((fd, interest))
        if fd == self.refused:
            raise OSError("this descriptor is not watched")
        self._readiness.modify(fd, interest)

    def unregister(self, fd: int) -> None:
        self._readiness.unregister(fd)

    def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
        self.polls += 1
        error, self._error = self._error, None
        if error is not None:
            raise error
        spurious, self.spurious = self.spurious, []
        return spurious + self._readiness.poll(events_max)

    async def park(self) -> None:
        self.parks += 1
        await self._readiness.park()

    def wakeup(self) -> None:
        self._readiness.wakeup()


class Selecting:
    """The selector of a test, and what the test does with it."""

    def __init__(
        self,
        selector: Selector,
        readiness: CountingReadiness,
        opened: ExitStack,
        is_tls: bool,
        pool: MemoryPool | None,
    ) -> None:
        self.selector = selector
        self.readiness = readiness
        self.pool = pool
        self._opened = opened
        self._is_tls = is_tls
        self._created = 0

    def connect(
        self,
        *,
        id: str | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        send_buffer_bytes: int | None = None,
        receive_buffer_bytes: int | None = None,
        transport: Callable[[socket.socket], TransportLayer] = PlaintextTransport,
    ) -> tuple[Channel, Peer]:
        """A registered channel, and its peer; `receive_buffer_bytes` is the peer's."""
        near, far = tcp_pair(receive_buffer_bytes=receive_buffer_bytes)
        self._opened.callback(near.close)
        if send_buffer_bytes is not None:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        id = id or f"c{self._created}"
        self._created += 1
        if self._is_tls:
            return self._connect_tls(id, near, far, frame_bytes_max)
        peer = self._opened.enter_context(Peer(far))
        channel = Channel(id, transport(near), frame_bytes_max, pool=self.pool)
        self.selector.register(channel)
        return channel, peer

    def _connect_tls(
        self, id: str, near: socket.socket, far: socket.socket, frame_bytes_max: int
    ) -> tuple[Channel, Peer]:
        """The same after a handshake under TLS, which has left nothing to be read."""
        self._opened.callback(far.close)
        tls, client = TlsTransport(near, server_context()), TlsClient(far)
        shake_hands(tls, client)
        assert client.feed()  # session tickets: unread, they would make a reset of a close
        channel = Channel(id, tls, frame_bytes_max, pool=self.pool)
        self.selector.register(channel)
        steps = self.selector._steps
        steps.on_event(channel, READ)
        while not channel.is_ready:  # a pass of the loop has time for a few of them only
            self.selector.counters.polls += 1
            steps.on_event(channel, READ)
        steps.has_more.pop(channel, None)  # a step it had to wait for, which is made by now
        return channel, self._opened.enter_context(TlsPeer(client))

    def wait_readable(self, channel: Channel) -> None:
        """Until the kernel has something for it, which on a busy machine is not at once."""
        assert select.select([channel.transport], [], [], 5)[0]

    async def poll(self) -> PollResult:
        """The next poll that has something to report."""
        while True:
            result = await self.selector.poll()
            if not result.is_empty:
                return result

    async def is_quiet(self) -> bool:
        """Whether the loop comes to rest in its one wait, and tells nothing.

        A loop that spins never lets all tasks block: then the deadline ends the test.
        """
        results: list[PollResult] = []

        async def poll() -> None:
            results.append(await self.poll())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await wait_all_tasks_blocked(0.001)
            polls = self.readiness.polls
            await wait_all_tasks_blocked(0.001)
            nursery.cancel_scope.cancel()
        return not results and polls == self.readiness.polls

    async def receive(self, channel: Channel) -> Frame:
        """The next frame of this channel, when nothing else happens before it."""
        result = await self.poll()
        [(receiver, payload)] = result.completed_receives
        assert channel is receiver
        assert not result.disconnected
        return payload

    async def disconnected(self, channel: Channel) -> CloseReason:
        """Why this channel ended, when nothing else happens before that."""
        result = await self.poll()
        assert [] == result.completed_receives
        assert [channel] == result.disconnected
        assert channel.close_reason is not None
        return channel.close_reason


@asynccontextmanager
async def selecting(
    link: Link,
    *,
    idle_seconds_max: float = math.inf,
    authentication_seconds_max: float = math.inf,
    pool: MemoryPool | None = None,
    shuffle: Shuffle | None = None,
    times_channels: bool = False,
) -> AsyncIterator[Selecting]:
    """A selector that must hold nothing when the block ends and everything is closed."""
    kind, _, tls = link.partition(" ")
    with trio.fail_after(10), ExitStack() as opened:
        async with (
            open_readiness(cast(ReadinessKind, kind)) as backend,
            trio.open_nursery() as nursery,
        ):
            readiness = CountingReadiness(backend)
            selector = Selector(
                readiness,
                idle_seconds_max=idle_seconds_max,
                authentication_seconds_max=authentication_seconds_max,
                pool=pool,
                shuffle=shuffle,
                times_channels=times_channels,
            )
            nursery.start_soon(selector.alarm.keep_time)
            try:
                yield Selecting(selector, readiness, opened, bool(tls), pool)
            finally:
                nursery.cancel_scope.cancel()
                selector.close_all(CloseReason.LOCAL_CLOSE)
            assert 0 == len(selector.channels)
            assert not selector.channels.by_fd
            assert not selector._steps.has_more
            assert not selector._steps.paused
            assert not len(selector._steps.preparing._in_progress)
