"""TLS beneath a channel (Kafka: SslTransportLayer): non-blocking, driven by the readiness loop.

The engine works on two memory buffers instead of the socket. Measured on 1 MB responses, one send
of 256 KB of ciphertext has 1.25 to 1.35 times the throughput of ``SSLSocket``, which makes one
system call per record. Also, callers need not repeat a write with exactly the same bytes.

Nothing is read ahead: ciphertext is read from the socket only when the engine asks for it, after
the engine has consumed all earlier ciphertext. So :attr:`TlsTransport.has_buffered` is false as
soon as no progress is possible without the socket: no frame gets stuck (KAFKA-13559), and a partial
record does not make the loop spin (KAFKA-7012).

Records without data, such as key updates, cost the engine far more than their size suggests, and it
processes all its input before it returns. Anybody can send them after a handshake, on many
connections at once. So the engine is given a few records at a time, and those that brought no data
end the turn of their connection soon. A peer that sends nothing else is disconnected.

A TLS 1.3 client completes its handshake before the server has verified the client's certificate. A
rejection arrives instead of the first data, or makes the first write fail, and still counts as a
failed authentication (Kafka: SslTransportLayer.State.POST_HANDSHAKE).
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from ...errors import AuthenticationError
from ..wire._close_reason import CloseReason
from ..wire._readiness import READ, WRITE
from ..wire._transmission import GATHER_BUFFERS_MAX, WRITE_BYTES_MAX, Buffer, FileRange
from ..wire._transport import PlaintextTransport

# What Python adds to the text of an error: "[SSL] internal error (_ssl.c:2580)".
_PLACE = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$")


class TlsError(OSError):
    """Raised when the peer violates TLS after the handshake; the connection is unusable.

    Attributes:
        close_reason: the close reason for the channel.
    """

    close_reason = CloseReason.TLS_FAILED


def describe(error: Exception) -> str:
    """Return the reason for an ``ssl`` error, without Python's file names and line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate was rejected: {error.verify_message}"
    text: str = getattr(error, "reason", None) or _PLACE.sub("", str(error))
    return text.replace("_", " ").lower()


# How much plaintext is encrypted before it is sent: what a peer that reads slowly can make each of
# its connections keep in memory, once encrypted.
WRITE_BYTES_PER_SEND = 256 * 1024
# How much ciphertext is read at once: little for small requests, more when that was not enough.
READ_BYTES_FIRST = 8 * 1024
READ_BYTES_MAX = 256 * 1024
# How much passes through one of the engine's buffers at a time. Such a buffer grows to the most
# that it ever held and never shrinks, even while the connection is idle (KAFKA-7454).
ENGINE_BYTES_MAX = 64 * 1024
# The most that it gets to decrypt after input that brought little data, or none.
SLOW_FEED_BYTES_MAX = 16 * 1024
# The most records that it gets to decrypt at once.
RECORDS_PER_FEED_MAX = 16
# What a record counts for beside its bytes: a key update has 27, and costs as much as kilobytes.
RECORD_COST_BYTES = 256
# The type, the version and the length of a record.
RECORD_HEAD_BYTES = 5
# How much ciphertext may bring no data: an incomplete record, and some bytes around it. Beyond that
# little is decrypted in one turn (see above).
OVERHEAD_BYTES_MAX = 20 * 1024
# How much ciphertext may arrive without any data: more than two records.
SILENT_BYTES_MAX = 36 * 1024
# How much the engine may respond to a peer that does not read its responses.
RESPONSE_BYTES_MAX = 64 * 1024
# A flight of the handshake is a few kilobytes. A peer that sends more waits for another turn.
HANDSHAKE_READS_PER_STEP = 4
# How much is discarded before a close, so that no reset overtakes the alert.
DRAIN_BYTES_MAX = 256 * 1024

_ENDS = (ssl.SSLZeroReturnError, ssl.SSLEOFError)


