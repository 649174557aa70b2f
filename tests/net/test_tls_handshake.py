"""The TLS handshake, step by step: who is let in, who is not, and what both sides get to know."""

from __future__ import annotations

import datetime
import select
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tls import (
    TlsClient,
    authority,
    certificate,
    client_context,
    context_for,
    server_context,
    shake_hands,
)
from support.wire import LOOPBACK, frame, reset, tcp_pair
from trionet.errors import AuthenticationError
from trionet.net.tls._certificate import distinguished_name
from trionet.net.tls._tls_transport import HANDSHAKE_READS_PER_STEP, READ_BYTES_FIRST, TlsTransport
from trionet.net.wire._readiness import READ, WRITE

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
# Alerts as they are before anything is encrypted: a warning, and a fatal one.
CLOSE_NOTIFY = b"\x15\x03\x03\0\x02\x01\x00"
UNKNOWN_CA = b"\x15\x03\x03\0\x02\x02\x30"


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext | None = None, name: str = LOOPBACK
) -> TlsTransport:
    """The server's side of a handshake that succeeds on both sides, closed."""
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, server)
        shake_hands(transport, TlsClient(far, client, name))
        return transport


def steps(transport: TlsTransport) -> int:
    """Step as long as there is something to read; what the last step wants."""
    wants = transport.handshake_step()
    while wants == READ and select.select([transport], [], [], 0)[0]:
        wants = transport.handshake_step()
    return wants


def client_error(client: TlsClient) -> ssl.SSLError:
    """What stops a client that goes on reading."""
    client.sock.settimeout(5)
    while True:
        try:
            client.tls.read(1)
        except ssl.SSLWantReadError:
            client.feed()
        except ssl.SSLError as error:
            return error


def with_version(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = version
    return context


def fill(sock: socket.socket) -> int:
    """Send until the socket takes nothing more; how much that was."""
    sent = 0
    while True:
        try:
            sent += sock.send(bytes(4096))
        except BlockingIOError:
            return sent


def test_the_steps_say_what_they_wait_for() -> None:
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        assert READ == transport.handshake_step()
        client.handshake_step()
        assert READ == transport.handshake_step()
        client.feed()
        client.handshake_step()

        assert 0 == transport.handshake_step()
        assert 0 == transport.handshake_step()


def test_a_handshake_goes_on_however_its_bytes_are_cut() -> None:
    """T13: one byte at a time is slow, not wrong."""
    near, far = tcp_pair()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        client_done, wants = False, READ
        while not client_done:
            try:
                client.tls.do_handshake()
                client_done = True
            except ssl.SSLWantReadError:
                pass
            for byte in client.outgoing.read():
                far.sendall(bytes((byte,)))
                wants = transport.handshake_step()
            if not client_done:
                client.feed()

        assert 0 == wants
        client.send(b"request")
        assert b"request" == transport.read(100)


def test_what_came_with_the_last_flight_is_buffered() -> None:
    """T23: the handshake ends without a further byte, and a request right after it is not stuck
    (KAFKA-2801)."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        client.handshake_step()
        transport.handshake_step()
        client.feed()
        client.tls.do_handshake()
        client.send(b"request")  # in one piece with the end of the handshake

        assert 0 == transport.handshake_step()
        assert transport.has_buffered
        assert b"request" == transport.read(100)


def test_a_handshake_that_the_socket_does_not_take_waits_for_it_to_become_writable() -> None:
    near, far = socket.socketpair()  # full is full, where the buffers of TCP grow
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        filler = fill(near)
        client.handshake_step()

        assert WRITE == steps(transport)
        while filler:
            filler -= len(far.recv(filler))
        assert READ == transport.handshake_step()


def test_a_step_reads_no_more_than_its_share() -> None:
    """A peer that sends for ever does not hold the loop."""
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, server_context())
        # A ClientHello of 120,000 bytes, the most that the engine takes, and it is not whole.
        record = b"\x16\x03\x01\x40\x00"
        hello = b"\x01\x01\xd4\xc0" + bytes(100_000)
        for start in range(0, READ_BYTES_FIRST * (HANDSHAKE_READS_PER_STEP + 4), 0x4000):
            far.sendall(record + hello[start : start + 0x4000])

        assert READ == transport.handshake_step()
        assert select.select([near], [], [], 0)[0]
        assert READ == steps(transport)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [LOOPBACK, "localhost"])
def test_a_client_that_checks_the_name_is_content_with_ours(
    version: ssl.TLSVersion, name: str
) -> None:
    """T1: the name check passes by an address or a DNS name, and looks nothing up."""
    context = with_version(client_context(), version)

    handshake(context_for(), context, name)


def test_a_wrong_name_fails_a_client_that_checks_it_and_no_other() -> None:
    """T2: with the check on the handshake fails; with it off it does not."""
    near, far = tcp_pair()
    with near, far, pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(TlsTransport(near, context_for()), TlsClient(far, name="example.org"))
    context = client_context()
    context.check_hostname = False

    handshake(context_for(), context, "example.org")


def test_the_server_never_checks_the_name_of_a_client() -> None:
    """T3: a client's certificate may name any host."""
    leaf = certificate("somewhere.else.example", common_name="alice")

    transport = handshake(context_for(client_auth="required"), client_context(leaf=leaf))

    der = transport.peer_certificate
    assert der is not None
    assert "CN=alice,OU=tests,O=trionet" == distinguished_name(der)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("client_auth", "leaf", "is_welcome"),
    [
        ("required", lambda: certificate("c"), True),
        ("required", lambda: certificate("c", ca="other"), False),
        ("required", lambda: None, False),
        ("requested", lambda: certificate("c"), True),
        ("requested", lambda: certificate("c", ca="other"), False),
        ("requested", lambda: None, True),
        ("none", lambda: certificate("c", ca="other"), True),
        ("none", lambda: None, True),
    ],
)
def test_clients_are_asked_for_certificates_as_the_setting_says(
    version: ssl.TLSVersion, client_auth: str, leaf: Callable[[], object], is_welcome: bool
) -> None:
    """T4, T5, T6, T17: required, requested and none; who is refused is told so by an alert."""
    shown = leaf()
    context = with_version(client_context(leaf=shown), version)  # type: ignore[arg-type]
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, context_for(client_auth=client_auth))
        client = TlsClient(far, context)
        if is_welcome:
            shake_hands(transport, client)
            sees = client_auth != "none" and shown is not None
            assert sees == (transport.peer_certificate is not None)
            return
        with pytest.raises(AuthenticationError, match="TLS handshake failed: ") as caught:
            shake_hands(transport, client)
        transport.close()

        assert "certificate" in str(caught.value)
        assert "alert" in str(client_error(client)).lower()


