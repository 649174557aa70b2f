"""The life cycle of a channel: its states from connect to close, and their transitions.

(Kafka: ChannelState, KafkaChannel.prepare, Selector.closingChannels and delayedClosingChannels.)

::

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
"""

# Compiled by mypyc.

from __future__ import annotations

from enum import IntEnum
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
