"""Accepts the connections of one listener and gives them to its processors in turn.

(Kafka: SocketServer.Acceptor.) Only a lack of descriptors or memory makes it wait; the peer's
faults are skipped, and anything else is a bug of ours and travels up.
"""

from __future__ import annotations

import errno
import logging
import socket
import sys

import trio

from ..net.endpoint import Endpoint
from .processor import Processor

# Accepts per wake-up, before the other tasks run.
ACCEPTS_PER_WAKEUP_MAX = 64
# How long accepting rests when the process or the system has no descriptor or memory left.
RESOURCE_PAUSE_SECONDS = 0.1

_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


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


class Acceptor:
    """One listener's accept loop.

    Args:
        endpoint: the listener, with its bound port.
        listening: its listening socket; closed when the loop ends.
        processors: where connections go, in turn.
        send_buffer_bytes: ``socket.send.buffer.bytes``; -1 leaves the system's.
        log: where the server's lines go.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        listening: socket.socket,
        processors: list[Processor],
        send_buffer_bytes: int,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self.endpoint = endpoint
        self._listening = listening
        self._processors = processors
        self._send_buffer_bytes = send_buffer_bytes
        self._log = log
        self._next = 0
        self.accepted = 0

    async def run(self) -> None:
        """Accept until cancelled; then the listening socket is closed."""
        with self._listening:
            while True:
                await trio.lowlevel.wait_readable(self._listening)
                for _ in range(ACCEPTS_PER_WAKEUP_MAX):
                    sock = await self._accept()
                    if sock is None:
                        break
                    self.accepted += 1
                    try:
                        await self._hand_over(sock)
                    except BaseException:  # cancelled
                        sock.close()
                        raise

    async def _accept(self) -> socket.socket | None:
        try:
            sock, address = self._listening.accept()
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            failure = error
        else:
            return self._configure(sock, address)
        if failure.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSOCK):
            raise failure
        if failure.errno in _OUT_OF_RESOURCES:
            self._log.error("cannot accept on %s: %s; waiting", self.endpoint, failure)
            await trio.sleep(RESOURCE_PAUSE_SECONDS)
        return None  # otherwise this one peer is gone already

    def _configure(self, sock: socket.socket, address: object) -> socket.socket | None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # KAFKA-2096
            if self._send_buffer_bytes != -1:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        except OSError as error:
            self._log.info("lost %s while it was being accepted: %s", address, error)
            sock.close()
            return None
        return sock

    async def _hand_over(self, sock: socket.socket) -> None:
        """Round robin; a full processor is passed over, and if all are, the last is waited for."""
        count = len(self._processors)
        for turn in range(count):
            index = (self._next + turn) % count
            if self._processors[index].offer_connection(sock):
                self._next = (index + 1) % count
                return
        processor = self._processors[self._next]
        self._next = (self._next + 1) % count
        await processor.accept_connection(sock)
