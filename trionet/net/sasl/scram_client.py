"""SCRAM-SHA-256 and SCRAM-SHA-512 from the client's side (RFC 5802; Kafka: ScramSaslClient).

Written out here, because a password is taken as its UTF-8 bytes, as Kafka's clients do, where
libraries prepare it first (RFC 4013).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import Final

from ...errors import AuthenticationError
from .scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN

_NONCE_BYTES: Final = 24
# "n,,": we do not bind the exchange to a channel, and speak for nobody else.
_NO_BINDING: Final = "n,,"
_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/]+=*),i=(?P<iterations>[0-9]{1,9})"
    r"(?:,.*)?"
)
_FINAL = re.compile(r"(?:v=(?P<signature>[A-Za-z0-9+/]+=*)|e=(?P<error>[^,]+))(?:,.*)?")


class ScramPassword:
    """A user and a password, and what was last made of it, which takes milliseconds to make.

    All brokers of a cluster keep the same salt for a user, so that one calculation does for all.

    Args:
        mechanism: of :data:`.scram.HASHES`.
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
    """One authentication of ours; see :class:`.mechanism.SaslClient`.

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
