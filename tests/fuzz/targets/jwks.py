"""Key sets of a token issuer: keys that can be used, or one clear error.

A key that was taken is tried at once, with a signature that is none.
"""

from __future__ import annotations

import base64
import json

from fuzz.issuer import CLAIMS, KEY_SET, NOW_MS, token
from trionet.errors import ConfigError
from trionet.net.sasl._jwt import ALGORITHMS, KeySet, SignedTokens, TokenRules
from trionet.net.sasl._oauthbearer import TokenError

_N = base64.urlsafe_b64encode(b"\xc5" * 256).rstrip(b"=")
_X = base64.urlsafe_b64encode(
    bytes.fromhex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")
).rstrip(b"=")
_Y = base64.urlsafe_b64encode(
    bytes.fromhex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")
).rstrip(b"=")
RSA = b'{"kty":"RSA","n":"%b","e":"AQAB"}' % _N
EC = b'{"kty":"EC","crv":"P-256","x":"%b","y":"%b"}' % (_X, _Y)  # the curve's own point

WATCHED = ("trionet.net.sasl",)
WORDS = (
    *(KEY_SET.encode(), b'{"keys":[', RSA, EC, b"]}", b",", b'"kty":"OKP"', b'"crv":"Ed448"'),
    *(b"null", b'"alg":"RS256"', b'"alg":"ES384"', b'"use":"enc"', b'"kid":"a"', b'"kid":null'),
    *(b'"crv":', b"1", b'"d":"AQ"', b'"oth":[]', b'"p":"AQ"', b'"n":', b'"x":', b'"y":', b'"e":'),
    *(b"[]", b"{}", b'""', b'"AQAB"', b'"P-521"', b'"secp256k1"', b'"k":"c2VjcmV0"'),
    *(b'"kty":"oct"', b"true", b"1e9"),
)
BYTES_MAX = 2048


def run(data: bytes) -> None:
    try:
        keys = KeySet.parse(data)
    except ConfigError as error:
        _check_error(str(error))
        return
    assert keys.keys
    validate = SignedTokens(keys.find, TokenRules())
    for key in keys.keys:
        assert key.id is None or isinstance(key.id, str)
        for algorithm, kind in ALGORITHMS.items():
            if kind == key.type:
                header = json.dumps({"alg": algorithm, "kid": key.id}).encode()
                try:
                    validate(token(header, CLAIMS), NOW_MS)
                except TokenError:
                    continue
                assert "OKP" == kind, "a token was taken that nobody has signed"


def _check_error(text: str) -> None:
    assert "JSON Web Key Set" in text
    text.encode()
