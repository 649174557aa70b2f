"""OAUTHBEARER and its tokens: signed ones with the right claims get in, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from support.tokens import (
    EC_KEY,
    OTHER_RSA_KEY,
    RSA_KEY,
    PrivateKey,
    authenticated,
    initial,
    jwk,
    key_set,
    signed,
    unsecured,
)
from trionet.errors import AuthenticationError, ConfigError
from trionet.net.sasl._jwt import KeySet, SignedTokens, TokenRules, UnsecuredTokens
from trionet.net.sasl._mechanism import CredentialsError
from trionet.net.sasl._oauthbearer import (
    MESSAGE_BYTES_MAX,
    OAuthBearerServer,
    Token,
    TokenError,
    parse_initial_message,
)

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
CLAIMS = {"sub": "alice", "iat": NOW, "exp": NOW + 60, "scope": "read write"}


def keys() -> KeySet:
    return KeySet.parse(key_set(jwk(RSA_KEY, kid="rsa"), jwk(EC_KEY, kid="ec", alg="ES256")))


def validate(token: str, **rules: Any) -> Token:
    return SignedTokens(keys().find, TokenRules(**rules))(token, NOW_MS)


def test_a_signed_token_gets_in() -> None:
    """A20: OAUTHBEARER with a valid token; its life is that of the credential."""
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))

    answer = server.respond(initial(signed(CLAIMS)), NOW_MS)

    assert b"" == answer
    assert (True, "alice") == (server.is_complete, server.authorization_id)
    assert (NOW + 60) * 1000 == server.expires_ms


def test_a_refused_token_gets_a_response_with_the_reason_and_then_fails_with_it() -> None:
    """A20: the client acknowledges the response, and only then is it over."""
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))

    answer = server.respond(initial("a.b.c"), NOW_MS)
    assert {"status": "invalid_token"} == json.loads(answer)
    with pytest.raises(AuthenticationError) as caught:
        server.respond(b"\x01", NOW_MS)

    assert '{"status":"invalid_token"}' == str(caught.value)
    assert isinstance(caught.value.__cause__, TokenError)
    assert not server.is_complete


def test_a_missing_scope_is_reported() -> None:
    """A20: testInsufficientScope."""
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules(scopes=("write", "admin"))))

    answer = server.respond(initial(signed(CLAIMS)), NOW_MS)

    assert {"status": "insufficient_scope", "scope": "write admin"} == json.loads(answer)


def test_after_a_refusal_only_the_acknowledgement_may_follow() -> None:
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))
    server.respond(initial("a.b.c"), NOW_MS)

    with pytest.raises(CredentialsError):
        server.respond(initial(signed(CLAIMS)), NOW_MS)
    assert not server.is_complete


def test_nothing_follows_the_end() -> None:
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))
    server.respond(initial(signed(CLAIMS)), NOW_MS)

    with pytest.raises(CredentialsError):
        server.respond(b"\x01", NOW_MS)


def test_a_token_that_is_too_large_is_refused_before_it_is_read() -> None:
    read: list[str] = []

    def validate(token: str, _: int) -> Token:
        read.append(token)
        return Token("alice", NOW_MS)

    largest = "t" * (MESSAGE_BYTES_MAX - len(initial("")))
    OAuthBearerServer(validate).respond(initial(largest), NOW_MS)
    with pytest.raises(CredentialsError, match="are allowed"):
        OAuthBearerServer(validate).respond(initial(largest + "t"), NOW_MS)

    assert [largest] == read


def test_another_authorization_id_than_the_tokens_is_refused() -> None:
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))

    with pytest.raises(AuthenticationError, match=r"authorization id \(bob\) that is different"):
        server.respond(initial(signed(CLAIMS), authorization_id="bob"), NOW_MS)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,\x01auth=Bearer x.y.z\x01\x01", ("", "x.y.z")),
        (b"n,a=b=2Cc=3D,\x01auth=bearer  x-_\x01ext=1 2\x01\x01", ("b,c=", "x-_")),
    ],
)
def test_the_first_message_is_read(message: bytes, expected: tuple[str, str]) -> None:
    assert expected == parse_initial_message(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,a=b,c,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01\x01x",
        "n,,\x01auth=Bearer ü\x01\x01".encode(),
    ],
)
def test_what_is_no_first_message_fails_without_a_reason(message: bytes) -> None:
    with pytest.raises(CredentialsError):
        parse_initial_message(message)


@given(st.binary(max_size=80))
def test_whatever_is_sent_no_client_gets_in(message: bytes) -> None:
    server = OAuthBearerServer(SignedTokens(keys().find, TokenRules()))
    for token in (message, b"n,,\x01auth=Bearer " + message + b"\x01\x01"):
        try:
            server.respond(token, NOW_MS)
        except AuthenticationError:
            pass
    assert not server.is_complete


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256"])
def test_algorithms_with_a_public_key_are_taken(algorithm: str) -> None:
    is_ec = algorithm == "ES256"
    token = signed(CLAIMS, EC_KEY if is_ec else RSA_KEY, algorithm, kid="ec" if is_ec else "rsa")

    assert Token("alice", (NOW + 60) * 1000, frozenset(("read", "write"))) == validate(token)


def test_edwards_keys_are_taken() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    public = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    found = KeySet.parse(key_set({**public, "kid": "ed"}))
    token = jwt.encode(CLAIMS, key, "EdDSA", {"kid": "ed"})

    assert "alice" == SignedTokens(found.find, TokenRules())(token, NOW_MS).principal_name


def test_a_token_signed_with_a_public_key_as_secret_is_refused() -> None:
    """The classic: HS256, with the public key that everybody knows."""
    secret = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    token = authenticated(CLAIMS, secret, kid="rsa")

    with pytest.raises(TokenError, match="HS256"):
        validate(token)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (unsecured(CLAIMS), "none"),
        (signed(CLAIMS, OTHER_RSA_KEY), "Signature"),
        (signed(CLAIMS, kid="other"), "unknown key 'other'"),
        (signed(CLAIMS, RSA_KEY, "RS256", kid="ec"), "unknown key 'ec'"),
        (signed({**CLAIMS, "exp": NOW - 31}), "expired"),
        (signed({k: v for k, v in CLAIMS.items() if k != "exp"}), "exp"),
        (signed({k: v for k, v in CLAIMS.items() if k != "iat"}), "iat"),
        (signed({**CLAIMS, "nbf": NOW + 31}), "future"),
        (signed({**CLAIMS, "iat": NOW + 31}), "future"),
        (signed({**CLAIMS, "exp": 1e300}), "exp claim is not a valid timestamp"),
        (signed({**CLAIMS, "exp": True}), "exp claim is not a valid timestamp"),
        (signed({**CLAIMS, "sub": " "}), "'sub' claim is not a valid"),
        (signed({**CLAIMS, "sub": "\ud800"}), "'sub' claim is not a valid"),
        (signed({k: v for k, v in CLAIMS.items() if k != "sub"}), "'sub' claim is not a valid"),
        (signed({**CLAIMS, "scope": 1}), "scope claim"),
        (signed({**CLAIMS, "scope": [1]}), "scope claim"),
        ("", "DecodeError"),
        ("a.b.c", "DecodeError"),
        ("[" * 50_000, "DecodeError"),
    ],
)
def test_what_is_wrong_with_a_token_is_found(token: str, reason: str) -> None:
    with pytest.raises(TokenError) as caught:
        validate(token)

    assert reason in str(caught.value)


def test_what_an_unsigned_token_says_is_logged_as_plain_text() -> None:
    token = jwt.encode({}, RSA_KEY, "RS256", {"crit": ["\ud800\n"], "kid": "rsa"})

    with pytest.raises(TokenError) as caught:
        validate(token)

    assert r"\ud800\n" in str(caught.value)
    assert str(caught.value).isascii()


def test_clocks_may_differ_a_little() -> None:
    assert "alice" == validate(signed({**CLAIMS, "exp": NOW - 29})).principal_name
    with pytest.raises(TokenError, match="expired"):
        validate(signed({**CLAIMS, "exp": NOW - 29}), clock_skew_ms=0)


@pytest.mark.parametrize(
    ("rules", "claims", "is_valid"),
    [
        ({"audiences": ("a", "b")}, {"aud": "b"}, True),
        ({"audiences": ("a",)}, {"aud": ["x", "a"]}, True),
        ({"audiences": ("a",)}, {"aud": "x"}, False),
        ({"audiences": ("a",)}, {}, False),
        ({}, {"aud": "x"}, True),
        ({"issuer": "i"}, {"iss": "i"}, True),
        ({"issuer": "i"}, {"iss": "x"}, False),
        ({"issuer": "i"}, {}, False),
        ({"scopes": ("read",)}, {}, True),
        ({"scopes": ("read",)}, {"scope": ["read", "x"]}, True),
        ({"scopes": ("admin",)}, {}, False),
        ({"scopes": ("admin",), "scope_claim": "roles"}, {"roles": "admin"}, True),
        ({"subject_claim": "user"}, {"user": "alice", "sub": "x"}, True),
    ],
)
def test_audience_issuer_scope_and_subject_are_checked(
    rules: dict[str, Any], claims: dict[str, Any], is_valid: bool
) -> None:
    token = signed({**CLAIMS, **claims})

    if is_valid:
        assert "alice" == validate(token, **rules).principal_name
    else:
        with pytest.raises(TokenError):
            validate(token, **rules)


def test_without_a_name_the_only_key_that_fits_is_used() -> None:
    assert "alice" == validate(signed(CLAIMS, kid=None)).principal_name
    two = KeySet.parse(key_set(jwk(RSA_KEY, kid="a"), jwk(OTHER_RSA_KEY, kid="b")))

    with pytest.raises(TokenError, match="unknown key None"):
        SignedTokens(two.find, TokenRules())(signed(CLAIMS, kid=None), NOW_MS)


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA_KEY, "RS256"), (OTHER_RSA_KEY, "RS256"), (EC_KEY, "ES256")]
)
def test_each_key_of_the_name_is_tried(key: PrivateKey, algorithm: str) -> None:
    """An issuer may give its next key the same name, and a key for each curve."""
    of_other_curve = ec.generate_private_key(ec.SECP384R1())
    of_name: list[PrivateKey] = [RSA_KEY, OTHER_RSA_KEY, of_other_curve, EC_KEY]
    found = KeySet.parse(key_set(*(jwk(each, kid="k") for each in of_name)))
    validate = SignedTokens(found.find, TokenRules())

    assert "alice" == validate(signed(CLAIMS, key, algorithm, kid="k"), NOW_MS).principal_name

    unknown = rsa.generate_private_key(65537, 2048)
    with pytest.raises(TokenError, match="Signature verification failed"):
        validate(signed(CLAIMS, unknown, kid="k"), NOW_MS)
    with pytest.raises(TokenError, match="expired"):
        validate(signed({**CLAIMS, "exp": NOW - 60}, key, algorithm, kid="k"), NOW_MS)


def test_unsecured_tokens_are_taken_where_they_are_asked_for_and_checked_all_the_same() -> None:
    validate_unsecured = UnsecuredTokens(TokenRules(scopes=("read",)))

    assert "alice" == validate_unsecured(unsecured(CLAIMS), NOW_MS).principal_name
    for token in (
        signed(CLAIMS),
        unsecured(CLAIMS) + "x",
        unsecured({**CLAIMS, "exp": NOW - 31}),
        unsecured({**CLAIMS, "scope": ""}),
        unsecured({"sub": "alice"}),
        "x",
    ):
        with pytest.raises(TokenError):
            validate_unsecured(token, NOW_MS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"keys": 1}',
        '{"keys": []}',
        '{"keys": [1]}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        '{"keys": [{"kty": "RSA"}]}',
        '{"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]}',
        "[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_key_set_is_a_configuration_error(text: str | bytes) -> None:
    with pytest.raises(ConfigError, match="JSON Web Key Set"):
        KeySet.parse(text)


def test_keys_of_no_use_are_left_out_and_harm_no_other() -> None:
    found = KeySet.parse(
        key_set(
            {"kty": "RSA", "n": "x"},
            {**jwk(OTHER_RSA_KEY, kid="e"), "use": "enc"},
            {"kty": "oct", "k": "c2VjcmV0"},
            jwk(RSA_KEY, kid="a"),
        )
    )

    assert ["a"] == [key.id for key in found.keys]


def test_a_short_key_is_of_no_use() -> None:
    """Whoever has the key set could sign with what 1,024 bits are worth today."""
    short = rsa.generate_private_key(65537, 1024)

    with pytest.raises(ConfigError, match="contains no usable public key"):
        KeySet.parse(key_set(jwk(short, kid="a")))


def test_private_parts_of_keys_are_no_part_of_a_repr() -> None:
    assert "0x" not in repr(keys().keys[0])
