"""Sockets, and outgoing connections: names to addresses, and connecting without waiting."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any, Protocol, cast

import trio


class Socket(Protocol):
    """The socket of a connection, as far as it is not the business of its transport."""

    def fileno(self) -> int: ...

    def getsockname(self) -> Any: ...

    def getpeername(self) -> Any: ...

    def getsockopt(self, level: int, option: int, /) -> int: ...

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def connect_ex(self, address: Any, /) -> int: ...

    def close(self) -> None: ...


class ListeningSocket(Protocol):
    """A socket that connections are accepted from; accepting never waits."""

    def accept(self) -> tuple[Socket, Any]: ...

    def getsockname(self) -> Any: ...

    def close(self) -> None: ...


Address = tuple[str, int] | tuple[str, int, int, int]
"""An IP address and a port, and what IPv6 adds to them."""

IPV6_PARTS = 4
# On Windows a connect that goes on says so in its own way.
_GOES_ON = (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", -1))


def reason_of(error: BaseException) -> str:
    """What the system says is wrong, without its number: ``connection refused``."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


async def resolve(host: str, port: int) -> list[Address]:
    """All addresses of a host, those to be tried first in front (KIP-302).

    Raises:
        OSError: it has none; says which and why.
    """
    try:
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host} has no address: {error}") from error
    return [cast(Address, address) for *_, address in found]


def open_socket(
    address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
) -> socket.socket:
    """A socket for an outgoing connection, with Kafka's options.

    Args:
        address: of the far end.
        send_buffer_bytes: ``send.buffer.bytes``; -1 leaves the system's default.
        receive_buffer_bytes: ``receive.buffer.bytes``; -1 leaves the system's default.
    """
    family = socket.AF_INET6 if len(address) == IPV6_PARTS else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes != -1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    except OSError:
        sock.close()
        raise
    return sock


def begin_connect(sock: Socket, address: Address) -> None:
    """Send a non-blocking socket on its way; it may be connected already. Never waits.

    Raises:
        OSError: it failed at once, such as for a name, whose look-up would wait.
    """
    # A name in place of the numbers would be looked up, and the loop would wait for that.
    socket.getaddrinfo(*address[:2], type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    failure = sock.connect_ex(address)
    if failure and failure not in _GOES_ON:
        raise OSError(failure, os.strerror(failure))


def finish_connect(sock: Socket) -> bool:
    """Whether a socket that is ready for writing is connected.

    Raises:
        OSError: the connection could not be made; says why.
    """
    failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failure:
        raise OSError(failure, os.strerror(failure))
    try:
        sock.getpeername()
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return False
        raise
    return True
