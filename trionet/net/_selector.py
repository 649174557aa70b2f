"""The Selector, which polls the channels of one processor or client and serves the ready ones.

(Kafka: org.apache.kafka.common.network.Selector.) ``await poll()`` does all work that is possible
without waiting, and returns the results: completed receives, completed sends, disconnected
channels. If there is no such work, it waits or returns an empty result (see below). Every poll
follows these rules:

* It returns at most one receive per channel, so that the owner can mute the channel before the
  next.
* It does not wait while an unmuted channel has staged frames, unless reading is paused.
* A channel has at most one Send in progress.
* An error in one channel's step closes only that channel, with a reason.

The steps of a single channel are in :mod:`._channel_steps`; the decisions that make an accepted or
outgoing connection ready are in :mod:`._preparing`.

Each poll is one trio checkpoint, during which a processor's handlers run. A processor's poll that
finds nothing therefore returns an empty result, and the processor repeats its whole turn; only the
fourth empty poll in a row parks. With one busy connection, this saves a park and its wake-up per
request. A client parks on the first empty poll, and the park is the checkpoint.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import trio
from trio.lowlevel import checkpoint

from .._util import _wall_clock as wall_clock
from .._util._cancellation import Checkpoint
from ..errors import LocalProtocolError
from ..metrics._request_times import now_ns
from ._alarm import Alarm
from ._channel import Channel
from ._channel_state import ChannelState, MuteState, Unread
from ._channel_steps import ChannelSteps, log_unexpected
from ._channels import Channels, PollResult, Shuffle
from ._idle_expiry import IdleExpiry
from ._selector_counters import SelectorCounters
from .wire._close_reason import CloseReason
from .wire._connecting import Address, Socket, begin_connect
from .wire._memory_pool import MemoryPool
from .wire._readiness import EVENTS_MAX, READ, WRITE, Readiness
from .wire._transmission import Outgoing

# The handlers run during the first of them. With two, a busy connection's next request finds the
# task parked (p50 50 instead of 48 µs); with four, the extra passes cost as much as they save.
EMPTY_POLLS_BEFORE_PARK = 3
_NOT_MUTED: Final = MuteState.NOT_MUTED
_READY: Final = ChannelState.READY
_CLOSED: Final = ChannelState.CLOSED


class Selector:
    """A set of channels over one readiness backend.

    Args:
        readiness: the backend that watches the sockets; owned by the caller.
        on_error: called, for logging, with each unexpected error in a channel's step; the error
            closes the channel.
        idle_seconds_max: how long a connection may be idle (``connections.max.idle.ms``).
        authentication_seconds_max: the time limit for connecting, the TLS handshake and
            authentication together.
        pool: provides memory for large frames; None for no limit.
        shuffle: shuffles a list in place; decides which channels are read first when memory is
            low.
        parks_at_once: park on the first empty poll; for clients, whose responses take a round trip.
        times_channels: whether to measure ``network_thread_ns`` of each channel, which means
            reading the clock once per event and Send (Kafka: recordTimePerConnection,
            networkThreadTimeNanos, KIP-124).
        now_ms: returns the wall-clock time, in milliseconds since the epoch.

    Attributes:
        alarm: wakes the loop when a timeout is due. The owner runs it alongside the loop; without
            it, idle channels and stalled authentications are closed only when another event occurs.
        channels: the open channels.
        counters: totals for metrics.
        idle: the channels ordered by last use, to choose one to close in favour of a new
            connection.
        is_parked: whether the current poll is waiting for an event.
        checkpoint: a reusable checkpoint, which the owner may provide if only one task polls.
        was_woken: whether :meth:`wakeup` was called before the last poll returned.
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
        now_ms: Callable[[], int] = wall_clock.now_ms,
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
            now_ms=now_ms,
        )
        self.idle: IdleExpiry[Channel] = self._steps.idle
        self.channels: Channels = self._steps.channels
        self.counters: SelectorCounters = self._steps.counters
        self.alarm: Alarm = Alarm(self.wakeup)
        self._nothing = PollResult()
        self._empty_polls = 0
        self._is_woken = False
        self.was_woken: bool = False
        self.is_parked: bool = False
        self.checkpoint: Checkpoint | None = None

    # Called by the owner.

    def connect(self, channel: Channel, sock: Socket, address: Address) -> None:
        """Start connecting a channel; a later poll reports it as connected or as disconnected.

        Args:
            channel: a channel created with ``connects=True``.
            sock: the socket of its transport.
            address: the address to connect to.

        Raises:
            LocalProtocolError: the channel's id is in use, or it was not created with
                ``connects=True``.
            OSError: the connection failed immediately.

        After an error the socket is closed and the channel is not registered (KAFKA-7712).
        """
        try:
            if channel.state is not ChannelState.CONNECTING:
                raise LocalProtocolError(f"channel {channel.id} was not created with connects=True")
            begin_connect(sock, address)
            self.register(channel, WRITE)
        except BaseException:
            sock.close()
            raise

    def register(self, channel: Channel, interest: int = READ) -> None:
        """Add a channel, and watch its socket for ``interest``, by default for readability.

        Raises:
            LocalProtocolError: the channel's id is in use (KAFKA-7453).
            OSError: the channel's socket cannot be watched.
        """
        if self.channels.get(channel.id) is not None:
            raise LocalProtocolError(f"a channel with id {channel.id} is already registered")
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
        """Start sending a frame, and write as much as the socket accepts now.

        A client whose session expires soon re-authenticates first (KIP-368); the frame is sent
        after that.

        Returns:
            Whether the Send is complete. If not, a later poll reports its completion, or that the
            channel failed.

        Raises:
            LocalProtocolError: the channel is closed or has a Send in progress, or ``send`` was
                already written. An open channel is closed.
        """
        if not self._times_channels:
            return self._steps.send(channel, send)
        began_ns = now_ns()
        is_complete = self._steps.send(channel, send)
        self._charge(channel, began_ns)
        return is_complete

    def look_at_clock(self) -> None:
        """Update the time used for the next Sends, since the last poll may have been long ago."""
        self._steps.now = self._clock()

    def mute(self, channel: Channel) -> None:
        """Stop reading from a channel. The poller is updated only if data arrives."""
        channel.muting.mute()

    def unmute(self, channel: Channel) -> None:
        """Resume reading a muted channel, unless a response is pending or it is throttled.

        Does nothing to a closed channel.
        """
        if channel.state is not _CLOSED and channel.muting.unmute():
            self._steps.read_again(channel)

    def why_unread(self, channel: Channel) -> Unread | None:
        """Return why requests are not being read; see :meth:`.ChannelSteps.why_unread`."""
        return self._steps.why_unread(channel)

    def pause_reading(self) -> None:
        """Stop reading and returning frames of all channels; Sends continue.

        A processor uses this to apply back-pressure when the request queue is full: TCP flow
        control stops the peers, while responses, which free space in the queue, can still be sent.
        """
        self._steps.is_paused = True

    def resume_reading(self) -> None:
        """Resume reading after :meth:`pause_reading`."""
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
        """Close a channel now, without reporting it in ``disconnected``."""
        if channel.is_open:
            self._steps.remove(channel, reason, detail)

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        """Close a channel now and report it in ``disconnected`` of the next poll."""
        self._steps.disconnect(channel, reason, detail)

    def close_all(self, reason: CloseReason) -> list[Channel]:
        """Close all channels. Returns them, after those closed earlier but not yet reported."""
        for channel in list(self.channels):
            self._steps.disconnect(channel, reason)
        result = self._steps.result
        closed, result.disconnected = result.disconnected, []
        return closed

    def wakeup(self) -> None:
        """Make the current poll, or the next one, return without waiting."""
        self._is_woken = True
        self._steps.readiness.wakeup()

    def unpark(self) -> None:
        """Make the current poll return if it is parked, because the owner has work."""
        if self.is_parked:
            self._steps.readiness.wakeup()

    # The loop.

    async def poll(
        self,
        events_max: int = EVENTS_MAX,
        seconds_max: float = math.inf,
        has_work: Callable[[], bool] | None = None,
    ) -> PollResult:
        """Read from and write to all channels that are ready.

        If no channel is ready, the poll returns an empty result; the fourth such poll in a row
        waits or, with ``parks_at_once``, the first.

        Args:
            events_max: the maximum number of events to handle; further events are handled in the
                next poll. Channels with staged frames, with data buffered by TLS, or in CLOSING
                need no event and are processed in addition. With this limit, an owner that can
                accept only a few receives does not read many more into memory. With 0, no event is
                handled, and the poll only waits as usual.
            seconds_max: the maximum time to wait; requires the alarm to be running.
            has_work: returns whether the owner has work that this poll must not delay. Called after
                all other tasks have run, so that work from them needs no wake-up, which would cost
                an extra turn. For later work, call :meth:`unpark`.

        Raises:
            ValueError: ``seconds_max`` is negative.

        Cancellation: loses nothing. Frames that have been read stay staged, and results not yet
        returned are returned by the next poll.
        """
        if seconds_max < 0:
            raise ValueError(f"seconds_max = {seconds_max}; allowed: 0 or more")
        steps = self._steps
        readiness = steps.readiness
        if not self._parks_at_once:
            await (self.checkpoint or Checkpoint())
        events = readiness.poll(events_max) if events_max else []
        can_wait = not events and seconds_max > 0 and self._must_wait()
        if can_wait and has_work is not None and has_work():
            can_wait = False
        self._empty_polls = self._empty_polls + 1 if can_wait else 0
        has_parked = self._empty_polls > self._empty_polls_max
        if has_parked:
            self._empty_polls = 0
            self.alarm.set(min(steps.next_check_at, self._clock() + seconds_max))
            self.is_parked = True
            try:
                await readiness.park()
            finally:
                self.is_parked = False
            if events_max:
                events = readiness.poll(events_max)
        elif self._parks_at_once:
            await checkpoint()
            events = readiness.poll(events_max)  # a descriptor may be another socket's by now
        self.was_woken, self._is_woken = self._is_woken, False
        self.counters.polls += 1
        # A busy connection's polls are empty half of the time, and then read no clock either.
        if events or steps.has_more or steps.starved.channels or self.was_woken or has_parked:
            self._step(events)
        return self.take_result()

    def poll_now(self, events_max: int) -> PollResult:
        """Read from and write to channels that are ready, without waiting.

        Other tasks may call this while :meth:`poll` waits; the call does not make :meth:`poll`
        return.

        Args:
            events_max: see :meth:`poll`.
        """
        events = self._steps.readiness.poll(events_max)
        self.counters.polls += 1
        if events or self._steps.has_more:
            self._step(events)
        return self.take_result()

    def take_result(self) -> PollResult:
        """Return the results since the last completed poll, for example after a failed poll."""
        steps = self._steps
        if steps.result.is_empty:
            return self._nothing
        result, steps.result = steps.result, PollResult()
        return result

    def _must_wait(self) -> bool:
        steps = self._steps
        if self._is_woken or not steps.result.is_empty:
            return False
        return steps.is_paused or not steps.has_more

    def _step(self, events: list[tuple[int, int]]) -> None:
        """Process the channels that can make progress, and the timeouts that are due."""
        steps, counters = self._steps, self.counters
        began_ns = now_ns()
        steps.now = self._clock()
        if self._pool is not None and self._pool.is_low:
            steps.starved.shuffle(events)
        self._step_channels(events)
        if steps.now >= steps.next_check_at:
            steps.check_times()
        counters.network_io += len(events)
        counters.io_ns += now_ns() - began_ns

    def _step_channels(self, events: list[tuple[Any, int]]) -> None:
        """Process each channel that has an event, then those that have staged data.

        A channel with both is processed once, with the second group: its staged frames are older
        than the data in its socket.
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
                    # The path of nearly every request: the channel is only read.
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
            # No channel may miss its turn; a second turn does no harm.
            steps.has_more.update({each: None for each in staged if each.is_open})
            raise

    def _charge(self, channel: Channel, since_ns: int) -> int:
        """Charge the time since ``since_ns`` to a channel. Returns the current time.

        (Kafka: KafkaChannel.addNetworkThreadTimeNanos.)
        """
        at_ns = now_ns()
        channel.network_thread_ns += at_ns - since_ns
        return at_ns
