"""The channels of a Selector that are not ready yet: TLS handshakes and authentications, stepped.

(Kafka: KafkaChannel.prepare.) They are bounded three times, so that peers who only pretend to
authenticate stall nobody: each must be done in time, only so many may be under way, and a pass of
the loop spends a little time on them only (see :mod:`.preparing_time`).
"""

from __future__ import annotations

import time
from typing import Protocol

from .authenticator import Gate, Progress, Step
from .channel import Channel
from .close_reason import CloseReason
from .connecting import finish_connect
from .delayed_closes import DelayedCloses
from .framing import Frame, invalid_size
from .preparing_time import preparing_time
from .readiness import READ, WRITE
from .selector_counters import SelectorCounters
from .sockets import Socket
from .transmission import Send

# How many channels of one Selector may be on their way to being ready; one more, and the one that
# has been at it for longest is closed.
PREPARING_MAX = 1000


class Stepper(Protocol):
    """What is needed here of a Selector."""

    counters: SelectorCounters

    def watch(self, channel: Channel, interest: int) -> None: ...

    def continue_at_once(self, channel: Channel) -> None: ...

    def connected(self, channel: Channel) -> None: ...

    def plan_check(self, at: float) -> None: ...

    def send(self, channel: Channel, send: Send) -> bool: ...

    def mute(self, channel: Channel) -> None: ...

    def disconnect(self, channel: Channel, reason: CloseReason, detail: str = "") -> None: ...


