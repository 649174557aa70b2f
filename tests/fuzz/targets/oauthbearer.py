"""SASL/OAUTHBEARER and its tokens: signed ones with the right claims get in, and nothing else.

An input is a number, which chooses the rules and who makes the token, and then a message, a token,
or the authorization id, header and claims of which a token is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fuzz.issuer import CLAIMS, HEADER, KEY, KEY_SET, NOW_MS, STRANGER, token
from fuzz.script import SEPARATOR, Script
from trionet.errors import AuthenticationError
from trionet.net.sasl._jwt import KeySet, SignedTokens, TokenRules, UnsecuredTokens
from trionet.net.sasl._oauthbearer import OAuthBearerServer

WATCHED = ("trionet.net.sasl",)
WORDS = (
    *(b"n,,\x01auth=Bearer ", b"n,a=alice,\x01", b"\x01\x01", b"\x01x=y", b"auth=", b"bearer"),
    *(b"=2C", HEADER, CLAIMS, SEPARATOR, b'"alg":', b'"none"', b'"RS256"', b'"kid":', b"null"),
    *(b'"b64":false', b'"crit":["b64"]', b'"zip":"DEF"', b'"sub":', b'"exp":', b'"iat":'),
    *(b'"nbf":', b'"aud":"a"', b'"iss":"i"', b'"scope":', b"[]", b'["read"]', b"{}", b"true"),
    *(b"-1", b"1e999", b"NaN", b'"\\ud800"', b'"\\u0000"', b"eyJhbGciOiJub25lIn0", b"."),
)
BYTES_MAX = 512

RULES = (
    TokenRules(),
    TokenRules(audiences=("a", "b"), issuer="i", scopes=("read",)),
    TokenRules(scopes=("read", "write"), subject_claim="iss", scope_claim="aud", clock_skew_ms=0),
)
_find = KeySet.parse(KEY_SET).find


def _message(authorization_id: bytes, bearer: bytes) -> bytes:
    return b"n," + authorization_id + b",\x01auth=Bearer " + bearer + b"\x01\x01"


def _raw(data: bytes) -> bytes:
    return data


def _with_token(data: bytes) -> bytes:
    return _message(b"", data)


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    authorization_id, header, claims = (*data.split(SEPARATOR, 2), b"", b"")[:3]
    return authorization_id, header or HEADER, claims or CLAIMS


def _made_with(key: Ed25519PrivateKey | None) -> Callable[[bytes], bytes]:
    def make(data: bytes) -> bytes:
        authorization_id, header, claims = _parts(data)
        return _message(authorization_id, token(header, claims, key).encode())

    return make


@attrs.frozen
class Way:
    """How the message is made, and what the server thinks of such.

    Attributes:
        make: the message of an input.
        asks_for_signature: whether the server does.
        may_get_in: whether the right claims are enough.
        has_claims: whether the claims are a part of the input.
    """

    make: Callable[[bytes], bytes]
    asks_for_signature: bool
    may_get_in: bool
    has_claims: bool = False


WAYS = (
    Way(_raw, True, False),
    Way(_with_token, True, False),
    Way(_made_with(KEY), True, True, True),
    Way(_made_with(STRANGER), True, False, True),
    Way(_made_with(None), True, False, True),
    Way(_raw, False, True),
    Way(_with_token, False, True),
    Way(_made_with(None), False, True, True),
)


def run(data: bytes) -> None:
    script = Script(data)
    options = script.byte()
    way = WAYS[options % len(WAYS)]
    rules = RULES[options // len(WAYS) % len(RULES)]
    validate = SignedTokens(_find, rules) if way.asks_for_signature else UnsecuredTokens(rules)
    server = OAuthBearerServer(validate)
    rest = script.rest()
    try:
        answer = server.respond(way.make(rest), NOW_MS)
    except AuthenticationError as error:
        _check_text(error)
    else:
        if server.is_complete:
            assert way.may_get_in, "a token that the issuer has not signed was taken"
            assert b"" == answer
            _check_bearer(server, rules)
            if way.has_claims:
                _check_claims(server, rules, _parts(rest)[2], way.asks_for_signature)
        else:
            assert json.loads(answer)["status"] in ("invalid_token", "insufficient_scope")
            assert not server.authorization_id
    _check_end(server)


def _check_bearer(server: OAuthBearerServer, rules: TokenRules) -> None:
    name, expires_ms = server.authorization_id, server.expires_ms
    assert name
    assert name == name.strip()
    name.encode()  # it goes into responses, logs and metrics
    assert expires_ms is not None
    assert expires_ms > NOW_MS - rules.clock_skew_ms


def _check_claims(
    server: OAuthBearerServer, rules: TokenRules, text: bytes, is_signed: bool
) -> None:
    """They say what the server understood; who takes unsigned ones asks for no more (Kafka)."""
    claims = json.loads(text)
    assert claims[rules.subject_claim].strip() == server.authorization_id
    assert int(claims["exp"] * 1000) == server.expires_ms
    if is_signed and rules.audiences:
        audience = claims["aud"]
        assert {"a", "b"} & {*([audience] if isinstance(audience, str) else audience)}
        assert rules.issuer == claims["iss"]


def _check_end(server: OAuthBearerServer) -> None:
    """Whatever came first, nothing can follow but the end."""
    was_complete = server.is_complete
    try:
        server.respond(b"\x01", NOW_MS)
    except AuthenticationError as error:
        _check_text(error)
        assert was_complete == server.is_complete
        return
    raise AssertionError("a message after the end was taken")


def _check_text(error: AuthenticationError) -> None:
    """It can be reported and logged."""
    str(error).encode()
    str(error.__cause__).encode()
