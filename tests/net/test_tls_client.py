"""TLS from the client's side, step by step."""

from __future__ import annotations

import select
import socket
import ssl

import pytest

from support.tls import authority, certificate, server_context, settings_for
from support.wire import tcp_pair
from trionet.errors import AuthenticationError
from trionet.net.tls._tls_context import ClientTlsSettings, client_context
from trionet.net.tls._tls_context import server_context as made_from_settings
from trionet.net.tls._tls_transport import TlsTransport
from trionet.net.wire._readiness import READ

PATIENCE_SECONDS = 10.0


def our_context(**changes: object) -> ssl.SSLContext:
    given: dict[str, object] = {
        "truststore_type": "PEM",
        "truststore_certificates": authority().cert_pem.bytes().decode(),
        **changes,
    }
    return client_context(ClientTlsSettings(**given))  # type: ignore[arg-type]


def shake_hands(client: TlsTransport, server: TlsTransport) -> None:
    """Step both until the client is done; the server may have something against it then."""
    wanted = True
    while wanted:
        wanted = bool(client.handshake_step())
        try:
            server.handshake_step()
        except AuthenticationError:
            server.close()
            return


def read_some(client: TlsTransport) -> bytes:
    """The next data, as soon as it is there."""
    while True:
        select.select([client], [], [], PATIENCE_SECONDS)
        try:
            return client.read(100)
        except BlockingIOError:
            pass


def test_both_sides_of_ours_exchange_what_is_larger_than_any_buffer() -> None:
    """T13: the data is intact, whatever the sockets take at once."""
    near, far = tcp_pair()
    client = TlsTransport(near, our_context(), "localhost")
    server = TlsTransport(far, server_context())
    shake_hands(client, server)
    data = bytes(range(256)) * 8192

    for sender, receiver in ((client, server), (server, client)):
        sent, received = 0, bytearray()
        while len(received) < len(data):
            try:
                if sent < len(data):
                    sent += sender.write(memoryview(data)[sent:])
            except BlockingIOError:
                pass
            try:
                received += receiver.read(65536)
            except BlockingIOError:
                pass
        assert data == bytes(received)
    client.close()
    server.close()


def test_a_handshake_begins_with_the_client() -> None:
    near, far = tcp_pair()
    with far:
        client = TlsTransport(near, our_context(), "localhost")

        assert READ == client.handshake_step()
        assert b"\x16\x03" == far.recv(2)
        client.close()


def _refused() -> tuple[TlsTransport, socket.socket]:
    """A client that is done with its handshake, and that the server has refused meanwhile."""
    near, far = tcp_pair()
    context, _ = made_from_settings(settings_for(client_auth="required"))
    client = TlsTransport(near, our_context(enabled_protocols=("TLSv1.3",)), "localhost")
    shake_hands(client, TlsTransport(far, context))
    return client, near


def test_a_refusal_after_the_handshake_is_a_failed_authentication_of_the_first_read() -> None:
    client, _ = _refused()

    with pytest.raises(AuthenticationError, match="certificate required"):
        read_some(client)
    client.close()


def test_a_refusal_is_found_after_a_write_that_fails() -> None:
    """KAFKA-7505: the alert lies in the socket, and the connection is broken."""
    client, sock = _refused()
    sock.shutdown(socket.SHUT_WR)

    with pytest.raises(AuthenticationError, match="certificate required"):
        client.write(b"a request")
    client.close()


def test_a_write_that_fails_without_a_refusal_is_a_broken_connection() -> None:
    near, far = tcp_pair()
    client = TlsTransport(near, our_context(), "localhost")
    server = TlsTransport(far, server_context(certificate()))
    shake_hands(client, server)
    near.shutdown(socket.SHUT_WR)

    with pytest.raises(BrokenPipeError):
        client.write(b"a request")
    client.close()
    server.close()


def test_broken_rules_after_the_first_data_are_no_failed_authentication() -> None:
    near, far = tcp_pair()
    client = TlsTransport(near, our_context(), "localhost")
    server = TlsTransport(far, server_context())
    shake_hands(client, server)
    server.write(b"data")
    assert b"data" == read_some(client)
    far.sendall(b"no TLS at all")

    with pytest.raises(OSError, match=r"^TLS: "):
        read_some(client)
    client.close()
    server.close()
