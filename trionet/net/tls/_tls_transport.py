"""TLS under a channel (Kafka: SslTransportLayer): non-blocking, stepped by the readiness loop.

The engine works on two memory buffers instead of the socket. Measured on 1 MB responses, one send
of 256 KB of ciphertext has 1.25 to 1.35 times the throughput of ``SSLSocket``, which makes one
system call per record. And no caller has to repeat a write with exactly the same bytes.

Nothing is read ahead of the engine: ciphertext is taken from the socket only when the engine asks
for it, and when it asks it has consumed all of the last. So :attr:`TlsTransport.has_buffered` is
false as soon as no progress is possible without the socket: no frame is stuck (KAFKA-13559), and a
partial record makes no loop spin (KAFKA-7012).

Records without data, such as key updates, cost the engine far more than their size suggests, and it
processes all its input before it returns. So input of a peer that sends them is passed on in small
chunks, one per turn of the loop, and a peer that sends nothing else is disconnected.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import cast

from ...errors import AuthenticationError
from ..wire._close_reason import CloseReason
from ..wire._connecting import finish_connect
from ..wire._readiness import READ, WRITE
from ..wire._transmission import GATHER_BUFFERS_MAX, WRITE_BYTES_MAX, Buffer, FileRange
from ..wire._transport import has_ended, has_unread

# What Python puts around the text of an error: "[SSL] internal error (_ssl.c:2580)".
_PLACE = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$")


class TlsError(OSError):
    """Raised when the peer violates TLS after the handshake; the connection is unusable.

    Attributes:
        close_reason: the reason to close its channel with.
    """

    close_reason = CloseReason.TLS_FAILED


def describe(error: ssl.SSLError) -> str:
    """Return the reason of an error, without Python's file names and line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not accepted: {error.verify_message}"
    text = error.reason or _PLACE.sub("", str(error))
    return text.replace("_", " ").lower()


# How much plaintext is encrypted before it is sent: what a peer that reads slowly can make each of
# its connections keep in memory, once encrypted.
WRITE_BYTES_PER_SEND = 256 * 1024
# How much ciphertext is read at once: little for small requests, more when that was not enough.
READ_BYTES_FIRST = 8 * 1024
READ_BYTES_MAX = 256 * 1024
# How much passes through one of the engine's buffers at a time. Such a buffer grows to the most
# that it ever held and never shrinks: an idle connection keeps it (KAFKA-7454).
ENGINE_BYTES_MAX = 64 * 1024
# The most that it is given to decrypt behind what brought little data, or none.
SLOW_FEED_BYTES_MAX = 16 * 1024
# How much of what was read may be no data: a record that is not complete, and some bytes around it.
# Beyond that little is read at once (see above).
OVERHEAD_BYTES_MAX = 20 * 1024
# How much may come without any data: no record is half as long.
SILENT_BYTES_MAX = 36 * 1024
# How much the engine may respond to a peer that does not read its responses.
RESPONSE_BYTES_MAX = 64 * 1024
# A flight of the handshake is a few kilobytes. A peer that sends more waits for another turn.
HANDSHAKE_READS_PER_STEP = 4
# What is thrown away before a close, so that the alert before it is not overtaken by a reset.
DRAIN_BYTES_MAX = 256 * 1024

_HAS_SENDMSG = hasattr(socket.socket, "sendmsg")
_ENDS = (ssl.SSLZeroReturnError, ssl.SSLEOFError)


