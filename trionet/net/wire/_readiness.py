"""The readiness of sockets for reads and writes: one interface, two backends.

:class:`PollerReadiness` owns an ``epoll``. When no socket is ready, it parks in one trio wait on
the epoll's file descriptor, so a thousand connections need one task. :class:`SocketReadiness`
has the same interface and one trio wait per socket, for systems without a poller that can be nested
in trio's (macOS, Windows). It can be selected on Linux as well, so that tests there cover it.

Both are level-triggered: a socket is reported until its data has been read, or its buffer is full.
"""

from __future__ import annotations

import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Final, Literal, Protocol

import attrs
import trio

from ..._util._background import open_background_nursery

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
        """Return ``(fd, bits)`` for each socket that is ready now; never waits.

        If more than ``events_max`` sockets are ready, the next poll reports the remaining ones
        first.
        """
        ...

    async def park(self) -> None:
        """Wait until :meth:`poll` may report a socket, or until :meth:`wakeup` is called."""
        ...

    def wakeup(self) -> None:
        """End the current park, if there is one."""
        ...


if sys.platform == "linux":

    class PollerReadiness:
        """A backend with a separate epoll, nested in trio's.

        On Linux, the bits of this module equal ``select.EPOLL*``.
        """

        def __init__(self) -> None:
            epoll = select.epoll()
            self._fd = epoll.fileno()
            self._poll = epoll.poll
            self._is_parked = False
            self.register = epoll.register
            self.modify = epoll.modify
            self.unregister = epoll.unregister
            self.close = epoll.close

        def poll(self, events_max: int = EVENTS_MAX) -> list[tuple[int, int]]:
            return self._poll(0, events_max)

        async def park(self) -> None:
            self._is_parked = True
            try:
                await trio.lowlevel.wait_readable(self._fd)
            except trio.ClosedResourceError:
                pass  # wakeup() was called
            finally:
                self._is_parked = False

        def wakeup(self) -> None:
            if self._is_parked:
                # A cancel scope around every park would cost 4.6 µs, and an eventfd another
                # descriptor and two system calls.
                self._is_parked = False
                trio.lowlevel.notify_closing(self._fd)


class SocketReadiness:
    """A backend with one trio wait, in a task of ``nursery``, per socket and direction.

    A hang-up of a socket without interest is noticed only when the socket is next used.
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
            return  # unregistered before this task ran; the fd may be another socket's by now
        wait = trio.lowlevel.wait_readable if direction == READ else trio.lowlevel.wait_writable
        try:
            await wait(watch.fd)
        except trio.ClosedResourceError:
            return  # unregistered
        watch.waiting &= ~direction
        if self._watches.get(watch.fd) is watch:
            self._ready[watch.fd] = self._ready.get(watch.fd, 0) | direction
            self._parked.set()


@attrs.define(eq=False)
class _Watch:
    """The interest of one socket, and the directions that have a waiting task."""

    fd: int
    interest: int = 0
    waiting: int = 0


def default_readiness_kind() -> ReadinessKind:
    """Return ``"poller"`` where a poller can be nested in trio's, otherwise ``"socket"``."""
    return "poller" if sys.platform == "linux" else "socket"


@asynccontextmanager
async def open_readiness(kind: ReadinessKind | None = None) -> AsyncIterator[Readiness]:
    """Open a readiness backend; it is closed at the end of the block.

    Args:
        kind: ``"poller"``, ``"socket"``, or None for the best one on this system.

    Raises:
        ValueError: this system has no backend of that kind.
    """
    kind = kind or default_readiness_kind()
    if kind == "poller" and sys.platform == "linux":
        with closing(PollerReadiness()) as poller:
            yield poller
    elif kind == "socket":
        async with open_background_nursery() as nursery:
            yield SocketReadiness(nursery)
    else:
        raise ValueError(
            f"readiness {kind!r} is not available on {sys.platform}; "
            f"allowed: {default_readiness_kind()!r}"
        )
