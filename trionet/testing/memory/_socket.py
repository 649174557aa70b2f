"""Sockets of an in-memory network: TCP as seen by its two ends, with the errors of Linux.

The problem: everything above a socket (selector, transports, acceptor) is written for non-blocking
system sockets with their partial writes, half-closes and errno values. A simpler substitute would
hide exactly the errors that tests look for.

The choice: a socket has the methods of ``socket.socket`` that trionet uses, and raises the same
errors as on Linux. Each direction is a :class:`.Pipe` owned by the receiver, with arrival times;
state changes (accepted, end, reset) travel through the pipe like bytes, so they are delayed, too.
Each method call first brings the state up to the loop's current time, so sockets need no tasks.
Buffers are bounded by SO_SNDBUF and SO_RCVBUF, so a peer that does not read blocks the sender.
Closing with unread bytes, or sending to a closed socket, resets the connection, as in the kernel.

Rejected: a task per connection that moves bytes (each task costs a scheduler pass and reorders
events) and ``socket.socketpair`` (real time). Reconsider if out-of-band data or shutdown for
reading is needed: both are unsupported.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from typing import Any, Self

import trio

from ...net.wire._connecting import Address
from ...net.wire._readiness import READ, WRITE
from ...net.wire._transmission import Buffer
from ._medium import Mark, Medium, Piece, Pipe

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# The values of EPOLLERR and EPOLLHUP.
_ERROR, _HANGUP = 8, 16
# The default size of both buffers.
BUFFER_BYTES = 64 * 1024
# As in the kernel, a socket becomes writable when a third of its buffers is free, not a few bytes.
_WRITABLE_SHARE = 3


class MemorySocket:
    """One end of a connection; created by :class:`~trionet.testing.MemoryNetwork`.

    A socket never blocks. The class has more than 25 methods because it implements the interface of
    ``socket.socket``.

    Attributes:
        address: the local address.
        number: serves as the file descriptor; never reused.
        is_open: whether the socket is open.
        incoming: the data sent by the peer.
        peer: the socket at the other end of the connection; None before the connection is made.
        watchers: callbacks that are called when the socket's state may have changed, or data is in
            transit.
    """

    def __init__(
        self,
        medium: Medium,
        number: int,
        address: Address,
        on_connect: Callable[[MemorySocket, Address], None],
        on_close: Callable[[MemorySocket], None],
    ) -> None:
        self._medium = medium
        self._on_connect = on_connect
        self._on_close = on_close
        self.incoming: Pipe = Pipe()
        self.watchers: list[Callable[[MemorySocket], None]] = []
        self.number = number
        self.address = address
        self.peer: MemorySocket | None = None
        self._remote: Address | None = None
        self._options: dict[tuple[int, int], int] = {
            (socket.SOL_SOCKET, socket.SO_SNDBUF): BUFFER_BYTES,
            (socket.SOL_SOCKET, socket.SO_RCVBUF): BUFFER_BYTES,
        }
        self._resets_when_closed = False
        self._error = 0
        self.is_open: bool = True
        self._is_connecting = False
        self._has_finished = False  # sent an end of stream
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
        if self.peer is None or self._is_connecting or self._is_dead:
            raise os_error(errno.ENOTCONN)
        return self.peer.address

    def setblocking(self, flag: bool) -> None:
        if flag:
            raise ValueError(
                "an in-memory socket cannot be blocking: it would block the event loop"
            )

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
        """Return the value of an option, even if the socket is closed; 0 if it was not set."""
        return self._options.get((level, option), 0)

    @property
    def name(self) -> str:
        """The local address as text."""
        return text_of(self.address)

    @property
    def peer_name(self) -> str:
        """The address of the peer as text; empty before connecting."""
        return text_of(self._remote) if self._remote is not None else ""

    @property
    def remote(self) -> Address:
        """The address of the peer, which may have been closed."""
        assert self._remote is not None
        return self._remote

    @property
    def host(self) -> str:
        """The host in the local address."""
        return self.address[0]

    # Connecting.

    def connect_ex(self, address: Any, /) -> int:
        self._check_open()
        self._is_connecting = True
        self._remote = address
        self.note("connect")
        self._on_connect(self, address)
        return errno.EINPROGRESS

    def pair_with(self, peer: MemorySocket) -> None:
        """Set the socket at the other end of the connection."""
        self.peer = peer
        self._remote = peer.address

    def refuse(self, at: float) -> None:
        """Refuse the connection: a reset arrives at time ``at``."""
        self.incoming.put(Mark.RESET, at)
        self.notify()

    def accepted(self, at: float) -> None:
        """Accept the connection: the acknowledgement arrives at time ``at``."""
        self.incoming.put(Mark.MADE, at)
        self.notify()

    def _look(self) -> None:
        """Update the state from the data and signals that have arrived."""
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
            data = incoming.read(self._medium.short(bytes_max))
            self.note("receive", data)
            if self.peer is not None:
                self.peer.notify()
            return data
        self._raise_error()
        if incoming.has_ended or self._is_dead:
            return b""
        if self._is_connecting or self.peer is None:
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
        if self._is_connecting or self.peer is None:
            raise os_error(errno.ENOTCONN if self.peer is None else errno.EAGAIN)
        if self._has_finished or self._is_dead:
            raise os_error(errno.EPIPE)
        free = self._free()
        if free <= 0:
            raise os_error(errno.EAGAIN)
        sent = bytes(memoryview(data).cast("B")[: min(free, self._medium.short(len(data)))])
        self.note("send", sent)
        self._put(sent)
        if self._medium.resets():
            self.break_connection()
        return len(sent)

    def sendmsg(self, buffers: list[Buffer], /) -> int:
        return self.send(b"".join(buffers))

    def _put(self, chunk: Piece) -> None:
        peer = self.peer
        assert peer is not None
        at = self._medium.arrival()
        if peer.is_open:
            peer.incoming.put(chunk, at)
            peer.notify()
        elif isinstance(chunk, bytes):
            # A kernel responds with a reset to data for a connection that it does not know.
            self.incoming.put(Mark.RESET, at + self._medium.delay())
            self.notify()

    def _free(self) -> int:
        peer = self.peer
        assert peer is not None
        return self._capacity() - (peer.incoming.size if peer.is_open else 0)

    def _capacity(self) -> int:
        assert self.peer is not None
        own = self._options[socket.SOL_SOCKET, socket.SO_SNDBUF]
        return own + self.peer.option(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def shutdown(self, how: int, /) -> None:
        self._check_open()
        self._look()
        if self.peer is None or self._is_connecting or self._is_dead:
            raise os_error(errno.ENOTCONN)
        if how == socket.SHUT_RD:
            raise os_error(errno.EOPNOTSUPP)
        self._finish()

    def _finish(self) -> None:
        if not self._has_finished:
            self._has_finished = True
            self.note("end")
            self._put(Mark.END)
            self.notify()

    # Ending.

    def close(self) -> None:
        if not self.is_open:
            return
        self._look()
        # Counted before anything else: notifying the peer may make it send, and what arrives at a
        # closed socket causes a reset, and is not counted as unread.
        unread = self.incoming.size
        self.is_open = False
        self._on_close(self)
        if self.peer is not None and not self._is_dead:
            if self._resets_when_closed or unread:
                self.note("reset")
                self._put(Mark.RESET)
            else:
                self._finish()
        self.note("close")
        self.incoming.drop()
        if self.peer is not None:
            self.peer.notify()
        self.notify()
        self.watchers.clear()

    def reset(self) -> None:
        """Close with a reset, even if there are no unread bytes."""
        self._resets_when_closed = True
        self.close()

    def vanish(self) -> None:
        """Close silently, as after a power failure; the peer gets a reset when it sends."""
        if self.is_open:
            self.is_open = False
            self._on_close(self)
            self.note("vanish")
            self.incoming.drop()
            self.notify()
            self.watchers.clear()

    def break_connection(self) -> None:
        """Reset the connection from within the network, so that both ends receive a reset."""
        self.note("break")
        self._receive_reset()
        if self.peer is not None and self.peer.is_open:
            self.peer._receive_reset()  # noqa: SLF001 - the other end

    def _receive_reset(self) -> None:
        self.incoming.put(Mark.RESET, self._medium.arrival())
        self.notify()

    # Readiness.

    def ready(self) -> int:
        """Return a mask of readiness bits for the operations that would not block."""
        self._look()
        incoming = self.incoming
        if self._error or self._is_dead:
            return READ | WRITE | _HANGUP | (_ERROR if self._error else 0)
        if self._is_connecting or self.peer is None:
            return 0
        bits = 0
        if incoming.has_arrived or incoming.has_ended:
            bits = READ
        if incoming.has_ended and self._has_finished:
            bits |= _HANGUP
        if self._free() * _WRITABLE_SHARE >= self._capacity():
            bits |= WRITE
        return bits

    @property
    def peer_has_ended(self) -> bool:
        """Whether the peer has ended the stream or reset the connection."""
        self._look()
        return self.incoming.has_ended or self._is_dead

    @property
    def has_unread(self) -> bool:
        """Whether arrived bytes are waiting to be read."""
        self._look()
        return self.incoming.has_arrived

    def note(self, what: str, data: bytes = b"") -> None:
        """Report an event to the trace of the network."""
        if self._medium.is_traced:
            self._medium.note(what, self.name, self.peer_name, data)

    def notify(self) -> None:
        """Call the watchers: this socket's state may have changed, or data is in transit."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MemorySocket {self.number} {self.name}-{self.peer_name}>"


def os_error(number: int) -> OSError:
    """Return the ``OSError`` for an errno: a ``BlockingIOError`` for EAGAIN."""
    return OSError(number, os.strerror(number))


def text_of(address: Address) -> str:
    """Format an address as ``host:port``."""
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
