"""Sessions: how long they live, and how a client proves once more who it is (KIP-368)."""

from __future__ import annotations

import pytest

from support.sasl import (
    NOW_MS,
    authenticated,
    exchange,
    handshake,
    plain,
    request,
    response,
    scram,
    step,
    token,
)
from support.tokens import initial, signed
from trionet.net._authenticator import Gate, Progress
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import api_keys, error_codes
from trionet.protocol.messages.metadata import MetadataRequest

METADATA = request(api_keys.METADATA, 1, MetadataRequest())


def test_requests_pass_while_the_session_lives() -> None:
    begun = authenticated()

    assert Gate.PASS is begun.gate(METADATA, 1e9)
    assert Gate.PASS is begun.gate(b"", 1e9)


@pytest.mark.parametrize("has_headers", [True, False])
def test_a_session_that_is_over_lets_no_request_pass(has_headers: bool) -> None:
    """P27: past its life, the next request closes the connection, in both framings."""
    begun = exchange(session_ms={"PLAIN": 60_000})
    step(begun, handshake("PLAIN", 1 if has_headers else 0), 100.0)
    message = plain("alice", "secret")
    ended = step(begun, token(message) if has_headers else message, 100.0)

    if has_headers:
        answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
        assert 60_000 == answer.session_lifetime_ms
    assert Gate.PASS is begun.gate(METADATA, 160.0)
    assert Gate.EXPIRED is begun.gate(METADATA, 160.1)
    assert Gate.AUTHENTICATE is begun.gate(handshake("PLAIN"), 160.1)


@pytest.mark.parametrize(
    ("session_ms", "token_seconds", "expected_ms"),
    [(0, 60, 60_000), (30_000, 60, 30_000), (90_000, 60, 60_000), (90_000, -1, 0)],
)
def test_a_session_ends_with_the_credential_or_the_setting_whichever_is_first(
    session_ms: int, token_seconds: int, expected_ms: int
) -> None:
    now = NOW_MS // 1000
    begun = exchange(session_ms={"OAUTHBEARER": session_ms})
    step(begun, handshake("OAUTHBEARER"), 100.0)
    claims = {"sub": "alice", "iat": now - 9, "exp": now + token_seconds}

    ended = step(begun, token(initial(signed(claims))), 100.0)

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert expected_ms == answer.session_lifetime_ms
    assert 100 + expected_ms / 1000 == begun.session_expires_at


def test_a_client_authenticates_again_five_times_in_a_row() -> None:
    """A23: each time the session begins anew."""
    begun = authenticated(now=100.0, session_ms={"PLAIN": 10_000})
    for turn in range(1, 6):
        now = 100.0 + 5 * turn
        assert Gate.AUTHENTICATE is begun.gate(handshake("PLAIN"), now)
        step(begun, handshake("PLAIN"), now)
        assert (False, True) == (begun.is_complete, begun.is_reauthenticating)
        assert "User:alice" == str(begun.principal)

        ended = step(begun, token(plain("alice", "secret")), now + 0.5)

        assert Progress.REAUTHENTICATED is ended.progress
        assert (True, 0.5) == (begun.is_complete, begun.reauthentication_seconds)
        assert not begun.is_reauthenticating
        assert now + 10.5 == begun.session_expires_at


def test_not_more_than_once_a_second() -> None:
    """A22: a handshake within a second of the last one is a request like any other."""
    begun = authenticated()
    step(begun, handshake("PLAIN"), 200.0)
    step(begun, token(plain("alice", "secret")), 200.1)

    assert Gate.PASS is begun.gate(handshake("PLAIN"), 200.9)
    assert Gate.AUTHENTICATE is begun.gate(handshake("PLAIN"), 201.0)


def test_another_principal_is_refused() -> None:
    """A21: the one who was there must come back."""
    begun = authenticated()
    step(begun, handshake("PLAIN"))

    ended = step(begun, token(plain("bob", "hunter2")))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert error_codes.SASL_AUTHENTICATION_FAILED == answer.error_code
    assert (
        "Cannot change principals during re-authentication from User.alice: User.bob"
        == answer.error_message
    )
    assert CloseReason.AUTHENTICATION_FAILED is ended.close_reason
    assert (False, True) == (begun.is_complete, begun.is_reauthenticating)
    assert "User:alice" == str(begun.principal)


def test_another_mechanism_is_refused_when_its_first_token_comes() -> None:
    """A21: the handshake gets a response, the token fails."""
    begun = authenticated()
    client = scram("SCRAM-SHA-256", "alice", "secret")
    answer = response(step(begun, handshake("SCRAM-SHA-256")), api_keys.SASL_HANDSHAKE, 1)
    assert error_codes.NONE == answer.error_code

    ended = step(begun, token(client.get_client_first().encode()))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert "'SCRAM-SHA-256' requested by client is not supported" in answer.error_message
    assert Progress.FAILED is ended.progress


def test_a_wrong_password_says_that_it_was_a_re_authentication() -> None:
    begun = authenticated()
    step(begun, handshake("PLAIN"))

    ended = step(begun, token(b"garbage"))

    told = response(ended, api_keys.SASL_AUTHENTICATE, 2).error_message
    assert "during re-authentication due to invalid credentials" in told


def test_other_requests_in_the_middle_of_it_close() -> None:
    begun = authenticated()
    step(begun, handshake("PLAIN"))

    ended = step(begun, METADATA)

    assert CloseReason.ILLEGAL_SASL_STATE is ended.close_reason


def test_bare_tokens_can_do_it_too() -> None:
    begun = authenticated()
    step(begun, handshake("PLAIN", 0))

    assert Progress.REAUTHENTICATED is step(begun, plain("alice", "secret")).progress
