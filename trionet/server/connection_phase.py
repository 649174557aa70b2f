"""What a connection is doing at the moment, in one word; read off what is there for other reasons.

The phases of a request are those of its times (:mod:`trionet.metrics.request_times`).
"""

from __future__ import annotations

from enum import StrEnum

from ..net.channel import Channel
from ..net.mute_state import MuteState
from .connection import Connection
from .request_channel import Request


class ConnectionPhase(StrEnum):
    """What a connection is doing."""

    HANDSHAKE = "handshake"
    """TLS is not done."""
    AUTHENTICATION = "authentication"
    """It has not said who it is."""
    IDLE = "idle"
    """Nothing is asked."""
    STAGED = "staged"
    """A whole request was read, and is handed over by the next poll."""
    NO_MEMORY = "no memory"
    """A request waits for its share of queued.max.request.bytes."""
    THROTTLED = "throttled"
    """The answer has left; nothing is read until the throttle ends."""
    REQUEST_QUEUE = "request queue"
    LOCAL = "local"
    REMOTE = "remote"
    RESPONSE_QUEUE = "response queue"
    RESPONSE_SEND = "response send"


_THROTTLED = (MuteState.MUTED_AND_THROTTLED, MuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING)


def phase_of(channel: Channel) -> ConnectionPhase:
    """The phase of a server's channel."""
    connection: Connection = channel.attachment
    if channel.is_shaking_hands:
        return ConnectionPhase.HANDSHAKE
    if not channel.is_ready:
        return ConnectionPhase.AUTHENTICATION
    request: Request | None = connection.request
    if request is not None:
        return _phase_of_request(request)
    if connection.mute_state in _THROTTLED:
        return ConnectionPhase.THROTTLED
    if channel.is_out_of_memory:
        return ConnectionPhase.NO_MEMORY
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
