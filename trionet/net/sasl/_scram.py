"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677).

(Kafka: ScramSaslServer, ScramSaslClient.) The server's side of the exchange is the library
``scramp``'s. Credentials are salted here, and the client's side is written out, because Kafka's
clients take a password's UTF-8 bytes as they are, where libraries prepare them first (RFC 4013).

An unknown user gets the same first response as a known one, with a salt that does not change, over
restarts either if the server keeps its secret, so that names cannot be tried out. Kafka ends the
exchange there.

librdkafka before 2.6.1, which is the kcat of many systems, repeats its own part of the nonce before
the whole one. It is let in, as by Kafka 3.9; what the server made up is part of the proof anyway.

The library prepares the name as RFC 4013 says before it looks for the user. That takes more time
than the rest, and for some texts more than their length tells: so sizes are checked before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable
from typing import Any

import attrs

from ...errors import AuthenticationError
from ._mechanism import (
    CredentialsError,
    SaslServer,
    check_message_size,
    check_user_name_size,
    require,
)

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms and their hash functions."""

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384
SALT_BYTES = 32

_FINAL_NONCE = re.compile(r"c=[^,]*,r=([^,]*),")
SECRET_BYTES = 32
# Of servers that are given none.
_SECRET = os.urandom(SECRET_BYTES)

_NONCE_BYTES = 24
# "n,,": we do not bind the exchange to a channel, and speak for nobody else.
_NO_BINDING = "n,,"
_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/]+=*),i=(?P<iterations>[0-9]{1,9})"
    r"(?:,.*)?"
)
_FINAL = re.compile(r"(?:v=(?P<signature>[A-Za-z0-9+/]+=*)|e=(?P<error>[^,]+))(?:,.*)?")


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


class ScramServer(SaslServer):
    """One authentication; see :class:`._mechanism.SaslServer`.

    Args:
        mechanism: of :data:`HASHES`.
        lookup: the credentials.
        secret: what the salts of unknown users are made from.

    Raises:
        ConfigError: the library is not installed.
    """

    __slots__ = ("_lookup", "_mechanism", "_secret", "_server")

    def __init__(self, mechanism: str, lookup: Lookup, secret: bytes = _SECRET) -> None:
        super().__init__()
        self._mechanism = mechanism
        self._lookup = lookup
        self._secret = secret
        self._server: Any = None

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
    return require("SCRAM", "scramp")


class ScramPassword:
    """A user and a password, and what was last made of it, which takes milliseconds to make.

    All brokers of a cluster keep the same salt for a user, so that one calculation does for all.

    Args:
        mechanism: of :data:`HASHES`.
        user_name: who.
        password: as the user types it.
        is_delegation_token: they are a delegation token's id and HMAC (KIP-48).
    """

    __slots__ = ("_password", "_salted", "_salted_with", "digest", "extensions", "user_name")

    def __init__(
        self, mechanism: str, user_name: str, password: str, *, is_delegation_token: bool = False
    ) -> None:
        self.digest = HASHES[mechanism]
        self.user_name = user_name
        self.extensions = ",tokenauth=true" if is_delegation_token else ""
        self._password = password.encode()
        self._salted_with: tuple[bytes, int] | None = None
        self._salted = b""

    def salted(self, salt: bytes, iterations: int) -> bytes:
        """The password, salted as the server says."""
        if self._salted_with != (salt, iterations):
            self._salted = hashlib.pbkdf2_hmac(self.digest, self._password, salt, iterations)
            self._salted_with = (salt, iterations)
        return self._salted


class ScramClient:
    """One authentication of ours; see :class:`._mechanism.SaslClient`.

    Args:
        password: who we are, and how we prove it.
    """

    __slots__ = ("_bare", "_nonce", "_password", "_signature", "is_complete")

    def __init__(self, password: ScramPassword) -> None:
        self._password = password
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES)
        name = password.user_name.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}{password.extensions}"
        self._signature = b""  # the server's, which is awaited
        self.is_complete = False

    def first(self) -> bytes:
        return (_NO_BINDING + self._bare).encode()

    def respond(self, challenge: bytes) -> bytes:
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise AuthenticationError("the broker's SCRAM message is not UTF-8") from None
        if not self._signature:
            return self._prove(text)
        self._check_server(text)
        self.is_complete = True
        return b""

    def _prove(self, server_first: str) -> bytes:
        found = _FIRST.fullmatch(server_first)
        if found is None:
            raise AuthenticationError("the broker's first SCRAM message has another form")
        if not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise AuthenticationError("the broker's SCRAM message is no answer to ours")
        iterations = int(found["iterations"])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the broker asks for {iterations} iterations of SCRAM; allowed: {ITERATIONS_MIN}"
                f" to {ITERATIONS_MAX}"
            )
        digest = self._password.digest
        salted = self._password.salted(_decoded(found["salt"]), iterations)
        binding = base64.b64encode(_NO_BINDING.encode()).decode()
        without_proof = f"c={binding},r={found['nonce']}"
        message = f"{self._bare},{server_first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        stored_key = hashlib.new(digest, client_key).digest()
        signature = hmac.digest(stored_key, message, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", digest)
        self._signature = hmac.digest(server_key, message, digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check_server(self, server_final: str) -> None:
        """Make sure that the server knows our password, too (RFC 5802, 3)."""
        found = _FINAL.fullmatch(server_final)
        if found is None:
            raise AuthenticationError("the broker's last SCRAM message has another form")
        if found["error"]:
            raise AuthenticationError(f"the broker refuses us by SCRAM: {found['error']}")
        if not hmac.compare_digest(_decoded(found["signature"]), self._signature):
            raise AuthenticationError("the broker does not know our password: it is another's")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationError("the broker's SCRAM message is not BASE64") from None
