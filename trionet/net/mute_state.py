"""Why a channel is not read: the five mute states and the events that move between them.

(Kafka: KafkaChannel.ChannelMuteState, KIP-219.) A channel is muted from a request to its answer,
and longer while it is throttled: then the answer leaves at once, and reading goes on when the
throttle ends. Whichever of the two is last lets the channel be unmuted.

::

    NOT_MUTED -mute-> MUTED -request received-> MUTED_AND_RESPONSE_PENDING
    MUTED_AND_RESPONSE_PENDING -response sent-> MUTED -unmute-> NOT_MUTED

    MUTED_AND_RESPONSE_PENDING -throttle started-> MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING -response sent-> MUTED_AND_THROTTLED
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING -throttle ended-> MUTED_AND_RESPONSE_PENDING
    MUTED_AND_THROTTLED -throttle ended-> MUTED

Everything that moves a channel between these states is here, and nothing else. An answer that is
never sent (acks=0) counts as sent. A channel that gave up reading for want of memory is not muted
in this sense: that ends by itself, whatever its state.
"""

from __future__ import annotations

from enum import IntEnum

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


# By event, then by state. Tuples and not dicts, because an enum's hash costs three look-ups here.
_NEXT: tuple[tuple[MuteState | None, ...], ...] = (
    (None, MuteState.MUTED_AND_RESPONSE_PENDING, None, None, None),
    (None, None, MuteState.MUTED, None, MuteState.MUTED_AND_THROTTLED),
    (None, None, MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, None, None),
    (None, None, None, MuteState.MUTED, MuteState.MUTED_AND_RESPONSE_PENDING),
)


def after(state: MuteState, event: MuteEvent) -> MuteState:
    """The state that an event leads to.

    Raises:
        LocalProtocolError: the event cannot happen in this state.
    """
    following = _NEXT[event][state]
    if following is None:
        raise LocalProtocolError(f"{event.name} cannot happen to a channel that is {state.name}")
    return following


def after_mute(state: MuteState) -> MuteState:
    """The state of a channel that its owner mutes; one that is muted in any way stays so."""
    return MuteState.MUTED if state is MuteState.NOT_MUTED else state


def after_unmute(state: MuteState) -> MuteState:
    """The state of a channel that its owner wants to read again.

    Only one that is merely muted is: a pending response or a throttle keeps it as it is.
    """
    return MuteState.NOT_MUTED if state is MuteState.MUTED else state
