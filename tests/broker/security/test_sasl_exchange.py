"""Kafka's SASL exchange, frame by frame: who gets in, and what the others learn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sasl import (
    NOW_MS,
    api_versions,
    authenticated,
    exchange,
    handshake,
    plain,
    respond_to_api_versions,
    response,
    scram,
    sent,
    settings,
    step,
    token,
)
from support.sasl_rig import METADATA
from support.tokens import initial, signed
from trionet.broker.security._sasl_exchange import SaslExchange
from trionet.errors import AuthenticationError
from trionet.net._authenticator import Gate, Progress, Step
from trionet.net._principal import ANONYMOUS, Principal
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import api_keys, error_codes

GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
)


def assert_closed(
    ended: Step, begun: SaslExchange, reason: CloseReason, answer: bytes = b""
) -> None:
    assert (Progress.FAILED, reason) == (ended.progress, ended.close_reason)
    assert answer == sent(ended)
    assert not begun.is_complete
    again = step(begun, handshake("PLAIN"))
    assert Progress.FAILED is again.progress


@pytest.mark.parametrize("asks_first", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain_in_requests(asks_first: bool, version: int) -> None:
    """A1, A8: ApiVersions before authentication gets a response, and PLAIN gets in."""
    begun = exchange()
    if asks_first:
        answer = response(step(begun, api_versions()), api_keys.API_VERSIONS, 3)
        assert (error_codes.NONE, 1) == (answer.error_code, len(answer.api_keys))
        assert ("client", "1.0") == begun.client_software

    answer = response(step(begun, handshake("PLAIN")), api_keys.SASL_HANDSHAKE, 1)
    assert error_codes.NONE == answer.error_code
    assert ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"] == answer.mechanisms
    assert ANONYMOUS == begun.principal
    ended = step(begun, token(plain("alice", "secret"), version))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, version)
    assert (error_codes.NONE, b"", 0) == (
        answer.error_code,
        bytes(answer.auth_bytes),
        answer.session_lifetime_ms,
    )
    assert Progress.AUTHENTICATED is ended.progress
    assert (True, "User:alice", None) == (
        begun.is_complete,
        str(begun.principal),
        begun.session_expires_at,
    )
    assert begun.can_reauthenticate == (version >= 1)


@pytest.mark.parametrize("has_headers", [True, False])
def test_scram_takes_two_steps(has_headers: bool) -> None:
    """A3, A19: SCRAM in requests and in bare tokens."""
    begun = exchange()
    client = scram("SCRAM-SHA-256", "alice", "secret")
    step(begun, handshake("SCRAM-SHA-256", 1 if has_headers else 0))

    def send(message: str) -> tuple[Progress, bytes]:
        taken = step(begun, token(message.encode()) if has_headers else message.encode())
        if not has_headers:
            return taken.progress, sent(taken)
        answer = response(taken, api_keys.SASL_AUTHENTICATE, 2)
        return taken.progress, bytes(answer.auth_bytes)

    progress, first = send(client.get_client_first())
    client.set_server_first(first.decode())
    assert Progress.GOES_ON is progress
    progress, final = send(client.get_client_final())
    client.set_server_final(final.decode())

    assert Progress.AUTHENTICATED is progress
    assert "User:alice" == str(begun.principal)


def test_the_mechanisms_of_a_server_are_those_it_is_given() -> None:
    """A4: several mechanisms at once, and ones from elsewhere."""

    class Open:
        is_complete, authorization_id, expires_ms = False, "anybody", None

        def respond(self, token: bytes, now_ms: int) -> bytes:
            self.is_complete = True
            return token[::-1]

    begun = exchange(mechanisms={"OPEN": Open, "PLAIN": lambda: PlainServer(verify_with({}))})
    step(begun, handshake("OPEN"))

    ended = step(begun, token(b"abc"))

    assert b"cba" == bytes(response(ended, api_keys.SASL_AUTHENTICATE, 2).auth_bytes)
    assert "User:anybody" == str(begun.principal)


@pytest.mark.parametrize(
    ("mechanism", "data", "told"),
    [
        ("PLAIN", plain("alice", "x"), "Authentication failed: Invalid username or password"),
        ("PLAIN", plain("carol", "x"), "Authentication failed: Invalid username or password"),
        ("PLAIN", b"garbage", f"{GENERIC} PLAIN"),
        ("SCRAM-SHA-256", b"garbage", f"{GENERIC} SCRAM-SHA-256"),
        ("OAUTHBEARER", b"garbage", f"{GENERIC} OAUTHBEARER"),
    ],
)
def test_a_failure_is_reported_in_words_that_give_nothing_away(
    mechanism: str, data: bytes, told: str
) -> None:
    """A2, A6, A26: the deliberate message reaches the client, late; no other does."""
    begun = exchange()
    step(begun, handshake(mechanism))

    ended = step(begun, token(data))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert (error_codes.SASL_AUTHENTICATION_FAILED, told) == (
        answer.error_code,
        answer.error_message,
    )
    assert 0.25 == ended.delay_seconds
    assert_closed(ended, begun, CloseReason.AUTHENTICATION_FAILED, sent(ended))


def test_a_wrong_password_of_scram_is_reported_in_general_words() -> None:
    """A3: the reasons stay in the log."""
    begun = exchange()
    client = scram("SCRAM-SHA-256", "alice", "wrong")
    step(begun, handshake("SCRAM-SHA-256"))
    first = response(
        step(begun, token(client.get_client_first().encode())), api_keys.SASL_AUTHENTICATE, 2
    )
    client.set_server_first(bytes(first.auth_bytes).decode())

    ended = step(begun, token(client.get_client_final().encode()))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert f"{GENERIC} SCRAM-SHA-256" == answer.error_message
    assert "the proof is wrong" in ended.detail


def test_a_failure_with_bare_tokens_only_closes() -> None:
    """A19: there is no frame to tell an old client why."""
    begun = exchange()
    step(begun, handshake("PLAIN", 0))

    ended = step(begun, plain("alice", "x"))

    assert 0.25 == ended.delay_seconds
    assert_closed(ended, begun, CloseReason.AUTHENTICATION_FAILED)


def test_a_refused_bearer_token_is_reported_and_logged() -> None:
    """A20: the client gets the status; the log gets the reason."""
    begun = exchange()
    step(begun, handshake("OAUTHBEARER"))
    refused = step(begun, token(initial("x.y.z")))
    assert Progress.GOES_ON is refused.progress

    ended = step(begun, token(b"\x01"))

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert '{"status":"invalid_token"}' == answer.error_message
    assert "DecodeError" in ended.detail


def test_api_versions_gets_one_response() -> None:
    begun = exchange()
    step(begun, api_versions())

    ended = step(begun, api_versions())

    assert_closed(ended, begun, CloseReason.ILLEGAL_SASL_STATE)


@pytest.mark.parametrize("after_handshake", [True, False])
@pytest.mark.parametrize(
    "garbage", [b"", b"\0", b"garbage", b"\0\x11\0\1\0\0\0\7\xff\xff", bytes(50)]
)
def test_garbage_closes(garbage: bytes, after_handshake: bool) -> None:
    """A12: before and after the handshake."""
    begun = exchange()
    if after_handshake:
        step(begun, handshake("PLAIN"))

    assert Progress.FAILED is step(begun, garbage).progress


def test_api_versions_after_the_handshake_closes() -> None:
    """A13: in either framing; where frames are requests, after a response."""
    for version in (0, 1):
        begun = exchange()
        step(begun, handshake("PLAIN", version))

        ended = step(begun, api_versions())

        assert Progress.FAILED is ended.progress
        assert bool(version) == bool(sent(ended))


@pytest.mark.parametrize(
    ("payload", "key", "version"),
    [
        (api_versions(), api_keys.API_VERSIONS, 3),
        # A version that is not served; the response is in version 0.
        (b"\0\x12\0\x63" + api_versions()[4:], api_keys.API_VERSIONS, 0),
        (handshake("PLAIN", 1), api_keys.SASL_HANDSHAKE, 1),
    ],
)
def test_a_request_in_place_of_a_token_has_a_response(
    payload: bytes, key: int, version: int
) -> None:
    begun = exchange()
    step(begun, handshake("PLAIN"))

    ended = step(begun, payload)

    assert error_codes.ILLEGAL_SASL_STATE == response(ended, key, version).error_code
    assert 0.25 == ended.delay_seconds
    assert_closed(ended, begun, CloseReason.ILLEGAL_SASL_STATE, sent(ended))


def test_other_requests_in_place_of_a_token_are_not_even_decoded() -> None:
    begun = exchange()
    step(begun, handshake("PLAIN"))

    assert_closed(step(begun, METADATA), begun, CloseReason.ILLEGAL_SASL_STATE)


def test_a_token_without_a_handshake_closes() -> None:
    begun = exchange()

    ended = step(begun, token(plain("alice", "secret")))

    assert_closed(ended, begun, CloseReason.ILLEGAL_SASL_STATE)


def test_the_limit_before_the_end_is_that_of_the_setting() -> None:
    """A5, A14: the channel takes no larger frame."""
    assert 1024 == exchange(frame_bytes_max=1024).frame_bytes_max
    assert 65_536 == exchange().frame_bytes_max


@pytest.mark.parametrize("error", [AuthenticationError, KeyError, RuntimeError])
def test_a_principal_that_cannot_be_made_fails_without_its_reason(error: type[Exception]) -> None:
    """Whether its builder refuses the client or is broken."""

    def refuse(_: str, __: str) -> Principal:
        raise error("the directory says: no")

    begun = SaslExchange(settings(), respond_to_api_versions, refuse)
    step(begun, handshake("PLAIN"))

    ended = step(begun, token(plain("alice", "secret")))

    told = response(ended, api_keys.SASL_AUTHENTICATE, 2).error_message
    assert f"{GENERIC} PLAIN" == told
    assert "the directory says" in ended.detail


@given(st.lists(st.binary(max_size=60), max_size=6), st.integers(0, 3))
def test_whatever_arrives_no_client_gets_in(frames: list[bytes], prefix: int) -> None:
    begun = exchange()
    good = [api_versions(), handshake("PLAIN", prefix % 2)]
    for payload in [*good[:prefix], *frames]:
        if step(begun, payload).progress is Progress.FAILED:
            break
    assert not begun.is_complete
    assert ANONYMOUS == begun.principal


def test_a_bearer_whose_name_cannot_be_written_down_is_refused() -> None:
    """No token makes a response that cannot be sent."""
    claims = {"sub": "\ud800", "iat": NOW_MS // 1000, "exp": NOW_MS // 1000 + 60}
    begun = exchange()
    step(begun, handshake("OAUTHBEARER"))

    refused = step(begun, token(initial(signed(claims), authorization_id="bob")))

    answer = response(refused, api_keys.SASL_AUTHENTICATE, 2)
    assert b'{"status":"invalid_token"}' == bytes(answer.auth_bytes)
    assert not begun.is_complete


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_reason_that_no_response_holds_is_cut(version: int) -> None:
    """What a client learns may quote what it has sent, however long that was."""
    claims = {"sub": "alice", "iat": NOW_MS // 1000, "exp": NOW_MS // 1000 + 60}
    begun = exchange()
    step(begun, handshake("OAUTHBEARER"))

    message = initial(signed(claims), authorization_id=40_000 * "b")
    ended = step(begun, token(message, version))

    told = response(ended, api_keys.SASL_AUTHENTICATE, version).error_message
    assert told.startswith("Authentication failed: Client requested an authorization id (bbb")
    assert 8000 == len(told)


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
    """A20: the session ends with the token, unless the setting ends it earlier."""
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
