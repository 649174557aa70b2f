"""The client's side of TLS.

A TLS 1.3 client completes its handshake before the server has verified the client's certificate. A
rejection arrives in place of the first data, or makes the first write fail, and counts as a failed
authentication all the same (Kafka: SslTransportLayer.State.POST_HANDSHAKE).
"""

from __future__ import annotations

import socket
import ssl

from ...errors import AuthenticationError
from ._tls_transport import READ_BYTES_FIRST, TlsTransport, describe


class ClientTlsTransport(TlsTransport):
    """A non-blocking TCP socket under TLS, on the client's side.

    Args:
        sock: owned from here on; connected before the first step of the handshake.
        context: from :mod:`._tls_context`.
        server_name: the name to request (SNI), which the certificate must contain.
    """

    __slots__ = ("_may_be_refused",)

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(sock, context, server_name)
        self._may_be_refused = True

    def close(self) -> None:
        self._may_be_refused = False  # no longer relevant
        super().close()

    def _note_data(self, count: int) -> None:
        if count:
            self._may_be_refused = False
        super()._note_data(count)

    def _broken(self, error: ssl.SSLError) -> OSError | AuthenticationError:
        broken = super()._broken(error)
        if self._may_be_refused:
            return AuthenticationError(f"TLS handshake failed: {describe(error)}")
        return broken

    def _flush(self) -> None:
        try:
            super()._flush()
        except BlockingIOError:
            raise
        except OSError:
            if self._may_be_refused and self._has_shaken_hands:
                self._look_for_refusal()
            raise

    def _look_for_refusal(self) -> None:
        """After a failed write, read any TLS alert that explains it (KAFKA-7505).

        Raises:
            AuthenticationError: an alert has arrived.
        """
        try:
            self._feed()
            self._tls.read(READ_BYTES_FIRST)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return
        except ssl.SSLError as error:
            raise AuthenticationError(f"TLS handshake failed: {describe(error)}") from error
        except OSError:
            return
