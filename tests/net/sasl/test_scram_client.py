"""SCRAM from the client's side."""

from __future__ import annotations

import base64
import contextlib
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import AuthenticationError
from trionet.net.sasl._mechanism import CredentialsError
from trionet.net.sasl._scram import (
    HASHES,
    ScramClient,
    ScramCredential,
    ScramPassword,
    ScramServer,
    salted,
)

NOW_MS = 1_700_000_000_000


def converse(password: ScramPassword, server: ScramServer) -> ScramClient:
    client = ScramClient(password)
    answer = client.respond(server.respond(client.first(), NOW_MS))
    assert b"" == client.respond(server.respond(answer, NOW_MS))
    return client


@pytest.mark.parametrize("mechanism", list(HASHES))
@pytest.mark.parametrize("name", ["alice", "a,l=ice", "=2C,=3D", "ålice"])
@pytest.mark.parametrize("password", ["secret", "pass,word=", "contraseña ª \u00ad"])
def test_a_user_gets_in_by_any_name_and_password(mechanism: str, name: str, password: str) -> None:
    """A3: a password is its UTF-8 bytes, whatever characters are in it."""
    credential = salted(mechanism, password)
    server = ScramServer(mechanism, {name: credential}.get)

    client = converse(ScramPassword(mechanism, name, password), server)

    assert client.is_complete
    assert server.is_complete
    assert name == server.authorization_id


def test_the_exchange_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 7677, 3."""
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: "rOprNGfwEbeRWgbNEkqO")
    client = ScramClient(ScramPassword("SCRAM-SHA-256", "user", "pencil"))
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"

    assert b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO" == client.first()
    final = client.respond(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert f"c=biws,r={nonce},p={proof}".encode() == final
    client.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert client.is_complete


def test_wrong_password_is_refused_by_the_server() -> None:
    server = ScramServer("SCRAM-SHA-256", {"alice": salted("SCRAM-SHA-256", "secret")}.get)

    with pytest.raises(CredentialsError):
        converse(ScramPassword("SCRAM-SHA-256", "alice", "guess"), server)


def test_server_that_does_not_know_the_password_is_refused() -> None:
    """Only who knows it can say the last word."""
    real = salted("SCRAM-SHA-256", "secret")
    other = salted("SCRAM-SHA-256", "other", salt=real.salt)
    mixed = ScramCredential(real.salt, real.stored_key, other.server_key, real.iterations)
    server = ScramServer("SCRAM-SHA-256", {"alice": mixed}.get)

    with pytest.raises(AuthenticationError, match="could not prove that it knows"):
        converse(ScramPassword("SCRAM-SHA-256", "alice", "secret"), server)


def test_a_delegation_token_says_that_it_is_one() -> None:
    """KIP-48."""
    password = ScramPassword("SCRAM-SHA-512", "id", "hmac", is_delegation_token=True)

    assert ScramClient(password).first().endswith(b",tokenauth=true")


def _answer(client: ScramClient, **changes: str) -> bytes:
    nonce = client.first().decode().rpartition("r=")[2]
    parts = {"r": f"{nonce}more", "s": "W22ZaJ0SNY7soEsUEjb6gQ==", "i": "4096", **changes}
    return ",".join(f"{key}={value}" for key, value in parts.items()).encode()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"r": "another"}, "does not match the client's nonce"),
        ({"i": "4095"}, "4095 SCRAM iterations"),
        ({"i": "16385"}, "16385 SCRAM iterations"),
        ({"i": "999999999"}, "999999999 SCRAM iterations"),
        ({"s": "?"}, "malformed"),
        ({"s": "abcde"}, "contains invalid base64"),
    ],
)
def test_first_response_that_breaks_the_rules(changes: dict[str, str], expected: str) -> None:
    client = ScramClient(ScramPassword("SCRAM-SHA-256", "alice", "secret"))

    with pytest.raises(AuthenticationError, match=expected):
        client.respond(_answer(client, **changes))
    assert not client.is_complete


def test_response_that_adds_nothing_to_our_nonce() -> None:
    client = ScramClient(ScramPassword("SCRAM-SHA-256", "alice", "secret"))
    nonce = client.first().decode().rpartition("r=")[2]

    with pytest.raises(AuthenticationError, match="does not match the client's nonce"):
        client.respond(_answer(client, r=nonce))


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        (b"e=other-error", "rejected the SCRAM exchange: other-error"),
        (b"v=" + base64.b64encode(bytes(32)), "could not prove that it knows"),
        (b"nonsense", "malformed"),
        (b"\xff", "not valid UTF-8"),
    ],
)
def test_last_response_that_breaks_the_rules(final: bytes, expected: str) -> None:
    client = ScramClient(ScramPassword("SCRAM-SHA-256", "alice", "secret"))
    client.respond(_answer(client))

    with pytest.raises(AuthenticationError, match=expected):
        client.respond(final)
    assert not client.is_complete


def test_a_password_is_salted_once_for_all_brokers_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes milliseconds of the loop."""
    password = ScramPassword("SCRAM-SHA-256", "alice", "secret")
    first = password.salted(b"salt", 4096)
    monkeypatch.setattr("hashlib.pbkdf2_hmac", lambda *_: b"again")

    assert first == password.salted(b"salt", 4096)
    assert b"again" == password.salted(b"other", 4096)


@given(st.binary(max_size=100), st.booleans())
def test_whatever_a_broker_says_is_a_response_or_an_authentication_error(
    challenge: bytes, is_last: bool
) -> None:
    client = ScramClient(ScramPassword("SCRAM-SHA-256", "alice", "secret"))
    if is_last:
        client.respond(_answer(client))

    with contextlib.suppress(AuthenticationError):
        client.respond(challenge)
    assert not client.is_complete
