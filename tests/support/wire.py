"""Raw peers on real loopback sockets: they speak bytes, so they can break every rule."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from types import TracebackType
from typing import Self

import trio

LOOPBACK = "127.0.0.1"
_READ_BYTES = 64 * 1024
_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)  # linger, for no time


def frame(payload: bytes) -> bytes:
    """A payload with its size in front, as it travels."""
    return struct.pack(">i", len(payload)) + payload


def tcp_pair(*, receive_buffer_bytes: int | None = None) -> tuple[socket.socket, socket.socket]:
    """Two connected loopback sockets: the accepted one, and the one that connected.

    Args:
        receive_buffer_bytes: of the one that connected; None leaves the system's.
    """
    with socket.create_server((LOOPBACK, 0)) as listening:
        far = socket.socket()
        if receive_buffer_bytes is not None:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        far.connect(listening.getsockname())
        near, _ = listening.accept()
    return near, far


def reset(sock: socket.socket) -> None:
    """Close a socket so that the other side gets a reset (RST), not an end of stream (FIN)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET)
    sock.close()


class Peer:
    """The far end of a connection, in trio."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._plain = sock
        self._socket = trio.socket.from_stdlib_socket(sock)

    @classmethod
    async def connect(
        cls,
        port: int,
        *,
        local_host: str = LOOPBACK,
        local_port: int = 0,
        receive_buffer_bytes: int | None = None,
    ) -> Self:
        """Connect to a port of 127.0.0.1; from another address than that if so wished."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((local_host, local_port))
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        peer = cls(sock)
        try:
            await peer._socket.connect((LOOPBACK, port))
        except BaseException:
            peer.close()
            raise
        return peer

    @property
    def port(self) -> int:
        """The local port, by which the other side knows this peer."""
        port: int = self._plain.getsockname()[1]
        return port

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        with memoryview(data) as view:
            sent = 0
            while sent < len(data):
                sent += await self._socket.send(view[sent:])

    def send_now(self, data: bytes) -> None:
        """Send a few bytes without letting any other task run."""
        assert len(data) == self._plain.send(data)

    async def send_frames(self, *payloads: bytes) -> None:
        """Send frames in one go, so that small ones arrive together."""
        await self.send(b"".join(map(frame, payloads)))

    def receive_now(self) -> bytes:
        """What has arrived, without letting any other task run."""
        received = bytearray()
        with contextlib.suppress(BlockingIOError):
            while data := self._plain.recv(_READ_BYTES):
                received += data
        return bytes(received)

    async def receive(self, count: int) -> bytes:
        """Exactly `count` bytes; EOFError if the stream ends before."""
        received = bytearray()
        while len(received) < count:
            data = await self._socket.recv(min(count - len(received), _READ_BYTES))
            if not data:
                raise EOFError(f"the stream ended after {len(received)} of {count} bytes")
            received += data
        return bytes(received)

    async def receive_frame(self) -> bytes:
        """The payload of the next frame."""
        (size,) = struct.unpack(">i", await self.receive(4))
        return await self.receive(size)

    async def receive_to_end(self) -> bytes:
        """Everything up to the end of the connection, be it an end of stream or a reset."""
        received = bytearray()
        with contextlib.suppress(ConnectionError):
            while data := await self._socket.recv(_READ_BYTES):
                received += data
        return bytes(received)

    def finish(self) -> None:
        """Send no more, but go on receiving (FIN)."""
        self._plain.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with a reset (RST)."""
        self._plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET)
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_sockets() -> set[str]:
    """The sockets and pollers that this process has open, by number and identity."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # the descriptor that listed the folder
        if target.startswith(("socket:", "anon_inode:[eventpoll]")):
            found.add(f"{number} {target}")
    return found


def listens_on(port: int) -> bool:
    """Whether this process listens on a port; another one may take it as soon as it is free."""
    ours = {name.rpartition("[")[2].rstrip("]") for name in open_sockets()}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for columns in map(str.split, lines):
                is_listening = columns[3] == "0A"
                if is_listening and columns[1].endswith(f":{port:04X}") and columns[9] in ours:
                    return True
    return False