def test_a_client_that_is_slow_to_read_still_learns_why_it_was_refused() -> None:
    """T17: data after the handshake does not turn the alert into a reset (KAFKA-13539)."""
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, context_for(client_auth="required"))
        client = TlsClient(far, client_context())
        client.handshake_step()
        transport.handshake_step()
        client.feed()
        client.handshake_step()  # TLS 1.3: done, as far as the client knows
        client.send(b"request" * 1000)
        with pytest.raises(AuthenticationError):
            steps(transport)
        transport.close()

        assert "certificate required" in str(client_error(client)).lower().replace("_", " ")


def test_a_client_that_is_refused_meets_no_reset_after_the_alert() -> None:
    """KAFKA-13539: what it has sent meanwhile is read and thrown away before the close."""
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, context_for(client_auth="required"))
        client = TlsClient(far, client_context())
        client.handshake_step()
        transport.handshake_step()
        client.feed()
        client.handshake_step()
        client.send(bytes(50_000))
        with pytest.raises(AuthenticationError):
            steps(transport)
        transport.close()

        assert "alert" in str(client_error(client)).lower()
        assert not client.feed()


def test_an_expired_certificate_is_refused() -> None:
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)
    leaf = authority().issue_cert("c", not_before=past, not_after=past + datetime.timedelta(days=1))
    near, far = tcp_pair()
    with near, far, pytest.raises(AuthenticationError, match="certificate has expired"):
        shake_hands(
            TlsTransport(near, context_for(client_auth="required")),
            TlsClient(far, client_context(leaf=leaf)),
        )


