"""SCRAM: the server's side against the library's client, and against what clients get wrong."""

from __future__ import annotations

import base64
import gc
import hashlib
import hmac
import weakref
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from trionet.errors import AuthenticationError
from trionet.net.sasl._mechanism import (
    MESSAGE_BYTES_MAX,
    USER_NAME_CHARACTERS_MAX,
    CredentialsError,
)
from trionet.net.sasl._scram import (
    HASHES,
    ScramCredential,
    ScramServer,
    from_salted_password,
    salted,
)

MECHANISMS = list(HASHES)


def exchange(server: ScramServer, mechanism: str, name: str, password: str) -> tuple[bytes, bytes]:
    """Both responses of the server to a client that follows the rules."""
    client = ScramClient([mechanism], name, password)
    first = server.respond(client.get_client_first().encode(), 0)
    client.set_server_first(first.decode())
    final = server.respond(client.get_client_final().encode(), 0)
    client.set_server_final(final.decode())
    return first, final


def server_for(mechanism: str, users: dict[str, ScramCredential]) -> ScramServer:
    return ScramServer(mechanism, users.get)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "special !@#$%^&*()", "ünïcode"])
def test_the_right_password_is_let_in(mechanism: str, name: str) -> None:
    """A3: both mechanisms, with special characters in names; the server proves itself too."""
    server = server_for(mechanism, {name: salted(mechanism, "secret")})

    exchange(server, mechanism, name, "secret")

    assert (True, name, None) == (server.is_complete, server.authorization_id, server.expires_ms)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("mallory", "secret")])
def test_a_wrong_password_and_an_unknown_user_fail_alike(
    mechanism: str, name: str, password: str
) -> None:
    """A3: both fail, in the last step and without a text of their own."""
    server = server_for(mechanism, {"alice": salted(mechanism, "secret")})

    with pytest.raises(CredentialsError):
        exchange(server, mechanism, name, password)

    assert not server.is_complete


def test_an_unknown_user_has_the_same_salt_each_time() -> None:
    client = ScramClient(["SCRAM-SHA-256"], "nobody", "x")
    first = client.get_client_first().encode()

    salts = [
        server_for("SCRAM-SHA-256", {}).respond(first, 0).decode().split(",")[1] for _ in range(2)
    ]

    assert salts[0] == salts[1]
    with_secrets = [
        ScramServer("SCRAM-SHA-256", lambda _: None, secret)
        .respond(first, 0)
        .decode()
        .split(",")[1]
        for secret in (b"one", b"one", b"two")
    ]
    assert with_secrets[0] == with_secrets[1] != with_secrets[2]
    known = server_for("SCRAM-SHA-256", {"nobody": salted("SCRAM-SHA-256", "x")})
    assert len(salts[0]) == len(known.respond(first, 0).decode().split(",")[1])


def test_a_credential_of_one_mechanism_is_none_of_the_other() -> None:
    server = server_for("SCRAM-SHA-512", {"alice": salted("SCRAM-SHA-256", "secret")})

    with pytest.raises(CredentialsError):
        exchange(server, "SCRAM-SHA-512", "alice", "secret")