class TlsTransport:
    """TLS over a non-blocking TCP socket.

    Args:
        sock: the socket, which the transport owns; must be connected before the first step of the
            handshake.
        context: the TLS context; see :mod:`._tls_context`.
        server_name: on the client side, the name to request (SNI), which the server's certificate
            must contain unless the context does not check it; None on the server side.
    """

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None
    ) -> None:
        is_server = server_name is None
        self._socket = sock
        self._plain = plain = PlaintextTransport(sock)
        self.fileno: Callable[[], int] = sock.fileno
        self.finish_connect: Callable[[], bool] = plain.finish_connect
        self.peer_has_ended: Callable[[], bool] = plain.peer_has_ended
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_name)
        self._has_shaken_hands = False
        self._may_be_rejected = not is_server  # the server has not sent any data yet
        self._read_bytes = READ_BYTES_FIRST
        self._unfed: bytes | memoryview = b""  # ciphertext that the engine has not requested yet
        self._unsent: list[Buffer] = []  # ciphertext that the socket has not accepted yet
        self._accepted = 0  # plaintext inside _unsent, counted as written when that has left
        self._responded = 0  # bytes inside _unsent that respond to records without data
        self._record_head = b""  # of the record in progress, as far as it has been fed
        self._record_left = 0  # what is left to feed of its content
        self._overhead = 0  # the cost of ciphertext less twice the data that it brought, at least 0
        self._silent = 0  # the cost of the ciphertext since the last data
        self._is_turn_over = False  # reading into a buffer has taken long enough

    @property
    def has_buffered(self) -> bool:
        """Whether a read can make progress without another byte from the socket."""
        return self._incoming.pending > 0 or self._tls.pending() > 0 or len(self._unfed) > 0

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate whose key the peer proved to hold, in DER; None without one."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def cipher(self) -> tuple[str, str]:
        """The cipher suite and protocol version; ``("", "")`` until the handshake is complete."""
        suite = self._tls.cipher()
        return (suite[0], self._tls.version() or "") if suite else ("", "")

    def handshake_step(self) -> int:
        """Continue the handshake as far as possible without waiting.

        Returns:
            READ or WRITE: what the socket must be ready for before the next step; 0 when the
            handshake is complete and all its output has been sent. Data from the peer may have
            arrived with the last record: see :attr:`has_buffered` (KAFKA-2801).

        Raises:
            AuthenticationError: no common version or cipher suite, a certificate that one of the
                sides does not trust, or a peer without TLS. The alert has been sent.
            EOFError: the peer ended the connection, with or without a close_notify (KAFKA-7168);
                this is not an authentication failure.
            OSError: the connection failed.
        """
        try:
            for reads_left in range(HANDSHAKE_READS_PER_STEP, -1, -1):
                if not self._has_shaken_hands:
                    self._shake_hands()
                self._send_encrypted()
                if self._has_shaken_hands:
                    return 0
                if reads_left:
                    try:
                        self._feed()
                    except BlockingIOError:
                        break
        except BlockingIOError:
            return WRITE
        except OSError:
            self._look_for_alert()
            raise
        return READ

    def _shake_hands(self) -> None:
        """Let the engine process its input."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except _ENDS:
            raise EOFError from None
        except ssl.SSLError as error:
            raise self._broken(error) from error
        self._has_shaken_hands = True

    def _look_for_alert(self) -> None:
        """After a failed write, read any TLS alert that explains it (KAFKA-7505).

        Raises:
            AuthenticationError: an alert has arrived.
            EOFError: the stream ended during the handshake.
        """
        try:
            self._feed()
        except OSError:
            return
        if not self._has_shaken_hands:
            self._shake_hands()
        elif self._may_be_rejected:
            try:
                self._tls.read(READ_BYTES_FIRST)
            except (ssl.SSLWantReadError, *_ENDS):
                pass
            except ssl.SSLError as error:
                raise AuthenticationError(f"TLS handshake failed: {describe(error)}") from error

    def read(self, bytes_max: int, /) -> bytes:
        """Return data, up to ``bytes_max``; ``b""`` at the end of the stream.

        Raises:
            BlockingIOError: see :meth:`read_into`.
        """
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
                    if is_fed and self._overhead > OVERHEAD_BYTES_MAX:
                        raise BlockingIOError from None
                self._feed()
                is_fed = True
            except ssl.SSLError as error:
                if self._is_end(error):
                    return b""
                raise self._broken(error) from error
        self._note_data(len(data))
        return data

    def read_into(self, buffer: memoryview, /) -> int:
        """Read as much data as is available and fits in the buffer (KAFKA-6258).

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
                    self._feed()
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
        return filled

    def write(self, data: Buffer, /) -> int:
        """Encrypt and send as much as the socket accepts.

        Bytes count as written when the socket has accepted all of their ciphertext. After a
        BlockingIOError, or a count smaller than the number of bytes offered, the next call must
        offer the remaining bytes again, as with a plain socket; some of their ciphertext may
        already have been sent.
        """
        if self._unsent or self._accepted or len(data) > ENGINE_BYTES_MAX:
            # However large a frame in one piece is and however fast its reader, one turn is short.
            return self.write_gathered([memoryview(data)[:WRITE_BYTES_MAX]])
        # Nearly every response: one record, one send.
        if len(data):
            self._encrypt(data)
        return self._send_encrypted()

    def write_gathered(self, buffers: list[Buffer], _has_more: bool = False, /) -> int:
        accepted = self._send_encrypted()
        return self._write_pieces(_without_first(buffers, accepted), accepted)

    def send_file(self, file_range: FileRange, /) -> int:
        """Send a file range by copying bounded chunks: TLS has no sendfile (KAFKA-9110)."""
        accepted = self._send_encrypted()
        return self._write_pieces(_read_chunks(file_range, accepted), accepted)

    def _write_pieces(self, pieces: Iterator[memoryview], written: int) -> int:
        """Encrypt and send the data after ``written`` bytes. Returns the total written."""
        try:
            for piece in pieces:
                left = piece
                while left:
                    left = left[self._encrypt(left[: WRITE_BYTES_PER_SEND - self._accepted]) :]
                    if self._accepted >= WRITE_BYTES_PER_SEND:
                        written += self._send_encrypted()
            return written + self._send_encrypted()
        except BlockingIOError:
            if not written:
                raise
            return written

    def has_unread(self) -> bool:
        return self.has_buffered or self._plain.has_unread()

    def close(self) -> None:
        """Send a close_notify if the socket accepts it now, and close the socket; never waits."""
        self._may_be_rejected = False  # no longer relevant
        try:
            if not self._has_shaken_hands:
                self._send_encrypted()
                _drain(self._socket)
            elif not self._unsent:
                try:
                    self._tls.unwrap()
                except ssl.SSLError:
                    pass  # the peer's own close_notify is not waited for
                self._flush()
        except OSError:
            pass  # the peer has disconnected already
        finally:
            self._socket.close()

    def _note_data(self, count: int) -> None:
        """Record that data was read, and send the engine's responses to records without data."""
        if count:
            self._may_be_rejected = False
            self._silent = 0
            self._overhead = max(0, self._overhead - 2 * count)
        if self._outgoing.pending:
            self._respond()

    def _respond(self) -> None:
        """Send the engine's responses to records without data.

        Raises:
            TlsError: the peer keeps requesting responses without reading them.
        """
        self._responded += self._outgoing.pending
        self._flush()
        if not self._unsent:
            self._responded = 0
        elif self._responded > RESPONSE_BYTES_MAX:
            raise TlsError("TLS: the peer does not read the responses to its protocol messages")

    def _feed(self) -> None:
        """Pass the next ciphertext or the end of the stream to the engine, which needs more input.

        Raises:
            BlockingIOError: no data has arrived.
            TlsError: the peer sends too many records without data.
        """
        if self._outgoing.pending:
            self._respond()
        if self._silent > SILENT_BYTES_MAX:
            raise TlsError("TLS: too many records without data")
        data = self._unfed
        if not data:
            data = self._plain.read(self._read_bytes)
            if not data:
                self._incoming.write_eof()
                return
            if len(data) == self._read_bytes and self._has_shaken_hands:
                self._read_bytes = min(4 * self._read_bytes, READ_BYTES_MAX)
            else:
                self._read_bytes = READ_BYTES_FIRST
        is_slow = self._silent or self._overhead > OVERHEAD_BYTES_MAX
        feed_bytes = SLOW_FEED_BYTES_MAX if is_slow else ENGINE_BYTES_MAX
        records_max = RECORDS_PER_FEED_MAX if self._has_shaken_hands else len(data)
        size, records = self._first_records(data, feed_bytes, records_max)
        if size == len(data):
            self._incoming.write(data)
            self._unfed = b""
        else:
            view = memoryview(data)
            self._incoming.write(view[:size])
            self._unfed = view[size:]
        if self._has_shaken_hands:
            cost = size + RECORD_COST_BYTES * records
            # Limited, so that data outweighs it soon: small requests cost more than they bring.
            self._overhead = min(self._overhead + cost, 2 * OVERHEAD_BYTES_MAX)
            self._silent += cost

    def _first_records(self, data: Buffer, bytes_max: int, records_max: int) -> tuple[int, int]:
        """Return the size and the number of the first records in the next ciphertext to feed.

        The last of them may be incomplete; it is counted when its head is complete.
        """
        head, position, records = self._record_head, self._record_left, 0
        size = min(len(data), bytes_max)
        while position < size and records < records_max:
            part = data[position : min(position + RECORD_HEAD_BYTES - len(head), size)]
            head += part
            position += len(part)
            if len(head) == RECORD_HEAD_BYTES:
                position += head[3] << 8 | head[4]
                head = b""
                records += 1
        size = min(position, size)
        self._record_head, self._record_left = head, position - size
        return size, records

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
        """Send the encrypted data. Returns the number of plaintext bytes in it.

        Raises:
            BlockingIOError: the socket has not accepted all of the data yet.
        """
        self._flush()
        if self._unsent:
            raise BlockingIOError
        accepted, self._accepted = self._accepted, 0
        return accepted

    def _flush(self) -> None:
        """Send the engine's output; the part that the socket does not accept is kept."""
        unsent = self._unsent
        if self._outgoing.pending:
            unsent.append(self._outgoing.read())
        try:
            while unsent:
                if len(unsent) > 1:
                    sent = self._plain.write_gathered(unsent[:GATHER_BUFFERS_MAX])
                else:
                    sent = self._plain.write(unsent[0])
                while unsent and sent >= len(unsent[0]):
                    sent -= len(unsent.pop(0))
                if sent:
                    unsent[0] = memoryview(unsent[0])[sent:]
        except BlockingIOError:
            pass
        except OSError:
            if self._may_be_rejected and self._has_shaken_hands:
                self._look_for_alert()
            raise

    def _is_end(self, error: ssl.SSLError) -> bool:
        """Whether the stream has ended, with or without a close_notify (as in Kafka)."""
        return isinstance(error, _ENDS) or self._incoming.eof

    def _broken(self, error: ssl.SSLError) -> OSError | AuthenticationError:
        """Send the engine's alert, and return the exception to raise for its error."""
        try:
            self._flush()
        except OSError:
            pass  # the peer has disconnected, and needs no alert
        if self._has_shaken_hands and not self._may_be_rejected:
            return TlsError(f"TLS: {describe(error)}")
        return AuthenticationError(f"TLS handshake failed: {describe(error)}")


def _without_first(buffers: Iterable[Buffer], count: int) -> Iterator[memoryview]:
    """Yield the rest of the buffers after their first ``count`` bytes."""
    for buffer in buffers:
        if count < len(buffer):
            yield memoryview(buffer)[count:]
        count = max(0, count - len(buffer))


def _read_chunks(file_range: FileRange, position: int) -> Iterator[memoryview]:
    """Yield the bytes of a file range from ``position`` on."""
    while position < file_range.count:
        count = min(file_range.count - position, WRITE_BYTES_PER_SEND)
        data = file_range.file.read_at(file_range.offset + position, count)
        if not data:
            # The file ends before the range does: the frame can never be completed.
            raise OSError(f"{file_range!r} extends past the end of its file")
        yield memoryview(data)
        position += len(data)


def _drain(sock: socket.socket) -> None:
    """Discard the data that the peer sent after a failed handshake.

    Closing a socket with unread data sends a reset, which may make the peer discard the alert that
    explains the failure (KAFKA-13539).
    """
    sock.shutdown(socket.SHUT_WR)
    left = DRAIN_BYTES_MAX
    while left > 0 and (data := sock.recv(READ_BYTES_MAX)):
        left -= len(data)
