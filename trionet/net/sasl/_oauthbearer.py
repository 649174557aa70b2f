"""OAUTHBEARER (RFC 7628): authentication with a bearer token instead of a password.

(Kafka: OAuthBearerSaslServer, OAuthBearerSaslClient; KIP-255, KIP-342.)

The server responds to an invalid token with an error status in JSON; the client acknowledges it
with a single byte (0x01), and authentication then fails with that JSON as the error text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import attrs

from ...errors import AuthenticationError, ConfigError
from ._mechanism import CredentialsError, SaslServer, check_message_size
from ._names import OAUTHBEARER

NAME = OAUTHBEARER

# Tokens with many claims take some kilobytes; to read JSON of this size takes some milliseconds.
MESSAGE_BYTES_MAX = 64 * 1024

# A client's response to the reason of its rejection.
_ACKNOWLEDGEMENT = b"\x01"
_RESERVED = "auth"
_BEARER = r"[-_~+/.a-zA-Z0-9]+=*"
_EXTENSION_NAME = r"[A-Za-z]+"
_EXTENSION_VALUE = r"[\x21-\x7e \t\r\n]+"
_NAME = r"(?:[\x01-\x7f](?<![,=])|=2C|=3D)+"
_PAIR = rf"{_EXTENSION_NAME}={_EXTENSION_VALUE}\x01"
_INITIAL = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01".encode()
)
_AUTHORIZATION = re.compile(rf"(?P<scheme>\w+) +(?P<token>{_BEARER})")


@attrs.frozen
class Token:
    """The claims of a valid token.

    Attributes:
        principal_name: the name of the bearer.
        expires_ms: when the token expires, in ms since the epoch.
        scopes: the scopes that the token grants.
    """

    principal_name: str
    expires_ms: int
    scopes: frozenset[str] = frozenset()


class TokenError(Exception):
    """Raised for an invalid token.

    Args:
        detail: the reason, for the log.
        status: the status for the client: ``invalid_token`` or ``insufficient_scope``.
        scope: the required scopes, separated by spaces.
    """

    def __init__(self, detail: str, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.scope = scope


Validate = Callable[[str, int], Token]
"""``(token, milliseconds since the epoch) -> Token``; raises TokenError for an invalid token."""


class OAuthBearerServer(SaslServer):
    """The server side of OAUTHBEARER; see :class:`._mechanism.SaslServer`.

    Args:
        validate: checks the token; its TokenError is the cause of the final error.
    """

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._error = ""
        self._refused: TokenError | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        if self.is_complete:
            raise CredentialsError("unexpected message after authentication completed")
        if self._error:
            if token == _ACKNOWLEDGEMENT:
                raise AuthenticationError(self._error) from self._refused
            raise CredentialsError(f"the client must acknowledge the error {self._error}")
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
    """Parse the client's first message.

    Returns:
        The authorization id, which may be empty, and the bearer token.

    Raises:
        CredentialsError: the message is malformed.
    """
    found = _INITIAL.fullmatch(message)
    if found is None:
        raise CredentialsError("the OAUTHBEARER message is malformed (RFC 7628)")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].decode().split("\x01") if pair)
    authorization = _AUTHORIZATION.fullmatch(pairs.get(_RESERVED, ""))
    if authorization is None or authorization["scheme"].lower() != "bearer":
        raise CredentialsError("the OAUTHBEARER message contains no bearer token")
    name = (found["authorization_id"] or b"").decode()
    return name.replace("=2C", ",").replace("=3D", "="), authorization["token"]


def check_token(token: str, extensions: Mapping[str, str]) -> None:
    """Reject a token or extensions that the protocol cannot carry.

    Raises:
        ConfigError: the token, or the name or value of an extension, is not allowed; the text never
            quotes the token itself.
    """
    if re.fullmatch(_BEARER, token) is None:
        raise ConfigError(
            "the OAUTHBEARER token is empty or contains an invalid character; allowed: letters,"
            " digits and -_~+/., optionally followed by = (RFC 6750)"
        )
    for name, value in extensions.items():
        if re.fullmatch(_EXTENSION_NAME, name) is None or name == _RESERVED:
            raise ConfigError(
                f"invalid SASL extension name {name!r}; allowed: letters, but not auth"
            )
        if re.fullmatch(_EXTENSION_VALUE, value) is None:
            raise ConfigError(
                f"the value of the SASL extension {name} contains an invalid character; allowed:"
                " printable ASCII characters and whitespace"
            )


class OAuthBearerClient:
    """The client side of OAUTHBEARER; see :class:`._mechanism.SaslClient`.

    Args:
        token: a bearer token that :func:`check_token` accepts.
        extensions: SASL extensions to send with it.
    """

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        pairs = {_RESERVED: f"Bearer {token}", **extensions}
        text = "".join(f"{name}={value}\x01" for name, value in pairs.items())
        self._message = f"n,,\x01{text}\x01".encode()
        self._refusal = ""
        self.is_complete = False

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes:
        if self._refusal:
            raise AuthenticationError(f"the broker rejected the token: {self._refusal}")
        if challenge:
            # The broker sends its final error after this acknowledgement.
            self._refusal = challenge.decode("utf-8", "replace")
            return _ACKNOWLEDGEMENT
        self.is_complete = True
        return b""
