"""The client's side of Kafka's SASL exchange, against the broker's side and made responses."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sasl import NOW_MS, settings
from trionet.broker.security._sasl_exchange import SaslExchange
from trionet.client.network._exchange import CORRELATION_ID_MAX
from trionet.client.security._sasl_client_authenticator import RESERVED_IDS, SaslClientAuthenticator
from trionet.errors import AuthenticationError
from trionet.net._authenticator import Gate, Progress, Step
from trionet.net._principal import USER, Principal
from trionet.net.sasl._mechanism import SaslClient
from trionet.net.sasl._plain import PlainClient
from trionet.net.sasl._scram import ScramClient, ScramPassword
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import api_keys, error_codes
from trionet.protocol._codec import lookup
from trionet.protocol._header import decode_request_header, encode_response_header
from trionet.protocol._wire import Chunk, Message
from trionet.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from trionet.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from trionet.protocol.messages.sasl_handshake import SaslHandshakeResponse

MODERN = {18: (0, 4), 17: (0, 1), 36: (0, 2)}
BEFORE_KIP_152 = {18: (0, 0), 17: (0, 0)}


def ours(
    begin: Callable[[], SaslClient] = lambda: PlainClient("alice", "secret"),
    mechanism: str = "PLAIN",
) -> SaslClientAuthenticator:
    return SaslClientAuthenticator(mechanism, begin, "client", random.Random(1))


def scram_of(password: str) -> Callable[[], SaslClient]:
    return lambda: ScramClient(ScramPassword("SCRAM-SHA-256", "alice", password))


def theirs(ranges: dict[int, tuple[int, int]], **changes: Any) -> SaslExchange:
    found = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, (oldest, newest) in ranges.items()
        ]
    )
    return SaslExchange(
        settings(**changes), lambda _, __: found, lambda _, name: Principal(USER, name)
    )


def bytes_of(step: Step) -> bytes:
    """What a step sends, without the size prefix."""
    assert step.send is not None
    return b"".join(cast("list[bytes]", step.send._chunks))[4:]


def converse(
    client: SaslClientAuthenticator, server: SaslExchange, now: float = 100.0
) -> tuple[Step, list[tuple[int, int]]]:
    """Let both talk until the client is done.

    Returns:
        Its last step, and the API keys and versions of its requests.
    """
    step, asked = client.begin(now), []
    while step.send is not None:
        payload = bytes_of(step)
        if server._state.name != "TOKENS" or server._has_headers:
            asked.append(decode_request_header(payload)[:2])
        answer = server.receive(payload, now, NOW_MS)
        if answer.send is None:
            break  # the connection is closed without a word
        step = client.receive(bytes_of(answer), now, NOW_MS)
    return step, asked


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(
    ("ranges", "expected"),
    [(MODERN, [(18, 0), (17, 1), (36, 2)]), (BEFORE_KIP_152, [(18, 0), (17, 0)])],
)
def test_the_newest_versions_that_both_know_or_bare_tokens(
    ranges: dict[int, tuple[int, int]], expected: list[tuple[int, int]], mechanism: str
) -> None:
    """A1, A3, A19: ApiVersions in version 0, the handshake, and tokens, in requests or not."""
    client = ours(scram_of("secret"), mechanism) if mechanism != "PLAIN" else ours()
    server = theirs(ranges)

    step, asked = converse(client, server)

    assert Progress.AUTHENTICATED is step.progress
    assert expected == asked[:3]
    assert client.is_complete
    assert server.is_complete
    assert (ranges is MODERN) == client.can_reauthenticate
    assert math.inf == client.renew_at


def test_the_broker_s_reason_is_reported() -> None:
    """A2: KIP-152."""
    client = ours(lambda: PlainClient("alice", "guess"))

    step, _ = converse(client, theirs(MODERN))

    assert CloseReason.AUTHENTICATION_FAILED is step.close_reason
    assert "SASL PLAIN: Authentication failed: Invalid username or password" == step.detail
    assert not client.is_complete


def test_a_mechanism_that_the_broker_does_not_have() -> None:
    """A16."""
    step, _ = converse(ours(mechanism="SCRAM-SHA-512"), theirs(MODERN))

    assert CloseReason.AUTHENTICATION_FAILED is step.close_reason
    assert (
        "'SCRAM-SHA-512' is not enabled on the broker; enabled: PLAIN, SCRAM-SHA-256, OAUTHBEARER"
        in step.detail
    )


def test_a_broker_without_sasl() -> None:
    step, asked = converse(ours(), theirs({18: (0, 4)}))

    assert [(18, 0)] == asked
    assert "the broker does not support SASL" == step.detail


def answered(
    client: SaslClientAuthenticator, key: int, version: int, body: Message, id: int
) -> Step:
    codec = lookup(key, version)
    assert codec is not None
    chunks: list[Chunk] = [encode_response_header(codec, id)]
    codec.encode_response(body, chunks)
    return client.receive(b"".join(cast("list[bytes]", chunks)), 100.0, NOW_MS)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (error_codes.ILLEGAL_SASL_STATE, "the broker's listener does not use SASL"),
        (error_codes.UNKNOWN_SERVER_ERROR, "SaslHandshake failed: UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_handshake_that_is_refused(code: int, expected: str) -> None:
    client = ours()
    client.begin(100.0)
    versions = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, max_version=1) for key in (17, 36)]
    )
    answered(client, api_keys.API_VERSIONS, 0, versions, RESERVED_IDS[0])
    refusal = SaslHandshakeResponse(error_code=code)

    step = answered(client, api_keys.SASL_HANDSHAKE, 1, refusal, RESERVED_IDS[1])

    assert (CloseReason.AUTHENTICATION_FAILED, expected) == (step.close_reason, step.detail)


def test_refused_versions_are_no_failed_authentication() -> None:
    client = ours()
    client.begin(100.0)
    refusal = ApiVersionsResponse(error_code=error_codes.INVALID_REQUEST)

    step = answered(client, api_keys.API_VERSIONS, 0, refusal, RESERVED_IDS[0])

    assert Progress.FAILED is step.progress
    assert CloseReason.UNSUPPORTED_VERSION is step.close_reason


@pytest.mark.parametrize("id", [RESERVED_IDS[1], 0, 7])
def test_a_response_to_another_request(id: int) -> None:
    """A24."""
    client = ours()
    client.begin(100.0)

    step = answered(client, api_keys.API_VERSIONS, 0, ApiVersionsResponse(), id)

    assert CloseReason.INVALID_RECEIVE is step.close_reason
    assert f"received a response to request {id}" in step.detail


def test_nonsense_is_no_failed_authentication() -> None:
    client = ours()
    client.begin(100.0)

    assert CloseReason.INVALID_RECEIVE is client.receive(b"\0", 100.0, NOW_MS).close_reason


def test_ids_of_the_exchange_are_its_own_and_come_again() -> None:
    """A24, N27: eight of them, above those of all other requests."""
    client, server = ours(), theirs(MODERN, session_ms={"PLAIN": 10_000})
    found: list[int] = []
    for turn in range(6):
        now = 100.0 + 10 * turn
        step = client.begin(now)
        while step.send is not None:
            found.append(decode_request_header(bytes_of(step))[2])
            answer = server.receive(bytes_of(step), now, NOW_MS)
            step = client.receive(bytes_of(answer), now, NOW_MS)

    assert list(RESERVED_IDS) == found[:8]
    assert list(RESERVED_IDS)[:5] == found[8:13]
    assert CORRELATION_ID_MAX < min(RESERVED_IDS)


# Once more (KIP-368).


def test_a_session_is_renewed_after_most_of_its_life() -> None:
    """Between 85 and 95 of 100 parts of it, by chance."""
    found = set()
    for seed in range(50):
        client = SaslClientAuthenticator(
            "PLAIN", lambda: PlainClient("alice", "secret"), "client", random.Random(seed)
        )
        converse(client, theirs(MODERN, session_ms={"PLAIN": 10_000}))
        found.add(client.renew_at)

    assert 108.5 <= min(found) < 109.0 < max(found) <= 109.5


def test_five_renewals_in_a_row() -> None:
    """A23: each begins with the handshake."""
    client, server = ours(), theirs(MODERN, session_ms={"PLAIN": 10_000})
    converse(client, server)
    for turn in range(1, 6):
        now = client.renew_at
        step, asked = converse(client, server, now)

        assert Progress.REAUTHENTICATED is step.progress
        assert [(17, 1), (36, 2)] == asked
        assert now + 8.5 <= client.renew_at <= now + 9.5, turn
        assert client.is_complete
        assert not client.is_reauthenticating


def test_responses_from_before_a_renewal_pass() -> None:
    """KAFKA-9854: they are known by their correlation ids, until the handshake gets a response."""
    client, server = ours(), theirs(MODERN, session_ms={"PLAIN": 10_000})
    converse(client, server)
    step = client.begin(110.0)

    assert (False, True) == (client.is_complete, client.is_reauthenticating)
    assert client.lets_pass((5).to_bytes(4, "big") + b"an answer")
    assert not client.lets_pass(RESERVED_IDS[3].to_bytes(4, "big"))
    assert not client.lets_pass(b"\0\0")
    step = client.receive(bytes_of(server.receive(bytes_of(step), 110.0, NOW_MS)), 110.0, NOW_MS)
    assert not client.lets_pass((5).to_bytes(4, "big") + b"an answer")
    client.receive(bytes_of(server.receive(bytes_of(step), 110.0, NOW_MS)), 110.0, NOW_MS)
    assert Gate.PASS is client.gate(b"an answer", 110.0)


def test_nothing_passes_before_the_first_time() -> None:
    client = ours()
    client.begin(100.0)

    assert not client.lets_pass((5).to_bytes(4, "big") + b"an answer")


def test_a_renewal_that_is_refused_ends_the_connection() -> None:
    """A21."""
    names = iter(["alice", "bob"])
    passwords = {"alice": "secret", "bob": "hunter2"}

    def begin() -> SaslClient:
        name = next(names)
        return PlainClient(name, passwords[name])

    client, server = ours(begin), theirs(MODERN, session_ms={"PLAIN": 10_000})
    converse(client, server)

    step, _ = converse(client, server, 109.0)

    assert CloseReason.AUTHENTICATION_FAILED is step.close_reason
    assert "Cannot change principals during re-authentication" in step.detail


def test_the_life_of_a_session_comes_from_the_last_response() -> None:
    client = ours()
    client.begin(100.0)
    versions = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, max_version=1) for key in (17, 36)]
    )
    answered(client, api_keys.API_VERSIONS, 0, versions, RESERVED_IDS[0])
    answered(client, api_keys.SASL_HANDSHAKE, 1, SaslHandshakeResponse(), RESERVED_IDS[1])
    told = SaslAuthenticateResponse(session_lifetime_ms=1000)

    answered(client, api_keys.SASL_AUTHENTICATE, 1, told, RESERVED_IDS[2])

    assert 100.85 <= client.renew_at <= 100.95


def test_a_broker_that_asks_plain_for_more() -> None:
    client = PlainClient("alice", "secret")

    with pytest.raises(AuthenticationError, match="but PLAIN has no challenges"):
        client.respond(b"more?")


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans(), st.booleans())
def test_whatever_a_broker_says_is_a_step(
    payloads: list[bytes], is_answer: bool, is_let_in: bool
) -> None:
    """Nothing is raised, and who has failed says nothing more."""
    client = ours(scram_of("secret"), "SCRAM-SHA-256")
    if is_let_in:
        converse(client, theirs(MODERN, session_ms={"SCRAM-SHA-256": 1000}))
    client.begin(100.0)
    for payload in payloads:
        head = client._last_correlation_id.to_bytes(4, "big") if is_answer else b""
        step = client.receive(head + payload, 100.0, NOW_MS)
        if step.progress is Progress.FAILED:
            assert step.send is None
            assert not client.is_complete
            return
        client.lets_pass(payload)
