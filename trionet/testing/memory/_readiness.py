"""The readiness backend of an in-memory network; see :mod:`trionet.net.wire._readiness`."""

from __future__ import annotations

import errno
import math

import trio

from ...net.wire._readiness import EVENTS_MAX, HANGUP
from ._socket import MemorySocket, os_error

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True


class MemoryReadiness:
    """A level-triggered readiness backend that examines only the sockets that may be ready.

    Args:
        sockets: the open sockets of the network, by number.
    """

    def __init__(self, sockets: dict[int, MemorySocket]) -> None:
        self._sockets = sockets
        self._interest: dict[int, int] = {}
        self._hot: dict[int, None] = {}  # sockets that may be ready
        self._expecting: dict[int, None] = {}  # sockets with data in transit
        self._parked: trio.Event | None = None
        self._scope = trio.CancelScope()

    def register(self, fd: int, interest: int) -> None:
        if fd not in self._sockets:
            raise os_error(errno.EBADF)
        if fd in self._interest:
            raise os_error(errno.EEXIST)
        sock = self._sockets[fd]
        self._interest[fd] = interest
        sock.watchers.append(self._touch)
        self._touch(sock)

    def modify(self, fd: int, interest: int) -> None:
        if fd not in self._interest:
            raise os_error(errno.ENOENT)
        self._interest[fd] = interest
        self._touch(self._sockets[fd])

    def unregister(self, fd: int) -> None:
        if fd not in self._interest:
            raise os_error(errno.ENOENT)
        self._sockets[fd].watchers.remove(self._touch)
        self._forget(fd)

    def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
        if self._expecting:
            self._take_arrivals()
        events: list[tuple[int, int]] = []
        for fd in list(self._hot):
            if len(events) == events_max:
                break
            del self._hot[fd]
            bits = self._ready(fd)
            if bits:
                events.append((fd, bits))
                self._hot[fd] = None  # level-triggered; at the end, after those not reported yet
            self._expect(fd)
        return events

    async def park(self) -> None:
        if self._expecting:
            self._take_arrivals()
        if any(self._ready(fd) for fd in self._hot):
            await trio.lowlevel.checkpoint()
            return
        self._parked = trio.Event()
        with trio.CancelScope(deadline=self._next_arrival()) as self._scope:
            await self._parked.wait()
        self._parked = None

    def wakeup(self) -> None:
        if self._parked is not None:
            self._parked.set()

    def _ready(self, fd: int) -> int:
        return self._sockets[fd].ready() & (self._interest[fd] | HANGUP)

    def _touch(self, sock: MemorySocket) -> None:
        """Mark a registered socket for examination, because its state may have changed."""
        fd = sock.number
        if not sock.is_open:
            self._forget(fd)  # as epoll does with closed descriptors
            return
        if fd not in self._hot:
            self._hot[fd] = None
        self._expect(fd)
        if self._parked is None:
            return
        if self._ready(fd):
            self._parked.set()
        else:
            self._scope.deadline = self._next_arrival()

    def _expect(self, fd: int) -> None:
        if self._sockets[fd].incoming.next_arrival < math.inf:
            self._expecting[fd] = None
        else:
            self._expecting.pop(fd, None)

    def _take_arrivals(self) -> None:
        now = trio.current_time()
        for fd in self._expecting:
            if self._sockets[fd].incoming.next_arrival <= now:
                self._hot[fd] = None

    def _next_arrival(self) -> float:
        arrivals = (self._sockets[fd].incoming.next_arrival for fd in self._expecting)
        return min(arrivals, default=math.inf)

    def _forget(self, fd: int) -> None:
        self._interest.pop(fd, None)
        self._hot.pop(fd, None)
        self._expecting.pop(fd, None)
