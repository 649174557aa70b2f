"""OAUTHBEARER from the client's side (RFC 7628; Kafka: OAuthBearerSaslClient; KIP-255, KIP-342)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import AuthenticationError, ConfigError

_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_RESERVED = "auth"
# What a client answers to the reason why it is refused.
_ACKNOWLEDGEMENT = b"\x01"


def check_token(token: str, extensions: Mapping[str, str]) -> None:
    """Refuse what would not arrive as it is.

    Raises:
        ConfigError: the token, or an extension, has a character that is not allowed; never quotes
            the token.
    """
    if _TOKEN.fullmatch(token) is None:
        raise ConfigError(
            "the OAUTHBEARER token is empty or has a character that is not allowed; allowed:"
            " letters, digits and -_~+/., perhaps with = at its end (RFC 6750)"
        )
    for name, value in extensions.items():
        if _EXTENSION_NAME.fullmatch(name) is None or name == _RESERVED:
            raise ConfigError(
                f"the SASL extension {name!r} is not allowed; allowed: letters, and not auth"
            )
        if _EXTENSION_VALUE.fullmatch(value) is None:
            raise ConfigError(
                f"the SASL extension {name} has a value that is not allowed; allowed: characters"
                " of ASCII that can be printed, and blanks"
            )


class OAuthBearerClient:
    """One authentication of ours; see :class:`.mechanism.SaslClient`.

    Args:
        token: the proof, as :func:`check_token` allows it.
        extensions: SASL extensions that go with it.
    """

    __slots__ = ("_message", "_refusal", "is_complete")

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
            raise AuthenticationError(f"the broker refuses the token: {self._refusal}")
        if challenge:
            # The broker says no for good when this has arrived.
            self._refusal = challenge.decode("utf-8", "replace")
            return _ACKNOWLEDGEMENT
        self.is_complete = True
        return b""
