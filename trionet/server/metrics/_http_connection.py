"""The connection of a client of a metrics listener, in plain text or with TLS.

Reads and steps of the TLS handshake never wait, so that the listener can bound the time that they
take. Trio's own TLS stream decrypts as much as has arrived, which may take a stranger's records
without data tens of milliseconds at a time; see :mod:`trionet.net.tls._tls_transport`.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from ...errors import AuthenticationError
from ...net.tls._tls_transport import TlsTransport
from ...net.wire._readiness import READ
from ...net.wire._transport import PlaintextTransport

_READ_BYTES = 4096
# How much is encrypted or written before other tasks run.
_WRITE_BYTES = 64 * 1024


class HttpConnection:
    """A connection over a non-blocking socket.

    Every method raises ``trio.BrokenResourceError`` if the connection has failed, or the client
    violates TLS.

    Args:
        sock: the socket, which the connection owns.
        tls_context: the TLS context; None for plain text.
        seconds_left: see below.

    Attributes:
        seconds_left: how long the client may still keep the listener waiting for its next request,
            in seconds.
    """

    def __init__(
        self, sock: socket.socket, tls_context: ssl.SSLContext | None, seconds_left: float
    ) -> None:
        self._socket = sock
        self._tls = None if tls_context is None else TlsTransport(sock, tls_context)
        self._transport = self._tls or PlaintextTransport(sock)
        self.seconds_left = seconds_left

    @property
    def has_tls(self) -> bool:
        return self._tls is not None

    @property
    def has_buffered(self) -> bool:
        """Whether a read can make progress without another byte from the socket."""
        return self._tls is not None and self._tls.has_buffered

    def handshake_step(self) -> int:
        """Continue the TLS handshake; see :meth:`.TlsTransport.handshake_step`."""
        assert self._tls is not None
        with _broken_by_errors():
            return self._tls.handshake_step()

    def read(self) -> bytes | None:
        """Return what has arrived, up to 4 KB; None if nothing has, ``b""`` at the end."""
        with _broken_by_errors():
            try:
                return self._transport.read(_READ_BYTES)
            except BlockingIOError:
                return None

    async def wait(self, wanted: int = READ) -> bool:
        """Wait until the socket is ready, for :attr:`seconds_left` at most.

        Args:
            wanted: READ or WRITE.

        Returns:
            Whether it was ready in time.
        """
        began = trio.current_time()
        with trio.move_on_after(self.seconds_left) as deadline:
            if wanted == READ:
                await trio.lowlevel.wait_readable(self._socket)
            else:
                await trio.lowlevel.wait_writable(self._socket)
        self.seconds_left = max(0.0, self.seconds_left - (trio.current_time() - began))
        return not deadline.cancelled_caught

    async def send_all(self, data: bytes) -> None:
        """Send all of the data. If cancelled, some of it may have been sent."""
        rest = memoryview(data)
        await trio.lowlevel.checkpoint()
        while rest:
            try:
                with _broken_by_errors():
                    count = self._transport.write(rest[:_WRITE_BYTES])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            else:
                rest = rest[count:]
                await trio.lowlevel.checkpoint()

    def send_end(self) -> None:
        """End the stream to the client, who may still send; only for plain text."""
        with _broken_by_errors():
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection; never waits."""
        self._transport.close()


@contextmanager
def _broken_by_errors() -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise
    except (OSError, EOFError, AuthenticationError) as error:
        raise trio.BrokenResourceError from error
