"""The byte layer under a channel (Kafka: TransportLayer, PlaintextTransportLayer).

Every call returns at once. It raises ``BlockingIOError`` if the socket has no data or accepts none,
as the socket module does. A special return value instead would cost a Python call for each read
and write of every request.
"""

# Compiled by mypyc.

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from typing import Protocol

from ._connecting import finish_connect
from ._transmission import Buffer, FileRange

_HANGUP: int | None = getattr(select, "POLLRDHUP", None)
_HAS_SENDFILE = hasattr(os, "sendfile")
_HAS_SENDMSG = hasattr(socket.socket, "sendmsg")
# Where sendfile is missing (Windows), a file range goes out in copies of this many bytes.
_FILE_COPY_BYTES = 64 * 1024


class TransportLayer(Protocol):
    """What a channel needs of its connection."""

    def fileno(self) -> int: ...

    def read(self, bytes_max: int, /) -> bytes:
        """Up to ``bytes_max`` bytes; ``b""`` at the end of the stream."""
        ...

    def read_into(self, buffer: memoryview, /) -> int:
        """As :meth:`read`, into ``buffer``; 0 at the end of the stream."""
        ...

    def write(self, data: Buffer, /) -> int: ...

    def write_gathered(self, buffers: list[Buffer], /) -> int: ...

    def send_file(self, file_range: FileRange, /) -> int: ...

    def finish_connect(self) -> bool:
        """Whether a connect that was begun is done; raises OSError if it has failed."""
        ...

    def peer_has_ended(self) -> bool:
        """Whether the peer sends nothing more, though what it sent may not all be read yet."""
        ...

    def has_unread(self) -> bool:
        """Whether a read would give bytes that have arrived; an error of the connection stays."""
        ...

    def close(self) -> None: ...


def has_ended(fd: int) -> bool:
    """Whether the peer of an open TCP socket has shut down its side; asks the kernel.

    Unread bytes hide the end from who only reads. Where the kernel does not tell (``POLLRDHUP`` is
    Linux's), it is not seen before it is read.
    """
    if _HANGUP is None:
        return False
    poller = select.poll()
    poller.register(fd, _HANGUP)
    return bool(poller.poll(0))


def has_unread(sock: socket.socket) -> bool:
    """Whether bytes wait in a socket, whatever has become of its connection."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


class PlaintextTransport:
    """A connected, non-blocking TCP socket as it is."""

    __slots__ = ("_socket", "fileno", "read", "read_into", "write")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self.fileno: Callable[[], int] = sock.fileno
        self.read: Callable[[int], bytes] = sock.recv
        self.read_into: Callable[[memoryview], int] = sock.recv_into
        self.write: Callable[[Buffer], int] = sock.send

    def write_gathered(self, buffers: list[Buffer], /) -> int:
        if _HAS_SENDMSG:
            return self._socket.sendmsg(buffers)
        return self._socket.send(b"".join(buffers))

    def send_file(self, file_range: FileRange, /) -> int:
        fd = file_range.file.fileno()
        if _HAS_SENDFILE:
            written = os.sendfile(self.fileno(), fd, file_range.offset, file_range.count)
        else:
            os.lseek(fd, file_range.offset, os.SEEK_SET)
            data = os.read(fd, min(file_range.count, _FILE_COPY_BYTES))
            written = self._socket.send(data) if data else 0
        if not written and file_range.count:
            # The file ends before the range does: the promised frame can never be completed.
            raise OSError(f"{file_range!r} reaches beyond the end of its file")
        return written

    def finish_connect(self) -> bool:
        return finish_connect(self._socket)

    def peer_has_ended(self) -> bool:
        return has_ended(self.fileno())

    def has_unread(self) -> bool:
        return has_unread(self._socket)

    def close(self) -> None:
        self._socket.close()
