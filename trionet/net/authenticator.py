"""What a channel needs of whoever decides who its peer is (Kafka: Authenticator).

An authenticator is given the peer's whole frames until it is done, and says what to answer. It does
no I/O and has no clock. Kafka's own exchange, with its messages, is plugged in from above.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import attrs

from .close_reason import CloseReason
from .framing import Frame
from .principal import Principal
from .transmission import Send


class Progress(Enum):
    """Where an authentication stands after a frame."""

    GOES_ON = "another frame is awaited"
    AUTHENTICATED = "the peer has proved who it is"
    REAUTHENTICATED = "the peer has proved once more who it is"
    FAILED = "the connection is to be closed"


class Gate(Enum):
    """What to do with a frame of an authenticated peer."""

    PASS = "it is a request"  # noqa: S105 - no password
    AUTHENTICATE = "it begins a re-authentication: give it to the authenticator"
    EXPIRED = "the session is over: close the connection"


@attrs.frozen
class Step:
    """What came of one frame.

    Attributes:
        progress: where the authentication stands.
        send: what to answer; None for nothing. After a failure it leaves before the close.
        delay_seconds: how long to hold the answer and the close back (KIP-306: an instant answer
            would invite the next attempt). Nothing that comes meanwhile is looked at; a peer that
            leaves is let go at once.
        linger_seconds: how long the connection stays open behind the answer to a failure, for the
            peer to read it and to leave first. An end of the stream right behind it makes some
            clients forget the answer (kafka-python 3), and unread bytes make a reset of it, which
            any client may hear of first.
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
        """The end of an authentication, and of its connection."""
        return cls(Progress.FAILED, send, delay_seconds, linger_seconds, reason, detail)


class Authenticator(Protocol):
    """Decides about one connection.

    Attributes:
        frame_bytes_max: the largest frame to accept until it is done, in bytes, or
            :data:`.framing.UNLIMITED`.
        is_complete: whether frames are requests now; false again during a re-authentication.
        principal: who the peer is; anonymous until it is done for the first time.
        session_expires_at: when the peer must have authenticated again, in seconds of the loop's
            clock; None for never.
        can_reauthenticate: whether the peer's way of authenticating lets it do that again.
        is_reauthenticating: the peer proves once more who it is.
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
        """Take the next frame; never raises for what the peer did.

        Args:
            frame: without its size prefix.
            now: seconds of the loop's clock.
            now_ms: milliseconds since the epoch, which is what credentials expire by.
        """
        ...

    def gate(self, frame: Frame, now: float) -> Gate:
        """What to do with a frame that came while :attr:`is_complete`; runs for each request."""
        ...


class Initiator(Authenticator, Protocol):
    """An authenticator that speaks first: the client's side of an exchange.

    Attributes:
        renew_at: from when on a request has to wait for another authentication, in seconds of the
            loop's clock; ``math.inf`` for never (KIP-368).
    """

    renew_at: float

    def begin(self, now: float) -> Step:
        """What to say first, on a new connection or, when it is complete, once more.

        Args:
            now: seconds of the loop's clock.
        """
        ...

    def lets_pass(self, frame: Frame) -> bool:
        """Whether a frame that comes during a re-authentication is no part of it.

        It answers a request of before.
        """
        ...
