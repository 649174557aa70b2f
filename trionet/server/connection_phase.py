"""What a connection is doing at the moment, in one word; read off what is kept for other reasons.

The phases of a request are those of its times (:mod:`trionet.metrics.request_times`).
"""

from __future__ import annotations

from enum import StrEnum

from ..net.channel import Channel
from ..net.channel_state import ChannelState
from ..net.mute_state import Unread
from ..net.selector import Selector
from .connection import Connection
from .request_channel import Request


class ConnectionPhase(StrEnum):
    """What a connection is doing."""

    HANDSHAKE = "handshake"
    """TLS is not done."""
    AUTHENTICATION = "authentication"
    """It has not proved its identity."""
    IDLE = "idle"
    """No request of it is there."""
    STAGED = "staged"
    """A whole request was read, and is handed over by the next poll."""
    NO_MEMORY = "no memory"
    """A request waits for its share of queued.max.request.bytes."""
    THROTTLED = "throttled"
    """The response has left; nothing is read until the throttle ends."""
    QUEUE_FULL = "request queue full"
    """Nothing is read by its processor until one of queued.max.requests is taken."""
    MUTED = "muted"
    """Nothing is read, for no reason of the protocol: a fault was injected."""
    CLOSING = "closing"
    """Its peer has gone; what that had sent is handed over."""
    REQUEST_QUEUE = "request queue"
    LOCAL = "local"
    REMOTE = "remote"
    RESPONSE_QUEUE = "response queue"
    RESPONSE_SEND = "response send"


_UNREAD = {
    Unread.CLOSING: ConnectionPhase.CLOSING,
    Unread.MUTED: ConnectionPhase.MUTED,
    Unread.NO_MEMORY: ConnectionPhase.NO_MEMORY,
    Unread.PAUSED: ConnectionPhase.QUEUE_FULL,
    Unread.RESPONSE_PENDING: ConnectionPhase.RESPONSE_SEND,
    Unread.THROTTLED: ConnectionPhase.THROTTLED,
}


def phase_of(channel: Channel, selector: Selector) -> ConnectionPhase:
    """The phase of a server's channel; without a request, the reason why it is not read.

    Args:
        channel: open.
        selector: the one that it is registered with.
    """
    connection: Connection = channel.attachment
    unread = selector.why_unread(channel)
    if channel.state is ChannelState.HANDSHAKING:
        return ConnectionPhase.HANDSHAKE
    if unread is Unread.PREPARING:
        return ConnectionPhase.AUTHENTICATION
    request: Request | None = connection.request
    if request is not None:
        return _phase_of_request(request)
    if unread is not None:
        return _UNREAD[unread]
    return ConnectionPhase.STAGED if channel.staged else ConnectionPhase.IDLE


def _phase_of_request(request: Request) -> ConnectionPhase:
    if request.picked_up_ns:
        return ConnectionPhase.RESPONSE_SEND
    if request.response is not None:
        return ConnectionPhase.RESPONSE_QUEUE
    if request.handled_ns:
        return ConnectionPhase.REMOTE
    if request.taken_ns > request.received_ns:
        return ConnectionPhase.LOCAL
    return ConnectionPhase.REQUEST_QUEUE
