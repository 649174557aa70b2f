"""What uses an in-memory connection: a trio stream for test peers, and a channel's transport."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import trio

from ...net.wire._connecting import finish_connect
from ...net.wire._readiness import HANGUP, READ, WRITE
from ...net.wire._transmission import Buffer, FileRange
from ._socket import MemorySocket

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

_READ_BYTES = 64 * 1024


async def wait_ready(sock: MemorySocket, interest: int) -> None:
    """Wait until a socket can be read from or written to, or has failed.

    Args:
        sock: an in-memory socket.
        interest: a mask of the readiness bits.

    Raises:
        trio.ClosedResourceError: the socket has been closed.
    """
    await trio.lowlevel.checkpoint()
    while True:
        if not sock.is_open:
            raise trio.ClosedResourceError("this socket has been closed")
        if sock.ready() & (interest | HANGUP):
            return
        changed = trio.Event()

        def watch(_: MemorySocket, changed: trio.Event = changed) -> None:
            changed.set()

        sock.watchers.append(watch)
        try:
            with trio.CancelScope(deadline=sock.incoming.next_arrival):
                await changed.wait()
        finally:
            if watch in sock.watchers:
                sock.watchers.remove(watch)


class MemoryStream(trio.abc.HalfCloseableStream):
    """A :class:`trio.abc.HalfCloseableStream` over an in-memory socket.

    Created by :meth:`~trionet.testing.MemoryNetwork.open_stream`.

    Attributes:
        socket: the underlying socket.
    """

    def __init__(self, sock: MemorySocket) -> None:
        self.socket = sock
        self._sending = _Conflict("another task is sending on this stream")
        self._receiving = _Conflict("another task is receiving from this stream")

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        with self._sending:
            await trio.lowlevel.checkpoint()
            rest = memoryview(data).cast("B")
            while rest:
                await wait_ready(self.socket, WRITE)
                try:
                    rest = rest[self.socket.send(rest) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise _translated(error) from error
            if not self.socket.is_open:
                raise trio.ClosedResourceError("this stream has been closed")

    async def wait_send_all_might_not_block(self) -> None:
        with self._sending:
            await wait_ready(self.socket, WRITE)

    async def send_eof(self) -> None:
        with self._sending:
            await trio.lowlevel.checkpoint()
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError as error:
                raise _translated(error) from error

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if max_bytes is not None and max_bytes < 1:
            raise ValueError(f"invalid max_bytes={max_bytes}; it must be 1 or more, or None")
        with self._receiving:
            while True:
                await wait_ready(self.socket, READ)
                try:
                    return self.socket.recv(max_bytes or _READ_BYTES)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise _translated(error) from error

    async def aclose(self) -> None:
        self.socket.close()
        await trio.lowlevel.checkpoint()

    def reset(self) -> None:
        """Close with a reset (RST) instead of an end of stream (FIN)."""
        self.socket.reset()


class _Conflict:
    """A guard that lets only one task into its block, like trio's ConflictDetector."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._is_entered = False

    def __enter__(self) -> None:
        if self._is_entered:
            raise trio.BusyResourceError(self._message)
        self._is_entered = True

    def __exit__(self, *_: object) -> None:
        self._is_entered = False


def _translated(error: OSError) -> Exception:
    if error.errno == errno.EBADF:
        return trio.ClosedResourceError("this stream has been closed")
    return trio.BrokenResourceError(f"the connection is broken: {error}")


# File ranges are sent in copies of this size.
_FILE_COPY_BYTES = 64 * 1024


class MemoryTransport:
    """A channel's transport over an in-memory socket, which can also send file ranges."""

    def __init__(self, sock: MemorySocket) -> None:
        self._socket = sock
        self.fileno: Callable[[], int] = sock.fileno
        self.read: Callable[[int], bytes] = sock.recv
        self.read_into: Callable[[memoryview], int] = sock.recv_into
        self.write: Callable[[Buffer], int] = sock.send

    def write_gathered(self, buffers: list[Buffer], _has_more: bool = False, /) -> int:
        return self._socket.sendmsg(buffers)

    def send_file(self, file_range: FileRange, /) -> int:
        count = min(file_range.count, _FILE_COPY_BYTES)
        data = file_range.file.read_at(file_range.offset, count)
        if not data and file_range.count:
            raise OSError(f"{file_range!r} extends past the end of its file")
        return self._socket.send(data)

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        """Set an option of the socket."""
        self._socket.setsockopt(level, option, value)

    def finish_connect(self) -> bool:
        return finish_connect(self._socket)

    def peer_has_ended(self) -> bool:
        return self._socket.peer_has_ended

    def has_unread(self) -> bool:
        return self._socket.has_unread

    def close(self) -> None:
        self._socket.close()
