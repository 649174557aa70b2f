"""TLS as the client's side of it.

A client of TLS 1.3 is done with its handshake before the server has looked at its certificate. What
the server has against that comes where the first data would come, or makes the first write fail,
and is a failed authentication all the same (Kafka: SslTransportLayer.State.POST_HANDSHAKE).
"""

from __future__ import annotations

import socket
import ssl

from ...errors import AuthenticationError
from ._tls_transport import READ_BYTES_FIRST, TlsTransport, describe


class ClientTlsTransport(TlsTransport):
    """A non-blocking TCP socket under TLS, as the client's side of it.

    Args:
        sock: owned from here on; connected before the first step of the handshake.
        context: from :mod:`._tls_context`.
        server_name: whom we ask for (SNI), and whose name the certificate has to bear.
    """

    __slots__ = ("_may_be_refused",)

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(sock, context, server_name)
        self._may_be_refused = True

    def close(self) -> None:
        self._may_be_refused = False  # it does not matter any more
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
        """A write failed: the alert that tells why may have arrived before (KAFKA-7505).

        Raises:
            AuthenticationError: it has.
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
