"""What a client of SCRAM proves, calculated from the standard alone (RFC 5802, section 3)."""

from __future__ import annotations

import base64
import hmac

import attrs

from trionet.net.sasl._scram import HASHES, ScramCredential, from_salted_password

SALT = b"the salt of tests"
ITERATIONS = 4096


@attrs.frozen
class ScramUser:
    """A user of one mechanism, whose password was salted already: that takes milliseconds.

    Attributes:
        mechanism: of :data:`HASHES`.
        salted_password: the secret.
    """

    mechanism: str
    salted_password: bytes

    @property
    def credential(self) -> ScramCredential:
        """What the server has of it."""
        return from_salted_password(self.mechanism, self.salted_password, SALT, ITERATIONS)

    def proof(self, authenticated: bytes) -> bytes:
        """The client's proof over all that was said, in base64."""
        digest = HASHES[self.mechanism]
        key = hmac.digest(self.salted_password, b"Client Key", digest)
        signature = hmac.digest(self.credential.stored_key, authenticated, digest)
        return base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))

    def signature(self, authenticated: bytes) -> bytes:
        """The server's proof over it, in base64."""
        digest = HASHES[self.mechanism]
        return base64.b64encode(hmac.digest(self.credential.server_key, authenticated, digest))

    def final(self, first: bytes, server_first: bytes, channel_binding: bytes = b"n,,") -> bytes:
        """A client's last message, after its own first and the server's."""
        nonce = server_first.partition(b",")[0]
        without_proof = b"c=" + base64.b64encode(channel_binding) + b"," + nonce
        return without_proof + b",p=" + self.proof(all_said(first, server_first, without_proof))


def bare(first: bytes) -> bytes:
    """A client's first message without what stands before its second comma."""
    return first.split(b",", 2)[-1]


def all_said(first: bytes, server_first: bytes, without_proof: bytes) -> bytes:
    """What proofs are made over: the first messages, and the last up to its proof."""
    return b",".join((bare(first), server_first, without_proof))
