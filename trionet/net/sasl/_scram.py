"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677).

(Kafka: ScramSaslServer, ScramSaslClient.) The library ``scramp`` reads a client's first message,
and makes the response. This module salts credentials and implements the client side, because
Kafka's clients use the UTF-8 bytes of a password unchanged, whereas libraries normalize them (RFC
4013). It also verifies the proof, which covers extensions that the library does not know.

The first response to an unknown user looks like the response to a known user, so that clients
cannot probe for user names. The salt for a name is always the same, even across restarts if the
server keeps its secret. Kafka rejects an unknown user immediately.

librdkafka before 2.6.1, which kcat uses on many systems, sends its own part of the nonce twice
before the server's part. This is accepted, as in Kafka 3.9; the proof covers the server's part in
any case.

The library normalizes the name (RFC 4013) before it looks up the user. This takes longer than the
rest of the exchange, and for some names far longer than their length suggests, so sizes are checked
first.
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
from functools import lru_cache
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
from ._names import SCRAM_HASHES

HASHES = SCRAM_HASHES
"""The mechanisms and their hash functions."""

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384
SALT_BYTES = 32

# Names may have several letters, as in Kafka. An extension "m" is mandatory, and none is known.
_EXTENSIONS = r"(?P<extensions>(?:,(?!m=)[A-Za-z]+=[^,\0]+)*)"
_CLIENT_FIRST = re.compile(rf"(?P<known>[^,]*,[^,]*,n=[^,]*,r=[^,]*){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(
    rf"(?P<signed>c=(?P<binding>[^,]*),r=(?P<nonce>[^,]*){_EXTENSIONS}),p=(?P<proof>[^,]*)"
)
# The name is the id of a delegation token (KIP-48).
_IS_TOKEN = re.compile(r",tokenauth=true(?:,|$)", re.IGNORECASE)
SECRET_BYTES = 32
# The default of servers without a configured secret.
_SECRET = os.urandom(SECRET_BYTES)

_NONCE_BYTES = 24
# "n,,": no channel binding, and no other authorization id.
_NO_BINDING = "n,,"
_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/]+=*),i=(?P<iterations>[0-9]{1,9})"
    r"(?:,.*)?"
)
_FINAL = re.compile(r"(?:v=(?P<signature>[A-Za-z0-9+/]+=*)|e=(?P<error>[^,]+))(?:,.*)?")


@attrs.frozen
class ScramCredential:
    """A server's record of a password: sufficient to verify it, but not to log in with it.

    Attributes:
        salt: the salt, at least 12 bytes.
        stored_key: verifies the client's proof.
        server_key: signs the server's proof.
        iterations: the number of iterations, 4096 to 16384 as in Kafka.
    """

    salt: bytes
    stored_key: bytes = attrs.field(repr=False)
    server_key: bytes = attrs.field(repr=False)
    iterations: int


Lookup = Callable[[str], ScramCredential | None]
"""Returns a user's credential for one mechanism; None for an unknown user."""


def salted(
    mechanism: str,
    password: str,
    *,
    salt: bytes | None = None,
    iterations: int = ITERATIONS_MIN,
) -> ScramCredential:
    """Derive a credential from a password; takes milliseconds, so call it in a thread.

    Args:
        mechanism: one of :data:`HASHES`.
        password: the password as the user types it.
        salt: the salt; random by default.
        iterations: the number of iterations, 4096 to 16384.
    """
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    key = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return from_salted_password(mechanism, key, salt, iterations)


