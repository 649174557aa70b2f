"""One connection: its transport, at most one Send and one Receive in progress, its mute state.

(Kafka: KafkaChannel.) Frames that arrived in one read are *staged* here until the Selector hands
them out, one per poll. While the channel is muted nothing is read or handed out, so that a peer
has one request in progress at a time and TCP carries the back-pressure to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ..errors import LocalProtocolError
from .authenticator import Authenticator, Initiator, Step
from .channel_state import ChannelState, checked, first_state
from .close_reason import BY_PEER, CloseReason
from .framing import SIZE_BYTES, Decoder, Frame, FrameDecoder, LimitNames, size_limit
from .head_decoder import HeadDecoder
from .memory_pool import MemoryLease, MemoryPool
from .mute_state import Muting
from .principal import ANONYMOUS, Principal
from .tls import TlsTransport
from .transmission import Outgoing, Send
from .transport import TransportLayer

# The first read of a frame. Small, because a fresh 4 KB buffer costs 0.8 µs less than one of
# 64 KB; what a large frame lacks is read straight into that frame's own buffer.
READ_BYTES: Final = 4096
# How much of one large frame is read in one poll, so that no channel keeps the others waiting.
READ_BYTES_PER_POLL_MAX: Final = 1024 * 1024

_UNNAMED: Final = LimitNames()
_CLOSING: Final = ChannelState.CLOSING
_CLOSED: Final = ChannelState.CLOSED
_READY: Final = ChannelState.READY

Identify = Callable[[TlsTransport], Authenticator | Principal]
"""Decides about a peer by its TLS handshake: its principal, or what is to ask it for one."""


class Channel:
    """A connection as the Selector keeps it; nothing but the Selector and its steps changes one.

    Args:
        id: the connection id, unique in its Selector.
        transport: the connection; one under TLS has a handshake before it.
        frame_bytes_max: largest frame that is accepted, or :data:`.framing.UNLIMITED`.
        limit_names: what sets the limits of frames, for errors.
        authenticator: decides who the peer is before frames are requests; None: nobody asks.
        initiator: the same for an outgoing connection, where we say first who we are.
        identify: called when the TLS handshake is done; may raise AuthenticationError.
        connects: an outgoing connection, still to be made.
        pool: where the memory of large frames is taken from; None for no limit.
        decoder: cuts the stream into frames; that of Kafka's size prefix by default.

    Attributes:
        id: the connection id, unique in its Selector.
        state: how far it has come.
        reached: the same, but that it was closed: how far it had come before.
        muting: what keeps it from being read; see also :meth:`.ChannelSteps.why_unread`.
        principal: the peer; anonymous until it is known.
        authenticator: see above.
        tls: the transport, if it is one under TLS.
        failure: how its authentication failed, while its end is held back.
        held_send: what is sent when the re-authentication that was begun for it is done.
        network_thread_ns: for how long the loop has read and written for it, in nanoseconds; 0 if
            its Selector was not asked to measure that. Its owner sets it back.
        last_used_at: when bytes were last read or written, in seconds of the loop's clock.
        lease: the memory of the large frame that is being read, or was handed out last.
        staged: whole frames that were read and not yet handed out.
        has_staged: whether a poll can make progress here without another byte from the socket:
            with a staged frame, or with the error behind the last of them.
        send: the Send in progress, if any.
        interest: what the poller watches for, a mask of the readiness bits.
        close_reason: why it is CLOSING or CLOSED; None before.
        attachment: the owner's own data.
    """

    __slots__ = (
        "_decoder",
        "_frame_bytes_max",
        "_frame_decoder",
        "_read",
        "_write",
        "attachment",
        "authenticator",
        "bytes_received",
        "bytes_sent",
        "close_detail",
        "close_reason",
        "failure",
        "fd",
        "has_staged",
        "held_send",
        "id",
        "identify",
        "initiator",
        "interest",
        "last_used_at",
        "lease",
        "limit_names",
        "muting",
        "network_thread_ns",
        "pool",
        "principal",
        "reached",
        "send",
        "staged",
        "state",
        "tls",
        "transport",
    )

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
        # First what every request touches: compiled, a channel is 300 bytes long in this order, and
        # with hundreds of them each line of the cache that is not needed counts.
        self._read = transport.read
        self._write = transport.write
        # The decoder once more if it is Kafka's: most of its frames need not pass through it.
        self._frame_decoder: FrameDecoder | None = None
        self.tls = transport if isinstance(transport, TlsTransport) else None
        self.initiator = initiator
        self.authenticator: Authenticator | None = authenticator or initiator
        self.state: ChannelState = first_state(
            connects=connects,
            has_tls=self.tls is not None,
            authenticates=self.authenticator is not None,
        )
        self.muting = Muting()
        self.has_staged = False
        self.send: Send | None = None
        self.lease: MemoryLease | None = None
        self.attachment: Any = None
        self.interest = 0
        self.network_thread_ns = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.last_used_at = 0.0
        self.id = id
        self.transport = transport
        self.fd = transport.fileno()
        if decoder is None:
            decoder = self._frame_decoder = FrameDecoder(frame_bytes_max, limit_names.frame)
        elif isinstance(decoder, HeadDecoder):
            decoder.limit_name = limit_names.frame
        self._decoder = decoder
        self.staged: deque[Frame] = self._decoder.frames
        self.close_reason: CloseReason | None = None
        self.close_detail = ""
        self.identify = identify
        self.principal = ANONYMOUS
        self.reached = self.state
        self.failure: Step | None = None
        self.held_send: Send | None = None
        self.pool = pool
        self._frame_bytes_max = size_limit(frame_bytes_max)
        self.limit_names = limit_names
        self._limit_to_authentication()

    @property
    def is_open(self) -> bool:
        """Its socket is open; the peer may have gone all the same (CLOSING)."""
        return self.state is not _CLOSED

    @property
    def is_ready(self) -> bool:
        """Frames are requests or responses (Kafka: KafkaChannel.ready)."""
        return self.state is _READY

    @property
    def has_buffered(self) -> bool:
        """Whether bytes wait under TLS that no poller tells of (KAFKA-7012, KAFKA-13559)."""
        tls = self.tls
        return tls is not None and tls.has_buffered

    @property
    def oversized_bytes(self) -> int:
        """The size of the frame that was too large, and closed the channel; 0 without one."""
        return 0 if self._frame_decoder is None else self._frame_decoder.oversized_bytes

    def identified(self, found: Authenticator | Principal) -> None:
        """Take what the TLS handshake has proved, or what goes on asking."""
        if isinstance(found, Principal):
            self.principal = found
        else:
            self.authenticator = found
            self._limit_to_authentication()

    def move(self, state: ChannelState) -> None:
        """Enter another state.

        Raises:
            LocalProtocolError: it cannot follow the present one.
        """
        self.state = checked(self.state, state)
        if state is not _CLOSED:
            self.reached = state
        authenticator = self.authenticator
        if authenticator is None:
            return
        if state is ChannelState.AUTHENTICATING:
            # Once more, too (Kafka: SaslServerAuthenticator); but responses to what a client sent
            # before it renewed its session may still come, and be large.
            if self.initiator is None:
                self._limit_to_authentication()
        elif state is _READY:
            self.principal = authenticator.principal
            self._limit_frames(self._frame_bytes_max, self.limit_names.frame)
            if self.held_send is not None:
                self.send, self.held_send = self.held_send, None

    def _limit_to_authentication(self) -> None:
        """What comes before requests must not take their memory."""
        authenticator = self.authenticator
        if authenticator is None:
            return
        frame_bytes_max = size_limit(authenticator.frame_bytes_max)
        if frame_bytes_max < self._frame_bytes_max:
            self._limit_frames(frame_bytes_max, self.limit_names.authentication)

    def _limit_frames(self, frame_bytes_max: int, limit_name: str) -> None:
        decoder = self._decoder
        decoder.frame_bytes_max = frame_bytes_max
        if isinstance(decoder, (FrameDecoder, HeadDecoder)):
            decoder.limit_name = limit_name

    def take_lease(self) -> MemoryLease | None:
        """The memory of the large frame that was handed out; who takes it gives it back."""
        lease, self.lease = self.lease, None
        return lease

    def begin_send(self, send: Outgoing) -> bool:
        """Make ``send`` the Send in progress and write what the socket takes now.

        Returns:
            Whether it is complete already.

        Raises:
            LocalProtocolError: another one is in progress (Kafka: KafkaChannel.setSend), or this
                one is complete, or empty.
            OSError: the connection failed.
        """
        if self.send is not None:
            raise LocalProtocolError(
                f"channel {self.id} already has a Send in progress; one at a time"
            )
        if not isinstance(send, bytes):
            if send.is_complete:
                raise LocalProtocolError("this Send is complete; it cannot be written again")
            self.send = send
            return self.write()
        try:
            count = self._write(send)
        except BlockingIOError:
            count = 0
        self.bytes_sent += count
        if count == len(send):
            if not count:
                raise LocalProtocolError("a frame of no bytes cannot be sent")
            return True
        self.send = Send([memoryview(send)[count:]])
        return False

    def write(self) -> bool:
        """Write what the socket takes; True when the Send in progress is complete."""
        send = self.send
        assert send is not None
        self.bytes_sent += send.write_to(self.transport)
        if send.remaining:
            return False
        self.send = None
        return True

    def receive(self) -> Frame | None:
        """Read once; the first whole frame that came of it, the others are staged.

        Raises:
            EOFError: the stream has ended.
            InvalidReceiveError: it holds an impossible size.
            BlockingIOError, OSError: nothing is there; the connection failed.
        """
        frame_decoder = self._frame_decoder
        if frame_decoder is None:
            is_inside_frame = self._decoder.is_inside_frame
        else:
            is_inside_frame = frame_decoder.is_inside_frame
        if is_inside_frame:
            self._receive_more()
            return self.take_staged()
        data = self._read(READ_BYTES)
        count = len(data)
        self.bytes_received += count
        if not count:
            raise EOFError
        size = count - SIZE_BYTES
        if (
            frame_decoder is not None
            and 0 < size <= frame_decoder.frame_bytes_max
            and data[3] == size & 255
            and data[2] == size >> 8
            and not data[1]
            and not data[0]
        ):
            # Nearly every request: one read brings one whole small frame.
            return data[SIZE_BYTES:]
        decoder = self._decoder
        decoder.receive_data(data)
        if decoder.wants_fill and count == READ_BYTES and not decoder.frames:
            # With whole frames before it, those go out first: an end of the stream that showed
            # here would overtake them.
            self._fill_large_frame()
        return self.take_staged()

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
        # What comes before requests has a limit of its own, and must not take their memory.
        is_request = self.state is _READY or self.state is _CLOSING
        if is_request and self.pool is not None and self.lease is None:
            self.lease = self.pool.try_allocate(decoder.size, self.last_used_at)
            if self.lease is None:
                self.muting.starve()
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
            # The rest has not arrived yet; of a peer that has gone it never will.
            came = budget < READ_BYTES_PER_POLL_MAX or self.has_buffered
            if self.state is _CLOSING and not came:
                raise

    def take_staged(self) -> Frame | None:
        """The oldest staged frame, or None.

        Raises:
            InvalidReceiveError: none is left, and the stream behind them is not valid.
        """
        staged, error = self.staged, self._decoder.error
        if not staged:
            self.has_staged = False
            if error is not None:
                raise error
            return None
        frame = staged.popleft()
        self.has_staged = bool(staged) or error is not None
        return frame

    def begin_closing(self, reason: CloseReason, detail: str) -> None:
        """The peer has gone, for this reason; nothing can be sent to it any more."""
        self.move(_CLOSING)
        self.close_reason, self.close_detail = reason, detail
        self.send = None

    def end(self, reason: CloseReason, detail: str) -> None:
        """Note why it is closed.

        Of a failed authentication, and of a peer that has gone, the first cause stays; but a
        response that fails is what ends a channel that is CLOSING.
        """
        failure = self.failure
        if failure is not None and failure.close_reason is not None:
            self.close_reason, self.close_detail = failure.close_reason, failure.detail
        elif (
            self.state is not _CLOSING or reason is CloseReason.SEND_FAILED or reason not in BY_PEER
        ):
            self.close_reason, self.close_detail = reason, detail
        self.move(_CLOSED)
        self.staged.clear()

    @property
    def end_of_stream_reason(self) -> CloseReason:
        """What an end of the stream means at this point of it."""
        if self._decoder.is_inside_frame:
            return CloseReason.PEER_CLOSED_IN_FRAME
        return CloseReason.PEER_CLOSED

    def __repr__(self) -> str:
        return (
            f"<Channel {self.id} {self.state.name} {self.muting.state.name}"
            f" staged={len(self.staged)} send={self.send!r}>"
        )
