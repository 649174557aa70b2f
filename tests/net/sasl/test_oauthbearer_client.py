"""OAUTHBEARER from the client's side."""

from __future__ import annotations

import pytest

from trionet.errors import AuthenticationError, ConfigError
from trionet.net.sasl._oauthbearer import (
    OAuthBearerClient,
    OAuthBearerServer,
    Token,
    TokenError,
    check_token,
    parse_initial_message,
)


def _validate(token: str, now_ms: int) -> Token:
    if token != "good":
        raise TokenError("it is another")
    return Token("alice", now_ms + 1000)


def test_a_good_token_gets_in() -> None:
    """A20."""
    client, server = OAuthBearerClient("good", {}), OAuthBearerServer(_validate)

    assert b"" == client.respond(server.respond(client.first(), 0))
    assert client.is_complete
    assert "alice" == server.authorization_id


def test_a_refused_token_is_acknowledged_and_then_refused_for_good() -> None:
    """A20: the server's reason is for the client."""
    client, server = OAuthBearerClient("bad", {}), OAuthBearerServer(_validate)
    answer = client.respond(server.respond(client.first(), 0))

    assert b"\x01" == answer
    assert not client.is_complete
    with pytest.raises(AuthenticationError, match="invalid_token"):
        server.respond(answer, 0)
    with pytest.raises(AuthenticationError, match=r"rejected the token.*invalid_token"):
        client.respond(b"")


def test_extensions_go_with_the_token() -> None:
    """KIP-342."""
    message = OAuthBearerClient("good", {"logicalCluster": "lkc-1"}).first()

    assert b"n,,\x01auth=Bearer good\x01logicalCluster=lkc-1\x01\x01" == message
    assert ("", "good") == parse_initial_message(message)


@pytest.mark.parametrize(
    ("token", "extensions", "expected"),
    [
        ("", {}, "is empty"),
        ("two words", {}, "contains an invalid character"),
        ("a\x01b", {}, "contains an invalid character"),
        ("good", {"auth": "x"}, "'auth'; allowed: letters"),
        ("good", {"no-letters": "x"}, "'no-letters'; allowed: letters"),
        ("good", {"name": "\x01"}, "the value of the SASL extension name contains"),
    ],
)
def test_what_would_not_arrive_as_it_is_is_refused_before(
    token: str, extensions: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        check_token(token, extensions)
    assert not token or token not in str(caught.value) or token == "good"
