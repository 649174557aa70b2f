"""The states of a channel: its life cycle from connect to close, and why it is not being read.

This is the life cycle (Kafka: ChannelState, KafkaChannel.prepare, Selector.closingChannels and
delayedClosingChannels)::

    From            To              When
    CONNECTING      HANDSHAKING     the connection is established, and uses TLS
    CONNECTING      AUTHENTICATING  the connection is established; no TLS, but SASL
    CONNECTING      READY           the connection is established; neither TLS nor SASL
    HANDSHAKING     AUTHENTICATING  the handshake is complete; SASL follows
    HANDSHAKING     READY           the handshake is complete; no SASL
    AUTHENTICATING  READY           authentication or re-authentication is complete
    READY           AUTHENTICATING  the client renews the session (KIP-368)
    AUTHENTICATING  FAILED          authentication failed; the response is delayed (KIP-306)
    AUTHENTICATING  LINGERING       authentication failed; the response is not delayed
    FAILED          LINGERING       the delay has ended; the response is sent
    READY           CLOSING         the connection is dead, and frames remain unread
    any             CLOSED          the socket is closed, with a CloseReason; final

A connection is dead after a hang-up while it is not being read, or after a failed write. An end of
stream alone does not lead to CLOSING, because it is read only after the last frame. A FAILED
channel becomes CLOSED if the peer disconnects during the delay, or if no response is due.

A channel starts in the first state that applies to it: an accepted connection with neither TLS nor
SASL starts in READY.

Kafka spreads this over ``ready()``, ``isConnected()``, two maps of the Selector and a ChannelState
that mixes progress with close reasons. Here, the state says *where* a channel is in its life
cycle, and the CloseReason *why* it was closed.

The mute state is Kafka's (KafkaChannel.ChannelMuteState, KIP-219). A channel is muted from a
request until its response has been sent. If the channel is throttled, the response is still sent
immediately, but reading resumes only once the response has been sent and the throttle has ended.

In this table of transitions, ``..`` stands for ``MUTED_AND``::

    From                               Event             To
    NOT_MUTED                          mute()            MUTED
    MUTED                              unmute()          NOT_MUTED
    MUTED                              REQUEST_RECEIVED  .._RESPONSE_PENDING
    .._RESPONSE_PENDING                RESPONSE_SENT     MUTED
    .._RESPONSE_PENDING                THROTTLE_STARTED  .._THROTTLED_AND_RESPONSE_PENDING
    .._THROTTLED_AND_RESPONSE_PENDING  RESPONSE_SENT     .._THROTTLED
    .._THROTTLED_AND_RESPONSE_PENDING  THROTTLE_ENDED    .._RESPONSE_PENDING
    .._THROTTLED                       THROTTLE_ENDED    MUTED

In every other state, ``mute()`` and ``unmute()`` do nothing, and the other events are errors. A
processor calls ``mute()`` and reports REQUEST_RECEIVED for each request. It reports RESPONSE_SENT
and calls ``unmute()`` when the response has been sent, or if there is none (acks=0). The end of a
throttle also calls ``unmute()``.

A lack of memory is not a mute state, because it ends independently of the state.
"""

# Compiled by mypyc.

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from ..errors import LocalProtocolError


class ChannelState(IntEnum):
    """A stage in the life cycle of a channel."""

    CONNECTING = 0
    """An outgoing connection is being established."""
    HANDSHAKING = 1
    """The TLS handshake is in progress."""
    AUTHENTICATING = 2
    """Frames belong to the SASL exchange, or are responses to a client's earlier requests."""
    READY = 3
    """Frames are requests or responses (Kafka: KafkaChannel.ready)."""
    FAILED = 4
    """Authentication failed; the error response is delayed (KIP-306)."""
    LINGERING = 5
    """The response to a failed authentication is being sent; then the peer has some time to read it
    and to be the first to disconnect."""
    CLOSING = 6
    """The connection is dead; the frames that the peer sent are still returned, one per poll."""
    CLOSED = 7
    """The socket is closed; the channel's ``close_reason`` holds the reason."""


_S = ChannelState
# The states that may follow each state, in addition to CLOSED.
_FOLLOWING: Final = {
    _S.CONNECTING: (_S.HANDSHAKING, _S.AUTHENTICATING, _S.READY),
    _S.HANDSHAKING: (_S.AUTHENTICATING, _S.READY),
    _S.AUTHENTICATING: (_S.READY, _S.FAILED, _S.LINGERING),
    _S.READY: (_S.AUTHENTICATING, _S.CLOSING),
    _S.FAILED: (_S.LINGERING,),
}