class TlsTransport:
    """A non-blocking TCP socket under TLS, on the server's side.

    Args:
        sock: owned from here on; connected before the first step of the handshake.
        context: from :mod:`._tls_context`.
        server_name: of the other side, if that is the server: see :mod:`._tls_client`.
    """

    __slots__ = (
        "_accepted",
        "_has_shaken_hands",
        "_incoming",
        "_is_turn_over",
        "_outgoing",
        "_overhead",
        "_read_bytes",
        "_responded",
        "_silent",
        "_socket",
        "_tls",
        "_unfed",
        "_unsent",
        "fileno",
    )

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None
    ) -> None:
        is_server = server_name is None
        sock.setblocking(False)
        self._socket = sock
        self.fileno: Callable[[], int] = sock.fileno
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_name)
        self._has_shaken_hands = False
        self._read_bytes = READ_BYTES_FIRST
        self._unfed: bytes | memoryview = b""  # ciphertext that the engine has not asked for yet
        self._unsent: list[bytes | memoryview] = []  # and that the socket has not taken yet
        self._accepted = 0  # plaintext inside _unsent, counted as written when that has left
        self._responded = 0  # bytes inside _unsent that respond to records without data
        self._overhead = 0  # ciphertext less twice the data that it brought, at least 0
        self._silent = 0  # ciphertext since the last data
        self._is_turn_over = False  # reading into a buffer has taken long enough

    @property
    def has_buffered(self) -> bool:
        """Whether a read makes progress without another byte from the socket."""
        return self._incoming.pending > 0 or self._tls.pending() > 0 or len(self._unfed) > 0

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate that the peer proved to own, in DER; None without one."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def cipher(self) -> tuple[str, str]:
        """The cipher suite and the protocol version, ``("", "")`` before the handshake's end."""
        suite = self._tls.cipher()
        return (suite[0], self._tls.version() or "") if suite else ("", "")

    def handshake_step(self) -> int:
        """Continue the handshake as far as is possible now.

        Returns:
            READ or WRITE: what the socket must be ready for before the next step; 0 when the
            handshake is done and all of it has been sent. There may be data behind it: see
            :attr:`has_buffered` (KAFKA-2801).

        Raises:
            AuthenticationError: no common version or cipher suite, a certificate that one of the
                sides does not trust, or no TLS at all. The peer has been sent the alert.
            EOFError: the peer ended the connection, with a close_notify or without (KAFKA-7168);
                that is not an authentication failure.
            OSError: the connection failed.
        """
        try:
            return self._handshake_step()
        except BlockingIOError:
            return WRITE
        except OSError:
            self._look_for_alert()
            raise

    def _handshake_step(self) -> int:
        for reads_left in range(HANDSHAKE_READS_PER_STEP, -1, -1):
            wants_read = not self._has_shaken_hands and self._shake_hands()
            self._has_shaken_hands = not wants_read
            self._flush_protocol()
            self._flush()
            if not wants_read:
                break
            if not reads_left:
                return READ
            try:
                self._feed()
            except BlockingIOError:
                return READ
        return 0

    def _look_for_alert(self) -> None:
        """After a failed write, read any TLS alert that explains it (KAFKA-7505).

        Raises:
            AuthenticationError: an alert has arrived.
        """
        try:
            self._feed()
        except OSError:
            return
        self._shake_hands()

    def _shake_hands(self) -> bool:
        """Let the engine process its input. Returns whether it needs more."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return True
        except _ENDS:
            raise EOFError from None
        except ssl.SSLError as error:
            self._flush_alert()
            raise AuthenticationError(f"TLS handshake failed: {describe(error)}") from error
        return False

    def read(self, bytes_max: int, /) -> bytes:
        tls = self._tls
        self._is_turn_over = is_fed = False
        data = None
        while data is None:
            try:
                data = tls.read(bytes_max)
            except ssl.SSLWantReadError:
                if self._silent:
                    # Otherwise nothing would trigger decrypting what has been read already.
                    self._read_bytes = READ_BYTES_FIRST
                    if is_fed and self._overhead > OVERHEAD_BYTES_MAX and not self._unfed:
                        raise BlockingIOError from None
                self._on_want_read()
                is_fed = True
            except ssl.SSLError as error:
                if self._is_end(error):
                    return b""
                raise self._broken(error) from error
        self._note_data(len(data))
        if self._outgoing.pending:
            self._respond()
        return data

    def read_into(self, buffer: memoryview, /) -> int:
        """Fill as much of the buffer as there is data for (KAFKA-6258).

        Raises:
            BlockingIOError: no data is available now; :attr:`has_buffered` shows whether there is
                more to decrypt in another turn.
        """
        if not len(buffer):
            return 0
        if self._is_turn_over:
            self._is_turn_over = False
            raise BlockingIOError
        tls = self._tls
        filled = noted = 0
        is_fed = False
        while filled < len(buffer):
            try:
                # A number with a buffer, bytes without one.
                count = cast(int, tls.read(len(buffer) - filled, buffer[filled:]))
                if not count:  # a close_notify
                    break
                filled += count
            except ssl.SSLWantReadError:
                if filled > noted:
                    self._note_data(filled - noted)
                    noted = filled
                try:
                    if is_fed and self._overhead > OVERHEAD_BYTES_MAX:
                        self._is_turn_over = filled > 0
                        raise BlockingIOError
                    self._on_want_read()
                    is_fed = True
                except BlockingIOError:
                    if filled:
                        break
                    raise
            except ssl.SSLError as error:
                if self._is_end(error):
                    break
                raise self._broken(error) from error
        self._note_data(filled - noted)
        if self._outgoing.pending:
            self._respond()
        return filled

    def write(self, data: Buffer, /) -> int:
        """Encrypt and send what the socket takes.

        Bytes count as written when all of their ciphertext has left. After a BlockingIOError, or a
        count less than was offered, the next call must offer what comes next again, as for a
        plain socket; some of it may be under way already.
        """
        if self._unsent or self._accepted or len(data) > ENGINE_BYTES_MAX:
            # However large a frame in one piece is and however fast its reader, one turn is short.
            return self.write_gathered([memoryview(data)[:WRITE_BYTES_MAX]])
        # Nearly every response: one record, one send.
        if len(data):
            self._encrypt(data)
        return self._send_encrypted()

    def write_gathered(self, buffers: list[Buffer], /) -> int:
        written = skip = self._send_encrypted()
        try:
            for buffer in buffers:
                if skip >= len(buffer):
                    skip -= len(buffer)
                    continue
                view = memoryview(buffer)[skip:]
                skip = 0
                while len(view):
                    view = view[self._encrypt(view[: WRITE_BYTES_PER_SEND - self._accepted]) :]
                    if self._accepted >= WRITE_BYTES_PER_SEND:
                        written += self._send_encrypted()
            return written + self._send_encrypted()
        except BlockingIOError:
            if not written:
                raise
            return written

    def send_file(self, file_range: FileRange, /) -> int:
        """Send a file range by copying bounded chunks: TLS has no sendfile (KAFKA-9110)."""
        written = self._send_encrypted()
        try:
            while written < file_range.count:
                count = min(file_range.count - written, WRITE_BYTES_PER_SEND)
                data = file_range.file.read_at(file_range.offset + written, count)
                if not data:
                    # The file ends before the range does: the frame can never be completed.
                    raise OSError(f"{file_range!r} reaches beyond the end of its file")
                view = memoryview(data)
                while view:
                    view = view[self._encrypt(view) :]
                written += self._send_encrypted()
            return written
        except BlockingIOError:
            if not written:
                raise
            return written

    def finish_connect(self) -> bool:
        return finish_connect(self._socket)

    def peer_has_ended(self) -> bool:
        return has_ended(self.fileno())

    def has_unread(self) -> bool:
        return self.has_buffered or has_unread(self._socket)

    def close(self) -> None:
        """Send a close_notify if the socket accepts it now, and close the socket; never waits."""
        try:
            if self._has_shaken_hands and not self._unsent:
                self._send_close_notify()
            if not self._has_shaken_hands:
                self._drain()
        except OSError:
            pass  # the peer has gone already
        finally:
            self._socket.close()

    def _send_close_notify(self) -> None:
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # the peer's own close_notify is not waited for
        self._flush_protocol()

    def _drain(self) -> None:
        """Discard what the peer sent after a failed handshake.

        A socket that is closed with unread data sends a reset, on which the peer may forget the
        alert that explains the failure (KAFKA-13539).
        """
        self._flush()
        self._socket.shutdown(socket.SHUT_WR)
        drained = 0
        while drained < DRAIN_BYTES_MAX:
            data = self._socket.recv(READ_BYTES_MAX)
            if not data:
                break
            drained += len(data)

    def _on_want_read(self) -> None:
        """Send the engine's responses and feed it more, after it has consumed all of its input."""
        if self._outgoing.pending:
            self._respond()
        if self._silent > SILENT_BYTES_MAX:
            raise TlsError("TLS: too many records without data")
        self._feed()

    def _note_data(self, count: int) -> None:
        if count:
            self._silent = 0
            self._overhead = max(0, self._overhead - 2 * count)

    def _respond(self) -> None:
        """Send the engine's responses to records without data.

        Raises:
            TlsError: the peer keeps requesting responses without reading them.
        """
        self._responded += self._outgoing.pending
        self._flush_protocol()
        if not self._unsent:
            self._responded = 0
        elif self._responded > RESPONSE_BYTES_MAX:
            raise TlsError("TLS: the peer does not read the responses to its protocol messages")

    def _feed(self) -> None:
        """Take the next ciphertext, of the last read or from the socket, or the stream's end."""
        data = self._unfed
        if not data:
            data = self._socket.recv(self._read_bytes)
            if not data:
                self._incoming.write_eof()
                return
            if len(data) == self._read_bytes and self._has_shaken_hands:
                self._read_bytes = min(4 * self._read_bytes, READ_BYTES_MAX)
            else:
                self._read_bytes = READ_BYTES_FIRST
        is_slow = self._silent or self._overhead > OVERHEAD_BYTES_MAX
        feed_bytes = SLOW_FEED_BYTES_MAX if is_slow else ENGINE_BYTES_MAX
        if len(data) <= feed_bytes:
            self._incoming.write(data)
            self._unfed = b""
        else:
            view = memoryview(data)
            data = view[:feed_bytes]
            self._incoming.write(data)
            self._unfed = view[feed_bytes:]
        if self._has_shaken_hands:
            self._overhead += len(data)
            self._silent += len(data)

    def _encrypt(self, data: Buffer) -> int:
        """Encrypt the first part of the data. Returns its size."""
        if len(data) > ENGINE_BYTES_MAX:
            data = memoryview(data)[:ENGINE_BYTES_MAX]
        try:
            count = self._tls.write(data)
        except ssl.SSLError as error:
            raise self._broken(error) from error
        self._accepted += count
        if self._outgoing.pending >= ENGINE_BYTES_MAX:
            self._unsent.append(self._outgoing.read())
        return count

    def _send_encrypted(self) -> int:
        """Send what has been encrypted so far. Returns how much plaintext that was.

        Raises:
            BlockingIOError: the socket has not taken all of it yet.
        """
        self._flush_protocol()
        if self._unsent:
            raise BlockingIOError
        accepted, self._accepted = self._accepted, 0
        return accepted

    def _flush(self) -> None:
        """Send what is left behind.

        Raises:
            BlockingIOError: the socket has not taken all of it.
        """
        unsent = self._unsent
        while unsent:
            if _HAS_SENDMSG and len(unsent) > 1:
                sent = self._socket.sendmsg(unsent[:GATHER_BUFFERS_MAX])
            else:
                sent = self._socket.send(unsent[0])
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.pop(0))
            if sent:
                unsent[0] = memoryview(unsent[0])[sent:]

    def _flush_protocol(self) -> None:
        """Send what the engine has to send; what the socket does not take is left behind."""
        if self._outgoing.pending:
            self._unsent.append(self._outgoing.read())
        try:
            self._flush()
        except BlockingIOError:
            pass

    def _is_end(self, error: ssl.SSLError) -> bool:
        """Whether the stream has ended; one without a close_notify ends as well (as in Kafka)."""
        return isinstance(error, _ENDS) or self._incoming.eof

    def _flush_alert(self) -> None:
        try:
            self._flush_protocol()
        except OSError:
            pass  # the peer has disconnected, and needs no alert

    def _broken(self, error: ssl.SSLError) -> OSError | AuthenticationError:
        self._flush_alert()
        return TlsError(f"TLS: {describe(error)}")
