"""One connection: its transport, its mute state, and at most one Send and one Receive at a time.

(Kafka: KafkaChannel.) If several frames arrive in one read, they are *staged* here, and the
Selector returns one staged frame per poll. While the channel is muted, nothing is read or returned.
So each peer has at most one request in progress, and TCP flow control slows the peer down.
"""

# Compiled by mypyc.

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .._util._raising import again
from ..errors import LocalProtocolError
from ._authenticator import Authenticator, Initiator, Step
from ._channel_state import ChannelState, Muting, checked, first_state
from ._principal import ANONYMOUS, Principal
from .tls._tls_transport import TlsTransport
from .wire._close_reason import BY_PEER, CloseReason
from .wire._framing import (
    SIZE_BYTES,
    Decoder,
    Frame,
    FrameDecoder,
    LargeFrameDecoder,
    LimitNames,
    size_limit,
)
from .wire._memory_pool import MemoryLease, MemoryPool
from .wire._transmission import Outgoing, Send
from .wire._transport import PlaintextTransport, TransportLayer

# The size of the first read of a frame; the rest of a large frame is read straight into that
# frame's own buffer. After a small frame the next one is expected to be small: Python allocates up
# to 512 bytes, 33 of them its own, several times faster than it shrinks a buffer of 4 KB, and that
# in turn is 0.8 µs faster than one of 64 KB. A wrong guess costs a second read.
READ_BYTES: Final = 4096
SMALL_READ_BYTES: Final = 479
# The most that one poll reads of one large frame, so that no channel delays the others.
READ_BYTES_PER_POLL_MAX: Final = 1024 * 1024

# As constants these cost no lookup. They take the descriptor, which saves a lone small request
# 0.1 µs each way: socket methods have a tuple of arguments, and bound methods are objects that are
# rarely in the cache with hundreds of channels. On Windows a socket is not a file.
_read_file: Final = os.read
_write_file: Final = os.write
_SOCKETS_ARE_FILES: Final = os.name == "posix"
_UNNAMED: Final = LimitNames()
_CLOSING: Final = ChannelState.CLOSING
_CLOSED: Final = ChannelState.CLOSED
_READY: Final = ChannelState.READY

Identify = Callable[[TlsTransport], Authenticator | Principal]
"""Maps a completed TLS handshake to a principal, or to an Authenticator that finds it."""