def first_state(*, connects: bool, has_tls: bool, authenticates: bool) -> ChannelState:
    """Return the initial state of a channel.

    Args:
        connects: whether the connection is outgoing and not yet established.
        has_tls: whether the connection uses TLS.
        authenticates: whether the connection uses SASL.
    """
    if connects:
        return ChannelState.CONNECTING
    if has_tls:
        return ChannelState.HANDSHAKING
    return ChannelState.AUTHENTICATING if authenticates else ChannelState.READY


def checked(old: ChannelState, new: ChannelState) -> ChannelState:
    """Return ``new`` if it may follow ``old``.

    Raises:
        LocalProtocolError: ``new`` cannot follow ``old``.
    """
    if new in _FOLLOWING.get(old, ()) or (new is ChannelState.CLOSED and old is not new):
        return new
    raise LocalProtocolError(f"a channel cannot change from {old.name} to {new.name}")


class MuteState(IntEnum):
    """The mute state of a channel: whether it may be read and, if not, what it is waiting for."""

    NOT_MUTED = 0
    MUTED = 1
    MUTED_AND_RESPONSE_PENDING = 2
    MUTED_AND_THROTTLED = 3
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = 4


class MuteEvent(IntEnum):
    """An event that changes a channel's mute state."""

    REQUEST_RECEIVED = 0
    RESPONSE_SENT = 1
    THROTTLE_STARTED = 2
    THROTTLE_ENDED = 3


class Unread(StrEnum):
    """A reason why requests are not being read; see :meth:`.ChannelSteps.why_unread`."""

    PREPARING = "it is not ready for requests yet"
    CLOSING = "its peer has disconnected"
    RESPONSE_PENDING = "its request is being handled"
    THROTTLED = "its client is throttled"
    MUTED = "its owner has muted it"
    NO_MEMORY = "all of queued.max.request.bytes is in use"
    PAUSED = "its processor holds requests that exceed queued.max.requests, or is being drained"


_NOT_MUTED: Final = MuteState.NOT_MUTED
_MUTED: Final = MuteState.MUTED
_PENDING: Final = MuteState.MUTED_AND_RESPONSE_PENDING
_THROTTLED: Final = MuteState.MUTED_AND_THROTTLED
_BOTH: Final = MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
_REQUEST_RECEIVED: Final = MuteEvent.REQUEST_RECEIVED
_RESPONSE_SENT: Final = MuteEvent.RESPONSE_SENT

# The next state, by event and by state, in the order of their numbers; None for an error. Tuples
# instead of dicts: hashing an enum costs as much as three lookups.
_NEXT: Final[tuple[tuple[MuteState | None, ...], ...]] = (
    (None, _PENDING, None, None, None),
    (None, None, _MUTED, None, _THROTTLED),
    (None, None, _BOTH, None, None),
    (None, None, None, _MUTED, _PENDING),
)
_WHY: Final[tuple[Unread | None, ...]] = (
    None,
    Unread.MUTED,
    Unread.RESPONSE_PENDING,
    Unread.THROTTLED,
    Unread.RESPONSE_PENDING,
)


class Muting:
    """The mute state of one channel, which does not include a pause of its whole Selector.

    Attributes:
        state: the mute state; changed only by the methods below.
        is_out_of_memory: whether the channel is waiting for memory for its next frame; set by the
            channel, and reset when memory may be available.
    """

    __slots__ = ("is_out_of_memory", "state")

    def __init__(self) -> None:
        self.state: MuteState = _NOT_MUTED
        self.is_out_of_memory: bool = False

    @property
    def is_muted(self) -> bool:
        return self.state is not _NOT_MUTED

    @property
    def why(self) -> Unread | None:
        """The reason why the channel is not read; None if it may be read."""
        reason = _WHY[self.state]
        return Unread.NO_MEMORY if reason is None and self.is_out_of_memory else reason

    def mute(self) -> None:
        """Stop reading; does nothing if the channel is muted in any way."""
        if self.state is _NOT_MUTED:
            self.state = _MUTED

    def unmute(self) -> bool:
        """Unmute the channel if its state is MUTED (Kafka: maybeUnmute).

        Does nothing while a response is pending or the channel is throttled.

        Returns:
            Whether the channel was unmuted by this call.
        """
        if self.state is not _MUTED:
            return False
        self.state = _NOT_MUTED
        return True

    def handle(self, event: MuteEvent) -> None:
        """Move to the state that follows the event (Kafka: KafkaChannel.handleChannelMuteEvent).

        Raises:
            LocalProtocolError: the event is not valid in the current state, which does not change.
        """
        state = self.state
        # Every request has these two events. Compiled, the checks cost a tenth of a table lookup.
        if event is _RESPONSE_SENT and state is _PENDING:
            self.state = _MUTED
            return
        if event is _REQUEST_RECEIVED and state is _MUTED:
            self.state = _PENDING
            return
        following = _NEXT[event][state]
        if following is None:
            raise LocalProtocolError(
                f"{event.name} is not valid for a channel in state {state.name}"
            )
        self.state = following
