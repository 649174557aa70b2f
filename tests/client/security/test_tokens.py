"""Tokens: had before the first connection, replaced in time, and never waited for.

Tokens from a server on the loopback that responds as a test says.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

import trionet
from support.tls import authority, server_context
from support.tokens import unsecured
from trionet import AuthenticationError, ConfigError, DisconnectedError
from trionet.client._backoff import ExponentialBackoff
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.client.security._settings import (
    BearerToken,
    RefreshSettings,
    SaslClientSettings,
    SecuritySettings,
    TokenEndpoint,
    TokenProvider,
)
from trionet.client.security._tokens import (
    RESPONSE_BYTES_MAX,
    RETRY_SECONDS,
    TokenLogin,
    expiry_of,
    fetch_token,
    refresh_at_ms,
)
from trionet.net._network import SYSTEM, Network
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.testing import MemoryNetwork

RULES = RefreshSettings()
HOUR = 3_600_000


def login(
    provider: TokenProvider, network: Network | None = None, refresh: RefreshSettings = RULES
) -> TokenLogin:
    return TokenLogin(provider, refresh, network or MemoryNetwork())


@pytest.mark.parametrize(
    ("life_ms", "lowest", "highest"),
    [
        (HOUR, 0.80 * HOUR, 0.85 * HOUR),
        (600_000, 300_000, 300_000),  # five minutes before its end, which is before 80 %
        (360_000, 60_000, 60_000),  # so late as that allows, and not sooner than after a minute
        (300_000, 240_000, 255_000),  # there is no room for both
    ],
)
def test_when_a_token_is_replaced(life_ms: int, lowest: float, highest: float) -> None:
    for seed in range(20):
        found = refresh_at_ms(1000, 1000 + life_ms, RULES, random.Random(seed))

        assert lowest <= found - 1000 <= highest


@given(st.integers(1, 10 * HOUR), st.floats(0.5, 1.0), st.floats(0, 0.25), st.randoms())
def test_a_token_is_replaced_while_it_is_good(
    life_ms: int, factor: float, jitter: float, rng: random.Random
) -> None:
    rules = RefreshSettings(window_factor=factor, window_jitter=min(jitter, 1 - factor))

    assert 0 <= refresh_at_ms(0, life_ms, rules, rng) <= life_ms


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (unsecured({"exp": 1000}), 1_000_000),
        (unsecured({"exp": 1000.5}), 1_000_500),
        (unsecured({}), None),
        (unsecured({"exp": "soon"}), None),
        (unsecured({"exp": 10**400}), None),
        ("opaque", None),
        ("a.b.c", None),
        ("a.W10.c", None),  # a list
    ],
)
def test_what_a_token_says_of_its_end(token: str, expected: int | None) -> None:
    assert expected == expiry_of(token)


async def test_an_async_provider_is_awaited(autojump_clock: MockClock) -> None:
    async def provide() -> str:
        await trio.sleep(5)
        return "token"

    begun = login(provide)
    await begun.log_in()

    assert BearerToken("token") == begun.token


async def test_a_plain_provider_may_wait_and_holds_up_no_other() -> None:
    """It is called in a thread; one of its own clock, because a virtual one has no threads."""
    released = threading.Event()
    begun = login(lambda: "token" if released.wait(10) else "late", SYSTEM)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(begun.log_in)
        await trio.testing.wait_all_tasks_blocked()
        released.set()

    assert "token" == begun.token.value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "returned a NoneType"),
        (b"bytes", "returned a bytes"),
        ("two words", "contains an invalid character"),
        (BearerToken("x", extensions={"auth": "x"}), "'auth'; allowed: letters"),
        (unsecured({"exp": 1000}), "a token that has already expired"),
        (BearerToken("x", expires_ms=1), "a token that has already expired"),
    ],
)
async def test_what_is_no_good_token_is_reported(given: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        await login(lambda: given).log_in()


async def test_a_token_is_replaced_and_a_provider_that_fails_is_asked_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    network = MemoryNetwork()
    asked_at: list[float] = []

    def provide() -> BearerToken:
        asked_at.append(trio.current_time())
        if len(asked_at) == 2:
            raise OSError("the issuer is away")
        number = len(asked_at)
        return BearerToken(f"token{number}", network.now_ms() + HOUR)

    begun = login(provide, network)
    await begun.log_in()
    with trio.move_on_after(1.8 * 3600), caplog.at_level(logging.WARNING):
        await begun.keep_token_fresh()

    assert [1, 2, 3, 4] == list(range(1, len(asked_at) + 1))
    assert 0.8 * 3600 <= asked_at[1] <= 0.85 * 3600
    assert RETRY_SECONDS == pytest.approx(asked_at[2] - asked_at[1])
    assert "token4" == begun.token.value
    assert "token provider failed" in caplog.text


async def test_a_token_without_an_end_is_kept(autojump_clock: MockClock) -> None:
    begun = login(lambda: "opaque")
    await begun.log_in()

    with trio.fail_after(1):
        await begun.keep_token_fresh()


async def test_the_error_of_a_provider_is_reported_as_it_is_when_the_client_is_opened() -> None:
    def provide() -> str:
        raise PermissionError("no")

    sasl = SaslClientSettings(mechanism="OAUTHBEARER", token_provider=provide)
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    with pytest.raises(PermissionError):
        async with open_network_client("127.0.0.1:1", ClientSettings(security=security)):
            raise AssertionError("it was opened")


async def test_a_client_is_closed_although_its_provider_hangs() -> None:
    """The thread is left behind, and what it gives is for nobody."""
    released = threading.Event()
    sasl = SaslClientSettings(
        mechanism="OAUTHBEARER", token_provider=lambda: str(released.wait(10))
    )
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    begin = time.perf_counter()
    with trio.move_on_after(0.05) as scope:
        async with open_network_client("127.0.0.1:1", ClientSettings(security=security)):
            raise AssertionError("it was opened")
    released.set()

    assert scope.cancelled_caught
    assert time.perf_counter() - begin < 5


OAUTH = "org.apache.kafka.common.security.oauthbearer"
AT_ONCE = ExponentialBackoff(0.001, 0.01)
OPAQUE = {"access_token": "opaque", "expires_in": 60}


def http(body: object, status: str = "200 OK") -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(text), text)


@asynccontextmanager
async def server(
    *answers: bytes, tls: bool = False
) -> AsyncIterator[tuple[TokenEndpoint, list[bytes]]]:
    """Gives these responses; the last one again and again."""
    seen: list[bytes] = []
    left = list(answers)

    async def serve(stream: trio.abc.Stream) -> None:
        try:
            async with stream:
                asked = b""
                while b"grant_type" not in asked:
                    asked += await stream.receive_some()
                seen.append(asked)
                await stream.send_all(left.pop(0) if len(left) > 1 else left[0])
        except trio.BrokenResourceError:
            pass  # a client that does not trust us, or has heard enough

    [tcp] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = tcp.socket.getsockname()[1]
    listener = trio.SSLListener(tcp, server_context()) if tls else tcp
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield (
            TokenEndpoint(
                url=f"{'https' if tls else 'http'}://127.0.0.1:{port}/token?a=b",
                client_id="me",
                client_secret="sesame:+",
                retry=AT_ONCE,
            ),
            seen,
        )
        nursery.cancel_scope.cancel()


async def test_credentials_are_exchanged_for_a_token() -> None:
    """KIP-768."""
    async with server(http(OPAQUE)) as (endpoint, seen):
        before = SYSTEM.now_ms()
        token = await fetch_token(attrs.evolve(endpoint, scope="a b"), SYSTEM)
        await fetch_token(attrs.evolve(endpoint, has_encoded_header=True), SYSTEM)

    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert b"POST /token?a=b HTTP/1.1" == head.splitlines()[0]
    assert b"Basic " + base64.b64encode(b"me:sesame:+") in head
    assert b"grant_type=client_credentials&scope=a+b" == body
    assert b"Basic " + base64.b64encode(b"me:sesame%3A%2B") in seen[1]
    assert "opaque" == token.value
    assert token.expires_ms is not None
    assert 0 <= token.expires_ms - before - 60_000 < 30_000


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (http({"error": "invalid_client"}, "401 No"), "no token: status 401 invalid_client"),
        (http(b"<html>"), "no token: status 200"),
        (http({"access_token": 7}), "no token: status 200"),
        (http(b"[" * 100_000), "no token: status 200$"),
        (http({"error": "x" * 10_000}, "400 No"), "no token: status 400 x{200}$"),
        (http(b"x" * (RESPONSE_BYTES_MAX + 1)), "exceeds 1000000 bytes"),
    ],
)
async def test_server_that_gives_no_token_is_asked_once_and_reported(
    answer: bytes, said: str
) -> None:
    async with server(answer) as (endpoint, seen):
        with pytest.raises(AuthenticationError, match=said) as raised:
            await fetch_token(endpoint, SYSTEM)

    assert 1 == len(seen)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("seconds", "is_known"), [("60", True), (60.0, True), ("soon", False), (10**400, False)]
)
async def test_end_of_a_token_is_reported_as_servers_report_it(
    seconds: object, is_known: bool
) -> None:
    async with server(http({"access_token": "opaque", "expires_in": seconds})) as (endpoint, _):
        token = await fetch_token(endpoint, SYSTEM)

    assert is_known == (token.expires_ms is not None)


async def test_what_may_pass_is_tried_again_for_a_while() -> None:
    busy, gone = http({}, "503 Busy"), b""
    async with server(busy, gone, http(OPAQUE)) as (endpoint, seen):
        patient = attrs.evolve(endpoint, retry=ExponentialBackoff(0.001, 30))
        assert "opaque" == (await fetch_token(patient, SYSTEM)).value
        assert 3 == len(seen)
    async with server(busy) as (endpoint, _):
        with pytest.raises(DisconnectedError, match="could not get a token"):
            await fetch_token(endpoint, SYSTEM)
    with pytest.raises(DisconnectedError, match="could not get a token"):
        await fetch_token(endpoint, SYSTEM)  # nobody listens any more


async def test_token_may_lie_in_a_file_that_something_else_keeps(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text("opaque\n")
    endpoint = TokenEndpoint(url=path.as_uri(), extensions={"logicalCluster": "lkc-1"})

    assert BearerToken("opaque", None, {"logicalCluster": "lkc-1"}) == await fetch_token(
        endpoint, SYSTEM
    )
    path.unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        await fetch_token(endpoint, SYSTEM)


async def test_client_logs_in_with_tokens_of_a_server_that_speaks_tls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    token = unsecured({"sub": "alice", "iat": int(time.time()), "exp": int(time.time()) + 3600})
    handler = f"{OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": handler,
    }
    async with server(http({"access_token": token}), tls=True) as (endpoint, _):
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
            "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required"
            ' clientId="me" clientSecret="sesame";',
            "sasl.login.retry.backoff.max.ms": "10",
        }
        async with trionet.open_broker(settings) as broker:
            with pytest.raises(DisconnectedError, match="certificate verify failed"):
                async with trionet.open_admin(broker.bootstrap_servers, config):
                    pass
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
            async with trionet.open_admin(broker.bootstrap_servers, config) as admin:
                assert {} == await admin.list_topics()
