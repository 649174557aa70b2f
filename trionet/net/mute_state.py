"""Why a channel is not read: its mute state, and want of memory.

(Kafka: KafkaChannel.ChannelMuteState, KIP-219.) A channel is muted from a request to its response,
and longer while it is throttled: then the response leaves at once, and reading goes on when the
throttle ends. Whichever of the two is last lets the channel be unmuted.

::

    NOT_MUTED -mute-> MUTED -request received-> MUTED_AND_RESPONSE_PENDING
    MUTED_AND_RESPONSE_PENDING -response sent-> MUTED -unmute-> NOT_MUTED

    MUTED_AND_RESPONSE_PENDING -throttle started-> MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING -response sent-> MUTED_AND_THROTTLED
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING -throttle ended-> MUTED_AND_RESPONSE_PENDING
    MUTED_AND_THROTTLED -throttle ended-> MUTED

A response that is never sent (acks=0) counts as sent. Want of memory is not a mute state: it ends
by itself, whatever the state. Nothing outside this module changes either.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from ..errors import LocalProtocolError


class MuteState(IntEnum):
    """What keeps a channel from being read."""

    NOT_MUTED = 0
    MUTED = 1
    MUTED_AND_RESPONSE_PENDING = 2
    MUTED_AND_THROTTLED = 3
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = 4


class MuteEvent(IntEnum):
    """What happened to a channel's request, or to its client's quota."""

    REQUEST_RECEIVED = 0
    RESPONSE_SENT = 1
    THROTTLE_STARTED = 2
    THROTTLE_ENDED = 3


class Unread(StrEnum):
    """The one answer to "why is this channel not read?"; see :meth:`.ChannelSteps.why_unread`."""

    PREPARING = "it is not ready for requests yet"
    CLOSING = "its peer has gone"
    RESPONSE_PENDING = "a request of it is being handled"
    THROTTLED = "its client is throttled"
    MUTED = "its owner has muted it"
    NO_MEMORY = "queued.max.request.bytes are in use"
    PAUSED = "queued.max.requests wait"


_NOT_MUTED: Final = MuteState.NOT_MUTED
_MUTED: Final = MuteState.MUTED
_PENDING: Final = MuteState.MUTED_AND_RESPONSE_PENDING
_THROTTLED: Final = MuteState.MUTED_AND_THROTTLED
_BOTH: Final = MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
_REQUEST_RECEIVED: Final = MuteEvent.REQUEST_RECEIVED
_RESPONSE_SENT: Final = MuteEvent.RESPONSE_SENT

# By event, then by state. Tuples and not dicts: the hash of an enum costs three look-ups here.
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
    """Whether one channel may be read, as far as that is its own affair.

    Attributes:
        state: changed by the methods below and by nothing else.
        is_out_of_memory: the pool had nothing left for the frame that is to be read next.
    """

    __slots__ = ("is_out_of_memory", "state")

    def __init__(self) -> None:
        self.state: MuteState = _NOT_MUTED
        self.is_out_of_memory = False

    @property
    def is_muted(self) -> bool:
        return self.state is not _NOT_MUTED

    @property
    def why(self) -> Unread | None:
        """What keeps the channel from being read; None for nothing."""
        reason = _WHY[self.state]
        return Unread.NO_MEMORY if reason is None and self.is_out_of_memory else reason

    def starve(self) -> None:
        """Read nothing more until there is memory for the next frame."""
        self.is_out_of_memory = True

    def feed(self) -> None:
        """Try again: there may be memory."""
        self.is_out_of_memory = False

    def mute(self) -> None:
        """Read nothing more; a channel that is muted in any way stays as it is."""
        if self.state is _NOT_MUTED:
            self.state = _MUTED

    def unmute(self) -> bool:
        """Let the channel be read again if it is merely muted (Kafka: maybeUnmute).

        A pending response or a throttle keeps it as it is.

        Returns:
            Whether this has unmuted it.
        """
        if self.state is not _MUTED:
            return False
        self.state = _NOT_MUTED
        return True

    def handle(self, event: MuteEvent) -> None:
        """Move on (Kafka: KafkaChannel.handleChannelMuteEvent).

        Raises:
            LocalProtocolError: the event cannot happen in this state, which stays as it is.
        """
        state = self.state
        # The two events of every request go without the table: compiled, they cost a tenth so.
        if event is _RESPONSE_SENT and state is _PENDING:
            self.state = _MUTED
            return
        if event is _REQUEST_RECEIVED and state is _MUTED:
            self.state = _PENDING
            return
        following = _NEXT[event][state]
        if following is None:
            raise LocalProtocolError(
                f"{event.name} cannot happen to a channel that is {state.name}"
            )
        self.state = following
