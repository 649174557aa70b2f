"""TLS records, changed on their way to a server: what it reads is what the client wrote, or less.

A real client shakes hands with a real server and writes. An input is a number, which chooses the
version, whether the client must show a certificate, and how the server reads; then come steps of
three bytes. They deliver what the client has sent as it is, or cut, changed, twice, or not at all.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from functools import cache

from fuzz.script import Script
from support.tls import TlsClient, certificate, client_context, context_for
from trionet.errors import AuthenticationError
from trionet.net.tls._tls_transport import TlsTransport
from trionet.net.wire._readiness import READ

WATCHED = ("trionet.net.tls._tls_transport",)
WORDS = (
    *(b"\x16\x03\x01", b"\x16\x03\x03\0\1", b"\x17\x03\x03"),
    *(b"\x15\x03\x03\0\2\1\0", b"\x14\x03\x03\0\1\1"),
)
BYTES_MAX = 512
STEPS_MAX = 40

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
CLIENT_AUTH = ("none", "requested", "required")
READ_BYTES = (90, 1000, 4096, 40_000)
WRITE_BYTES = (1, 100, 1000, 16_384, 20_000)
HEADER_BYTES = 5
# Far more than any input needs: who takes as many turns makes no progress.
TURNS_MAX = 20_000
# How a connection may end: in words of OpenSSL, but without places in anybody's source.
_END = re.compile(
    r"end of stream|left in the handshake|broken: \[Errno \d+\] [\w ]+"
    r"|(?:refused: TLS handshake failed|broken: TLS): [\w /':,-]+"
)


@cache
def _server_context(client_auth: str) -> ssl.SSLContext:
    return context_for(client_auth=client_auth)


@cache
def _client_context(version: ssl.TLSVersion, has_certificate: bool) -> ssl.SSLContext:
    leaf = certificate("c", common_name="alice") if has_certificate else None
    context = client_context(leaf=leaf)
    context.minimum_version = context.maximum_version = version
    return context


def run(data: bytes) -> None:
    script = Script(data)
    options = script.byte()
    near, far = socket.socketpair()
    with near, far:
        connection = Connection(near, far, options)
        for _ in range(STEPS_MAX):
            if script.is_over:
                break
            step = STEPS[script.byte() % len(STEPS)]
            step(connection, script.byte(), script.byte())
            connection.go_on()
        connection.finish()


class Connection:
    """Both sides, with somebody in between who has all that the client sends in his hands."""

    def __init__(self, near: socket.socket, far: socket.socket, options: int) -> None:
        version = VERSIONS[options % 2]
        client_auth = CLIENT_AUTH[options // 2 % 3]
        has_certificate = options // 6 % 2 == 1
        self.read_bytes = READ_BYTES[options // 12 % len(READ_BYTES)]
        self.reads_into = options >= 128
        self.is_welcome = has_certificate or client_auth != "required"
        self.near, self.far = near, far
        self.transport = TlsTransport(near, _server_context(client_auth))
        self.client = TlsClient(far, _client_context(version, has_certificate))
        far.setblocking(False)
        self.held = b""  # what the client has sent and nobody has delivered
        self.is_changed = False  # whether the stream was
        self.is_shaking = True
        self.has_client_failed = self.has_client_closed = False
        self.end = ""
        self.written = bytearray()
        self.received = bytearray()
        self.answered = bytearray()
        self.unsent = b""
        self.read_back = bytearray()
        self.go_on()

    # Steps: two numbers each.

    def deliver_records(self, count: int, _: int) -> None:
        for _turn in range(count % 8 + 1):
            self._deliver(self._next_record())
            self._serve()

    def deliver_bytes(self, count: int, _: int) -> None:
        self._deliver(self._take(count))

    def deliver_one_by_one(self, count: int, _: int) -> None:
        for byte in self._take(count):
            self._deliver(bytes((byte,)))
            self._serve()

    def change(self, position: int, mask: int) -> None:
        record = bytearray(self._next_record())
        if record and mask:
            record[position % len(record)] ^= mask
            self.is_changed = True
        self._deliver(bytes(record))

    def change_end(self, position: int, mask: int) -> None:
        self.change(-1 - position, mask)

    def drop(self, _: int, __: int) -> None:
        self.is_changed |= bool(self._next_record())

    def repeat(self, _: int, __: int) -> None:
        record = self._next_record()
        self.is_changed |= bool(record)
        self._deliver(record + record)

    def swap(self, _: int, __: int) -> None:
        first, second = self._next_record(), self._next_record()
        self.is_changed |= bool(first and second)
        self.held = second + first + self.held

    def cut(self, count: int, _: int) -> None:
        record = self._next_record()
        self.is_changed |= bool(record[count:])
        self._deliver(record[:count])

    def resize(self, high: int, low: int) -> None:
        """Tell another length of a record than it has."""
        record = self._next_record()
        if record:
            self.is_changed = True
            self._deliver(record[:3] + bytes((high, low)) + record[HEADER_BYTES:])

    def insert(self, kind: int, size: int) -> None:
        """A record that nobody has encrypted, of a kind that may not exist."""
        self.is_changed = True
        self._deliver(bytes((kind, 3, 3, 0, size)) + bytes((size % 3,)) * size)

    def write(self, size: int, value: int) -> None:
        """The client writes, as soon as it has shaken hands."""
        if self._is_client_ready():
            data = bytes((value,)) * WRITE_BYTES[size % len(WRITE_BYTES)]
            self.client.tls.write(data)
            self.written += data

    def answer(self, size: int, value: int) -> None:
        """The server writes; what the socket does not take is offered again."""
        if not self.is_shaking and not self.end and not self.unsent:
            self.unsent = bytes((value,)) * WRITE_BYTES[size % len(WRITE_BYTES)]
            self.answered += self.unsent

    def say_goodbye(self, _: int, __: int) -> None:
        if self._is_client_ready():
            self.has_client_closed = True
            try:
                self.client.tls.unwrap()
            except ssl.SSLError:
                pass  # the server's own goodbye is not waited for

    # What both sides do by themselves.

    def go_on(self) -> None:
        """Let them work as long as something new comes of it, but deliver nothing."""
        self._work_as_client()
        self._serve()
        self._work_as_client()

    def finish(self) -> None:
        """Deliver all the rest, end the stream, and see that the server has noticed."""
        for _ in range(TURNS_MAX):
            self.go_on()
            if not self.held:
                break
            self._deliver(self._take(READ_BYTES[-1]))
        else:
            raise AssertionError("the handshake does not end")
        self.far.shutdown(socket.SHUT_WR)
        self.go_on()
        assert _END.fullmatch(self.end), self.end or "the end of the stream was not noticed"
        self.transport.close()
        self._check()

    def _check(self) -> None:
        assert self.written.startswith(self.received), "the server read what was not written"
        assert self.answered.startswith(self.read_back), "the client read what was not written"
        if not self.is_changed and self.is_welcome:
            assert "end of stream" == self.end, self.end
            assert self.received == self.written
            assert self.has_client_closed or self.read_back == self.answered
        if not self.is_welcome:
            assert not self.received, "somebody without a certificate was heard"

    def _serve(self) -> None:
        """What the loop does with the server's side until only the socket can bring something."""
        for _ in range(TURNS_MAX):
            if self.end or not self._serve_once():
                return
        raise AssertionError("the server is busy and gets nowhere")

    def _serve_once(self) -> bool:
        """One turn; whether another makes sense now."""
        transport = self.transport
        try:
            if self.is_shaking:
                wanted = transport.handshake_step()
                self.is_shaking = bool(wanted)
                return not wanted or (wanted == READ and self._has_arrived())
            self._write_answer()
            data = self._read()
        except BlockingIOError:
            assert not transport.has_buffered, "bytes are kept that nobody will ask for"
            return False
        except AuthenticationError as error:
            assert self.is_shaking
            self.end = f"refused: {error}"
        except EOFError:
            assert self.is_shaking
            self.end = "left in the handshake"
        except OSError as error:
            self.end = f"broken: {error}"
        else:
            self.received += data
            if not data:
                self.end = "end of stream"
        return True

    def _read(self) -> bytes:
        if not self.reads_into:
            return self.transport.read(self.read_bytes)
        buffer = bytearray(self.read_bytes)
        with memoryview(buffer) as view:
            count = self.transport.read_into(view)
        return bytes(buffer[:count])

    def _write_answer(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[self.transport.write(self.unsent) :]
        except BlockingIOError:
            pass  # the client reads later

    def _work_as_client(self) -> None:
        """Take what the server sent, and hold back what the client sends."""
        client = self.client
        try:
            client.feed()
        except OSError:
            pass  # nothing is there, or the server has reset the connection
        while not self.has_client_failed:
            try:
                client.tls.do_handshake()
                data = client.tls.read(READ_BYTES[-1])
                self.read_back += data
                if not data:
                    break
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError:
                self.has_client_failed = True
        self.held += client.outgoing.read()

    def _is_client_ready(self) -> bool:
        is_over = self.has_client_failed or self.has_client_closed
        return not is_over and self.client.tls.version() is not None and self._has_shaken_hands()

    def _has_shaken_hands(self) -> bool:
        try:
            self.client.tls.do_handshake()
        except ssl.SSLError:
            return False
        return True

    def _has_arrived(self) -> bool:
        return bool(select.select([self.near], [], [], 0)[0])

    def _next_record(self) -> bytes:
        """The first record that is held back, or what there is of it."""
        size = int.from_bytes(self.held[3:HEADER_BYTES], "big")
        return self._take(HEADER_BYTES + size)

    def _take(self, count: int) -> bytes:
        data, self.held = self.held[:count], self.held[count:]
        return data

    def _deliver(self, data: bytes) -> None:
        try:
            while data:
                data = data[self.far.send(data) :]
                self._serve()
        except BlockingIOError:
            assert self.end, "the server does not read what has arrived"
        except OSError:
            pass  # the server has closed


STEPS = (
    Connection.deliver_records,
    Connection.write,
    Connection.change,
    Connection.change_end,
    Connection.drop,
    Connection.repeat,
    Connection.swap,
    Connection.cut,
    Connection.resize,
    Connection.insert,
    Connection.deliver_bytes,
    Connection.deliver_one_by_one,
    Connection.answer,
    Connection.say_goodbye,
)
