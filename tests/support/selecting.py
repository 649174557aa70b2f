"""A Selector over real sockets, with a peer at the far end of each channel."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from support.wire import Peer, tcp_pair
from trionet.net.channel import Channel
from trionet.net.close_reason import CloseReason
from trionet.net.framing import Frame
from trionet.net.readiness import Readiness, ReadinessKind, open_readiness
from trionet.net.selector import PollResult, Selector
from trionet.net.transport import PlaintextTransport, TransportLayer

FRAME_BYTES_MAX = 100 * 1024 * 1024


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

    def poll(self) -> list[tuple[int, int]]:
        self.polls += 1
        error, self._error = self._error, None
        if error is not None:
            raise error
        spurious, self.spurious = self.spurious, []
        return spurious + self._readiness.poll()

    async def park(self) -> None:
        self.parks += 1
        await self._readiness.park()

    def wakeup(self) -> None:
        self._readiness.wakeup()


class Selecting:
    """The selector of a test, and what the test does with it."""

    def __init__(self, selector: Selector, readiness: CountingReadiness, opened: ExitStack) -> None:
        self.selector = selector
        self.readiness = readiness
        self._opened = opened
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
        peer = self._opened.enter_context(Peer(far))
        channel = Channel(id or f"c{self._created}", transport(near), frame_bytes_max)
        self._created += 1
        self.selector.register(channel)
        return channel, peer

    async def poll(self) -> PollResult:
        """The next poll that has something to tell."""
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
async def selecting(kind: ReadinessKind) -> AsyncIterator[Selecting]:
    """A selector that must hold nothing when the block ends and everything is closed."""
    with trio.fail_after(10), ExitStack() as opened:
        async with open_readiness(kind) as backend:
            readiness = CountingReadiness(backend)
            selector = Selector(readiness)
            try:
                yield Selecting(selector, readiness, opened)
            finally:
                selector.close_all(CloseReason.LOCAL_CLOSE)
            assert 0 == len(selector)
            assert not selector._by_fd
            assert not selector._with_staged
            assert not selector._paused_reads
