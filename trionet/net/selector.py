"""The channels of one processor (or client) and the explicit loop over their readiness.

(Kafka: org.apache.kafka.common.network.Selector.) ``await poll()`` makes all the progress that is
possible now, or waits in one place until some is, and returns what happened: completed receives,
completed sends, disconnected channels. Rules that hold for every poll:

* at most one receive of a channel is handed out, so that its owner can mute it before the next;
* while an unmuted channel has staged frames, the poll does not wait;
* one Send of a channel is in progress at a time;
* an error in one channel's step closes that channel, with its reason, and no other.

What is done with a channel whose turn it is, is in :mod:`.channel_steps`; how an accepted or
outgoing connection becomes ready for requests, in :mod:`.preparing`.

One poll is one trio checkpoint. A processor's handlers run during it, so an empty poll is repeated
across three checkpoints before the task parks: with one busy connection this saves a park and
its wake-up per request. A client parks at once, and that is its checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio
from trio.lowlevel import checkpoint

from ..errors import LocalProtocolError
from ..metrics.request_times import now_ns
from .alarm import Alarm
from .channel import Channel
from .channel_state import ChannelState
from .channel_steps import ChannelSteps
from .close_reason import CloseReason
from .connecting import Address, begin_connect
from .faults import log_unexpected
from .memory_pool import MemoryPool
from .mute_state import MuteState, Unread
from .poll_result import PollResult
from .readiness import EVENTS_MAX, READ, WRITE, Readiness
from .sockets import Socket
from .starved import Shuffle
from .transmission import Outgoing

# The first of them is when the handlers have their turn; with two a busy connection's next request
# finds the task parked (p50 50 and 48 µs), with four the passes in vain cost what they save.
EMPTY_POLLS_BEFORE_PARK = 3
_NOT_MUTED: Final = MuteState.NOT_MUTED
_READY: Final = ChannelState.READY
_CLOSED: Final = ChannelState.CLOSED


class Selector:
    """A set of channels over one readiness backend.

    Args:
        readiness: where the sockets are registered; owned by the caller.
        on_error: called with unexpected errors in a channel's step, which close it, for the log.
        idle_seconds_max: how long a connection may be unused (``connections.max.idle.ms``).
        authentication_seconds_max: how long a handshake and an authentication may take together.
        pool: where the memory of large frames comes from; None for no limit.
        shuffle: puts a list in any order; decides which is read first where memory is short.
        parks_at_once: park at the first empty poll; what is waited for comes from far away.
        times_channels: measure ``network_thread_ns`` of each channel, for one look at the clock per
            event and Send (Kafka: recordTimePerConnection, networkThreadTimeNanos, KIP-124).

    Attributes:
        alarm: wakes the loop for what is due; its owner runs it beside the loop, or idle channels
            and endless authentications only end when something else happens.
        channels: those that are open.
        counters: what was done so far, for metrics.
        idle: which of them was used least recently, to be closed when others need room.
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
        times_channels: bool = False,
    ) -> None:
        self._times_channels = times_channels
        self._parks_at_once = parks_at_once
        self._empty_polls_max = 0 if parks_at_once else EMPTY_POLLS_BEFORE_PARK
        self._clock = trio.lowlevel.current_clock().current_time
        self._pool = pool
        self._steps = ChannelSteps(
            readiness,
            on_error or log_unexpected,
            idle_seconds_max=idle_seconds_max,
            authentication_seconds_max=authentication_seconds_max,
            pool=pool,
            shuffle=shuffle,
            wake=self.wakeup,
        )
        self.idle = self._steps.idle
        self.channels = self._steps.channels
        self.counters = self._steps.counters
        self.alarm = Alarm(self.wakeup)
        self._empty_polls = 0
        self._is_woken = False
        self._is_parked = False

    # What the owner asks for.

    def connect(self, channel: Channel, sock: Socket, address: Address) -> None:
        """Begin to connect a channel; a later poll reports it as connected, or as disconnected.

        Args:
            channel: made with ``connects=True``.
            sock: that its transport is over.
            address: of the far end.

        Raises:
            LocalProtocolError: its id is in use, or it was made for a connection that exists.
            OSError: it failed at once.

        After an error the socket is closed and nothing is kept (KAFKA-7712).
        """
        try:
            if channel.state is not ChannelState.CONNECTING:
                raise LocalProtocolError(f"channel {channel.id} was not made with connects=True")
            begin_connect(sock, address)
            self.register(channel, WRITE)
        except BaseException:
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
        steps = self._steps
        steps.now = channel.last_used_at = trio.current_time()
        steps.readiness.register(channel.fd, interest)
        channel.interest = interest
        self.channels.add(channel)
        self.idle.add(channel)
        if channel.state is not _READY:
            steps.preparing.begin(channel, steps.now)
        steps.plan_checks()

    def send(self, channel: Channel, send: Outgoing) -> bool:
        """Begin to send one frame; what the socket takes at once is written at once.

        A client whose session ends soon authenticates once more before (KIP-368); the frame is kept
        and sent behind that.

        Returns:
            Whether the Send is complete already. If not, a later poll reports when it is, or that
            the channel failed.

        Raises:
            LocalProtocolError: the channel is closed, or has a Send in progress, or this Send was
                written before; an open channel is closed for it.
        """
        if not self._times_channels:
            return self._steps.send(channel, send)
        began_ns = now_ns()
        is_complete = self._steps.send(channel, send)
        self._charge(channel, began_ns)
        return is_complete

    def look_at_clock(self) -> None:
        """Take the time of the Sends that follow; they may come long after the last poll."""
        self._steps.now = self._clock()

    def mute(self, channel: Channel) -> None:
        """Stop reading from a channel. The poller is told only if data arrives meanwhile."""
        channel.muting.mute()

    def unmute(self, channel: Channel) -> None:
        """Read a channel again if it is merely muted: no response is pending, and no throttle.

        A channel that is closed stays as it is.
        """
        if channel.state is not _CLOSED and channel.muting.unmute():
            self._steps.read_again(channel)

    def why_unread(self, channel: Channel) -> Unread | None:
        """Why a channel is not read now; None if it is."""
        return self._steps.why_unread(channel)

    def pause_reading(self) -> None:
        """Hand out and read nothing more, for any channel; Sends go on.

        So a processor pushes back when the request queue is full: TCP stops the peers, while the
        responses that make room can leave.
        """
        self._steps.is_paused = True

    def resume_reading(self) -> None:
        """Undo :meth:`pause_reading`."""
        steps = self._steps
        steps.is_paused = False
        steps.plan_checks()
        paused, steps.paused = steps.paused, {}
        for channel in paused:
            try:
                if not channel.muting.is_muted:
                    steps.read_again(channel)
            except Exception as error:  # boundary: one channel's step
                steps.fail(channel, error)

    def close(
        self, channel: Channel, reason: CloseReason = CloseReason.LOCAL_CLOSE, detail: str = ""
    ) -> None:
        """Close a channel now. It does not show in ``disconnected``: the owner knows."""
        if channel.is_open:
            self._steps.remove(channel, reason, detail)

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        """Close a channel now and report it in ``disconnected`` of the next poll."""
        self._steps.disconnect(channel, reason, detail)

    def close_all(self, reason: CloseReason) -> list[Channel]:
        """Close every channel; returns these, and before them those that no poll has reported."""
        for channel in list(self.channels):
            self._steps.disconnect(channel, reason)
        result = self._steps.result
        closed, result.disconnected = result.disconnected, []
        return closed

    def wakeup(self) -> None:
        """Make the poll under way, or the next one, return without waiting."""
        self._is_woken = True
        self._steps.readiness.wakeup()

    def unpark(self) -> None:
        """End the park of the poll under way: its owner has work now."""
        if self._is_parked:
            self._steps.readiness.wakeup()

    # The loop.

    async def poll(
        self,
        events_max: int = EVENTS_MAX,
        seconds_max: float = math.inf,
        has_work: Callable[[], bool] | None = None,
    ) -> PollResult:
        """One turn: hand out, read and write what can be, or wait until something can.

        Args:
            events_max: how many channels are read or written; others have their turn in the next
                poll. An owner with room for few receives reads no more than those into memory.
            seconds_max: how long it waits at most; the alarm must run for it.
            has_work: whether the owner has something to do that is not waited for. Asked when all
                other tasks have had their turn, so that what they do meanwhile needs no wake-up,
                which would cost a turn in vain; :meth:`unpark` when it comes true later.

        Raises:
            ValueError: ``seconds_max`` is negative.

        Cancellation loses nothing: frames that were read stay staged, results not yet returned
        are returned by the next poll.
        """
        if seconds_max < 0:
            raise ValueError(f"seconds_max = {seconds_max}; allowed: 0 or more")
        steps = self._steps
        readiness = steps.readiness
        if not self._parks_at_once:
            await checkpoint()
        events = readiness.poll(events_max)
        can_wait = not events and seconds_max > 0 and self._must_wait()
        if can_wait and has_work is not None and has_work():
            can_wait = False
        self._empty_polls = self._empty_polls + 1 if can_wait else 0
        if self._empty_polls > self._empty_polls_max:
            self._empty_polls = 0
            self.alarm.set(min(steps.next_check_at, self._clock() + seconds_max))
            self._is_parked = True
            try:
                await readiness.park()
            finally:
                self._is_parked = False
            events = readiness.poll(events_max)
        elif self._parks_at_once:
            await checkpoint()
            events = readiness.poll(events_max)  # sockets may be others' by now
        began_ns = now_ns()
        self._is_woken = False
        steps.now = self._clock()
        if self._pool is not None and self._pool.is_low:
            steps.starved.shuffle(events)
        self._step(events)
        if steps.now >= steps.next_check_at:
            steps.check_times()
        counters = self.counters
        counters.polls += 1
        counters.network_io += len(events)
        counters.io_ns += now_ns() - began_ns
        return self.take_result()

    def take_result(self) -> PollResult:
        """What was achieved since the last poll that came back, by one that failed, say."""
        steps = self._steps
        result, steps.result = steps.result, PollResult()
        return result

    def _must_wait(self) -> bool:
        steps = self._steps
        if self._is_woken or not steps.result.is_empty:
            return False
        return steps.is_paused or not steps.has_more

    def _step(self, events: list[tuple[int, int]]) -> None:
        """Make a step of each channel with an event, then of those that need none.

        A channel with both makes the second: its staged frames are older than what the socket has.
        """
        steps, by_fd = self._steps, self.channels.by_fd
        if steps.starved.channels:
            steps.feed()
        staged: dict[Channel, None] = {}
        if steps.has_more and not steps.is_paused:
            staged, steps.has_more = steps.has_more, {}
        reads = 0 if steps.is_paused else READ
        at_ns = now_ns() if self._times_channels else 0
        try:
            for fd, bits in events:
                channel = by_fd.get(fd)
                if channel is None or (staged and channel in staged):
                    continue
                if bits == reads and channel.state is _READY and channel.muting.state is _NOT_MUTED:
                    # Nearly every request: its channel is read, and that is all.
                    channel.last_used_at = steps.now
                    steps.receive(channel)
                else:
                    steps.on_event(channel, bits)
                if at_ns:
                    at_ns = self._charge(channel, at_ns)
            for channel in staged:
                if channel.state is not _CLOSED and not channel.muting.is_muted:
                    steps.take_staged(channel)
                    if at_ns:
                        at_ns = self._charge(channel, at_ns)
        except Exception:
            # Not one of them may lose its turn; one that has had it loses nothing by another.
            steps.has_more.update({each: None for each in staged if each.is_open})
            raise

    def _charge(self, channel: Channel, since_ns: int) -> int:
        """Put the time since then down to a channel; the time now.

        (Kafka: KafkaChannel.addNetworkThreadTimeNanos.)
        """
        at_ns = now_ns()
        channel.network_thread_ns += at_ns - since_ns
        return at_ns
