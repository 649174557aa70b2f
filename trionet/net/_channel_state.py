"""The life cycle of a channel: its states from connect to close, and their transitions.

(Kafka: ChannelState, KafkaChannel.prepare, Selector.closingChannels and delayedClosingChannels.)

::

    CONNECTING -> HANDSHAKING -> AUTHENTICATING -> READY -> CLOSING
                                   |         ^______|
                                   v
                                 FAILED -> LINGERING

A channel starts in the first state that applies to it: an accepted plaintext connection without
SASL is READY at once. READY returns to AUTHENTICATING when a session is renewed (KIP-368). CLOSED
may follow every other state, and is final.

Kafka spreads this over ``ready()``, ``isConnected()``, two maps of the Selector and a ChannelState
that only describes how a channel ended. Here a CloseReason holds *why* a channel ended, and its
state *when* in its life cycle.
"""

# Compiled by mypyc.

from __future__ import annotations

from enum import IntEnum

from ..errors import LocalProtocolError


class ChannelState(IntEnum):
    """A stage in the life cycle of a channel."""

    CONNECTING = 0
    """An outgoing connection is being established."""
    HANDSHAKING = 1
    """The TLS handshake is in progress."""
    AUTHENTICATING = 2
    """Frames and Sends belong to the SASL exchange."""
    READY = 3
    """Frames are requests or responses (Kafka: KafkaChannel.ready)."""
    FAILED = 4
    """The authentication failed; the response with the error is delayed (KIP-306)."""
    LINGERING = 5
    """The response to a failed authentication is being sent; the peer has some time to read it and
    to disconnect first."""
    CLOSING = 6
    """The peer has disconnected; what it had sent is returned, one frame per poll."""
    CLOSED = 7
    """The socket is closed; the channel's ``close_reason`` holds the reason."""


_S = ChannelState
# The states that may follow each state, in addition to CLOSED.
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
    """Return the first state in which a channel has something left to do.

    Args:
        connects: whether an outgoing connection must be established.
        has_tls: whether a TLS handshake must be done.
        authenticates: whether SASL must be done.
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
    if new in _FOLLOWING[old] or (new is ChannelState.CLOSED and old is not new):
        return new
    raise LocalProtocolError(f"a channel cannot change from {old.name} to {new.name}")
