"""One connection: its transport, at most one Send and one Receive in progress, its mute state.

(Kafka: KafkaChannel.) Frames that arrived in one read are *staged* here until the Selector hands
them out, one per poll. While the channel is muted nothing is read or handed out, so that a peer
has one request in progress at a time and TCP carries the back-pressure to it.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import Any

from ..errors import LocalProtocolError
from .close_reason import CloseReason
from .framing import SIZE_BYTES, Frame, FrameDecoder
from .transmission import Send
from .transport import TransportLayer

# The first read of a frame. Small, because a fresh 4 KB buffer costs 0.8 µs less than one of
# 64 KB; what a large frame lacks is read straight into that frame's own buffer.
READ_BYTES = 4096
# How much of one large frame is read in one poll, so that no channel keeps the others waiting.
READ_BYTES_PER_POLL_MAX = 1024 * 1024

_unpack_size = Struct(">i").unpack_from


class Channel:
    """A connection as the Selector keeps it; only the Selector changes one.

    Attributes:
        id: the connection id, unique in its Selector.
        staged: whole frames that were read and not yet handed out.
        has_staged: whether a poll can make progress here without another byte from the socket:
            with a staged frame, or with the error behind the last of them.
        send: the Send in progress, if any.
        is_muted: nothing is read or handed out until the owner unmutes the channel.
        interest: what the poller watches for, a mask of the readiness bits.
        close_reason: set once, when the channel is closed.
        attachment: the owner's own data.
    """

    __slots__ = (
        "_decoder",
        "_read",
        "_write",
        "attachment",
        "bytes_received",
        "bytes_sent",
        "close_detail",
        "close_reason",
        "fd",
        "has_staged",
        "id",
        "interest",
        "is_muted",
        "send",
        "staged",
        "transport",
    )

    def __init__(self, id: str, transport: TransportLayer, frame_bytes_max: int) -> None:
        self.id = id
        self.transport = transport
        self.fd = transport.fileno()
        self._read = transport.read
        self._write = transport.write
        self._decoder = FrameDecoder(frame_bytes_max)
        self.staged: deque[Frame] = self._decoder.frames
        self.has_staged = False
        self.send: Send | None = None
        self.is_muted = False
        self.interest = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.close_reason: CloseReason | None = None
        self.close_detail = ""
        self.attachment: Any = None

    @property
    def is_open(self) -> bool:
        return self.close_reason is None

    def begin_send(self, send: Send) -> bool:
        """Make ``send`` the Send in progress and write what the socket takes now.

        Returns:
            Whether it is complete already.

        Raises:
            LocalProtocolError: another one is in progress (Kafka: KafkaChannel.setSend), or this
                one is complete.
            OSError: the connection failed.
        """
        if self.send is not None:
            raise LocalProtocolError(
                f"channel {self.id} already has a Send in progress; one at a time"
            )
        self.bytes_sent += send.write_at_once(self._write)
        if not send.remaining:
            return True
        self.send = send
        return self.write()

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
        decoder = self._decoder
        if decoder.is_inside_frame:
            self._receive_more()
            return self.take_staged()
        data = self._read(READ_BYTES)
        count = len(data)
        self.bytes_received += count
        if count > SIZE_BYTES and _unpack_size(data)[0] == count - SIZE_BYTES:
            # Nearly every request: one read brings one whole small frame.
            if count - SIZE_BYTES <= decoder.frame_bytes_max:
                return data[SIZE_BYTES:]
        elif not count:
            raise EOFError
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
        budget = READ_BYTES_PER_POLL_MAX
        try:
            while decoder.wants_fill and budget > 0:
                count = decoder.fill(self.transport.read_into)
                if not count:
                    raise EOFError
                self.bytes_received += count
                budget -= count
        except BlockingIOError:
            pass  # the rest has not arrived yet

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

    @property
    def end_of_stream_reason(self) -> CloseReason:
        """What an end of the stream means at this point of it."""
        if self._decoder.is_inside_frame:
            return CloseReason.PEER_CLOSED_IN_FRAME
        return CloseReason.PEER_CLOSED

    def __repr__(self) -> str:
        state = self.close_reason.name if self.close_reason else "open"
        muted = " muted" if self.is_muted else ""
        return f"<Channel {self.id} {state}{muted} staged={len(self.staged)} send={self.send!r}>"
