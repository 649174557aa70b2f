"""The mute state of a channel: why the channel is not being read.

(Kafka: KafkaChannel.ChannelMuteState, KIP-219.) A channel is muted from a request until its
response has been sent. If the channel is throttled, the response is still sent immediately, but
reading resumes only once the response has been sent and the throttle has ended.

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
