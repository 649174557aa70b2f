"""The sockets of connections, address lookup, and non-blocking connects."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any, Protocol, cast

import trio

from ..._util._text import single_line

#: The hosts that mean every local address.
WILDCARDS = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - recognised, not bound


class Socket(Protocol):
    """The socket of a connection; the transport adds methods for reading and writing."""

    def fileno(self) -> int: ...

    def getsockname(self) -> Any: ...

    def getpeername(self) -> Any: ...

    def getsockopt(self, level: int, option: int, /) -> int: ...

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def connect_ex(self, address: Any, /) -> int: ...

    def close(self) -> None: ...


class ListeningSocket(Protocol):
    """A socket that accepts connections, without waiting."""

    def accept(self) -> tuple[Socket, Any]: ...

    def getsockname(self) -> Any: ...

    def close(self) -> None: ...


Address = tuple[str, int] | tuple[str, int, int, int]
"""An IP address and a port; for IPv6 also the flow info and the scope id."""

IPV6_PARTS = 4
# The results of a non-blocking connect that is in progress.
_IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", -1))


def reason_of(error: BaseException) -> str:
    """Return the system's message for an error without the error number: ``connection refused``."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


async def resolve(host: str, port: int) -> list[Address]:
    """Return all addresses of a host, in the order in which to try them (KIP-302).

    Raises:
        OSError: the host has no address; the message names the host and the cause.
    """
    try:
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(single_line(f"{host} has no address: {error}")) from error
    return [cast(Address, address) for *_, address in found]


def set_options(
    sock: Socket, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
) -> None:
    """Set the socket options that Kafka sets; a buffer size of -1 keeps the system's default."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # KAFKA-2096
    if send_buffer_bytes != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes != -1:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)


def open_socket(
    address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
) -> socket.socket:
    """Create the non-blocking socket of an outgoing connection, with Kafka's options.

    Args:
        address: the address to connect to.
        send_buffer_bytes: ``send.buffer.bytes``; -1 for the system's default.
        receive_buffer_bytes: ``receive.buffer.bytes``; -1 for the system's default.
    """
    family = socket.AF_INET6 if len(address) == IPV6_PARTS else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        set_options(
            sock, send_buffer_bytes=send_buffer_bytes, receive_buffer_bytes=receive_buffer_bytes
        )
    except OSError:
        sock.close()
        raise
    return sock


def begin_connect(sock: Socket, address: Address) -> None:
    """Start connecting a non-blocking socket; it may be connected immediately.

    Raises:
        OSError: connecting failed immediately, or the address is a host name.
    """
    # connect_ex would look up a host name, which blocks the loop; this only checks for one.
    socket.getaddrinfo(*address[:2], type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    failure = sock.connect_ex(address)
    if failure and failure not in _IN_PROGRESS:
        raise OSError(failure, os.strerror(failure))


def finish_connect(sock: Socket) -> bool:
    """Return whether a socket that has become writable is connected.

    Raises:
        OSError: connecting failed.
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
