"""What all mechanisms have in common, and what of a failure the client is told."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from ...errors import AuthenticationError, ConfigError

# Who is not known yet is read no further: an honest message with name and password is far smaller.
MESSAGE_BYTES_MAX = 4096
USER_NAME_CHARACTERS_MAX = 255


class CredentialsError(AuthenticationError):
    """The client's message or credentials are not valid, and it is told no more than that.

    (Kafka: SaslException. The text of a plain AuthenticationError does reach the client, as that of
    a SaslAuthenticationException does.)
    """


def require(mechanism: str, package: str) -> Any:
    """The library that a mechanism is made with.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(f"{mechanism} needs a package: pip install 'trionet[sasl]'") from None


def check_message_size(mechanism: str, message: bytes, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
    """Refuse a message that would cost the loop more than a look at its size.

    Raises:
        CredentialsError: it is too large.
    """
    if len(message) > bytes_max:
        raise CredentialsError(
            f"the {mechanism} message has {len(message)} bytes; allowed: {bytes_max}"
        )


def check_user_name_size(mechanism: str, user_name: str) -> None:
    """Refuse a name that no user of ours can have.

    Raises:
        CredentialsError: it is too long.
    """
    if len(user_name) > USER_NAME_CHARACTERS_MAX:
        raise CredentialsError(
            f"the user name in the {mechanism} message has {len(user_name)} characters; allowed:"
            f" {USER_NAME_CHARACTERS_MAX}"
        )


class SaslServer:
    """One authentication in progress.

    Attributes:
        is_complete: whether the client has proved who it is.
        authorization_id: who it is; of meaning once complete.
        expires_ms: when its credential expires, in ms since the epoch; None for never.
    """

    __slots__ = ("authorization_id", "expires_ms", "is_complete")

    def __init__(self) -> None:
        self.is_complete = False
        self.authorization_id = ""
        self.expires_ms: int | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Take the client's next message.

        Args:
            token: the message.
            now_ms: milliseconds since the epoch.

        Returns:
            The answer, which may be empty.

        Raises:
            CredentialsError: it failed, and why is not for the client.
            AuthenticationError: it failed, and the text is for the client.
        """
        raise NotImplementedError


class SaslClient(Protocol):
    """One authentication of ours in progress.

    Attributes:
        is_complete: whether all is said, and the server has proved what it can prove.
    """

    is_complete: bool

    def first(self) -> bytes:
        """The first message, which is the client's in all mechanisms here."""
        ...

    def respond(self, challenge: bytes) -> bytes:
        """Take the server's next message.

        Returns:
            The answer; there is none, and it is empty, once this is complete.

        Raises:
            AuthenticationError: the server breaks the rules, or is not who it has to be.
        """
        ...


Mechanism = Callable[[], SaslServer]
"""Begins an authentication."""
