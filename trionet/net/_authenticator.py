"""The interface of authenticators, which determine the identity of a peer (Kafka: Authenticator).

An authenticator receives the peer's whole frames until it is done, and returns the responses. It
does no I/O and reads no clock. Kafka's own exchange and messages are implemented in upper layers.
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
    """The progress of an authentication after a frame."""

    GOES_ON = "another frame is expected"
    AUTHENTICATED = "the peer is authenticated"
    REAUTHENTICATED = "the peer is authenticated again"
    FAILED = "the connection must be closed"


class Gate(Enum):
    """What to do with a frame of an authenticated peer."""

    PASS = "it is a request"  # noqa: S105 - no password
    AUTHENTICATE = "it starts a re-authentication: pass it to the authenticator"
    EXPIRED = "the session has expired: close the connection"


@attrs.frozen
class Step:
    """The result of one frame of an authentication.

    Attributes:
        progress: the progress of the authentication.
        send: the response; None for none. After a failure it is sent before the close.
        delay_seconds: how long to delay the response and the close (KIP-306: an instant response
            would invite the next attempt). Data that the peer sends meanwhile is ignored; if it
            disconnects, the connection is closed at once.
        linger_seconds: how long the connection stays open after the response to a failure, so that
            the peer can read it and disconnect first. Some clients lose the response if the end of
            the stream follows at once (kafka-python 3), and closing a socket with unread data
            resets the connection, which any client may notice before the response.
        close_reason: why to close the connection, after a failure.
        detail: what failed, for the log; not for the peer.
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
        """Create the step of a failed authentication, which closes the connection."""
        return cls(Progress.FAILED, send, delay_seconds, linger_seconds, reason, detail)


class Authenticator(Protocol):
    """Authenticates the peer of one connection.

    Attributes:
        frame_bytes_max: the largest frame to accept until it is done, in bytes, or
            :data:`._framing.UNLIMITED`.
        is_complete: whether frames are requests; False again during a re-authentication.
        principal: the peer; anonymous until first authenticated.
        session_expires_at: the deadline for the next re-authentication, in seconds of the loop's
            clock; None for none.
        can_reauthenticate: whether the peer's exchange supports re-authentication.
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
        """Process the next frame; never raises because of the peer's behaviour.

        Args:
            frame: the frame, without its size prefix.
            now: the time, in seconds of the loop's clock.
            now_ms: the time of day, in milliseconds since the epoch, by which credentials expire.
        """
        ...

    def gate(self, frame: Frame, now: float) -> Gate:
        """Decide what to do with a frame received while :attr:`is_complete`.

        Called for each request.
        """
        ...


class Initiator(Authenticator, Protocol):
    """An authenticator that sends first: the client's side of an exchange.

    Attributes:
        renew_at: the time from which requests must wait for a re-authentication, in seconds of
            the loop's clock; ``math.inf`` for never (KIP-368).
    """

    renew_at: float

    def begin(self, now: float) -> Step:
        """Start the exchange on a new connection or, if it is complete, a re-authentication.

        Args:
            now: the time, in seconds of the loop's clock.
        """
        ...

    def lets_pass(self, frame: Frame) -> bool:
        """Whether a frame received during a re-authentication is not part of it.

        Such a frame is the response to an earlier request.
        """
        ...
