"""Listening sockets of an in-memory network."""

from __future__ import annotations

import errno
import math
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import trio

from ...net.wire._connecting import Address
from ._socket import MemorySocket, os_error


class ListeningMemorySocket:
    """A listening socket; created by :meth:`~trionet.testing.MemoryNetwork.listen`.

    Attributes:
        changed: an event that is set, and replaced, when a connection is queued or the socket is
            closed.
    """

    def __init__(
        self,
        on_change: Callable[[ListeningMemorySocket], None],
        address: Address,
        backlog: int,
    ) -> None:
        self.changed: trio.Event = trio.Event()
        self._on_change = on_change
        self._address = address
        self._backlog = backlog
        self._pending: deque[tuple[float, MemorySocket]] = deque()  # by time of arrival
        self.is_open: bool = True

    def getsockname(self) -> Address:
        return self._address

    @property
    def has_room(self) -> bool:
        """Whether the backlog has room for another connection."""
        return len(self._pending) < self._backlog

    @property
    def next_arrival(self) -> float:
        """The time at which the next connection can be accepted; infinity if none is queued."""
        return self._pending[0][0] if self._pending else math.inf

    def add(self, sock: MemorySocket, at: float) -> None:
        """Queue a connection to be accepted at time ``at``, but not before any queued earlier."""
        if self._pending:
            at = max(at, self._pending[-1][0])
        self._pending.append((at, sock))
        self.wake()

    def wake(self) -> None:
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    def accept(self) -> tuple[MemorySocket, Address]:
        if not self.is_open:
            raise os_error(errno.EBADF)
        if self.next_arrival > trio.current_time():
            raise os_error(errno.EAGAIN)
        sock = self._pending.popleft()[1]
        sock.note("accept")
        self._on_change(self)
        return sock, sock.remote

    def close(self) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._on_change(self)
        for _, sock in self._pending:
            sock.reset()
        self._pending.clear()
        self.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()
