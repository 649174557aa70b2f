"""The interfaces and checks that all mechanisms share."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from ...errors import AuthenticationError, ConfigError

# Unauthenticated clients may not send more: a normal message with name and password is far smaller.
MESSAGE_BYTES_MAX = 4096
USER_NAME_CHARACTERS_MAX = 255


class CredentialsError(AuthenticationError):
    """Raised if the client's message or credentials are invalid; the client gets no details.

    (Kafka: SaslException. The text of a plain AuthenticationError is sent to the client, like the
    text of a SaslAuthenticationException.)
    """


def require(mechanism: str, package: str) -> Any:
    """Import the library that a mechanism needs.

    Raises:
        ConfigError: the library is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(f"{mechanism} requires a package: pip install 'trionet[sasl]'") from None


def check_message_size(mechanism: str, message: bytes, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
    """Reject a message that is too large to be worth parsing.

    Raises:
        CredentialsError: the message is too large.
    """
    if len(message) > bytes_max:
        raise CredentialsError(
            f"the {mechanism} message has {len(message)} bytes; at most {bytes_max} are allowed"
        )


def check_user_name_size(mechanism: str, user_name: str) -> None:
    """Reject a user name that is too long to be valid.

    Raises:
        CredentialsError: the name is too long.
    """
    if len(user_name) > USER_NAME_CHARACTERS_MAX:
        raise CredentialsError(
            f"the user name in the {mechanism} message has {len(user_name)} characters; at most"
            f" {USER_NAME_CHARACTERS_MAX} are allowed"
        )


class SaslServer:
    """The server side of one authentication.

    Attributes:
        is_complete: whether the client is authenticated.
        authorization_id: the authenticated identity; valid if :attr:`is_complete` is true.
        expires_ms: when the client's credential expires, in ms since the epoch; None for never.
    """

    is_complete = False
    authorization_id = ""
    expires_ms: int | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Process the client's next message.

        Args:
            token: the message.
            now_ms: the wall-clock time, in milliseconds since the epoch.

        Returns:
            The response, which may be empty.

        Raises:
            CredentialsError: authentication failed; the text is not sent to the client.
            AuthenticationError: authentication failed; the text is sent to the client.
        """
        raise NotImplementedError


class SaslClient(Protocol):
    """The client side of one authentication.

    Attributes:
        is_complete: whether the exchange is complete, including the server's proof of its identity
            if the mechanism has one.
    """

    is_complete: bool

    def first(self) -> bytes:
        """Return the first message; in every mechanism here, the client sends first."""

    def respond(self, challenge: bytes) -> bytes:
        """Process the server's next message.

        Returns:
            The response. After the server's last message, it is empty and must not be sent.

        Raises:
            AuthenticationError: the server violates the protocol, rejects the client, or cannot
                prove its identity.
        """


Mechanism = Callable[[], SaslServer]
"""Starts the server side of an authentication."""
