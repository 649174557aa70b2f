"""The channels of one processor (or client) and the explicit loop over their readiness.

(Kafka: org.apache.kafka.common.network.Selector.) ``await poll()`` makes all the progress that is
possible now, or waits in one place until some is, and returns what happened: completed receives,
completed sends, disconnected channels. Rules that hold for every poll:

* at most one receive of a channel is handed out, so that its owner can mute it before the next;
* while an unmuted channel has staged frames, the poll does not wait;
* an error in one channel's step closes that channel, with its reason, and no other;
* what arrived before a peer's end or reset is handed out before its channel is closed, unless a
  response to it has failed: the channel is *closing* meanwhile.

Channels that are not ready, because of a TLS handshake or an authentication that goes before their
requests, are stepped by :mod:`.preparing`.

One poll is one trio checkpoint. A processor's handlers run during it, so an empty poll is repeated
across two more checkpoints before the task parks: with one busy connection this saves a park and
its wake-up per request. A client parks at once, and that is its checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio
from trio.lowlevel import checkpoint

from ..errors import LocalProtocolError
from ..metrics.request_times import now_ns
from .alarm import Alarm
from .channel import Channel
from .channels import Channels
from .close_reason import BY_PEER, CloseReason
from .connecting import Address, begin_connect
from .faults import fault_of, log_unexpected
from .framing import Frame
from .idle_expiry import IdleExpiry
from .memory_pool import MemoryPool
from .poll_result import PollResult
from .preparing import Preparing
from .readiness import EVENTS_MAX, HANGUP, READ, WRITE, Readiness
from .selector_counters import SelectorCounters
from .sockets import Socket
from .starved import Shuffle, Starved
from .transmission import Outgoing

EMPTY_POLLS_BEFORE_PARK = 2


class Selector:
    """A set of channels over one readiness backend.

    Args:
        readiness: where the sockets are registered; owned by the caller.
        on_error: told of unexpected errors in a channel's step, which close it, for the log.
        idle_seconds_max: how long a connection may be unused (``connections.max.idle.ms``).
        authentication_seconds_max: how long a handshake and an authentication may take together.
        pool: where the memory of large frames comes from; None for no limit.
        shuffle: puts a list in any order; who is read first where memory is short.
        parks_at_once: park at the first empty poll; what is waited for comes from far away.

    Attributes:
        alarm: wakes the loop for what is due; its owner runs it beside the loop, or idle channels
            and endless authentications only end when something else happens.
        channels: those that are open.
        counters: what was done so far, for metrics.
        idle: which of them was used least recently, to be closed when others need room.
        preparing: steps the channels that are not ready.
    """

    def __init__(
        self,
        readiness: Readiness,
        on_error: Callable[[Channel, Exception], None] | None = None,
        *,
        idle_seconds_max: float = math.inf,
        authentication_seconds_max: float = math.inf,
        pool: MemoryPool | None = None,
        shuffle: Shuffle | None = None,
        parks_at_once: bool = False,
    ) -> None:
        self._readiness = readiness
        self._parks_at_once = parks_at_once
        self._empty_polls_max = 0 if parks_at_once else EMPTY_POLLS_BEFORE_PARK
        self._clock = trio.lowlevel.current_clock().current_time
        self._on_error = on_error or log_unexpected
        self.idle: IdleExpiry[Channel] = IdleExpiry(idle_seconds_max)
        self._pool = pool
        self._starved = Starved(self, pool, shuffle)
        self._waits_for_memory = self._starved.channels
        self.preparing = Preparing(self, authentication_seconds_max)
        self._next_check_at = math.inf
        self._now = 0.0
        self.alarm = Alarm(self.wakeup)
        self.counters = SelectorCounters()
        self.channels = Channels()
        self._with_staged: dict[Channel, None] = {}
        self._result = PollResult()  # being filled: by poll, and by send and close between polls
        self._empty_polls = 0
        self._is_woken = self._is_paused = False
        self._paused_reads: dict[Channel, None] = {}

    def connect(self, channel: Channel, sock: Socket, address: Address) -> None:
        """Begin to connect a channel; a later poll reports it as connected, or as disconnected.

        Raises:
            LocalProtocolError: its id is in use.
            OSError: it failed at once; the socket is closed, nothing is kept (KAFKA-7712).
        """
        try:
            begin_connect(sock, address)
            self.preparing.expect_connection(channel, sock)
            self.register(channel, WRITE)
        except BaseException:
            self.preparing.forget(channel)
            sock.close()
            raise

    def register(self, channel: Channel, interest: int = READ) -> None:
        """Start reading from a channel, or watching it for something else.

        Raises:
            LocalProtocolError: its id is in use (Kafka: KAFKA-7453).
            OSError: its socket cannot be watched.
        """
        if self.channels.get(channel.id) is not None:
            raise LocalProtocolError(f"a channel with id {channel.id} is registered already")
        self._now = channel.last_used_at = trio.current_time()
        self._readiness.register(channel.fd, interest)
        channel.interest = interest
        self.channels.add(channel)
        self.idle.add(channel)
        if not channel.is_ready:
            self.preparing.begin(channel, self._now)
        self._plan_checks()

    def send(self, channel: Channel, send: Outgoing) -> bool:
        """Begin to send one frame; what the socket takes at once is written at once.

        Returns:
            Whether the Send is complete already. If not, a later poll tells when it is, or that
            the channel failed.

        Raises:
            LocalProtocolError: the channel is closed, or has a Send in progress, or this Send was
                written before; an open channel is closed for it.
        """
        if channel.close_reason is not None:
            raise LocalProtocolError(f"channel {channel.id} is closed")
        try:
            channel.last_used_at = self._now
            self.counters.network_io += 1
            if channel.begin_send(send):
                return True
            if channel.closing is not None:
                raise BrokenPipeError("the peer takes nothing more")
            self.watch(channel, channel.interest | WRITE)
        except LocalProtocolError as error:
            is_second = channel.send is not None
            reason = CloseReason.SECOND_SEND if is_second else CloseReason.ERROR
            self.disconnect(channel, reason, str(error))
            raise
        except OSError as error:
            self._begin_closing(channel, CloseReason.SEND_FAILED, str(error))
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)
        return False

    def look_at_clock(self) -> None:
        """Take the time of the Sends that follow; they may come long after the last poll."""
        self._now = self._clock()

    def mute(self, channel: Channel) -> None:
        """Stop reading from a channel. The poller is told only if data arrives meanwhile."""
        channel.is_muted = True

    def unmute(self, channel: Channel) -> None:
        """Read again; a channel that is closed stays as it is."""
        if not channel.is_muted or channel.close_reason is not None:
            return
        channel.is_muted = False
        if channel.has_staged or channel.has_buffered or channel.closing is not None:
            self._with_staged[channel] = None
        if not channel.interest & READ:
            self.watch(channel, channel.interest | READ)

    def pause_reading(self) -> None:
        """Hand out and read nothing more, for any channel; Sends go on (design 3.3)."""
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._plan_checks()
        paused, self._paused_reads = self._paused_reads, {}
        for channel in paused:
            if not channel.is_muted:
                try:
                    self.watch(channel, channel.interest | READ)
                except Exception as error:  # boundary: one channel's step
                    self._disconnect_for(channel, error)

    def close(
        self, channel: Channel, reason: CloseReason = CloseReason.LOCAL_CLOSE, detail: str = ""
    ) -> None:
        """Close a channel now. It does not show in ``disconnected``: the owner knows."""
        if channel.is_open:
            self._remove(channel, reason, detail)

    def close_all(self, reason: CloseReason) -> list[Channel]:
        """Close every channel; returns these, and before them those that no poll has told of."""
        for channel in list(self.channels):
            self.disconnect(channel, reason)
        closed, self._result.disconnected = self._result.disconnected, []
        return closed

    def wakeup(self) -> None:
        """Make the poll under way, or the next one, return without waiting."""
        self._is_woken = True
        self._readiness.wakeup()

    async def poll(self, events_max: int = EVENTS_MAX, seconds_max: float = math.inf) -> PollResult:
        """One turn: hand out, read and write what can be, or wait until something can.

        Args:
            events_max: how many channels are read or written; others have their turn in the next
                poll. Who has room for few receives reads no more than those into memory.
            seconds_max: how long it waits at most; the alarm must run for it.

        Raises:
            ValueError: ``seconds_max`` is negative.

        Cancellation loses nothing: frames that were read stay staged, results not yet returned
        are returned by the next poll.
        """
        if seconds_max < 0:
            raise ValueError(f"seconds_max = {seconds_max}; allowed: 0 or more")
        readiness = self._readiness
        if not self._parks_at_once:
            await checkpoint()
        events = readiness.poll(events_max)
        can_wait = not events and seconds_max > 0 and self._must_wait()
        self._empty_polls = self._empty_polls + 1 if can_wait else 0
        if self._empty_polls > self._empty_polls_max:
            self._empty_polls = 0
            self.alarm.set(min(self._next_check_at, self._clock() + seconds_max))
            await readiness.park()
            events = readiness.poll(events_max)
        elif self._parks_at_once:
            await checkpoint()
            events = readiness.poll(events_max)  # sockets may be others' by now
        began_ns = now_ns()
        self._is_woken = False
        self._now = self._clock()
        staged: dict[Channel, None] = {}
        if self._waits_for_memory:
            self._starved.feed()
        if self._with_staged and not self._is_paused:
            staged, self._with_staged = self._with_staged, {}
        if self._pool is not None and self._pool.is_low:
            self._starved.shuffle(events)
        try:
            self._handle(events, staged)
            for channel in staged:
                if not channel.is_muted and channel.close_reason is None:
                    self._take_staged(channel)
            if self._now >= self._next_check_at:
                self._check_times()
        except Exception:
            # Not one of them may lose its turn; who has had it already loses nothing by another.
            self._with_staged.update({each: None for each in staged if each.is_open})
            raise
        counters = self.counters
        counters.polls += 1
        counters.network_io += len(events)
        counters.io_ns += now_ns() - began_ns
        return self.take_result()

    def take_result(self) -> PollResult:
        """What was achieved since the last poll that came back, by one that failed, say."""
        result, self._result = self._result, PollResult()
        return result

    def _handle(self, events: list[tuple[int, int]], staged: dict[Channel, None]) -> None:
        reads, by_fd = 0 if self._is_paused else READ, self.channels.by_fd
        for fd, bits in events:
            channel = by_fd.get(fd)
            if channel is None or (staged and channel in staged):
                continue
            if bits == reads and not channel.is_muted and channel.is_ready:
                channel.last_used_at = self._now
                self._receive(channel)
            else:
                self._on_event(channel, bits)

    def _must_wait(self) -> bool:
        if self._is_woken or not self._result.is_empty:
            return False
        return self._is_paused or not self._with_staged

    def _receive(self, channel: Channel) -> None:
        """Take one frame of a channel from its socket, if one is there."""
        try:
            frame = channel.receive()
            if frame is not None:
                self._complete(channel, frame)
        except BlockingIOError:
            if channel.closing is None or channel.has_buffered:
                return
            self.disconnect(channel, *channel.closing)  # what is not there now never comes
            return
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)
            return
        if frame is None and channel.is_out_of_memory:
            self._starved.add(channel)
            return
        if channel.has_staged or channel.has_buffered or channel.closing is not None:
            self._with_staged[channel] = None

    def _complete(self, channel: Channel, frame: Frame) -> None:
        """A whole frame is a request, or a part of an authentication."""
        if channel.authenticator is None or self.preparing.is_request(channel, frame, self._now):
            self._result.completed_receives.append((channel, frame))
        else:
            self._starved.release(channel, self._now)

    def _take_staged(self, channel: Channel) -> None:
        """Take one frame of those that came with an earlier one, or that wait under TLS."""
        channel.last_used_at = self._now
        if not channel.is_ready:
            if channel.is_sending_step:
                return  # what the peer sent meanwhile is taken when that has left
            if not channel.has_staged:
                self._on_event(channel, READ)
                return
        try:
            frame = channel.take_staged()
            if frame is not None:
                self._complete(channel, frame)
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)
            return
        if channel.close_reason is not None:
            return
        may_have_more = channel.has_buffered or channel.closing is not None
        if frame is None and may_have_more:
            self._receive(channel)
            return
        if channel.has_staged or may_have_more:
            self._with_staged[channel] = None

    def _on_event(self, channel: Channel, bits: int) -> None:
        try:
            if not channel.is_muted:
                channel.last_used_at = self._now
            if channel.is_shaking_hands:
                self.preparing.shake_hands(channel)
                return
            is_unwanted = channel.is_muted or self._is_paused or channel.is_out_of_memory
            # Read, then write (Kafka: Selector.pollSelectionKeys): what a peer sent before it reset
            # must not be lost to a failing write, of which a backend may tell first.
            if not is_unwanted and (bits & (READ | HANGUP) or channel.is_ready):
                self._receive(channel)
            if bits & WRITE and channel.send is not None and channel.is_open:
                channel.last_used_at = self._now
                self._write(channel)
            if is_unwanted and bits & (READ | HANGUP) and channel.is_open:
                self._on_unwanted_read(channel, bits)
        except Exception as error:  # boundary: one channel's step
            self._disconnect_for(channel, error)

    def _on_unwanted_read(self, channel: Channel, bits: int) -> None:
        """Data, or the end, of a channel that is not being read: no interest until it is.

        A hang-up shows whatever the interest; the loop would spin on a socket that stayed.
        """
        if bits & HANGUP:
            self._begin_closing(channel, CloseReason.PEER_RESET, "while no read was due")
            return
        if self._is_paused:
            self._paused_reads[channel] = None
        self.watch(channel, channel.interest & ~READ)

    def _begin_closing(self, channel: Channel, reason: CloseReason, detail: str) -> None:
        """Close a channel whose peer has gone, when what had arrived before is handed out.

        (Kafka: CloseMode.GRACEFUL.) Its socket is read directly from here on, a frame a poll. A
        response that fails closes it at once: no other request of it gets one either.
        """
        is_response = channel.send is not None or reason is CloseReason.SEND_FAILED
        has_news = channel.has_staged or channel.transport.has_unread()
        if not has_news or not channel.is_ready or (channel.is_muted and is_response):
            self.disconnect(channel, reason, detail)
            return
        channel.send = None
        if channel.closing is None:
            self._readiness.unregister(channel.fd)
            channel.closing, channel.interest = (reason, detail), 0
            if not channel.is_muted:
                self._with_staged[channel] = None

    def _write(self, channel: Channel) -> None:
        if not channel.write():
            return
        self.watch(channel, channel.interest & ~WRITE)
        if channel.is_sending_step:
            self.preparing.sent(channel)
        else:
            self._result.completed_sends.append(channel)

    # What time brings.

    def plan_check(self, at: float) -> None:
        """Look at the times again at ``at``, in seconds of the loop's clock, at the latest."""
        self._next_check_at = min(self._next_check_at, at)

    def _plan_checks(self) -> None:
        self._next_check_at = min(self.idle.next_check_at, self.preparing.next_check_at)

    def _check_times(self) -> None:
        """Close one idle channel, and those whose authentication ends now.

        After the delivery of what was received, so that nothing that arrived in time is lost to it
        (KAFKA-5587).
        """
        idle = self.idle.poll(self._now)
        if idle is not None and not self._has_news(idle):
            self.disconnect(idle, CloseReason.IDLE)
        self.preparing.check(self._now)
        self._plan_checks()

    def _has_news(self, channel: Channel) -> bool:
        """Whether something of a channel is, or may be, there that the backend has not told of."""
        if channel.is_muted or channel.send is not None or not channel.is_ready:
            return False
        if self._is_paused:
            channel.last_used_at = self._now  # nobody reads what it may have sent
            return True
        received = channel.bytes_received
        self._receive(channel)
        channel.last_used_at = self._now
        return channel.bytes_received > received or not channel.is_open

    def _disconnect_for(self, channel: Channel, error: Exception) -> None:
        reason, detail = fault_of(channel, error)
        if channel.closing is not None and reason in BY_PEER:
            reason, detail = channel.closing
        self.preparing.count_fault(channel, reason)
        if reason is CloseReason.ERROR:
            self._on_error(channel, error)
        if reason is CloseReason.SEND_FAILED:
            self._begin_closing(channel, reason, detail)
        else:
            self.disconnect(channel, reason, detail)

    def continue_at_once(self, channel: Channel) -> None:
        """Have the next poll look at a channel without waiting for its socket."""
        self._with_staged[channel] = None

    def watch(self, channel: Channel, interest: int) -> None:
        """Watch a channel for other things than so far."""
        if channel.interest != interest and channel.closing is None:
            channel.interest = interest
            self._readiness.modify(channel.fd, interest)

    def connected(self, channel: Channel) -> None:
        """An outgoing connection was made."""
        self.counters.connected += 1
        self._result.connected.append(channel)

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        """Close a channel now and report it in ``disconnected`` of the next poll."""
        if channel.close_reason is not None:
            return
        if channel in self._result.connected:  # both in one poll (KAFKA-5417)
            self._result.connected.remove(channel)
        self._result.disconnected.append(channel)
        try:
            self._remove(channel, reason, detail)
        except Exception as error:  # boundary: closing one channel
            self._on_error(channel, error)

    def _remove(self, channel: Channel, reason: CloseReason, detail: str) -> None:
        channel.end(reason, detail)
        self._with_staged.pop(channel, None)
        self._paused_reads.pop(channel, None)
        self._waits_for_memory.pop(channel, None)
        self.idle.remove(channel)
        self.preparing.forget(channel)
        self._starved.release(channel, self._now)
        self.channels.remove(channel)
        try:
            if channel.closing is None:
                self._readiness.unregister(channel.fd)
        finally:
            channel.transport.close()
