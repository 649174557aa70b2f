"""Decisions about channels that are not ready: the next step, and when to give up.

(Kafka: KafkaChannel.prepare, Selector.delayedClosingChannels.) :class:`Preparing` has a method for
each event of a connect, TLS handshake or authentication. Each method returns a :class:`Decision`,
which :meth:`.ChannelSteps.carry_out` applies. The methods drive the transport, which does the I/O
of the connect and the handshake. Nothing here modifies a channel or uses the Selector, so the rules
can be read and tested one event at a time.

Three limits protect against peers that only pretend to authenticate: each channel has a timeout,
the number of channels in progress is limited, and so is the time that each pass of the loop spends
on them. :class:`PreparingTime` implements the last of these:

* All selectors of a loop share one instance, since a step in one selector delays the others.
* It limits time, not the number of steps: a handshake step costs as much as a hundred requests, or
  a thousand with a long RSA key, and cannot be interrupted.
* If a step exceeds the time of its pass, the excess is deducted from the following passes, up to a
  limit. A request needs several passes from its arrival to its response, and should be delayed by
  one long step at most, not by one in each pass.
* A pass ends when a selector asks for time again. Selectors that had to wait in one pass come
  first in the next; otherwise the first selector could use all the time of every pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs
from trio.lowlevel import RunVar

from .._util._monotonic import perf_counter
from ._authenticator import Authenticator, Gate, Progress, Step
from ._channel import Channel
from ._channel_state import ChannelState
from ._idle_expiry import DelayedCloses
from ._principal import Principal
from ._selector_counters import SelectorCounters
from .wire._close_reason import CloseReason
from .wire._framing import Frame, invalid_size, size_limit
from .wire._readiness import READ
from .wire._transmission import Send

# The time for steps in one pass of the loop; the last step of a pass may exceed it.
SECONDS_PER_PASS_MAX = 0.002
# The maximum number of passes without any time for steps, after a step that took very long.
PASSES_OWED_MAX = 4


class PreparingTime:
    """The time limit for the steps of all selectors of a loop.

    Args:
        seconds_max: the time for all steps of one pass.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, seconds_max: float, clock: Callable[[], float] = perf_counter) -> None:
        self._seconds_max = seconds_max
        self._clock = clock
        self._spent = 0.0
        self._turns: dict[object, int] = {}  # the turn in which each selector asked in this pass
        self._served: set[object] = set()  # those that took a step in this pass
        self._waiting: dict[object, None] = {}  # those that had to wait, longest first

    def may_work(self, worker: object, turn: int) -> bool:
        """Return whether a selector may take a step now; if not, it should ask in its next turn.

        Args:
            worker: an object that identifies the selector.
            turn: the number of the selector's turn, different in each turn.
        """
        if self._turns.get(worker, turn) != turn:
            self._begin_pass()
        self._turns[worker] = turn
        has_time = self._spent <= self._seconds_max
        if has_time and worker is next(iter(self._waiting), worker):
            self._served.add(worker)
            return True
        self._waiting[worker] = None
        return False

    def _begin_pass(self) -> None:
        # A selector that had to wait but did not ask again has no more steps to take.
        waiting = [each for each in self._waiting if each in self._turns]
        self._waiting = dict.fromkeys(each for each in waiting if each not in self._served)
        self._turns.clear()
        self._served.clear()
        owed = max(0.0, self._spent - self._seconds_max)
        self._spent = min(owed, PASSES_OWED_MAX * self._seconds_max)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Deduct the time that the block takes from the time of this pass."""
        began = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - began


_of_loop: RunVar[PreparingTime] = RunVar("trionet.net._preparing")


def preparing_time() -> PreparingTime:
    """Return the PreparingTime of the running loop."""
    try:
        return _of_loop.get()
    except LookupError:
        found = PreparingTime(SECONDS_PER_PASS_MAX)
        _of_loop.set(found)
        return found


# The maximum number of channels of one Selector that are becoming ready; the same for those that
# are FAILED and those that are LINGERING. One more ends the time of the one whose time ends first:
# it is closed, or gets its delayed response if it is FAILED.
PREPARING_MAX = 1000


@attrs.frozen(kw_only=True)
class Decision:
    """A decision about a channel that is not ready; unset attributes change nothing.

    Attributes:
        identified: the principal that the TLS handshake established, or the authenticator to use
            next.
        state: the state to enter.
        failure: the step in which authentication failed, if the state is FAILED or LINGERING.
        send: an authentication message; nothing is read until it has been sent.
        interest: the readiness bits to watch the socket for.
        again: whether to take the next step in the next poll even without a socket event.
        then: the decision to apply next.
        close_reason: the reason for closing the channel; None to keep it open.
        detail: details of the close reason, for the log.
    """

    identified: Authenticator | Principal | None = None
    state: ChannelState | None = None
    failure: Step | None = None
    send: Send | None = None
    interest: int | None = None
    again: bool = False
    then: Decision | None = None
    close_reason: CloseReason | None = None
    detail: str = ""


#: The frame is a request or a response, not part of an authentication.
REQUEST: Final = Decision()
_WAIT: Final = Decision()
_LATE: Final = {
    ChannelState.CONNECTING: (CloseReason.NOT_CONNECTED, "connecting"),
    ChannelState.HANDSHAKING: (CloseReason.AUTHENTICATION_TIMEOUT, "TLS handshake"),
    ChannelState.AUTHENTICATING: (CloseReason.AUTHENTICATION_TIMEOUT, "authentication"),
}


class Preparing:
    """The channels of one Selector that are not ready yet, or failed to become ready.

    Args:
        seconds_max: the time limit for connecting, handshake and authentication together.
        counters: the counters of the Selector.
        now_ms: returns the wall-clock time, in milliseconds since the epoch.
    """

    def __init__(
        self, seconds_max: float, counters: SelectorCounters, now_ms: Callable[[], int]
    ) -> None:
        self._seconds_max = seconds_max
        self._counters = counters
        self._now_ms = now_ms
        # With a common limit, failing peers could displace those that are in progress.
        self._in_progress: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._failed: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._lingering: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._displaced: list[Channel] = []
        self._worker = object()  # the loop's PreparingTime may keep this after self is gone

    def begin(self, channel: Channel, now: float) -> None:
        """Start the timeout within which a channel must become ready."""
        self._wait(self._in_progress, channel, now + self._seconds_max)

    def forget(self, channel: Channel) -> None:
        """Remove a closed channel."""
        self._leave(channel)
        self._failed.discard(channel)
        self._lingering.discard(channel)

    def _leave(self, channel: Channel) -> None:
        """Remove a channel from those in progress, even if it was about to be displaced."""
        self._in_progress.discard(channel)
        if channel in self._displaced:
            self._displaced.remove(channel)

    def may_step(self, channel: Channel) -> bool:
        """Whether this pass of the loop has time left for the next step of a channel."""
        takes_time = channel.state is ChannelState.HANDSHAKING or (
            channel.state is ChannelState.AUTHENTICATING and channel.send is None
        )
        return not takes_time or preparing_time().may_work(self._worker, self._counters.polls)

    def _wait(self, among: DelayedCloses[Channel], channel: Channel, ends_at: float) -> None:
        displaced = among.add(channel, ends_at)
        if displaced is not None:
            self._displaced.append(displaced)

    # Connect and TLS.

    def step(self, channel: Channel, now: float) -> Decision:
        """Continue connecting, or continue the TLS handshake.

        Raises:
            AuthenticationError, EOFError, OSError: connecting or the handshake failed.
        """
        if channel.state is ChannelState.CONNECTING:
            if not channel.transport.finish_connect():
                return _WAIT  # a spurious event
            if channel.tls is not None:
                return Decision(state=ChannelState.HANDSHAKING, interest=READ, again=True)
            return self._after_transport(channel, now, channel.authenticator)
        with preparing_time().spending():
            return self._shake_hands(channel, now)

    def _shake_hands(self, channel: Channel, now: float) -> Decision:
        tls = channel.tls
        assert tls is not None
        wanted = tls.handshake_step()
        if wanted:
            return Decision(interest=wanted)
        identified = None if channel.identify is None else channel.identify(tls)
        authenticator = channel.authenticator
        if identified is not None and not isinstance(identified, Principal):
            authenticator = identified
        if authenticator is None:
            self._counters.authenticated += 1
        decision = self._after_transport(channel, now, authenticator)
        # Data may have arrived with the last record of the handshake (KAFKA-2801).
        return attrs.evolve(decision, identified=identified, again=tls.has_buffered)

    def _after_transport(
        self, channel: Channel, now: float, authenticator: Authenticator | None
    ) -> Decision:
        """Decide what follows the connect and, with TLS, the handshake."""
        if authenticator is None:
            self._leave(channel)
            return Decision(state=ChannelState.READY, interest=READ)
        if channel.initiator is None:
            return Decision(state=ChannelState.AUTHENTICATING, interest=READ)
        return self.authenticate(channel, now)

    # Authentication.

    def authenticate(self, channel: Channel, now: float) -> Decision:
        """Start authentication or re-authentication on an outgoing connection."""
        initiator = channel.initiator
        assert initiator is not None
        first = self._decide(channel, initiator.begin(now), now)
        return Decision(state=ChannelState.AUTHENTICATING, interest=READ, then=first)

    def receive(self, channel: Channel, frame: Frame, now: float) -> Decision:
        """Handle a frame of a channel with an authenticator.

        Returns REQUEST if the frame is not part of an authentication.
        """
        authenticator = channel.authenticator
        assert authenticator is not None
        state = channel.state
        if state is ChannelState.READY or state is ChannelState.CLOSING:
            gate = authenticator.gate(frame, now)
            if gate is Gate.PASS:
                return REQUEST
            if gate is Gate.EXPIRED or state is ChannelState.CLOSING:
                return Decision(close_reason=CloseReason.SESSION_EXPIRED)
            # The client re-authenticates (KIP-368).
            self.begin(channel, now)
            then = self._decide(channel, self._received(authenticator, frame, now), now)
            return Decision(state=ChannelState.AUTHENTICATING, then=then)
        if channel.initiator is not None and channel.initiator.lets_pass(frame):
            return REQUEST
        limit = size_limit(authenticator.frame_bytes_max)
        if len(frame) > limit:
            # It arrived together with the SaslHandshake of a re-authentication, while the higher
            # limit of requests still applied.
            error = invalid_size(len(frame), limit, channel.limit_names.authentication)
            step = Step.failed(CloseReason.INVALID_RECEIVE, str(error))
            return self._fail(channel, step, now)
        return self._decide(channel, self._received(authenticator, frame, now), now)

    def _received(self, authenticator: Authenticator, frame: Frame, now: float) -> Step:
        with preparing_time().spending():
            return authenticator.receive(frame, now, self._now_ms())

    def sent(self, channel: Channel) -> Decision:
        """Decide what follows after an authentication message has been sent."""
        failure = channel.failure
        if failure is None:
            return self._continue(channel)
        if failure.linger_seconds:
            return Decision(interest=READ)  # to notice when the peer disconnects
        return _close_of(failure)

    def _decide(self, channel: Channel, step: Step, now: float) -> Decision:
        if step.progress is Progress.FAILED:
            return self._fail(channel, step, now)
        if step.progress is not Progress.GOES_ON:
            self._count(channel, step.progress)
        if step.send is not None:
            return Decision(send=step.send)
        return self._continue(channel)

    def _continue(self, channel: Channel) -> Decision:
        authenticator = channel.authenticator
        assert authenticator is not None
        again = channel.has_staged or channel.has_buffered
        if not authenticator.is_complete:
            return Decision(interest=READ, again=again)
        self._leave(channel)
        return Decision(state=ChannelState.READY, interest=READ, again=again)

    def _count(self, channel: Channel, progress: Progress) -> None:
        counters, authenticator = self._counters, channel.authenticator
        assert authenticator is not None
        if progress is Progress.REAUTHENTICATED:
            counters.note_reauthentication(int(authenticator.reauthentication_seconds * 1000))
            return
        counters.authenticated += 1
        if not authenticator.can_reauthenticate:
            counters.authenticated_for_good += 1

    # Failure.

    def count_fault(self, channel: Channel, reason: CloseReason) -> None:
        """Count a channel's error if it is an authentication failure.

        During authentication, a frame that is too large counts as a failure, too (Kafka:
        SaslServerAuthenticator).
        """
        authenticates = channel.authenticator is not None and channel.state < ChannelState.READY
        if reason is CloseReason.AUTHENTICATION_FAILED or (
            reason is CloseReason.INVALID_RECEIVE and authenticates
        ):
            self._count_failure(channel)

    def _count_failure(self, channel: Channel) -> None:
        if channel.authenticator is not None and channel.authenticator.is_reauthenticating:
            self._counters.reauthentication_failures += 1
        else:
            self._counters.authentication_failures += 1

    def _fail(self, channel: Channel, failure: Step, now: float) -> Decision:
        self._count_failure(channel)
        self._leave(channel)
        if not failure.delay_seconds:
            return self._end(channel, failure, now)
        # It is still read, up to its next frame, to notice when the peer disconnects.
        self._wait(self._failed, channel, now + failure.delay_seconds)
        return Decision(state=ChannelState.FAILED, failure=failure)

    def _end(self, channel: Channel, failure: Step, now: float) -> Decision:
        """Send the error response of a failed authentication, if any, then close the channel."""
        if failure.send is None:
            return _close_of(failure)
        if failure.linger_seconds:
            self._wait(self._lingering, channel, now + failure.linger_seconds)
        return Decision(state=ChannelState.LINGERING, failure=failure, send=failure.send)

    # Time.

    @property
    def next_check_at(self) -> float:
        """The earliest time at which :meth:`due` returns decisions, by the loop's clock."""
        if self._displaced:
            return -math.inf
        waiting = (self._in_progress, self._failed, self._lingering)
        return min(each.next_check_at for each in waiting)

    def due(self, now: float) -> list[tuple[Channel, Decision]]:
        """Return decisions for channels that were displaced, or whose timeout or delay is over."""
        displaced, self._displaced = self._displaced, []
        decided = [(each, self._late(each, now, "too many authentications")) for each in displaced]
        for waiting in (self._in_progress, self._failed, self._lingering):
            decided += [(each, self._late(each, now)) for each in waiting.pop_due(now)]
        return decided

    def _late(self, channel: Channel, now: float, why: str | None = None) -> Decision:
        failure = channel.failure
        if failure is not None:
            is_held = channel.state is ChannelState.FAILED
            return self._end(channel, failure, now) if is_held else _close_of(failure)
        reason, what = _LATE[channel.state]
        return Decision(close_reason=reason, detail=why or f"{what} took too long")


def _close_of(failure: Step) -> Decision:
    reason = failure.close_reason or CloseReason.AUTHENTICATION_FAILED
    return Decision(close_reason=reason, detail=failure.detail)
