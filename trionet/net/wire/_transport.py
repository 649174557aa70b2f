"""The byte stream of a channel (Kafka: TransportLayer, PlaintextTransportLayer).

No call waits. As in the socket module, reads and writes raise ``BlockingIOError`` if the socket has
no data or accepts none. Returning a special value instead would cost an additional Python call per
read and write.
"""

# Compiled by mypyc.

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from typing import Protocol

from ._connecting import finish_connect
from ._transmission import Buffer, FileRange, WritableTransport

_HANGUP: int | None = getattr(select, "POLLRDHUP", None)
_HAS_SENDFILE = hasattr(os, "sendfile")
_HAS_SENDMSG = hasattr(socket.socket, "sendmsg")
# On macOS, bytes never wait for more.
_MORE: int = getattr(socket, "MSG_MORE", 0)
# Without sendfile (Windows), a file range is read and sent in pieces of this many bytes.
_FILE_COPY_BYTES = 64 * 1024


class TransportLayer(WritableTransport, Protocol):
    """The connection of a channel: a byte stream whose methods never wait."""

    def fileno(self) -> int: ...

    def read(self, bytes_max: int, /) -> bytes:
        """Return up to ``bytes_max`` bytes; ``b""`` at the end of the stream."""
        ...

    def read_into(self, buffer: memoryview, /) -> int:
        """Read into ``buffer``. Returns the number of bytes; 0 at the end of the stream."""
        ...

    def finish_connect(self) -> bool:
        """Whether the connection is established; raises OSError if connecting failed."""
        ...

    def peer_has_ended(self) -> bool:
        """Whether the peer will send nothing more; data that it has sent may still be unread."""
        ...

    def has_unread(self) -> bool:
        """Whether unread data has arrived; if not, this may consume a pending socket error."""
        ...

    def close(self) -> None: ...


def has_ended(fd: int) -> bool:
    """Whether the peer of an open TCP socket has shut down its side, according to the kernel.

    A read would find the end of the stream only after all unread data. False where the kernel does
    not report it (``POLLRDHUP`` exists on Linux only).
    """
    if _HANGUP is None:
        return False
    poller = select.poll()
    poller.register(fd, _HANGUP)
    return bool(poller.poll(0))


def has_unread(sock: socket.socket) -> bool:
    """Whether a socket has unread data, even if its peer has disconnected."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


class PlaintextTransport:
    """The byte stream of a TCP socket without TLS."""

    __slots__ = ("_socket", "fileno", "read", "read_into", "write")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self.fileno: Callable[[], int] = sock.fileno
        self.read: Callable[[int], bytes] = sock.recv
        self.read_into: Callable[[memoryview], int] = sock.recv_into
        self.write: Callable[[Buffer], int] = sock.send

    def write_gathered(self, buffers: list[Buffer], has_more: bool = False, /) -> int:
        flags = _MORE if has_more else 0
        if _HAS_SENDMSG:
            return self._socket.sendmsg(buffers, (), flags)
        return self._socket.send(b"".join(buffers), flags)

    def send_file(self, file_range: FileRange, /) -> int:
        fd = file_range.file.fileno()
        if _HAS_SENDFILE:
            written = os.sendfile(self.fileno(), fd, file_range.offset, file_range.count)
        else:
            os.lseek(fd, file_range.offset, os.SEEK_SET)
            data = os.read(fd, min(file_range.count, _FILE_COPY_BYTES))
            written = self._socket.send(data) if data else 0
        if not written and file_range.count:
            # The size prefix of the frame has been sent, but the frame can never be completed.
            raise OSError(f"{file_range!r} extends past the end of its file")
        return written

    def finish_connect(self) -> bool:
        return finish_connect(self._socket)

    def peer_has_ended(self) -> bool:
        return has_ended(self.fileno())

    def has_unread(self) -> bool:
        return has_unread(self._socket)

    def close(self) -> None:
        self._socket.close()
