"""The steps of a single channel in a poll: read, write, prepare, close.

The Selector decides *when* to process a channel; this module decides *what* to do, and collects the
results in :attr:`ChannelSteps.result`. Two rules are implemented here:

* An error in a step closes only that channel, with a reason (Kafka: Selector.pollSelectionKeys,
  which catches everything per key).
* When a peer disconnects, the requests that it has already sent are returned before its channel is
  closed, unless a response could not be sent to it. Until then, the channel is CLOSING (Kafka:
  Selector.closingChannels).
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from .._util._logging import get_logger
from ..errors import AuthenticationError, InvalidReceiveError, LocalProtocolError
from ._channel import Channel
from ._channel_state import ChannelState, Unread
from ._channels import Channels, PollResult, Shuffle, Starved
from ._idle_expiry import IdleExpiry
from ._preparing import REQUEST, Decision, Preparing
from ._selector_counters import SelectorCounters
from .tls._tls_transport import TlsError
from .wire._close_reason import CloseReason
from .wire._connecting import reason_of
from .wire._framing import Frame
from .wire._memory_pool import MemoryPool
from .wire._readiness import HANGUP, READ, WRITE, Readiness
from .wire._transmission import Outgoing, Send

logger = get_logger("trionet.net.selector")


def log_unexpected(channel: Channel, error: Exception) -> None:
    """Log an unexpected error, which only a bug can cause; the default for ``on_error``."""
    logger.warning("unexpected error on %s; closing it", channel.id, exc_info=error)


def fault_of(channel: Channel, error: Exception) -> tuple[CloseReason, str]:
    """Return the close reason for an exception in a channel's step, and its detail for the log.

    ERROR means that the exception is unexpected: only a bug can cause it.
    """
    match error:
        case EOFError():
            return channel.end_of_stream_reason, ""
        case AuthenticationError():
            return CloseReason.AUTHENTICATION_FAILED, str(error)
        case TlsError():
            return error.close_reason, str(error)
        case InvalidReceiveError():
            return CloseReason.INVALID_RECEIVE, str(error)
        case OSError() if channel.state is ChannelState.CONNECTING:
            return CloseReason.NOT_CONNECTED, reason_of(error)
        case OSError() if channel.send is not None:
            return CloseReason.SEND_FAILED, str(error)
        case OSError():
            return CloseReason.PEER_RESET, str(error)
        case _:
            return CloseReason.ERROR, repr(error)


_CONNECTING: Final = ChannelState.CONNECTING
_HANDSHAKING: Final = ChannelState.HANDSHAKING
_READY: Final = ChannelState.READY
_CLOSING: Final = ChannelState.CLOSING
_CLOSED: Final = ChannelState.CLOSED


class ChannelSteps:
    """The steps of all channels of one Selector; no step ever waits.

    Args:
        readiness: the backend that watches the sockets.
        on_error: called with each unexpected error, for logging.
        idle_seconds_max: how long a connection may be idle.
        authentication_seconds_max: the time limit for connecting, the TLS handshake and
            authentication together.
        pool: provides memory for large frames; None for no limit.
        shuffle: shuffles a list in place.
        wake: makes the current poll, or the next one, return without waiting.

    Attributes:
        channels: the open channels.
        counters: totals for metrics.
        has_more: channels that can make progress in the next poll without a socket event: they have
            a staged frame or bytes buffered by TLS, or are CLOSING.
        idle: the channels, ordered by last use.
        is_paused: whether reading is paused for all channels (see
            :meth:`.Selector.pause_reading`).
        next_check_at: when timeouts must be checked again, in seconds on the loop's clock.
        now: the time of the current turn, in seconds on the loop's clock.
        paused: channels that received data while reading was paused, and whose sockets are no
            longer watched for reads.
        preparing: decides the steps of channels that are not ready.
        readiness: the backend that watches the sockets.
        result: the results of the current poll, and of Sends and closes since the previous one.
        starved: channels that are waiting for memory.
    """

    def __init__(
        self,
        readiness: Readiness,
        on_error: Callable[[Channel, Exception], None],
        *,
        idle_seconds_max: float,
        authentication_seconds_max: float,
        pool: MemoryPool | None,
        shuffle: Shuffle | None,
        wake: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.readiness = readiness
        self._on_error = on_error
        self.channels = Channels()
        self.counters = SelectorCounters()
        self.has_more: dict[Channel, None] = {}
        self.idle: IdleExpiry[Channel] = IdleExpiry(idle_seconds_max)
        self.is_paused = False
        self.next_check_at = math.inf
        self.now = 0.0
        self.paused: dict[Channel, None] = {}
        self.preparing = Preparing(authentication_seconds_max, self.counters, now_ms)
        self.result = PollResult()
        self.starved = Starved(pool, wake, shuffle)

    def why_unread(self, channel: Channel) -> Unread | None:
        """Return why requests are not being read from a channel; None if they are.

        A preparing channel is read only for authentication, and a CLOSING channel only for its
        remaining frames. FAILED and LINGERING count as preparing, and CLOSED as CLOSING.
        """
        if channel.state is not _READY:
            return Unread.CLOSING if channel.state >= _CLOSING else Unread.PREPARING
        return channel.muting.why or (Unread.PAUSED if self.is_paused else None)

    def watch(self, channel: Channel, interest: int) -> None:
        """Change the readiness bits to watch a channel's socket for, unless it is CLOSING."""
        if channel.interest != interest and channel.state is not _CLOSING:
            channel.interest = interest
            self.readiness.modify(channel.fd, interest)

    def read_again(self, channel: Channel) -> None:
        """Resume reading a channel; its staged frames are returned first."""
        if channel.has_staged or channel.has_buffered or channel.state is _CLOSING:
            self.has_more[channel] = None
        if not channel.interest & READ:
            self.watch(channel, channel.interest | READ)

    # Reading.

    def on_event(self, channel: Channel, bits: int) -> None:
        """Handle the readiness that the backend reports for a socket.

        Reads come before writes (Kafka: Selector.pollSelectionKeys). Otherwise, when a client's
        write fails, data that the peer sent before resetting the connection could be lost: a
        backend may report writability before readability. (A server's channel is muted while it
        sends.)
        """
        try:
            if not channel.muting.is_muted:
                channel.last_used_at = self.now
            if channel.state < _READY and not self.preparing.may_step(channel):
                self.has_more[channel] = None
                return
            if channel.state is _CONNECTING or channel.state is _HANDSHAKING:
                self.carry_out(channel, self.preparing.step(channel, self.now))
                return
            may_read = not self.is_paused and not channel.muting.why
            if channel.state is not _READY and channel.send is not None:
                may_read = False  # a hang-up during the Send of a handshake
            has_news = bits & (READ | HANGUP) != 0
            if may_read and (has_news or channel.state is _READY):
                self.receive(channel)
            if bits & WRITE and channel.send is not None and channel.is_open:
                channel.last_used_at = self.now
                self._write(channel)
            if has_news and not may_read and channel.is_open:
                self._on_unwanted_read(channel, bits)
        except Exception as error:  # boundary: one channel's step
            self.fail(channel, error)

    def _on_unwanted_read(self, channel: Channel, bits: int) -> None:
        """Handle an event of a channel that is not being read: stop watching it, or close it.

        Muting does not update the poller, because that costs a system call and most responses are
        sent before the next request arrives. A hang-up is reported whatever the socket is watched
        for, so the loop would spin if the socket stayed registered.
        """
        if bits & HANGUP:
            self.begin_closing(channel, CloseReason.PEER_RESET, "while not being read")
            return
        if self.is_paused:
            self.paused[channel] = None
        self.watch(channel, channel.interest & ~READ)

    def receive(self, channel: Channel) -> None:
        """Read from a channel's socket; a complete frame is added to the results."""
        try:
            frame = channel.receive()
            if frame is not None:
                self._complete(channel, frame)
        except BlockingIOError:
            if channel.has_buffered:
                self.has_more[channel] = None  # TLS goes on in the next turn
            elif channel.state is _CLOSING:
                # The peer has disconnected, so nothing more will arrive.
                self.disconnect(channel, CloseReason.PEER_RESET)
            return
        except Exception as error:  # boundary: one channel's step
            self.fail(channel, error)
            return
        if frame is None and channel.muting.is_out_of_memory:
            self.starved.add(channel)
            self.watch(channel, channel.interest & ~READ)
        elif channel.has_staged or channel.has_buffered or channel.state is _CLOSING:
            self.has_more[channel] = None

    def take_staged(self, channel: Channel) -> None:
        """Process one frame that is staged, or buffered by TLS."""
        channel.last_used_at = self.now
        if channel.state is not _READY and channel.state < _READY:
            if channel.send is not None:
                return  # what the peer sent meanwhile is processed after this Send
            if not channel.has_staged:
                self.on_event(channel, READ)
                return
            if not self.preparing.may_step(channel):
                self.has_more[channel] = None
                return
        try:
            frame = channel.take_staged()
            if frame is not None:
                self._complete(channel, frame)
        except Exception as error:  # boundary: one channel's step
            self.fail(channel, error)
            return
        if channel.state is _CLOSED:
            return
        may_have_more = channel.has_buffered or channel.state is _CLOSING
        if frame is None and may_have_more:
            self.receive(channel)
        elif channel.has_staged or may_have_more:
            self.has_more[channel] = None

    def feed(self) -> None:
        """Resume reading the channels that wait for memory, if memory is available again."""
        for channel in self.starved.take():
            channel.muting.is_out_of_memory = False
            self.read_again(channel)

    def _complete(self, channel: Channel, frame: Frame) -> None:
        """Report a whole frame as received, unless it is part of an authentication."""
        if channel.authenticator is not None:
            if channel.failure is not None:
                self.watch(channel, channel.interest & ~READ)  # the rest is ignored
                return
            decision = self.preparing.receive(channel, frame, self.now)
            if decision is not REQUEST:
                self.starved.release(channel, self.now)
                self.carry_out(channel, decision)
                return
        self.result.completed_receives.append((channel, frame))

    # Writing.

    def send(self, channel: Channel, send: Outgoing) -> bool:
        """Start a Send; see :meth:`.Selector.send`."""
        if channel.state is _CLOSED:
            raise LocalProtocolError(f"channel {channel.id} is closed")
        try:
            channel.last_used_at = self.now
            self.counters.network_io += 1
            initiator = channel.initiator
            if initiator is not None and self.now >= initiator.renew_at and channel.is_ready:
                channel.held_send = send if isinstance(send, Send) else Send([send])
                self.carry_out(channel, self.preparing.authenticate(channel, self.now))
                return False
            if channel.begin_send(send):
                return True
            if channel.state is _CLOSING:
                raise BrokenPipeError("the peer has disconnected")
            self.watch(channel, channel.interest | WRITE)
        except LocalProtocolError as error:
            is_second = channel.send is not None
            reason = CloseReason.SECOND_SEND if is_second else CloseReason.ERROR
            self.disconnect(channel, reason, str(error))
            raise
        except OSError as error:
            self.begin_closing(channel, CloseReason.SEND_FAILED, str(error))
        except Exception as error:  # boundary: one channel's step
            self.fail(channel, error)
        return False

    def _write(self, channel: Channel) -> None:
        if not channel.write():
            return
        self.watch(channel, channel.interest & ~WRITE)
        if channel.state is _READY:
            self.result.completed_sends.append(channel)
        else:
            self.carry_out(channel, self.preparing.sent(channel))

    # Becoming ready.

    def carry_out(self, channel: Channel, decision: Decision) -> None:
        """Apply a decision about a channel that is not ready."""
        if decision.close_reason is not None:
            self.disconnect(channel, decision.close_reason, decision.detail)
            return
        if decision.identified is not None:
            channel.identified(decision.identified)
        if decision.failure is not None:
            channel.failure = decision.failure
        interest = decision.interest
        if decision.state is not None:
            if channel.state is _CONNECTING:
                self.counters.connected += 1
                self.result.connected.append(channel)
            channel.move(decision.state)
            if channel.send is not None:  # it was held during re-authentication
                interest = READ | WRITE
        if interest is not None:
            self.watch(channel, interest)
        if decision.again:
            self.has_more[channel] = None
        self.next_check_at = min(self.next_check_at, self.preparing.next_check_at)
        if decision.send is not None:
            if self.send(channel, decision.send):
                self.carry_out(channel, self.preparing.sent(channel))
            elif channel.is_open:
                self.watch(channel, WRITE)  # nothing is read until it is sent
        elif decision.then is not None:
            self.carry_out(channel, decision.then)

    # Closing.

    def fail(self, channel: Channel, error: Exception) -> None:
        """Close a channel because of an exception in its step."""
        reason, detail = fault_of(channel, error)
        if reason is CloseReason.NOT_CONNECTED:
            # Without its traceback, whose frames refer to the channel and would keep it alive.
            channel.connect_error = error.with_traceback(None)
        self.preparing.count_fault(channel, reason)
        if reason is CloseReason.ERROR:
            self._on_error(channel, error)
        if reason is CloseReason.SEND_FAILED:
            self.begin_closing(channel, reason, detail)
        else:
            self.disconnect(channel, reason, detail)

    def begin_closing(self, channel: Channel, reason: CloseReason, detail: str) -> None:
        """Close a channel whose connection is dead, after returning its remaining frames.

        (Kafka: CloseMode.GRACEFUL.) If frames remain and no response is being sent, the channel
        enters CLOSING, and its socket is read without the poller, one frame per poll. Otherwise it
        is closed immediately. So is a channel whose response could not be sent, since no other
        response could be sent either.
        """
        is_response = channel.send is not None or reason is CloseReason.SEND_FAILED
        has_news = channel.has_staged or channel.transport.has_unread()
        is_muted = channel.muting.is_muted
        if channel.state is _CLOSING and has_news and not is_muted:
            channel.send = None  # a client's request; responses to earlier ones may have arrived
            return
        if channel.state is not _READY or not has_news or (is_muted and is_response):
            self.disconnect(channel, reason, detail)
            return
        self.readiness.unregister(channel.fd)
        channel.begin_closing(reason, detail)
        channel.interest = 0
        if not is_muted:
            self.has_more[channel] = None

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        """Close a channel now; see :meth:`.Selector.disconnect`."""
        if channel.state is _CLOSED:
            return
        if channel in self.result.connected:  # connected and closed in one poll (KAFKA-5417)
            self.result.connected.remove(channel)
        self.result.disconnected.append(channel)
        try:
            self.remove(channel, reason, detail)
        except Exception as error:  # boundary: closing one channel
            self._on_error(channel, error)

    def remove(self, channel: Channel, reason: CloseReason, detail: str) -> None:
        """Close a channel and remove it from every collection (KAFKA-6185, KAFKA-6260)."""
        is_watched = channel.state is not _CLOSING
        channel.end(reason, detail)
        self.has_more.pop(channel, None)
        self.paused.pop(channel, None)
        self.starved.channels.pop(channel, None)
        self.idle.remove(channel)
        self.preparing.forget(channel)
        self.starved.release(channel, self.now)
        self.channels.remove(channel)
        try:
            if is_watched:
                self.readiness.unregister(channel.fd)
        finally:
            channel.transport.close()

    # Timeouts.

    def plan_checks(self) -> None:
        """Determine when :meth:`check_times` must run next."""
        self.next_check_at = min(self.idle.next_check_at, self.preparing.next_check_at)

    def check_times(self) -> None:
        """Close an idle channel, if any, and apply the decisions due about unready channels.

        Called after the events have been handled, so that data that arrived in time is not lost
        (KAFKA-5587).
        """
        idle = self.idle.poll(self.now)
        if idle is not None and not self._has_news(idle):
            self.disconnect(idle, CloseReason.IDLE)
        for channel, decision in self.preparing.due(self.now):
            try:
                self.carry_out(channel, decision)
            except Exception as error:  # boundary: one channel's step
                self.fail(channel, error)
        self.plan_checks()

    def _has_news(self, channel: Channel) -> bool:
        """Whether an idle channel has, or may have, data that the backend has not reported."""
        if channel.muting.is_muted or channel.send is not None or channel.state is not _READY:
            return False
        if self.is_paused:
            channel.last_used_at = self.now  # what it may have sent is not read
            return True
        received = channel.bytes_received
        self.receive(channel)
        channel.last_used_at = self.now
        return channel.bytes_received > received or not channel.is_open
