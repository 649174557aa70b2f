"""Kafka's SASL exchange, frame by frame: who gets in, and what the others learn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sasl import (
    NOW_MS,
    api_versions,
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
from support.tokens import initial, signed
from trionet.broker.security._sasl_exchange import SaslExchange
from trionet.errors import AuthenticationError
from trionet.net._authenticator import Progress, Step
from trionet.net._principal import ANONYMOUS, Principal
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.net.sasl._scram import HASHES
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


@pytest.mark.parametrize("asks_first", [True, False])
def test_plain_in_bare_tokens(asks_first: bool) -> None:
    """A8, A19: after a handshake of version 0 tokens are frames of their own."""
    begun = exchange()
    if asks_first:
        step(begun, api_versions(0))
    step(begun, handshake("PLAIN", 0))

    ended = step(begun, plain("alice", "secret"))

    assert (Progress.AUTHENTICATED, b"") == (ended.progress, sent(ended))
    assert ended.send is not None
    assert not begun.can_reauthenticate


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


def test_a_failure_with_bare_tokens_only_closes() -> None:
    """A19: there is no frame to tell an old client why."""
    begun = exchange()
    step(begun, handshake("PLAIN", 0))

    ended = step(begun, plain("alice", "x"))

    assert 0.25 == ended.delay_seconds
    assert_closed(ended, begun, CloseReason.AUTHENTICATION_FAILED)


def test_a_wrong_password_of_scram_is_reported_in_general_words() -> None:
    """A3: the library's reasons stay in the log."""
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
    assert "client keys" in ended.detail


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


def test_the_response_to_an_unknown_mechanism_lists_those_there_are() -> None:
    """A16: a disabled or unknown mechanism gives the client a clear error."""
    begun = exchange()

    ended = step(begun, handshake("GSSAPI"))

    answer = response(ended, api_keys.SASL_HANDSHAKE, 1)
    assert error_codes.UNSUPPORTED_SASL_MECHANISM == answer.error_code
    assert "PLAIN" in answer.mechanisms
    assert 0.25 == ended.delay_seconds
    assert_closed(ended, begun, CloseReason.AUTHENTICATION_FAILED, sent(ended))


def test_api_versions_of_an_unknown_version_gets_a_response_and_is_asked_again() -> None:
    """A9: the response has the form of version 0 and the supported range."""
    begun = exchange()
    unknown = bytearray(api_versions(0))
    unknown[2:4] = (99).to_bytes(2, "big")

    first = step(begun, bytes(unknown))

    answer = response(first, api_keys.API_VERSIONS, 0)
    assert (error_codes.UNSUPPORTED_VERSION, 1) == (answer.error_code, len(answer.api_keys))
    assert Progress.GOES_ON is first.progress
    again = response(step(begun, api_versions(3)), api_keys.API_VERSIONS, 3)
    assert error_codes.NONE == again.error_code


def test_api_versions_with_a_bad_name_gets_a_response_and_is_asked_again() -> None:
    """A10: invalid content gets INVALID_REQUEST, valid content gets NONE."""
    begun = exchange()

    bad = response(step(begun, api_versions(name="- -")), api_keys.API_VERSIONS, 3)
    good = response(step(begun, api_versions()), api_keys.API_VERSIONS, 3)

    assert (error_codes.INVALID_REQUEST, error_codes.NONE) == (bad.error_code, good.error_code)


def test_api_versions_gets_one_response() -> None:
    begun = exchange()
    step(begun, api_versions())

    ended = step(begun, api_versions())

    assert_closed(ended, begun, CloseReason.ILLEGAL_SASL_STATE)


def test_a_handshake_of_an_unknown_version_closes() -> None:
    """A11: SaslHandshake of an unsupported version."""
    begun = exchange()
    unknown = bytearray(handshake("PLAIN"))
    unknown[2:4] = (2).to_bytes(2, "big")

    ended = step(begun, bytes(unknown))

    assert_closed(ended, begun, CloseReason.UNSUPPORTED_VERSION)


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
    """A13: in either framing."""
    for version in (0, 1):
        begun = exchange()
        step(begun, handshake("PLAIN", version))

        ended = step(begun, api_versions())

        assert Progress.FAILED is ended.progress


@pytest.mark.parametrize("handshake_first", [True, False])
def test_other_requests_before_the_end_close(handshake_first: bool) -> None:
    """A15: Metadata before authentication is not even decoded."""
    begun = exchange()
    if handshake_first:
        step(begun, handshake("PLAIN"))

    ended = step(begun, b"\0\x03\0\x01\0\0\0\x07\0\0garbage")

    assert "unexpected Metadata" in ended.detail
    assert_closed(ended, begun, CloseReason.ILLEGAL_SASL_STATE)


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


def test_every_mechanism_of_scram_has_a_hash() -> None:
    assert ["SCRAM-SHA-256", "SCRAM-SHA-512"] == list(HASHES)


def test_a_bearer_token_gets_in_until_it_expires() -> None:
    """A20: the session ends with the token."""
    claims = {"sub": "alice", "iat": NOW_MS // 1000, "exp": NOW_MS // 1000 + 60}
    begun = exchange()
    step(begun, handshake("OAUTHBEARER"))

    ended = step(begun, token(initial(signed(claims))), 100.0)

    answer = response(ended, api_keys.SASL_AUTHENTICATE, 2)
    assert 60_000 == answer.session_lifetime_ms
    assert 160.0 == begun.session_expires_at


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