class Preparing:
    """Brings channels to the point from which their frames are requests.

    Args:
        selector: whose channels they are.
        seconds_max: how long that may take.
    """

    __slots__ = (
        "_connecting",
        "_failed",
        "_in_progress",
        "_lingering",
        "_seconds_max",
        "_selector",
        "_worker",
    )

    def __init__(self, selector: Stepper, seconds_max: float) -> None:
        self._selector = selector
        self._seconds_max = seconds_max
        self._in_progress: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._failed: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._lingering: DelayedCloses[Channel] = DelayedCloses(PREPARING_MAX)
        self._connecting: dict[Channel, Socket] = {}
        self._worker = object()  # which the loop may remember for longer than it lives itself

    def begin(self, channel: Channel, now: float) -> None:
        """Take a channel that was just registered."""
        displaced = self._in_progress.add(channel, now + self._seconds_max)
        if displaced is not None:
            self._close(displaced, CloseReason.AUTHENTICATION_TIMEOUT, "too many authenticate")

    def forget(self, channel: Channel) -> None:
        """A channel was closed."""
        self._connecting.pop(channel, None)
        self._in_progress.discard(channel)
        self._failed.discard(channel)
        self._lingering.discard(channel)

    # Outgoing connections.

    def expect_connection(self, channel: Channel, sock: Socket) -> None:
        """Take a channel whose socket is on its way."""
        self._connecting[channel] = sock
        channel.is_connecting = channel.is_shaking_hands = True
        channel.is_ready = False

    def _finish_connect(self, channel: Channel) -> None:
        if not finish_connect(self._connecting[channel]):
            return  # what the backend told was not true
        del self._connecting[channel]
        channel.is_connecting = False
        channel.is_shaking_hands = channel.tls is not None
        self._selector.connected(channel)
        self._selector.watch(channel, READ)
        if channel.tls is not None:
            self._selector.continue_at_once(channel)
        else:
            self._after_transport(channel)

    # TLS.

    def shake_hands(self, channel: Channel) -> None:
        """Make one step of a connect, or of a handshake if there is time for it.

        Raises:
            AuthenticationError, EOFError, OSError: it failed.
        """
        if channel.is_connecting:
            self._finish_connect(channel)
            return
        if not self._may_work():
            self._selector.continue_at_once(channel)
            return
        with preparing_time().spending():
            self._make_step(channel)

    def _make_step(self, channel: Channel) -> None:
        tls = channel.tls
        assert tls is not None
        wanted = tls.handshake_step()
        if wanted:
            self._selector.watch(channel, wanted)
            return
        channel.is_shaking_hands = False
        if channel.after_handshake is not None:
            channel.after_handshake(channel)
        self._selector.watch(channel, READ)
        if channel.authenticator is None:
            self._selector.counters.authenticated += 1
        self._after_transport(channel)
        if channel.is_open and tls.has_buffered:
            self._selector.continue_at_once(channel)

    def _after_transport(self, channel: Channel) -> None:
        """The connection is made, and under TLS its handshake done."""
        if channel.initiator is not None:
            self._take(channel, channel.initiator.begin(channel.last_used_at), channel.last_used_at)
        elif channel.authenticator is None:
            self._become_ready(channel)

    def _may_work(self) -> bool:
        return preparing_time().may_work(self._worker, self._selector.counters.polls)

    # Authentication.

    def is_request(self, channel: Channel, frame: Frame, now: float) -> bool:
        """Whether a frame of a channel with an authenticator is a request; if not, it is used."""
        authenticator = channel.authenticator
        assert authenticator is not None
        if channel.failure is not None:
            self._selector.mute(channel)
            return False
        if channel.is_ready:
            gate = authenticator.gate(frame, now)
            if gate is Gate.PASS:
                return True
            if gate is Gate.EXPIRED:
                self._close(channel, CloseReason.SESSION_EXPIRED)
                return False
            channel.is_ready = False  # until it has proved once more who it is (KIP-368)
            channel.ask(authenticator)
            self.begin(channel, now)
            self._selector.plan_check(self.next_check_at)
        elif channel.initiator is not None and channel.initiator.lets_pass(frame):
            return True
        elif not self._may_work():
            channel.staged.appendleft(frame)
            channel.has_staged = True
            self._selector.continue_at_once(channel)
            return False
        elif len(frame) > authenticator.frame_bytes_max:
            # It came together with the handshake of a re-authentication, when requests may come.
            limit_name = channel.limit_names.authentication
            error = invalid_size(len(frame), authenticator.frame_bytes_max, limit_name)
            self._fail(channel, Step.failed(CloseReason.INVALID_RECEIVE, str(error)), now)
            return False
        with preparing_time().spending():
            step = authenticator.receive(frame, now, time.time_ns() // 1_000_000)
        self._take(channel, step, now)
        return False

    def authenticate_again(self, channel: Channel, held: Send, now: float) -> None:
        """Say once more who we are, and send ``held`` afterwards (KIP-368).

        Args:
            channel: an outgoing one that is ready, and has no Send in progress.
            held: a request.
            now: seconds of the loop's clock.
        """
        initiator = channel.initiator
        assert initiator is not None
        assert channel.send is None
        channel.is_ready = False
        channel.held_send = held
        self._take(channel, initiator.begin(now), now)

    def _take(self, channel: Channel, step: Step, now: float) -> None:
        if step.progress is Progress.FAILED:
            self._fail(channel, step, now)
            return
        if step.progress is not Progress.GOES_ON:
            self._count(channel, step.progress)
        if step.send is not None:
            self._send(channel, step.send)
        else:
            self._go_on(channel)

    def _send(self, channel: Channel, send: Send) -> None:
        """Send a part of the exchange; nothing is read before it has left."""
        channel.is_sending_step = True
        if self._selector.send(channel, send):
            self.sent(channel)
        elif channel.is_open:
            self._selector.watch(channel, WRITE)

    def sent(self, channel: Channel) -> None:
        """What :meth:`_send` began has left."""
        channel.is_sending_step = False
        failure = channel.failure
        if failure is None:
            self._selector.watch(channel, READ)
            self._go_on(channel)
        elif failure.linger_seconds:
            self._selector.watch(channel, READ)  # to hear of it when the peer leaves
        else:
            self._close_failed(channel, failure)

    def _go_on(self, channel: Channel) -> None:
        authenticator = channel.authenticator
        assert authenticator is not None
        if authenticator.is_complete:
            self._become_ready(channel)
        if channel.has_staged or channel.has_buffered:
            self._selector.continue_at_once(channel)

    def _become_ready(self, channel: Channel) -> None:
        self._in_progress.discard(channel)
        channel.become_ready()
        held, channel.held_send = channel.held_send, None
        if held is not None:
            channel.send = held
            self._selector.watch(channel, READ | WRITE)

    def _count(self, channel: Channel, progress: Progress) -> None:
        counters, authenticator = self._selector.counters, channel.authenticator
        assert authenticator is not None
        if progress is Progress.REAUTHENTICATED:
            counters.note_reauthentication(int(authenticator.reauthentication_seconds * 1000))
            return
        counters.authenticated += 1
        if not authenticator.can_reauthenticate:
            counters.authenticated_for_good += 1

    # Failure.

    def count_fault(self, channel: Channel, reason: CloseReason) -> None:
        """Count a channel's fault if it is a failed authentication; a frame before the end of it
        that is too large is one (Kafka: SaslServerAuthenticator).
        """
        is_asked = channel.authenticator is not None and not channel.is_ready
        if reason is CloseReason.AUTHENTICATION_FAILED or (
            reason is CloseReason.INVALID_RECEIVE and is_asked
        ):
            self._count_failure(channel)

    def _count_failure(self, channel: Channel) -> None:
        counters = self._selector.counters
        if channel.authenticator is not None and channel.authenticator.is_reauthenticating:
            counters.reauthentication_failures += 1
        else:
            counters.authentication_failures += 1

    def _fail(self, channel: Channel, step: Step, now: float) -> None:
        self._count_failure(channel)
        channel.failure = step
        self._in_progress.discard(channel)
        if not step.delay_seconds:
            self._end(channel)
            return
        # Read until its next frame, to hear of it when the peer leaves.
        displaced = self._failed.add(channel, now + step.delay_seconds)
        self._selector.plan_check(self.next_check_at)
        if displaced is not None:
            self._end(displaced)

    def _end(self, channel: Channel) -> None:
        """Say why, if there is something to say, and close."""
        failure = channel.failure
        assert failure is not None
        if failure.send is None:
            self._close_failed(channel, failure)
            return
        self._send(channel, failure.send)
        if channel.is_open and failure.linger_seconds:
            ends_at = channel.last_used_at + failure.linger_seconds
            displaced = self._lingering.add(channel, ends_at)
            self._selector.plan_check(self.next_check_at)
            if displaced is not None:
                self._close_lingering(displaced)

    def _close_lingering(self, channel: Channel) -> None:
        assert channel.failure is not None
        self._close_failed(channel, channel.failure)

    def _close_failed(self, channel: Channel, failure: Step) -> None:
        reason = failure.close_reason or CloseReason.AUTHENTICATION_FAILED
        self._close(channel, reason, failure.detail)

    def _close(self, channel: Channel, reason: CloseReason, detail: str = "") -> None:
        self._selector.disconnect(channel, reason, detail)

    # Time.

    @property
    def next_check_at(self) -> float:
        """When :meth:`check` has something to do, in seconds of the loop's clock."""
        return min(
            self._in_progress.next_check_at,
            self._failed.next_check_at,
            self._lingering.next_check_at,
        )

    def check(self, now: float) -> None:
        """End what took too long, and what was held back for long enough."""
        for channel in self._in_progress.pop_due(now):
            if channel.is_connecting:
                self._close(channel, CloseReason.NOT_CONNECTED, "connecting took too long")
                continue
            what = "TLS handshake" if channel.is_shaking_hands else "authentication"
            self._close(channel, CloseReason.AUTHENTICATION_TIMEOUT, f"{what} took too long")
        for channel in self._failed.pop_due(now):
            self._end(channel)
        for channel in self._lingering.pop_due(now):
            self._close_lingering(channel)
