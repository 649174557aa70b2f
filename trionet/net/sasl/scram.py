"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677; Kafka: ScramSaslServer).

The exchange is the library ``scramp``'s. Credentials are salted here, because Kafka's clients take
a password's UTF-8 bytes as they are, where the library prepares them first (RFC 4013).

An unknown user gets the same first response as a known one, with a salt that does not change, over
restarts either if the server keeps its secret, so that names cannot be tried out. Kafka ends the
exchange there.

librdkafka before 2.6.1, which is the kcat of many systems, repeats its own part of the nonce before
the whole one. It is let in, as by Kafka 3.9; what the server made up is part of the proof anyway.

The library prepares the name as RFC 4013 says before it looks for the user. That takes more time
than the rest, and for some texts more than their length tells: so sizes are checked before.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Callable
from typing import Any

import attrs

from ...errors import ConfigError
from .mechanism import CredentialsError, check_message_size, check_user_name_size

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms and their hash functions."""

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384
SALT_BYTES = 32

_FINAL_NONCE = re.compile(r"c=[^,]*,r=([^,]*),")
SECRET_BYTES = 32
# Of servers that are given none.
_SECRET = os.urandom(SECRET_BYTES)


@attrs.frozen
class ScramCredential:
    """What a server keeps of a password: enough to check it, not to use it.

    Attributes:
        salt: at least 12 bytes.
        stored_key: checks the client's proof.
        server_key: proves the server.
        iterations: 4096 to 16384, as in Kafka.
    """

    salt: bytes
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)
    iterations: int


Lookup = Callable[[str], ScramCredential | None]
"""A user's credential for one mechanism, None for an unknown user."""


def salted(
    mechanism: str,
    password: str,
    *,
    salt: bytes | None = None,
    iterations: int = ITERATIONS_MIN,
) -> ScramCredential:
    """Make a credential of a password; takes milliseconds, so call it in a thread.

    Args:
        mechanism: of :data:`HASHES`.
        password: as the user types it.
        salt: at random by default.
        iterations: 4096 to 16384.
    """
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    key = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return from_salted_password(mechanism, key, salt, iterations)


def from_salted_password(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Make a credential of what a client salted itself (KIP-554)."""
    digest = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return ScramCredential(
        salt,
        hashlib.new(digest, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", digest),
        iterations,
    )


class ScramServer:
    """One authentication; see :class:`.mechanism.SaslServer`.

    Args:
        mechanism: of :data:`HASHES`.
        lookup: the credentials.
        secret: what the salts of unknown users are made from.

    Raises:
        ConfigError: the library is not installed.
    """

    __slots__ = (
        "_lookup",
        "_mechanism",
        "_secret",
        "_server",
        "authorization_id",
        "expires_ms",
        "is_complete",
    )

    def __init__(self, mechanism: str, lookup: Lookup, secret: bytes = _SECRET) -> None:
        self._mechanism = mechanism
        self._lookup = lookup
        self._secret = secret
        self._server: Any = None
        self.is_complete = False
        self.authorization_id = ""
        self.expires_ms: int | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002 - SCRAM has no time
        self.is_complete = False
        check_message_size(self._mechanism, token)
        scramp = require_scramp()
        try:
            if self._server is None:
                first = token.decode()
                check_user_name_size(self._mechanism, _name_in(first))
                mechanism = scramp.ScramMechanism(self._mechanism)
                self._server = mechanism.make_server(self._credential)
                self._server.set_client_first(first)
                answer: str = self._server.get_server_first()
            else:
                final = token.decode()
                self._allow_repeated_nonce(final)
                self._server.set_client_final(final)
                answer = self._server.get_server_final()
                self.is_complete = True
        except (scramp.ScramException, ValueError) as error:
            raise CredentialsError(f"{self._mechanism}: {error}") from None
        return answer.encode()

    def _allow_repeated_nonce(self, final: str) -> None:
        server = self._server
        whole = str(server.nonce)
        own = whole.removesuffix(str(server.s_nonce))
        found = _FINAL_NONCE.match(final)
        if found is not None and found[1] == own + whole:
            server.nonce = type(server.nonce)(found[1])

    def _credential(self, user_name: str) -> tuple[bytes, bytes, bytes, int]:
        self.authorization_id = user_name
        found = self._lookup(user_name)
        if found is None:
            size = hashlib.new(HASHES[self._mechanism]).digest_size
            name = f"{self._mechanism} {user_name}".encode()
            salt = hmac.digest(self._secret, name, "sha256")
            return salt, os.urandom(size), os.urandom(size), ITERATIONS_MIN
        return found.salt, found.stored_key, found.server_key, found.iterations


def _name_in(first: str) -> str:
    """The longest that could be the user's name in a first message, however malformed that is."""
    parts = [part for part in first.split(",") if part.startswith("n=")]
    names = [part[2:].replace("=2C", ",").replace("=3D", "=") for part in parts]
    return max(names, key=len, default="")


def require_scramp() -> Any:
    """The library that the exchange is made with.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import scramp
    except ImportError:
        raise ConfigError("SCRAM needs a package: pip install 'trionet[sasl]'") from None
    return scramp
