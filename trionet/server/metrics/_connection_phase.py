"""The current phase of a connection, derived from the state of its channel and request.

A request has the phases in :mod:`trionet.metrics._request_times`.
"""

from __future__ import annotations

from enum import StrEnum

from ...net._channel import Channel
from ...net._channel_state import ChannelState, Unread
from ...net._selector import Selector
from .._connection import Connection
from .._request_channel import Request


class ConnectionPhase(StrEnum):
    """The phase of a connection: what the connection is doing or waiting for."""

    HANDSHAKE = "handshake"
    """The TLS handshake is in progress."""
    AUTHENTICATION = "authentication"
    """The peer is not authenticated yet."""
    IDLE = "idle"
    """There is no request."""
    STAGED = "staged"
    """A whole request has been read; the next poll returns it."""
    NO_MEMORY = "no memory"
    """A request is waiting for its share of queued.max.request.bytes."""
    THROTTLED = "throttled"
    """The response has been sent; nothing is read until the throttle ends."""
    QUEUE_FULL = "request queue full"
    """The processor reads nothing: it holds requests that exceed queued.max.requests."""
    MUTED = "muted"
    """Nothing is read because of an injected fault; the protocol has no such phase."""
    CLOSING = "closing"
    """The peer has disconnected; the requests it had sent are still handled."""
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
    """Return the phase of a server's channel.

    For a ready channel, this is the phase of the request in progress. Without a request, it is the
    reason why the channel is not being read, if there is one.

    Args:
        channel: an open channel.
        selector: the selector with which the channel is registered.
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
