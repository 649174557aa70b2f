"""JSON Web Tokens of an issuer of the tests' own."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def jwk(key: PrivateKey, **members: str) -> dict[str, Any]:
    """The public part of a key, as a key set has it."""
    public: dict[str, Any]
    if isinstance(key, rsa.RSAPrivateKey):
        public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, **members}


def key_set(*entries: dict[str, Any]) -> str:
    return json.dumps({"keys": entries})


def signed(
    claims: dict[str, Any],
    key: PrivateKey = RSA_KEY,
    algorithm: str = "RS256",
    kid: str | None = "rsa",
) -> str:
    return jwt.encode(claims, key, algorithm, {} if kid is None else {"kid": kid})


def authenticated(claims: dict[str, Any], secret: bytes, kid: str) -> str:
    """A token of HS256, which a library for tokens would not make with a public key."""
    body = _encoded({"alg": "HS256", "kid": kid}) + "." + _encoded(claims)
    return f"{body}.{_base64(hmac.digest(secret, body.encode(), 'sha256'))}"


def unsecured(claims: dict[str, Any]) -> str:
    return _encoded({"alg": "none"}) + "." + _encoded(claims) + "."


def _encoded(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def initial(token: str, authorization_id: str = "") -> bytes:
    """The first message of OAUTHBEARER."""
    name = f"a={authorization_id}" if authorization_id else ""
    return f"n,{name},\x01auth=Bearer {token}\x01\x01".encode()