class Channel:
    """A connection of a Selector, modified only by the Selector and its steps.

    Args:
        id: the connection id, unique in its Selector.
        transport: the byte stream of the connection; with TLS, a handshake comes first.
        frame_bytes_max: the largest accepted frame, or :data:`.UNLIMITED`.
        limit_names: the names of the settings that limit frame sizes, for error messages.
        authenticator: authenticates the peer before its frames are treated as requests; None for no
            authentication.
        initiator: for an outgoing connection, authenticates to the peer.
        identify: called after the TLS handshake; returns the principal or the authenticator to use
            next, and may raise AuthenticationError.
        connects: True for an outgoing connection that is not connected yet.
        pool: provides memory for large frames; None for no limit.
        decoder: splits the stream into frames; by default, by Kafka's size prefixes.

    Attributes:
        id: the connection id, unique in its Selector.
        state: the state of the connection.
        reached: the current state or, if that is CLOSED, the state before it.
        muting: whether the channel itself may be read; see also :meth:`.ChannelSteps.why_unread`.
        principal: the peer's principal; anonymous until the peer is authenticated.
        authenticator: the authenticator or initiator in use, if any.
        tls: the transport if it uses TLS, otherwise None.
        failure: the step in which authentication failed, until the channel is closed.
        held_send: a Send that is held back until re-authentication is complete.
        network_thread_ns: the time that the loop has spent on reads and writes of the channel, in
            nanoseconds; 0 unless its Selector measures it. Reset by the channel's owner.
        last_used_at: when bytes were last read or written, in seconds on the loop's clock.
        lease: the lease for the large frame that is being read or was returned last.
        staged: whole frames that were read but not yet returned.
        has_staged: whether a poll can make progress without reading from the socket: there is a
            staged frame, or an error follows the last one.
        send: the Send in progress, if any.
        interest: the readiness bits that the poller watches for.
        close_reason: why the channel is CLOSING or CLOSED; None before that.
        connect_error: why an outgoing connection could not be established; None if it was, or if
            the attempt has not ended.
        attachment: arbitrary data that the channel's owner attaches.
    """

    def __init__(
        self,
        id: str,
        transport: TransportLayer,
        frame_bytes_max: int,
        *,
        limit_names: LimitNames = _UNNAMED,
        authenticator: Authenticator | None = None,
        initiator: Initiator | None = None,
        identify: Identify | None = None,
        pool: MemoryPool | None = None,
        decoder: Decoder | None = None,
        connects: bool = False,
    ) -> None:
        # The attributes that every request uses come first: a compiled channel is a struct of 300
        # bytes in this order, and with hundreds of channels each extra cache line counts.
        # The descriptor, if the socket can be read and written without the transport; else None.
        # Both are Any: compiled code would otherwise box an int at each call of os.read().
        is_plain = _SOCKETS_ARE_FILES and type(transport) is PlaintextTransport
        self._file: Any = transport.fileno() if is_plain else None
        self._read_bytes: Any = READ_BYTES
        # Set if the decoder is Kafka's: receive() then handles most frames without calling it.
        self._frame_decoder: FrameDecoder | None = None
        self.tls: TlsTransport | None = transport if isinstance(transport, TlsTransport) else None
        self.initiator: Initiator | None = initiator
        self.authenticator: Authenticator | None = authenticator or initiator
        self.state: ChannelState = first_state(
            connects=connects,
            has_tls=self.tls is not None,
            authenticates=self.authenticator is not None,
        )
        self.muting: Muting = Muting()
        self.has_staged: bool = False
        self.send: Send | None = None
        self.lease: MemoryLease | None = None
        self.attachment: Any = None
        self.interest: int = 0
        self.network_thread_ns: int = 0
        self.bytes_received: int = 0
        self.bytes_sent: int = 0
        self.last_used_at: float = 0.0
        self.id: str = id
        self.transport: TlsTransport | TransportLayer = transport
        self.fd: int = transport.fileno()
        if decoder is None:
            decoder = self._frame_decoder = FrameDecoder(frame_bytes_max, limit_names.frame)
        elif isinstance(decoder, LargeFrameDecoder):
            decoder.limit_name = limit_names.frame
        self._decoder = decoder
        self.staged: deque[Frame] = self._decoder.frames
        self.close_reason: CloseReason | None = None
        self.close_detail: str = ""
        self.connect_error: Exception | None = None
        self.identify: Identify | None = identify
        self.principal: Principal = ANONYMOUS
        self.reached: ChannelState = self.state
        self.failure: Step | None = None
        self.held_send: Send | None = None
        self.pool: MemoryPool | None = pool
        self._frame_bytes_max = size_limit(frame_bytes_max)
        self.limit_names: LimitNames = limit_names
        self._limit_to_authentication()

    @property
    def is_open(self) -> bool:
        """Whether the socket is open, even if the peer has disconnected (CLOSING)."""
        return self.state is not _CLOSED

    @property
    def is_ready(self) -> bool:
        """Whether the channel can exchange requests and responses (Kafka: KafkaChannel.ready)."""
        return self.state is _READY

    @property
    def has_buffered(self) -> bool:
        """Whether TLS holds buffered bytes, which no poller reports (KAFKA-7012, KAFKA-13559)."""
        tls = self.tls
        return tls is not None and tls.has_buffered

    @property
    def oversized_bytes(self) -> int:
        """The size of the oversized frame that closed the channel, or 0."""
        return 0 if self._frame_decoder is None else self._frame_decoder.oversized_bytes

    def identified(self, found: Authenticator | Principal) -> None:
        """Set the principal from the TLS handshake, or the authenticator to use next."""
        if isinstance(found, Principal):
            self.principal = found
        else:
            self.authenticator = found
            self._limit_to_authentication()

    def move(self, state: ChannelState) -> None:
        """Move to another state.

        Raises:
            LocalProtocolError: the transition from the current state is not allowed.
        """
        self.state = checked(self.state, state)
        if state is not _CLOSED:
            self.reached = state
        authenticator = self.authenticator
        if authenticator is None:
            return
        if state is ChannelState.AUTHENTICATING:
            # Also when re-authenticating (Kafka: SaslServerAuthenticator). Not for a client: large
            # responses to requests from before its re-authentication may still arrive.
            if self.initiator is None:
                self._limit_to_authentication()
        elif state is _READY:
            self.principal = authenticator.principal
            self._limit_frames(self._frame_bytes_max, self.limit_names.frame)
            if self.held_send is not None:
                self.send, self.held_send = self.held_send, None

    def _limit_to_authentication(self) -> None:
        """Lower the frame limit, so that an unauthenticated peer cannot occupy much memory."""
        authenticator = self.authenticator
        if authenticator is None:
            return
        frame_bytes_max = size_limit(authenticator.frame_bytes_max)
        if frame_bytes_max < self._frame_bytes_max:
            self._limit_frames(frame_bytes_max, self.limit_names.authentication)

    def _limit_frames(self, frame_bytes_max: int, limit_name: str) -> None:
        decoder = self._decoder
        decoder.frame_bytes_max = frame_bytes_max
        if isinstance(decoder, LargeFrameDecoder):
            decoder.limit_name = limit_name

    def take_lease(self) -> MemoryLease | None:
        """Return the lease of the last large frame, if any; the caller must release it."""
        lease, self.lease = self.lease, None
        return lease

    def begin_send(self, send: Outgoing) -> bool:
        """Make ``send`` the Send in progress, and write as much of it as the socket accepts.

        Returns:
            Whether ``send`` is already complete.

        Raises:
            LocalProtocolError: another Send is in progress (Kafka: KafkaChannel.setSend), or
                ``send`` is empty or already complete.
            OSError: the connection failed.
        """
        if self.send is not None:
            raise LocalProtocolError(
                f"channel {self.id} already has a Send in progress; wait until it is complete"
            )
        if not isinstance(send, bytes):
            if send.is_complete:
                raise LocalProtocolError("this Send is already complete; create a new one")
            self.send = send
            return self.write()
        file = self._file
        try:
            count = self.transport.write(send) if file is None else _write_file(file, send)
        except BlockingIOError:
            count = 0
        self.bytes_sent += count
        if count == len(send):
            if not count:
                raise LocalProtocolError("cannot send an empty frame")
            return True
        self.send = Send([memoryview(send)[count:]])
        return False

    def write(self) -> bool:
        """Write as much as the socket accepts. Returns whether the Send in progress is complete."""
        send = self.send
        assert send is not None
        self.bytes_sent += send.write_to(self.transport)
        if send.remaining:
            return False
        self.send = None
        return True

    def receive(self) -> Frame | None:
        """Read from the socket, and return the first whole frame, or None; stage further frames.

        Raises:
            EOFError: the stream has ended.
            InvalidReceiveError: the stream contains an invalid frame size.
            BlockingIOError: no data is available.
            OSError: the connection failed.
        """
        frame_decoder = self._frame_decoder
        if frame_decoder is None:
            is_inside_frame = self._decoder.is_inside_frame
        else:
            is_inside_frame = frame_decoder.is_inside_frame
        if is_inside_frame:
            self._receive_more()
            return self.take_staged()
        asked = self._read_bytes
        data = self._read(asked)
        count = len(data)
        self.bytes_received += count
        if not count:
            raise EOFError
        size = count - SIZE_BYTES
        if count < SMALL_READ_BYTES:
            self._read_bytes = SMALL_READ_BYTES
        else:
            self._read_bytes = READ_BYTES
        if (
            frame_decoder is not None
            and 0 < size <= frame_decoder.frame_bytes_max
            and data[3] == size & 255
            and data[2] == size >> 8
            and not data[1]
            and not data[0]
        ):
            # The path of nearly every request: one read yields exactly one small frame.
            return data[SIZE_BYTES:]
        decoder = self._decoder
        decoder.receive_data(data)
        if decoder.wants_fill and count == asked and not decoder.frames:
            # Not after whole frames: those must be returned first, and an end of stream noticed
            # here would overtake them.
            self._fill_large_frame()
        return self.take_staged()

    def _read(self, bytes_max: Any) -> bytes:
        file = self._file
        return self.transport.read(bytes_max) if file is None else _read_file(file, bytes_max)

    def _receive_more(self) -> None:
        decoder = self._decoder
        if decoder.wants_fill:
            self._fill_large_frame()
            return
        data = self._read(READ_BYTES)
        if not data:
            raise EOFError
        self.bytes_received += len(data)
        decoder.receive_data(data)

    def _fill_large_frame(self) -> None:
        decoder = self._decoder
        # Frames of an authentication have their own limit and must not use requests' memory.
        is_request = self.state is _READY or self.state is _CLOSING
        if is_request and self.pool is not None and self.lease is None:
            self.lease = self.pool.try_allocate(decoder.size, self.last_used_at)
            if self.lease is None:
                self.muting.is_out_of_memory = True
                return
        budget = READ_BYTES_PER_POLL_MAX
        try:
            while decoder.wants_fill and budget > 0:
                count = decoder.fill(self.transport.read_into)
                if not count:
                    raise EOFError
                self.bytes_received += count
                budget -= count
        except BlockingIOError:
            # The rest has not arrived yet; if the peer has disconnected, it never will.
            came = budget < READ_BYTES_PER_POLL_MAX or self.has_buffered
            if self.state is _CLOSING and not came:
                raise

    def take_staged(self) -> Frame | None:
        """Remove and return the oldest staged frame, or None.

        Raises:
            InvalidReceiveError: no staged frame is left, and the data after the last one is
                invalid.
        """
        staged, error = self.staged, self._decoder.error
        if not staged:
            self.has_staged = False
            if error is not None:
                # A copy: the traceback of the decoder's own would lead back to this channel, and
                # only a collection of cycles would free both.
                raise again(error)
            return None
        frame = staged.popleft()
        self.has_staged = bool(staged) or error is not None
        return frame

    def begin_closing(self, reason: CloseReason, detail: str) -> None:
        """Enter CLOSING: the connection is dead, so nothing more can be sent to the peer."""
        self.move(_CLOSING)
        self.close_reason, self.close_detail = reason, detail
        self.send = None

    def end(self, reason: CloseReason, detail: str) -> None:
        """Enter CLOSED and record the reason.

        After a failed authentication, the reason for the failure is kept. In CLOSING, a further
        reason caused by the peer does not replace the first, unless it is SEND_FAILED. Other
        reasons, such as IDLE, SESSION_EXPIRED, INVALID_RECEIVE or SERVER_SHUTDOWN, do.
        """
        failure = self.failure
        if failure is not None and failure.close_reason is not None:
            self.close_reason, self.close_detail = failure.close_reason, failure.detail
        elif (
            self.state is not _CLOSING or reason is CloseReason.SEND_FAILED or reason not in BY_PEER
        ):
            self.close_reason, self.close_detail = reason, detail
        self.move(_CLOSED)
        self._file = None  # the descriptor may be another file's from here on
        self.staged.clear()

    @property
    def end_of_stream_reason(self) -> CloseReason:
        """The close reason if the stream ends at this point, inside a frame or between frames."""
        if self._decoder.is_inside_frame:
            return CloseReason.PEER_CLOSED_IN_FRAME
        return CloseReason.PEER_CLOSED

    def __repr__(self) -> str:
        return (
            f"<Channel {self.id} {self.state.name} {self.muting.state.name}"
            f" staged={len(self.staged)} send={self.send!r}>"
        )