def test_a_client_that_does_not_trust_us_says_so() -> None:
    """The peer's alert is read and told (KAFKA-5920)."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, context_for()), TlsClient(far, client_context("x"))
        client.handshake_step()
        transport.handshake_step()
        client.feed()
        with pytest.raises(ssl.SSLCertVerificationError):
            client.handshake_step()

        with pytest.raises(AuthenticationError, match="unknown ca"):
            steps(transport)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_alert_is_read_although_our_own_flight_cannot_be_sent(version: ssl.TLSVersion) -> None:
    """KAFKA-7505: a broken pipe alone would look like a peer that has just gone."""
    near, far = socket.socketpair()
    with near, far:
        transport = TlsTransport(near, server_context())
        client = TlsClient(far, with_version(client_context(), version))
        fill(near)
        client.handshake_step()
        assert WRITE == steps(transport)
        far.sendall(UNKNOWN_CA)
        far.close()

        with pytest.raises(AuthenticationError, match="unknown ca"):
            transport.handshake_step()


@pytest.mark.parametrize(
    ("server", "client"),
    [
        (("TLSv1.2",), ssl.TLSVersion.TLSv1_3),
        (("TLSv1.3",), ssl.TLSVersion.TLSv1_2),
    ],
)
def test_sides_without_a_common_version_fail(
    server: tuple[str, ...], client: ssl.TLSVersion
) -> None:
    """T10: an unsupported version fails the handshake as an authentication failure."""
    near, far = tcp_pair()
    context = with_version(client_context(), client)
    with near, far:
        transport = TlsTransport(near, context_for(enabled_protocols=server))
        tls_client = TlsClient(far, context)
        with pytest.raises(AuthenticationError, match=r"unsupported protocol|version"):
            shake_hands(transport, tls_client)

        assert "alert" in str(client_error(tls_client)).lower()


def test_sides_without_a_common_cipher_suite_fail() -> None:
    """T10: an unsupported cipher suite fails the handshake as an authentication failure."""
    near, far = tcp_pair()
    context = with_version(client_context(), ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    settings = context_for(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    with near, far, pytest.raises(AuthenticationError, match="no shared cipher"):
        shake_hands(TlsTransport(near, settings), TlsClient(far, context))


@pytest.mark.parametrize("graceful", [True, False])
@pytest.mark.parametrize("flights", [0, 1])
def test_a_peer_that_leaves_during_the_handshake_is_no_authentication_failure(
    graceful: bool, flights: int
) -> None:
    """T16: end of stream or reset, before or after the first flight: a plain disconnect."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        if flights:
            client.handshake_step()
            transport.handshake_step()
        if graceful:
            far.shutdown(socket.SHUT_WR)
        else:
            reset(far)
        select.select([near], [], [], 5)

        with pytest.raises((EOFError, ConnectionError)):
            steps(transport)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_goodbye_during_the_handshake_is_no_authentication_failure(
    version: ssl.TLSVersion,
) -> None:
    """KAFKA-7168: that of a client which is being restarted, say, and will come again."""
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, server_context())
        client = TlsClient(far, with_version(client_context(), version))
        client.handshake_step()
        transport.handshake_step()
        far.sendall(CLOSE_NOTIFY)

        with pytest.raises(EOFError):
            steps(transport)


@pytest.mark.parametrize("cut", [1, 5, 50])
def test_a_peer_that_leaves_inside_a_flight_is_no_authentication_failure(cut: int) -> None:
    """T15: wherever the connection breaks in the handshake, it is a plain disconnect."""
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far)
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        far.sendall(client.outgoing.read()[:cut])
        far.shutdown(socket.SHUT_WR)

        with pytest.raises(EOFError):
            steps(transport)


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", frame(b"\0\x12\0\3\0\0\0\1\0\1c"), bytes(100)]
)
def test_what_is_not_tls_is_an_authentication_failure(garbage: bytes) -> None:
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, server_context())
        far.sendall(garbage)
        with pytest.raises(AuthenticationError, match="TLS handshake failed: "):
            steps(transport)

        transport.close()
        assert b"" == far.recv(100)[:0]


@given(st.binary(max_size=300), st.booleans())
def test_whatever_arrives_in_a_handshake_there_is_one_kind_of_response(
    data: bytes, as_record: bool
) -> None:
    near, far = tcp_pair()
    with near, far, closing(TlsTransport(near, server_context())) as transport:
        if as_record:
            data = b"\x16\x03\x01" + len(data).to_bytes(2, "big") + data
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        with pytest.raises((EOFError, AuthenticationError)):
            steps(transport)


def _openssl(transport_side: Callable[[socket.socket], None], *options: str, typed: bytes) -> str:
    """What ``openssl s_client`` prints that connects to us and has this typed."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl program")
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        command = [program, "s_client", "-connect", f"{LOOPBACK}:{port}", *options]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            near, _ = listening.accept()
            with near:
                client.stdin.write(typed)
                client.stdin.flush()
                transport_side(near)
            return client.stdout.read().decode(errors="replace")


def _until(transport: TlsTransport, wanted: bytes) -> None:
    """Do the handshake and read until this has come."""
    received = b""
    while transport.handshake_step():
        assert select.select([transport], [], [], 5)[0]
    while wanted not in received:
        try:
            data = transport.read(4096)
        except BlockingIOError:
            assert select.select([transport], [], [], 5)[0]
            continue
        if not data:
            raise EOFError
        received += data


@pytest.mark.slow
def test_renegotiation_is_refused() -> None:
    """S42: under TLS 1.2 the peer gets an error, and the connection ends."""

    def serve(near: socket.socket) -> None:
        transport = TlsTransport(near, server_context())
        with closing(transport), pytest.raises((EOFError, OSError)):
            _until(transport, b"never sent")

    printed = _openssl(serve, "-tls1_2", typed=b"R\n")

    assert "no renegotiation" in printed


@pytest.mark.slow
def test_a_key_update_in_mid_stream_keeps_data_flowing() -> None:
    """S43: TLS 1.3 key updates, asked for and not, are no renegotiation (KAFKA-13418)."""

    def serve(near: socket.socket) -> None:
        with closing(TlsTransport(near, server_context())) as transport:
            _until(transport, b"after")
            transport.write(b"answered\n")

    printed = _openssl(serve, "-tls1_3", typed=b"before\nK\nk\nK\nafter\n")

    assert "answered" in printed
