"""The life of a channel, from its connect to its close: the states, and what may follow what.

(Kafka: ChannelState, KafkaChannel.prepare, Selector.closingChannels and delayedClosingChannels.)

::

    CONNECTING -> HANDSHAKING -> AUTHENTICATING -> READY -> CLOSING
                                   |         ^______|
                                   v
                                 FAILED -> LINGERING

A channel begins in the first state that it needs: an accepted plaintext connection without SASL is
READY at once. READY goes back to AUTHENTICATING when a session is renewed (KIP-368). CLOSED follows
every state, and nothing follows CLOSED.

Kafka spreads this over ``ready()``, ``isConnected()``, two maps of the Selector and a ChannelState
that only says how it ended. Here the *why* of an end is a CloseReason, and the *where* is this.
"""

from __future__ import annotations

from enum import IntEnum

from ..errors import LocalProtocolError


class ChannelState(IntEnum):
    """How far a channel has come."""

    CONNECTING = 0
    """An outgoing connection is not made yet."""
    HANDSHAKING = 1
    """TLS is being set up."""
    AUTHENTICATING = 2
    """Frames belong to the SASL exchange, and a Send is a part of it."""
    READY = 3
    """Frames are requests or responses (Kafka: KafkaChannel.ready)."""
    FAILED = 4
    """The authentication failed, and the response that says so is held back (KIP-306)."""
    LINGERING = 5
    """The response to a failed authentication is on its way; the peer is to read it and to leave
    first."""
    CLOSING = 6
    """The peer has gone. What it had sent is handed out, one frame a poll."""
    CLOSED = 7
    """The socket is closed; ``close_reason`` says why."""


_S = ChannelState
# By state, what may follow beside CLOSED.
_FOLLOWING: tuple[frozenset[ChannelState], ...] = (
    frozenset((_S.HANDSHAKING, _S.AUTHENTICATING, _S.READY)),
    frozenset((_S.AUTHENTICATING, _S.READY)),
    frozenset((_S.READY, _S.FAILED, _S.LINGERING)),
    frozenset((_S.AUTHENTICATING, _S.CLOSING)),
    frozenset((_S.LINGERING,)),
    frozenset(),
    frozenset(),
    frozenset(),
)


def first_state(*, connects: bool, has_tls: bool, authenticates: bool) -> ChannelState:
    """Where a channel begins, or goes on when what came before is done.

    Args:
        connects: an outgoing connection is still to be made.
        has_tls: a TLS handshake is still to be done.
        authenticates: SASL is still to be done.
    """
    if connects:
        return ChannelState.CONNECTING
    if has_tls:
        return ChannelState.HANDSHAKING
    return ChannelState.AUTHENTICATING if authenticates else ChannelState.READY


def checked(old: ChannelState, new: ChannelState) -> ChannelState:
    """Return ``new`` if it may follow ``old``.

    Raises:
        LocalProtocolError: it may not.
    """
    if new in _FOLLOWING[old] or (new is ChannelState.CLOSED and old is not new):
        return new
    raise LocalProtocolError(f"a channel that is {old.name} cannot become {new.name}")
