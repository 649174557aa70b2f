"""Sockets of a network in memory: TCP as its two ends see it, with the errors of Linux.

Buffers are bounded, so that a peer that does not read stops the other one. Who closes with unread
bytes, or is sent bytes after closing, resets the connection, as the kernel does.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import trio

from ...net.wire._connecting import Address
from ...net.wire._readiness import READ, WRITE
from ...net.wire._transmission import Buffer
from ._pipe import Mark, Piece, Pipe

if TYPE_CHECKING:
    from ._network import MemoryNetwork

# The bits of EPOLLERR and EPOLLHUP.
_ERROR, _HANGUP = 8, 16
# What a socket has that sets no sizes, each way.
BUFFER_BYTES = 64 * 1024
# As the kernel, a socket is not told to be writable for a few bytes: for this part of its buffers.
_WRITABLE_SHARE = 3


class MemorySocket:
    """One end of a connection; made by :class:`~trionet.testing.MemoryNetwork`.

    It never waits, as a socket of the system that does not block, and has the methods of one that
    trionet uses.

    Attributes:
        network: where it is.
        address: where it is.
        number: what a descriptor is on the system's network; never given twice.
        is_open: it was not closed.
        incoming: what the peer has sent.
        watchers: each is called when what can be done with the socket may have changed, or will
            have when something arrives that is on its way.
    """

    def __init__(self, network: MemoryNetwork, number: int, address: Address) -> None:
        self.network = network
        self.incoming = Pipe()
        self.watchers: list[Callable[[MemorySocket], None]] = []
        self.number = number
        self.address = address
        self._peer: MemorySocket | None = None
        self._remote: Address | None = None
        self._options: dict[tuple[int, int], int] = {
            (socket.SOL_SOCKET, socket.SO_SNDBUF): BUFFER_BYTES,
            (socket.SOL_SOCKET, socket.SO_RCVBUF): BUFFER_BYTES,
        }
        self._resets_when_closed = False
        self._error = 0
        self.is_open = True
        self._is_connecting = False
        self._has_finished = False  # sends no more
        self._is_dead = False  # was reset

    # Addresses and options.

    def fileno(self) -> int:
        return self.number if self.is_open else -1

    def getsockname(self) -> Address:
        self._check_open()
        return self.address

    def getpeername(self) -> Address:
        self._check_open()
        self._look()
        if self._peer is None or self._is_connecting or self._is_dead:
            raise os_error(errno.ENOTCONN)
        return self._peer.address

    def setblocking(self, flag: bool) -> None:
        if flag:
            raise ValueError("a socket in memory cannot block: nothing runs beside the loop")

    def setsockopt(self, level: int, option: int, value: int | bytes, /) -> None:
        self._check_open()
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            assert isinstance(value, bytes)
            is_on, seconds = struct.unpack("ii", value)
            self._resets_when_closed = bool(is_on) and not seconds
        else:
            self._options[level, option] = int(value)

    def getsockopt(self, level: int, option: int, /) -> int:
        self._check_open()
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            self._look()
            error, self._error = self._error, 0
            return error
        return self.option(level, option)

    def option(self, level: int, option: int) -> int:
        """What was set, be the socket open or closed; 0 for what was not."""
        return self._options.get((level, option), 0)

    @property
    def name(self) -> str:
        """Its address in one piece."""
        return text_of(self.address)

    @property
    def peer_name(self) -> str:
        """The address of the peer, as long as anybody remembers it."""
        return text_of(self._remote) if self._remote is not None else ""

    @property
    def remote(self) -> Address:
        """The address of the peer, be it there or gone."""
        assert self._remote is not None
        return self._remote

    @property
    def host(self) -> str:
        """The host it is at."""
        return self.address[0]

    @property
    def peer(self) -> MemorySocket | None:
        """The other end; None before there is one."""
        return self._peer

    # Connecting.

    def connect_ex(self, address: Any, /) -> int:
        self._check_open()
        self._is_connecting = True
        self._remote = address
        self.network.begin_connect(self, address)
        return errno.EINPROGRESS

    def pair_with(self, peer: MemorySocket) -> None:
        """Become one end of a connection."""
        self._peer = peer
        self._remote = peer.address

    def refuse(self, at: float) -> None:
        """Nobody listens where this socket connects to; it hears of it at ``at``."""
        self.incoming.put(Mark.RESET, at)
        self.notify()

    def accepted(self, at: float) -> None:
        """The connection is made; this socket, which asked for it, hears of it at ``at``."""
        self.incoming.put(Mark.MADE, at)
        self.notify()

    def _look(self) -> None:
        """Take note of what has arrived."""
        incoming = self.incoming
        incoming.advance(trio.current_time())
        if incoming.is_made:
            self._is_connecting = False
        if incoming.was_reset:
            incoming.was_reset = False
            self._is_dead = True
            self._error = errno.ECONNREFUSED if self._is_connecting else errno.ECONNRESET
            self._is_connecting = False

    # Reading.

    def recv(self, bytes_max: int, flags: int = 0, /) -> bytes:  # noqa: ARG002 - the signature
        self._check_open()
        self._look()
        incoming = self.incoming
        if incoming.has_arrived:
            data = incoming.read(self.network.short(bytes_max))
            self.network.note("receive", self, data)
            if self._peer is not None:
                self._peer.notify()
            return data
        self._raise_error()
        if incoming.has_ended or self._is_dead:
            return b""
        if self._is_connecting or self._peer is None:
            raise os_error(errno.ENOTCONN)
        raise os_error(errno.EAGAIN)

    def recv_into(self, buffer: Any, bytes_max: int = 0, flags: int = 0, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(bytes_max or len(view), flags)
        view[: len(data)] = data
        return len(data)

    # Writing.

    def send(self, data: Buffer, flags: int = 0, /) -> int:  # noqa: ARG002 - the signature
        self._check_open()
        self._look()
        self._raise_error()
        if self._is_connecting or self._peer is None:
            raise os_error(errno.ENOTCONN if self._peer is None else errno.EAGAIN)
        if self._has_finished or self._is_dead:
            raise os_error(errno.EPIPE)
        free = self._room()
        if free <= 0:
            raise os_error(errno.EAGAIN)
        sent = bytes(memoryview(data).cast("B")[: min(free, self.network.short(len(data)))])
        self.network.note("send", self, sent)
        self._put(sent)
        self.network.maybe_break(self)
        return len(sent)

    def sendmsg(self, buffers: list[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def _put(self, piece: Piece) -> None:
        peer = self._peer
        assert peer is not None
        at = self.network.arrival()
        if peer.is_open:
            peer.incoming.put(piece, at)
            peer.notify()
        elif isinstance(piece, bytes):
            # The kernel of a host where nobody has this connection any more says so.
            self.incoming.put(Mark.RESET, at + self.network.delay())
            self.notify()

    def _room(self) -> int:
        peer = self._peer
        assert peer is not None
        return self._capacity() - (peer.incoming.size if peer.is_open else 0)

    def _capacity(self) -> int:
        assert self._peer is not None
        own = self._options[socket.SOL_SOCKET, socket.SO_SNDBUF]
        return own + self._peer.option(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def shutdown(self, how: int, /) -> None:
        self._check_open()
        self._look()
        if self._peer is None or self._is_connecting or self._is_dead:
            raise os_error(errno.ENOTCONN)
        if how == socket.SHUT_RD:
            raise os_error(errno.EOPNOTSUPP)
        self._finish()

    def _finish(self) -> None:
        if not self._has_finished:
            self._has_finished = True
            self.network.note("end", self)
            self._put(Mark.END)
            self.notify()

    # Ending.

    def close(self) -> None:
        if not self.is_open:
            return
        self._look()
        unread = self.incoming.size
        self.is_open = False
        self.network.forget(self)
        if self._peer is not None and not self._is_dead:
            if self._resets_when_closed or unread:
                self.network.note("reset", self)
                self._put(Mark.RESET)
            else:
                self._finish()
        self.network.note("close", self)
        self.incoming.drop()
        if self._peer is not None:
            self._peer.notify()
        self.notify()
        self.watchers.clear()

    def reset(self) -> None:
        """Close with a reset, whatever is unread."""
        self._resets_when_closed = True
        self.close()

    def vanish(self) -> None:
        """Close without a word, as a host does whose power fails; who sends to it hears of it."""
        if self.is_open:
            self.is_open = False
            self.network.forget(self)
            self.network.note("vanish", self)
            self.incoming.drop()
            self.notify()
            self.watchers.clear()

    def break_off(self) -> None:
        """The connection is reset by something between its two ends."""
        self.incoming.put(Mark.RESET, self.network.arrival())
        self.notify()

    # Readiness.

    def ready(self) -> int:
        """What can be done now, as a mask of the readiness bits."""
        self._look()
        incoming = self.incoming
        if self._error or self._is_dead:
            return READ | WRITE | _HANGUP | (_ERROR if self._error else 0)
        if self._is_connecting or self._peer is None:
            return 0
        bits = 0
        if incoming.has_arrived or incoming.has_ended:
            bits = READ
        if incoming.has_ended and self._has_finished:
            bits |= _HANGUP
        if self._room() * _WRITABLE_SHARE >= self._capacity():
            bits |= WRITE
        return bits

    @property
    def peer_has_ended(self) -> bool:
        """Whether no byte follows those that have arrived."""
        self._look()
        return self.incoming.has_ended or self._is_dead

    @property
    def has_unread(self) -> bool:
        """Whether bytes have arrived that nobody has read."""
        self._look()
        return self.incoming.has_arrived

    def notify(self) -> None:
        """Tell who watches that something may have changed, or will when it arrives."""
        for watcher in list(self.watchers):
            watcher(self)

    def _raise_error(self) -> None:
        error, self._error = self._error, 0
        if error:
            raise os_error(error)

    def _check_open(self) -> None:
        if not self.is_open:
            raise os_error(errno.EBADF)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MemorySocket {self.number} {self.name}-{self.peer_name}>"


def os_error(number: int) -> OSError:
    """What the kernel would raise; for EAGAIN that is BlockingIOError."""
    return OSError(number, os.strerror(number))


def text_of(address: Address) -> str:
    """An address in one piece."""
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
