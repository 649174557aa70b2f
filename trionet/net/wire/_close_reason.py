"""The reasons for closing a channel, which metrics count and the log shows."""

from __future__ import annotations

from enum import Enum


class CloseReason(Enum):
    """A reason why a channel was closed (Kafka spreads this over ChannelState and log lines)."""

    NOT_CONNECTED = "the connection could not be established"
    PEER_CLOSED = "the peer closed the connection"
    PEER_CLOSED_IN_FRAME = "the peer closed the connection in the middle of a frame"
    PEER_RESET = "the peer reset the connection"
    INVALID_RECEIVE = "the peer announced an invalid or oversized frame"
    INVALID_REQUEST = "the peer's request is malformed or not allowed"
    UNSUPPORTED_VERSION = "the peer requested an API or a version that is not supported"
    TLS_FAILED = "the peer violated the TLS protocol after the handshake"
    AUTHENTICATION_FAILED = "the TLS or SASL authentication of the peer failed"
    AUTHENTICATION_TIMEOUT = "the peer did not finish its TLS handshake or SASL exchange in time"
    ILLEGAL_SASL_STATE = "the peer's message is not allowed at this point of the SASL exchange"
    SESSION_EXPIRED = "the peer did not re-authenticate before its SASL session expired"
    SEND_FAILED = "a request or a response could not be written"
    RESPONSE_TOO_LARGE = "the response would have been larger than response.max.bytes"
    SECOND_SEND = "a second Send was started while one was in progress"
    IDLE = "nothing was received or sent for connections.max.idle.ms"
    EXCESS_CONNECTION = "closed to make room: there were more connections than max.connections"
    CLOSE_RESPONSE = "the handler asked for the connection to be closed"
    HANDLER_FAILED = "the handler raised an exception"
    REGISTER_FAILED = "the accepted socket could not be set up"
    ERROR = "an unexpected error in a step of this channel"
    LOCAL_CLOSE = "closed by its owner"
    SERVER_SHUTDOWN = "the server is stopping"


BY_PEER = frozenset(
    (
        CloseReason.PEER_CLOSED,
        CloseReason.PEER_CLOSED_IN_FRAME,
        CloseReason.PEER_RESET,
        CloseReason.SEND_FAILED,
    )
)
"""The close reasons that the peer causes; clients may disconnect at any time."""
