"""Tokens from a server on the loopback that responds as a test says."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

import trionet
from support.tls import authority, server_context
from support.tokens import unsecured
from trionet import AuthenticationError, ConfigError, DisconnectedError
from trionet.client._backoff import ExponentialBackoff
from trionet.client.security._settings import BearerToken, TokenEndpoint
from trionet.client.security._token_retriever import RESPONSE_BYTES_MAX, fetch_token
from trionet.net._network import SYSTEM

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
