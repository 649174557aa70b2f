"""The interface of authenticators, which determine the identity of a peer (Kafka: Authenticator).

An authenticator receives each frame from the peer until authentication is complete, and returns the
responses. It does no I/O and reads no clock. Kafka's own authentication messages are
implemented in higher layers.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import attrs

from ._principal import Principal
from .wire._close_reason import CloseReason
from .wire._framing import Frame
from .wire._transmission import Send


class Progress(Enum):
    """The progress of authentication after a frame."""

    GOES_ON = "another frame is expected"
    AUTHENTICATED = "the peer is authenticated"
    REAUTHENTICATED = "the peer is authenticated again"
    FAILED = "the connection must be closed"


class Gate(Enum):
    """What to do with a frame from an authenticated peer."""

    PASS = "it is a request"  # noqa: S105 - no password
    AUTHENTICATE = "it starts a re-authentication: pass it to the authenticator"
    EXPIRED = "the session has expired: close the connection"


@attrs.frozen
class Step:
    """The outcome of processing one authentication frame.

    Attributes:
        progress: whether authentication continues, succeeded or failed.
        send: the response, or None. After a failure it is sent before the connection is closed.
        delay_seconds: how long to delay the response and the close (KIP-306: an instant response
            would invite the next attempt). Data that the peer sends meanwhile is ignored; if the
            peer disconnects, the connection is closed immediately.
        linger_seconds: how long the connection stays open after an error response, so that the peer
            can read the response and disconnect first. Some clients (kafka-python 3) lose the
            response if the end of the stream follows immediately. Closing a socket with unread data
            also resets the connection, and any client may see the reset before the response.
        close_reason: the reason for closing the connection after a failure.
        detail: a description of the failure for the log; never sent to the peer.
    """

    progress: Progress = Progress.GOES_ON
    send: Send | None = None
    delay_seconds: float = 0.0
    linger_seconds: float = 0.0
    close_reason: CloseReason | None = None
    detail: str = ""

    @classmethod
    def failed(
        cls,
        reason: CloseReason,
        detail: str,
        *,
        send: Send | None = None,
        delay_seconds: float = 0.0,
        linger_seconds: float = 0.0,
    ) -> Step:
        """Return the step for a failed authentication, which closes the connection."""
        return cls(Progress.FAILED, send, delay_seconds, linger_seconds, reason, detail)


class Authenticator(Protocol):
    """An object that authenticates the peer of one connection.

    Attributes:
        frame_bytes_max: the size of the largest frame accepted during authentication, in bytes, or
            :data:`.UNLIMITED`.
        is_complete: whether the peer is authenticated; False during a re-authentication.
        principal: the peer's principal; anonymous until the peer is first authenticated.
        session_expires_at: the deadline for the next re-authentication, in seconds on the loop's
            clock; None if there is no deadline.
        can_reauthenticate: whether the peer supports re-authentication (KIP-368).
        is_reauthenticating: whether a re-authentication is in progress.
        reauthentication_seconds: how long the last re-authentication took.
    """

    frame_bytes_max: int
    is_complete: bool
    principal: Principal
    session_expires_at: float | None
    can_reauthenticate: bool
    reauthentication_seconds: float

    @property
    def is_reauthenticating(self) -> bool: ...

    def receive(self, frame: Frame, now: float, now_ms: int) -> Step:
        """Process the next frame. Invalid data results in a failed Step rather than an exception.

        Args:
            frame: the frame, without its size prefix.
            now: the current time, in seconds on the loop's clock.
            now_ms: the wall-clock time, in milliseconds since the epoch, for the expiry of
                credentials.
        """
        ...

    def gate(self, frame: Frame, now: float) -> Gate:
        """Decide how to handle a frame received while :attr:`is_complete` is true.

        Called for each request.
        """
        ...


class Initiator(Authenticator, Protocol):
    """An authenticator that sends the first message: the client side of an exchange.

    Attributes:
        renew_at: when the next request must first wait for re-authentication, in seconds on the
            loop's clock; ``math.inf`` for never (KIP-368).
    """

    renew_at: float

    def begin(self, now: float) -> Step:
        """Start the first authentication or, if :attr:`is_complete` is true, a re-authentication.

        Args:
            now: the current time, in seconds on the loop's clock.
        """
        ...

    def lets_pass(self, frame: Frame) -> bool:
        """Return whether a frame is the response to a request sent before re-authentication began.

        Any other frame is part of the re-authentication in progress.
        """
        ...
