"""PLAIN (RFC 4616): user name and password in clear text (Kafka: PlainSaslServer).

Without TLS, anyone on the network path can read the password.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

from ...errors import AuthenticationError
from ._mechanism import CredentialsError, SaslServer, check_message_size, check_user_name_size
from ._names import PLAIN

NAME = PLAIN

Verify = Callable[[str, str], bool]
"""``(user name, password)`` -> whether the password is correct."""


class PlainServer(SaslServer):
    """The server side of PLAIN; see :class:`._mechanism.SaslServer`.

    Args:
        verify: returns whether the password is correct. An exception also makes authentication
            fail; its text is not sent to the client.
    """

    def __init__(self, verify: Verify) -> None:
        self._verify = verify

    def respond(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002 - PLAIN has no time
        if self.is_complete:
            raise CredentialsError("unexpected message after authentication completed")
        check_message_size(NAME, token)
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise CredentialsError("the SASL/PLAIN message is not valid UTF-8") from None
        if len(parts) != 3:
            raise CredentialsError(f"the SASL/PLAIN message has {len(parts)} parts instead of 3")
        authorization_id, user_name, password = parts
        check_user_name_size(NAME, user_name)
        if not user_name:
            raise AuthenticationError("Authentication failed: username not specified")
        if not password:
            raise AuthenticationError("Authentication failed: password not specified")
        if not self._is_valid(user_name, password):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user_name):
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        self.authorization_id = user_name
        self.is_complete = True
        return b""

    def _is_valid(self, user_name: str, password: str) -> bool:
        try:
            return self._verify(user_name, password)
        except Exception as error:  # boundary: the client must not see a verifier's error
            raise CredentialsError(f"the verifier failed: {error!r}") from error


class PlainClient:
    """The client side of PLAIN; see :class:`._mechanism.SaslClient`.

    Args:
        user_name: the user to authenticate as.
        password: the password of the user.
    """

    def __init__(self, user_name: str, password: str) -> None:
        self._message = f"\0{user_name}\0{password}".encode()
        self.is_complete = False

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes:
        if challenge:
            raise AuthenticationError("the broker sent a challenge, but PLAIN has no challenges")
        self.is_complete = True
        return b""


def verify_with(passwords: Mapping[str, str]) -> Verify:
    """Return a verifier for a fixed set of users, with constant-time comparison of passwords.

    Args:
        passwords: the passwords, keyed by user name.
    """

    def verify(user_name: str, password: str) -> bool:
        expected = passwords.get(user_name, "")
        is_equal = hmac.compare_digest(expected.encode(), password.encode())
        return is_equal and user_name in passwords

    return verify
