"""An issuer of tokens whose keys are the same in every run, and whose signatures take no time."""

from __future__ import annotations

import base64
import hashlib
import json

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
HEADER = b'{"alg":"EdDSA","kid":"ed"}'
CLAIMS = b'{"sub":"alice","iat":%d,"exp":%d,"scope":"read"}' % (NOW, NOW + 60)


def _key(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


KEY = _key("issuer")
STRANGER = _key("stranger")

KEY_SET = json.dumps(
    {"keys": [{**jwt.algorithms.OKPAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "ed"}]}
)
"""What the issuer publishes."""


def token(header: bytes, claims: bytes, key: Ed25519PrivateKey | None = KEY) -> str:
    """A token of any texts; without a key one that nobody has signed."""
    said = f"{_base64(header)}.{_base64(claims)}"
    return f"{said}.{_base64(key.sign(said.encode())) if key is not None else ''}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