def from_salted_password(
    mechanism: str, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Derive a credential from a password that a client has already salted (KIP-554)."""
    digest = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return ScramCredential(
        salt,
        hashlib.new(digest, client_key).digest(),
        hmac.digest(salted_password, b"Server Key", digest),
        iterations,
    )


class ScramServer(SaslServer):
    """The server side of SCRAM; see :class:`._mechanism.SaslServer`.

    :meth:`respond` also raises ConfigError if the library is not installed.

    Args:
        mechanism: one of :data:`HASHES`.
        lookup: returns the credential of a user.
        secret: the secret from which the salts of unknown users are derived.
    """

    def __init__(self, mechanism: str, lookup: Lookup, secret: bytes = _SECRET) -> None:
        self._mechanism = mechanism
        self._lookup = lookup
        self._secret = secret
        self._server: Any = None
        self._awaits_proof = False

    def respond(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002 - SCRAM has no time
        self.is_complete = False
        check_message_size(self._mechanism, token)
        scramp = require_scramp()
        try:
            text = token.decode()
            if self._server is None:
                check_user_name_size(self._mechanism, _name_in(text))
                mechanism = scramp.ScramMechanism(self._mechanism)
                self._server = mechanism.make_server(self._credential)
                try:
                    response = self._challenge(text)
                finally:
                    # It leads back to this object: only a collection of cycles would free both.
                    self._server.auth_fn = None
                self._awaits_proof = True
            elif self._awaits_proof:
                self._awaits_proof = False
                response = self._verify(text)
                self.is_complete = True
            else:
                raise ValueError("the exchange has ended")
        except (scramp.ScramException, ValueError) as error:
            raise CredentialsError(f"{self._mechanism}: {error}") from None
        return response.encode()

    def _challenge(self, first: str) -> str:
        """Return the response to the first message, whose extensions are ignored."""
        server = self._server
        found = _CLIENT_FIRST.fullmatch(first)
        if found is None:
            raise ValueError("the client's first message is malformed")
        if _IS_TOKEN.search(found["extensions"]):
            raise ValueError("delegation tokens are not supported")
        server.set_client_first(found["known"])
        server.client_first_bare += found["extensions"]  # the proof covers them
        response: str = server.get_server_first()
        return response

    def _verify(self, final: str) -> str:
        """Verify the proof in the last message, and return ours (RFC 5802, 3)."""
        server, digest = self._server, HASHES[self._mechanism]
        found = _CLIENT_FINAL.fullmatch(final)
        if found is None:
            raise ValueError("the client's last message is malformed")
        nonce = str(server.nonce)
        own = nonce.removesuffix(str(server.s_nonce))
        binding = base64.b64decode(found["binding"], validate=True)
        if found["nonce"] not in (nonce, own + nonce) or binding != bytes(server.gs2_header):
            raise ValueError("the nonce or the channel binding does not match")
        message = f"{server.client_first_bare},{server.server_first},{found['signed']}".encode()
        signature = hmac.digest(server.stored_key, message, digest)
        proof = base64.b64decode(found["proof"], validate=True)
        if len(proof) != len(signature):
            raise ValueError(f"the proof has {len(proof)} bytes; expected {len(signature)}")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), server.stored_key):
            raise ValueError("the proof is wrong")
        server_signature = hmac.digest(server.server_key, message, digest)
        return f"v={base64.b64encode(server_signature).decode()}"

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
    """Return the longest possible user name in a first message, which may be malformed."""
    parts = [part for part in first.split(",") if part.startswith("n=")]
    names = [part[2:].replace("=2C", ",").replace("=3D", "=") for part in parts]
    return max(names, key=len, default="")


def require_scramp() -> Any:
    """Return the SCRAM library, scramp.

    Raises:
        ConfigError: the library is not installed.
    """
    return require("SCRAM", "scramp")


class ScramPassword:
    """A user name and a password, with a cache of the last salted password.

    Salting takes milliseconds, and all brokers of a cluster use the same salt for a user.

    Args:
        mechanism: one of :data:`HASHES`.
        user_name: the user to authenticate as.
        password: the password as the user types it.
        is_delegation_token: whether the name and password are the id and HMAC of a delegation token
            (KIP-48).
    """

    def __init__(
        self, mechanism: str, user_name: str, password: str, *, is_delegation_token: bool = False
    ) -> None:
        self.mechanism = mechanism
        self.user_name = user_name
        self.extensions = ",tokenauth=true" if is_delegation_token else ""
        secret = password.encode()

        @lru_cache(maxsize=1)
        def salted(salt: bytes, iterations: int) -> bytes:
            """Return the password, salted with the server's parameters."""
            return hashlib.pbkdf2_hmac(HASHES[mechanism], secret, salt, iterations)

        self.salted = salted


class ScramClient:
    """The client side of SCRAM; see :class:`._mechanism.SaslClient`.

    Args:
        password: the user name and the password.
    """

    def __init__(self, password: ScramPassword) -> None:
        self._password = password
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES)
        name = password.user_name.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}{password.extensions}"
        self._signature = b""  # the one that the server must send
        self.is_complete = False

    def first(self) -> bytes:
        return (_NO_BINDING + self._bare).encode()

    def respond(self, challenge: bytes) -> bytes:
        try:
            text = challenge.decode()
        except UnicodeDecodeError:
            raise AuthenticationError("the broker's SCRAM message is not valid UTF-8") from None
        if not self._signature:
            return self._prove(text)
        self._check_server(text)
        self.is_complete = True
        return b""

    def _prove(self, server_first: str) -> bytes:
        found = _FIRST.fullmatch(server_first)
        if found is None:
            raise AuthenticationError("the broker's first SCRAM message is malformed")
        if not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise AuthenticationError(
                "the broker's SCRAM message does not match the client's nonce"
            )
        iterations = int(found["iterations"])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the broker requires {iterations} SCRAM iterations; allowed: {ITERATIONS_MIN}"
                f" to {ITERATIONS_MAX}"
            )
        mechanism, salt = self._password.mechanism, _decoded(found["salt"])
        digest, salted = HASHES[mechanism], self._password.salted(salt, iterations)
        credential = from_salted_password(mechanism, salted, salt, iterations)
        binding = base64.b64encode(_NO_BINDING.encode()).decode()
        without_proof = f"c={binding},r={found['nonce']}"
        message = f"{self._bare},{server_first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(credential.stored_key, message, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = hmac.digest(credential.server_key, message, digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check_server(self, server_final: str) -> None:
        """Verify the server's signature, which proves that it has the credential (RFC 5802, 3)."""
        found = _FINAL.fullmatch(server_final)
        if found is None:
            raise AuthenticationError("the broker's last SCRAM message is malformed")
        if found["error"]:
            raise AuthenticationError(f"the broker rejected the SCRAM exchange: {found['error']}")
        if not hmac.compare_digest(_decoded(found["signature"]), self._signature):
            raise AuthenticationError(
                "the broker could not prove that it knows the password; check the broker's address"
            )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationError("the broker's SCRAM message contains invalid base64") from None
