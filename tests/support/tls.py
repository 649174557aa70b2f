"""Certificates of a test's own authority, and a TLS peer that speaks over a plain socket."""

from __future__ import annotations

import socket
import ssl
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import trustme

from support.wire import LOOPBACK, tcp_pair
from trionet.net.tls._tls_context import TlsSettings
from trionet.net.tls._tls_context import server_context as made_from_settings
from trionet.net.tls._tls_transport import TlsTransport
from trionet.net.wire._readiness import READ


@cache
def _authority(name: str) -> trustme.CA:
    return trustme.CA(organization_name=name)


def authority(name: str = "ca") -> trustme.CA:
    """An authority of the tests; of one name, always the same."""
    return _authority(name)


@cache
def certificate(
    *names: str, ca: str = "ca", common_name: str = "broker", unit: str = "tests"
) -> trustme.LeafCert:
    """A certificate for these names, by default for the loopback."""
    return authority(ca).issue_cert(
        *(names or (LOOPBACK, "localhost")),
        common_name=common_name,
        organization_name="trionet",
        organization_unit_name=unit,
    )


def write_pem(path: Path, leaf: trustme.LeafCert) -> str:
    """A keystore as one PEM file: the key and its certificates."""
    path.write_bytes(leaf.private_key_and_cert_chain_pem.bytes())
    return str(path)


def write_trust(path: Path, *names: str) -> str:
    """A truststore as one PEM file: the certificates of authorities."""
    path.write_bytes(b"".join(authority(name).cert_pem.bytes() for name in names or ("ca",)))
    return str(path)


def server_context(leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """A plain server's side, made without our code."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (leaf or certificate()).configure_cert(context)
    return context


def client_context(ca: str = "ca", *, leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """A client's side that trusts one authority and checks the host name.

    Args:
        leaf: what it shows of itself, if anything.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority(ca).configure_trust(context)
    if leaf is not None:
        leaf.configure_cert(context)
    return context


class TlsClient:
    """A client's engine over a blocking socket whose bytes the test can hold back.

    Attributes:
        sock: the socket; closed by the caller.
    """

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext | None = None, name: str = LOOPBACK
    ) -> None:
        self.sock = sock
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = (context or client_context()).wrap_bio(
            self.incoming, self.outgoing, server_hostname=name
        )

    def encrypt(self, data: bytes) -> bytes:
        """The records of some data, to be sent by the test."""
        self.tls.write(data)
        return self.outgoing.read()

    def flush(self) -> None:
        self.sock.sendall(self.outgoing.read())

    def feed(self) -> bool:
        """Take what has arrived; False at the end of the stream."""
        data = self.sock.recv(1024 * 1024)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return bool(data)

    def handshake_step(self) -> bool:
        """One step; whether the handshake is done. Sends what it made."""
        try:
            self.tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False
        finally:
            self.flush()

    def send(self, data: bytes) -> None:
        self.sock.sendall(self.encrypt(data))

    def receive(self, count: int) -> bytes:
        """Exactly `count` bytes, or fewer at the end of the stream."""
        received = bytearray()
        while len(received) < count:
            try:
                data = self.tls.read(count - len(received))
            except ssl.SSLWantReadError:
                self.feed()
                continue
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                break
            if not data:
                break
            received += data
        return bytes(received)


def shake_hands(transport: TlsTransport, client: TlsClient) -> None:
    """Step both sides until both are done; what stops them is raised."""
    client_done = client.handshake_step()
    wants = READ
    while wants or not client_done:
        if wants:
            wants = transport.handshake_step()
        if not client_done:
            assert client.feed()
            client_done = client.handshake_step()


def settings_for(**changes: Any) -> TlsSettings:
    """A listener's settings: our certificate, and trust in our authority."""
    chain = certificate().private_key_and_cert_chain_pem.bytes().decode()
    given = TlsSettings(
        keystore_type="PEM",
        keystore_key=chain,
        keystore_certificate_chain=chain,
        truststore_type="PEM",
        truststore_certificates=authority().cert_pem.bytes().decode(),
    )
    return attrs.evolve(given, **changes)


def context_for(**changes: Any) -> ssl.SSLContext:
    """A server's side, made from settings by our code."""
    context, _ = made_from_settings(settings_for(**changes))
    return context


def der_of(leaf: trustme.LeafCert) -> bytes:
    """The certificate alone, in DER."""
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def shown_by(context: ssl.SSLContext, leaf: trustme.LeafCert | None = None) -> bytes | None:
    """The certificate that a server with this context shows a new client.

    Args:
        leaf: what the client shows of itself, if anything.
    """
    near, far = tcp_pair()
    with near, far:
        client = TlsClient(far, client_context(leaf=leaf))
        shake_hands(TlsTransport(near, context), client)
        return client.tls.getpeercert(binary_form=True)