def test_the_example_of_the_standard() -> None:
    """RFC 7677, section 3."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = salted("SCRAM-SHA-256", "pencil", salt=salt)
    first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    server = server_for("SCRAM-SHA-256", {"user": credential})

    answer = server.respond(first, 0).decode()

    assert answer.startswith("r=rOprNGfwEbeRWgbNEkqO")
    assert answer.endswith(",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")


def final_with_nonce(client: Any, first: bytes, repeated: str) -> bytes:
    """What a client says last if it has put this before the nonce, and proves that."""
    client.set_server_first(first.decode())
    client.nonce = type(client.nonce)(repeated + str(client.nonce))
    final: str = client.get_client_final()
    return final.encode()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_repeats_its_part_of_the_nonce_is_let_in(mechanism: str) -> None:
    """librdkafka before 2.6.1."""
    server = server_for(mechanism, {"alice": salted(mechanism, "secret")})
    client = ScramClient([mechanism], "alice", "secret")
    first = server.respond(client.get_client_first().encode(), 0)

    final = server.respond(final_with_nonce(client, first, str(client.c_nonce)), 0)

    client.set_server_final(final.decode())
    assert server.is_complete


def extended(first: str, final: str, mandatory: str = "") -> bool:
    """Whether a client with the right password is let in whose messages have extensions."""
    credential = salted("SCRAM-SHA-256", "secret")
    server = server_for("SCRAM-SHA-256", {"alice": credential})
    bare = f"{mandatory}n=alice,r=abc{first}"
    challenge = server.respond(f"n,,{bare}".encode(), 0).decode()
    nonce, _, _ = challenge.removeprefix("r=").partition(",")
    signed = f"c=biws,r={nonce}{final}"
    password = hashlib.pbkdf2_hmac("sha256", b"secret", credential.salt, credential.iterations)
    key = hmac.digest(password, b"Client Key", "sha256")
    message = f"{bare},{challenge},{signed}".encode()
    signature = hmac.digest(credential.stored_key, message, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))
    server.respond(signed.encode() + b",p=" + proof, 0)
    return server.is_complete


@pytest.mark.parametrize(
    "extensions",
    [",x=1", ",foo=bar", ",tokenauth=false", ",x=1,y=a=b", ",x=1,x=2", ",s=1", ",x=主"],
)
def test_extensions_are_signed_and_otherwise_ignored(extensions: str) -> None:
    """RFC 5802, 5.1; with names of several letters and in any number, as in Kafka."""
    assert extended(extensions, "")
    assert extended("", extensions)
    assert extended(extensions, extensions)


@pytest.mark.parametrize(
    ("first", "final", "mandatory"),
    [
        ("", "", "m=x,"),
        (",m=x", "", ""),
        (",x=1,m=x", "", ""),
        ("", ",m=x", ""),
        (",x", "", ""),
        (",x=", "", ""),
        ("", ",x=", ""),
        (",1=x", "", ""),
        ("", ",x=\0", ""),
        (",tokenauth=true", "", ""),
        (",x=1,tokenauth=TRUE,y=2", "", ""),
    ],
)
def test_what_is_no_extension_or_a_mandatory_one_is_refused(
    first: str, final: str, mandatory: str
) -> None:
    """And a delegation token, which the extension `tokenauth` makes of the name: there are none."""
    with pytest.raises(CredentialsError):
        extended(first, final, mandatory)


def test_a_proof_of_another_size_is_named() -> None:
    server = server_for("SCRAM-SHA-256", {"alice": salted("SCRAM-SHA-256", "secret")})
    client = ScramClient(["SCRAM-SHA-256"], "alice", "secret")
    client.set_server_first(server.respond(client.get_client_first().encode(), 0).decode())
    signed, _, _ = client.get_client_final().partition(",p=")

    with pytest.raises(CredentialsError, match="the proof has 3 bytes; expected 32"):
        server.respond(f"{signed},p=AAAA".encode(), 0)


def test_extensions_are_covered_by_the_proof() -> None:
    server = server_for("SCRAM-SHA-256", {"alice": salted("SCRAM-SHA-256", "secret")})
    client = ScramClient(["SCRAM-SHA-256"], "alice", "secret")
    first = client.get_client_first().encode()
    client.set_server_first(server.respond(first + b",x=added", 0).decode())

    with pytest.raises(CredentialsError):
        server.respond(client.get_client_final().encode(), 0)


@pytest.mark.parametrize("repeated", ["x", "{own}{own}", "{own}x", ""])
def test_no_other_nonce_is_taken(repeated: str) -> None:
    server = server_for("SCRAM-SHA-256", {"alice": salted("SCRAM-SHA-256", "secret")})
    client = ScramClient(["SCRAM-SHA-256"], "alice", "secret")
    first = server.respond(client.get_client_first().encode(), 0)
    final = final_with_nonce(client, first, repeated.format(own=client.c_nonce))
    if not repeated:
        final = final.replace(str(client.c_nonce).encode(), b"")  # the server's part alone

    with pytest.raises(CredentialsError):
        server.respond(final, 0)


def test_what_a_client_salted_itself_is_the_same_credential() -> None:
    """KIP-554: only the salted password travels."""
    credential = salted("SCRAM-SHA-512", "secret", iterations=5000)
    key = hashlib.pbkdf2_hmac("sha512", b"secret", credential.salt, 5000)

    actual = from_salted_password("SCRAM-SHA-512", key, credential.salt, 5000)

    assert credential == actual


def test_a_credential_shows_none_of_its_keys() -> None:
    credential = salted("SCRAM-SHA-256", "secret")

    assert repr(credential.stored_key) not in repr(credential)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=a",
        b"n,,n=a,r=",
        b"p=tls-unique,,n=a,r=b",
        b"\xff",
        b"n,,n==,r=x",
        b"x" * 99,
    ],
)
def test_a_malformed_first_message_fails_without_a_reason(first: bytes) -> None:
    with pytest.raises(CredentialsError):
        server_for("SCRAM-SHA-256", {}).respond(first, 0)


LONGEST = "n" * USER_NAME_CHARACTERS_MAX


@pytest.mark.parametrize("name", [LONGEST, f",={LONGEST[2:]}"])
def test_the_longest_name_is_let_in(name: str) -> None:
    """Its escapes do not count."""
    server = server_for("SCRAM-SHA-256", {name: salted("SCRAM-SHA-256", "secret")})

    exchange(server, "SCRAM-SHA-256", name, "secret")

    assert server.is_complete


@pytest.mark.parametrize(
    "first",
    [
        f"n,,n={LONGEST}n,r=x",
        f"n,,n={LONGEST}n,n=a,r=x",
        f"n,,n=a,n={LONGEST}n,r=x",
        f"n,,n={'=2C' * USER_NAME_CHARACTERS_MAX}n,r=x",
        f"n,,n=a{USER_NAME_CHARACTERS_MAX * chr(0x300)},r=x",
        f"n,,n=a,r={'x' * MESSAGE_BYTES_MAX}",
        f"n,,n={174_000 * chr(0xFDFA)},r=x",
    ],
)
def test_the_library_prepares_no_name_that_is_too_long(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a megabyte of it would hold the loop for seconds."""
    monkeypatch.setattr("scramp.core.saslprep", lambda text: pytest.fail(f"prepared {text[:9]}"))

    with pytest.raises(CredentialsError, match="are allowed"):
        server_for("SCRAM-SHA-256", {}).respond(first.encode(), 0)


