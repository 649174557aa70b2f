"""PLAIN: what is let in, what is reported, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import AuthenticationError
from trionet.net.sasl._mechanism import (
    MESSAGE_BYTES_MAX,
    USER_NAME_CHARACTERS_MAX,
    CredentialsError,
)
from trionet.net.sasl._plain import PlainServer, verify_with

USERS = {"alice": "secret", "bøb": "pässword,= "}


def server() -> PlainServer:
    return PlainServer(verify_with(USERS))


@pytest.mark.parametrize(("name", "password"), USERS.items())
@pytest.mark.parametrize("with_id", [True, False])
def test_the_right_password_is_let_in(name: str, password: str, with_id: bool) -> None:
    """A1: PLAIN authenticates."""
    begun = server()

    answer = begun.respond(f"{name if with_id else ''}\0{name}\0{password}".encode(), 0)

    assert b"" == answer
    assert (True, name, None) == (begun.is_complete, begun.authorization_id, begun.expires_ms)


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            (
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            ),
        ),
    ],
)
def test_others_get_what_kafka_sends_them(token: bytes, told: str) -> None:
    """A2: wrong password, unknown or missing user, missing password."""
    begun = server()

    with pytest.raises(AuthenticationError) as caught:
        begun.respond(token, 0)

    assert told == str(caught.value)
    assert not isinstance(caught.value, CredentialsError)
    assert not begun.is_complete


@pytest.mark.parametrize("token", [b"", b"alice", b"a\0b\0c\0d", b"\0\xff\0x"])
def test_what_is_no_plain_message_is_refused_without_a_reason(token: bytes) -> None:
    with pytest.raises(CredentialsError):
        server().respond(token, 0)


def test_a_verifier_is_asked_about_no_message_and_no_name_that_is_too_large() -> None:
    asked: list[tuple[str, str]] = []

    def verify(user_name: str, password: str) -> bool:
        asked.append((user_name, password))
        return True

    name = "n" * USER_NAME_CHARACTERS_MAX
    password = "p" * (MESSAGE_BYTES_MAX - len(name) - 2)
    PlainServer(verify).respond(f"\0{name}\0{password}".encode(), 0)

    for too_large in (f"\0{name}\0{password}p", f"\0{name}n\0p", f"{password}{name}p\0a\0p"):
        with pytest.raises(CredentialsError, match="are allowed"):
            PlainServer(verify).respond(too_large.encode(), 0)

    assert [(name, password)] == asked


def test_an_empty_password_of_an_unknown_user_is_no_way_in() -> None:
    verify = verify_with({})

    assert not verify("nobody", "")


def test_the_text_of_a_verifier_that_fails_does_not_reach_the_client() -> None:
    """A6: only deliberate messages are reported."""

    def verify(_name: str, _password: str) -> bool:
        raise RuntimeError("the password of the directory is hunter2")

    with pytest.raises(CredentialsError):
        PlainServer(verify).respond(b"\0alice\0secret", 0)


def test_nothing_follows_the_end() -> None:
    begun = server()
    begun.respond(b"\0alice\0secret", 0)

    with pytest.raises(CredentialsError):
        begun.respond(b"\0alice\0secret", 0)


@given(st.binary(max_size=50))
def test_whatever_is_sent_no_other_client_gets_in(token: bytes) -> None:
    begun = server()
    try:
        begun.respond(token, 0)
    except AuthenticationError:
        assert not begun.is_complete
