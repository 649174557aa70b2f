"""Listening sockets of the system."""

from __future__ import annotations

import socket
import sys

from ._endpoint import Endpoint


def bind(endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int) -> socket.socket:
    """A listening socket for an endpoint; the wildcard is dual-stack where the system allows.

    Args:
        endpoint: host ``""`` is the wildcard; port 0 takes a free one.
        backlog: ``socket.listen.backlog.size``.
        receive_buffer_bytes: ``socket.receive.buffer.bytes``; -1 leaves the system's.

    Raises:
        OSError: the address cannot be bound; says which and why.
    """
    host = endpoint.host
    is_ipv6 = ":" in host or (not host and socket.has_dualstack_ipv6())
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # where it would let a second server take the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not host else 1)
        if receive_buffer_bytes != -1:
            # Before bind, so that accepted sockets inherit a fitting window scale.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((host, endpoint.port))
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"cannot listen on {endpoint}: {error.strerror or error}"
        ) from error
    return sock