def test_a_last_message_that_is_too_large_fails_without_a_look_at_it() -> None:
    server = server_for("SCRAM-SHA-256", {"a": salted("SCRAM-SHA-256", "s")})
    server.respond(b"n,,n=a,r=b", 0)

    with pytest.raises(CredentialsError, match="are allowed"):
        server.respond(b"c=biws,r=b" + b"x" * MESSAGE_BYTES_MAX, 0)


@pytest.mark.parametrize("first", [b"n,,n=alice,r=abc", b"n,,n=alice", b"n,,n==,r=abc"])
def test_an_exchange_is_freed_without_a_garbage_collection(first: bytes) -> None:
    """In a broker's own process, what survives long enough is not collected."""
    gc.disable()
    try:
        server = server_for("SCRAM-SHA-256", {})
        with suppress(CredentialsError):
            server.respond(first, 0)
        freed = weakref.ref(server)
        del server

        assert freed() is None
    finally:
        gc.enable()


def test_nothing_follows_a_failure_or_the_end() -> None:
    server = server_for("SCRAM-SHA-256", {"a": salted("SCRAM-SHA-256", "s")})
    exchange(server, "SCRAM-SHA-256", "a", "s")

    with pytest.raises(CredentialsError):
        server.respond(b"n,,n=a,r=b", 0)
    assert not server.is_complete


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4), st.booleans())
def test_whatever_is_sent_no_client_gets_in(messages: list[bytes], begin_well: bool) -> None:
    server = server_for("SCRAM-SHA-256", {})
    if begin_well:
        messages.insert(0, b"n,,n=a,r=b")
    for message in messages:
        try:
            server.respond(message, 0)
        except AuthenticationError:
            break
    assert not server.is_complete
