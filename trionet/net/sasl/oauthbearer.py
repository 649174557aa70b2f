"""OAUTHBEARER (RFC 7628): a signed token in place of a password (Kafka: OAuthBearerSaslServer).

A token that is refused is answered with the reason as JSON; the client acknowledges that with one
byte, and the exchange fails with the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import attrs

from ...errors import AuthenticationError
from .mechanism import CredentialsError, check_message_size

NAME = "OAUTHBEARER"

# Tokens with many claims take some kilobytes; to read JSON of this size takes some milliseconds.
MESSAGE_BYTES_MAX = 64 * 1024

_ACKNOWLEDGEMENT = b"\x01"
_NAME = r"(?:[\x01-\x7f](?<![,=])|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_INITIAL = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01".encode()
)
_AUTHORIZATION = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


@attrs.frozen
class Token:
    """What a valid token says.

    Attributes:
        principal_name: who its bearer is.
        expires_ms: when it expires, in ms since the epoch.
        scopes: what it allows.
    """

    principal_name: str
    expires_ms: int
    scopes: frozenset[str] = frozenset()


class TokenError(Exception):
    """A token is not valid.

    Args:
        detail: why, for the log.
        status: what the client is told: ``invalid_token`` or ``insufficient_scope``.
        scope: the scopes that would do, separated by blanks.
    """

    def __init__(self, detail: str, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.scope = scope


Validate = Callable[[str, int], Token]
"""``(token, milliseconds since the epoch)``: what the token says, or a TokenError."""


class OAuthBearerServer:
    """One authentication; see :class:`.mechanism.SaslServer`.

    Args:
        validate: decides about the token; its TokenError is the cause of the final error.
    """

    __slots__ = ("_error", "_refused", "_validate", "authorization_id", "expires_ms", "is_complete")

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._error = ""
        self._refused: TokenError | None = None
        self.is_complete = False
        self.authorization_id = ""
        self.expires_ms: int | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        if self.is_complete:
            raise CredentialsError("a message after the end of the authentication")
        if self._error:
            if token == _ACKNOWLEDGEMENT:
                raise AuthenticationError(self._error) from self._refused
            raise CredentialsError(f"an unexpected message after {self._error}")
        check_message_size(NAME, token, MESSAGE_BYTES_MAX)
        authorization_id, bearer = parse_initial_message(token)
        try:
            found = self._validate(bearer, now_ms)
        except TokenError as error:
            self._refused = error
            body = {"status": error.status} | ({"scope": error.scope} if error.scope else {})
            self._error = json.dumps(body, separators=(",", ":"))
            return self._error.encode()
        if authorization_id not in ("", found.principal_name):
            raise AuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id})"
                f" that is different from the token's principal name ({found.principal_name})"
            )
        self.authorization_id = found.principal_name
        self.expires_ms = found.expires_ms
        self.is_complete = True
        return b""


def parse_initial_message(message: bytes) -> tuple[str, str]:
    """Read the client's first message.

    Returns:
        The authorization id, which may be empty, and the bearer token.

    Raises:
        CredentialsError: the message has another form.
    """
    found = _INITIAL.fullmatch(message)
    if found is None:
        raise CredentialsError("the OAUTHBEARER message has another form than RFC 7628 gives it")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].decode().split("\x01") if pair)
    authorization = _AUTHORIZATION.fullmatch(pairs.get("auth", ""))
    if authorization is None or authorization["scheme"].lower() != "bearer":
        raise CredentialsError("the OAUTHBEARER message has no bearer token")
    name = (found["authorization_id"] or b"").decode()
    return name.replace("=2C", ",").replace("=3D", "="), authorization["token"]
