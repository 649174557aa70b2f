"""The transport of a channel over an in-memory socket."""

from __future__ import annotations

from collections.abc import Callable

from ...net.wire._connecting import finish_connect
from ...net.wire._transmission import Buffer, FileRange
from ._socket import MemorySocket

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
        self.write_gathered: Callable[[list[Buffer]], int] = sock.sendmsg

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
