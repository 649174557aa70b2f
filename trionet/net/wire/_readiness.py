"""Reports which sockets can be read or written: one interface, two backends (design 3.1).

:class:`PollerReadiness` owns an ``epoll`` and, when nothing is ready, parks in one trio wait on
the epoll's own descriptor: a thousand connections cost one task. :class:`SocketReadiness` serves
the same interface with one trio wait per socket, for systems whose poller cannot be nested
(Windows, and macOS here) or when asked to, so that Linux tests cover it.

Both are level-triggered: what was ready and not consumed is reported again.
"""

from __future__ import annotations

import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal, Protocol

import trio

READ: Final = 1
WRITE: Final = 4
# The connection has failed or is closed on both sides. Reported even with an empty interest.
HANGUP: Final = 8 | 16
# The maximum number of sockets that one poll reports.
EVENTS_MAX: Final = 1024

ReadinessKind = Literal["poller", "socket"]


class Readiness(Protocol):
    """A backend that watches a set of sockets."""

    def register(self, fd: int, interest: int) -> None: ...

    def modify(self, fd: int, interest: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
        """``(fd, events)`` of what is ready now; never waits.

        If more than ``events_max`` are ready, the next poll reports the others first.
        """
        ...

    async def park(self) -> None:
        """Wait until :meth:`poll` may have something, or :meth:`wakeup` was called. One wait."""
        ...

    def wakeup(self) -> None:
        """End the current park, if there is one."""
        ...


if sys.platform == "linux":

    class PollerReadiness:
        """An epoll of our own, nested in trio's.

        The bits of ``select.EPOLL*`` are the ones of this module on every Linux.
        """

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self._fd = self._epoll.fileno()
            self._poll = self._epoll.poll
            self._is_parked = False

        def register(self, fd: int, interest: int) -> None:
            self._epoll.register(fd, interest)

        def modify(self, fd: int, interest: int) -> None:
            self._epoll.modify(fd, interest)

        def unregister(self, fd: int) -> None:
            self._epoll.unregister(fd)

        def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
            return self._poll(0, events_max)

        async def park(self) -> None:
            self._is_parked = True
            try:
                await trio.lowlevel.wait_readable(self._fd)
            except trio.ClosedResourceError:
                pass  # raised because of wakeup()
            finally:
                self._is_parked = False

        def wakeup(self) -> None:
            if self._is_parked:
                # Cheaper than a cancel scope around every park (4.6 µs), and needs no descriptor
                # and no system calls of its own as an eventfd would.
                self._is_parked = False
                trio.lowlevel.notify_closing(self._fd)

        def close(self) -> None:
            self._epoll.close()


class SocketReadiness:
    """One trio wait per socket and direction; the tasks live in the nursery that is given.

    A hang-up of a socket that nothing waits for is noticed only when it is next used.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._watches: dict[int, _Watch] = {}
        self._ready: dict[int, int] = {}
        self._consumed: list[int] = []
        self._parked = trio.Event()

    def register(self, fd: int, interest: int) -> None:
        self._watches[fd] = _Watch(fd)
        self.modify(fd, interest)

    def modify(self, fd: int, interest: int) -> None:
        watch = self._watches[fd]
        watch.interest = interest
        self._arm(watch)

    def unregister(self, fd: int) -> None:
        del self._watches[fd]
        self._ready.pop(fd, None)
        trio.lowlevel.notify_closing(fd)

    def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
        self._rearm()
        events: list[tuple[int, int]] = []
        for fd, bits in self._ready.items():
            if len(events) == events_max:
                break
            self._consumed.append(fd)
            if wanted := bits & self._watches[fd].interest:
                events.append((fd, wanted))
        for fd in self._consumed:
            del self._ready[fd]
        return events

    async def park(self) -> None:
        self._rearm()
        self._parked = trio.Event()
        if self._ready:
            await trio.lowlevel.checkpoint()
        else:
            await self._parked.wait()

    def wakeup(self) -> None:
        self._parked.set()

    def _rearm(self) -> None:
        consumed, self._consumed = self._consumed, []
        for fd in consumed:
            if fd in self._watches:
                self._arm(self._watches[fd])

    def _arm(self, watch: _Watch) -> None:
        for direction in (READ, WRITE):
            if watch.interest & direction and not watch.waiting & direction:
                watch.waiting |= direction
                self._nursery.start_soon(self._wait, watch, direction, name=f"wait fd {watch.fd}")

    async def _wait(self, watch: _Watch, direction: int) -> None:
        if self._watches.get(watch.fd) is not watch:
            return  # unregistered before this task ran; the number may be another socket's by now
        wait = trio.lowlevel.wait_readable if direction == READ else trio.lowlevel.wait_writable
        try:
            await wait(watch.fd)
        except trio.ClosedResourceError:
            return  # unregistered
        watch.waiting &= ~direction
        if self._watches.get(watch.fd) is watch:
            self._ready[watch.fd] = self._ready.get(watch.fd, 0) | direction
            self._parked.set()


class _Watch:
    """What one registration wants, and which directions have a waiting task."""

    __slots__ = ("fd", "interest", "waiting")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.interest = 0
        self.waiting = 0


def default_readiness_kind() -> ReadinessKind:
    """``"poller"`` where an own poller can be nested in trio's, otherwise ``"socket"``."""
    return "poller" if sys.platform == "linux" else "socket"


@asynccontextmanager
async def open_readiness(kind: ReadinessKind | None = None) -> AsyncIterator[Readiness]:
    """A readiness backend for as long as the block lasts.

    Args:
        kind: ``"poller"``, ``"socket"``, or None for the best one of this system.

    Raises:
        ValueError: this system has no backend of that kind.
    """
    kind = kind or default_readiness_kind()
    if kind == "poller" and sys.platform == "linux":
        poller = PollerReadiness()
        try:
            yield poller
        finally:
            poller.close()
    elif kind == "socket":
        async with trio.open_nursery() as nursery:
            yield SocketReadiness(nursery)
            nursery.cancel_scope.cancel()
    else:
        raise ValueError(
            f"readiness {kind!r} does not exist on {sys.platform}; "
            f"{default_readiness_kind()!r} does"
        )
