"""Keys of an issuer: read at the start, read again when due, and hurried only so much."""

from __future__ import annotations

import contextlib
import http.server
import logging
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from support.tokens import OTHER_RSA_KEY, RSA_KEY, jwk, key_set
from support.wire import LOOPBACK
from trionet.errors import ConfigError
from trionet.net.sasl._jwt import (
    BYTES_MAX,
    READINGS_SECONDS_MIN,
    WAIT_SECONDS_MIN,
    Jwks,
    RefreshSchedule,
    RefreshTimes,
)

TIMES = RefreshTimes(refresh_ms=60_000, retry_ms=1000, retry_ms_max=5000)


@contextmanager
def http_server(status: int, body: bytes, **headers: str) -> Iterator[str]:
    """A server that responds to everything with the same; its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # who has read enough goes
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/keys"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def raw_server(answer: list[bytes]) -> Iterator[str]:
    """A server that responds to each connection with the last of these bytes; its URL."""

    def serve() -> None:
        with contextlib.suppress(OSError):  # the end of the test
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(ConnectionError):
                    client.recv(65_536)
                    client.sendall(answer[-1])

    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{listener.getsockname()[1]}/keys"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


async def test_keys_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(key_set(jwk(RSA_KEY, kid="a")))
    jwks = Jwks(path.as_uri(), TIMES)
    assert not jwks.find("a", "RS256")

    await jwks.load()

    assert jwks.find("a", "RS256")
    assert not jwks.find("b", "RS256")


async def test_keys_come_from_a_server() -> None:
    with http_server(200, key_set(jwk(RSA_KEY, kid="a")).encode()) as url:
        jwks = Jwks(url, TIMES)
        await jwks.load()

    assert jwks.find("a", "RS256")


@pytest.mark.parametrize("kind", ["http", "file"])
async def test_keys_of_this_machine_come_through_no_proxy(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owned the proxy could let anybody in."""
    path = tmp_path / "keys.json"
    path.write_text(key_set(jwk(RSA_KEY, kid="own")))
    with (
        http_server(200, path.read_bytes()) as own,
        http_server(200, key_set(jwk(OTHER_RSA_KEY, kid="proxy")).encode()) as proxy,
    ):
        monkeypatch.setenv(f"{kind}_proxy", proxy)
        jwks = Jwks(own if kind == "http" else path.as_uri(), TIMES)
        await jwks.load()

    assert jwks.find("own", "RS256")


@pytest.mark.parametrize(
    ("status", "body", "headers", "why"),
    [
        (404, b"", {}, "HTTP Error 404: Not Found"),
        (200, b"garbage", {}, "not a JSON Web Key Set"),
        (200, b" " * (BYTES_MAX + 1), {}, "the key set is too large"),
        (302, b"", {"Location": "/elsewhere"}, "HTTP Error 302"),
    ],
)
async def test_any_other_response_of_a_server_is_an_error_at_the_start(
    status: int, body: bytes, headers: dict[str, str], why: str
) -> None:
    with http_server(status, body, **headers) as url:
        expected = re.escape(f"sasl.oauthbearer.jwks.endpoint.url: cannot read {url}: {why}")
        with pytest.raises(ConfigError, match=expected):
            await Jwks(url, TIMES).load()


NO_HTTP = {
    "status line": b"garbage\r\n\r\n",
    "header": b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000,
    "number of headers": b"HTTP/1.1 200 OK\r\n" + b"x: x\r\n" * 200 + b"\r\n",
    "cut chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nx",
    "no chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
}


@pytest.mark.parametrize("answer", NO_HTTP.values(), ids=list(NO_HTTP))
async def test_what_is_no_http_is_an_error_at_the_start(answer: bytes) -> None:
    with raw_server([answer]) as url:
        expected = f"^sasl.*: cannot read {url}: not a valid HTTP response: "
        with pytest.raises(ConfigError, match=expected) as caught:
            await Jwks(url, TIMES).load()

    assert len(str(caught.value)) < 400
    assert "\r" not in str(caught.value)


async def test_a_port_that_is_no_number_is_an_error_at_the_start() -> None:
    with pytest.raises(ConfigError, match="nonnumeric port"):
        await Jwks(f"http://{LOOPBACK}:abc/", TIMES).load()


async def test_a_response_that_is_no_http_keeps_the_keys(
    mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    body = key_set(jwk(RSA_KEY, kid="a")).encode()
    answer = [b"HTTP/1.0 200 OK\r\n\r\n" + body]
    with raw_server(answer) as url:
        jwks = Jwks(url, TIMES)
        await jwks.load()
        answer.append(NO_HTTP["status line"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(jwks.run)
            await wait_all_tasks_blocked()
            mock_clock.jump(60)
            await readings(jwks, 1)
            nursery.cancel_scope.cancel()

    assert "not a valid HTTP response: BadStatusLine" in caplog.text
    assert jwks.find("a", "RS256")


async def test_a_file_that_is_not_there_is_an_error_at_the_start(tmp_path: Path) -> None:
    url = (tmp_path / "none").as_uri()

    with pytest.raises(ConfigError, match=rf"cannot read {url}: No such file or directory$"):
        await Jwks(url, TIMES).load()


async def test_a_server_without_a_trusted_certificate_is_an_error_at_the_start() -> None:
    with http_server(200, b"{}") as url:
        secure = url.replace("http:", "https:")

        with pytest.raises(ConfigError, match=rf"cannot read {secure}: wrong version number$"):
            await Jwks(secure, TIMES).load()


@pytest.mark.parametrize(
    "url", ["", "keys.json", "/keys", "http://example.org/", "ftp://x/", "https://[::1/"]
)
def test_keys_come_only_over_ways_that_no_third_party_can_change(url: str) -> None:
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url"):
        Jwks(url, TIMES)


async def readings(jwks: Jwks, count: int) -> None:
    """Wait for the thread that reads; virtual time stands still meanwhile."""
    while jwks.readings < count:
        await wait_all_tasks_blocked()


async def test_keys_are_read_again_when_they_are_due(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(key_set(jwk(RSA_KEY, kid="a")))
    jwks = Jwks(path.as_uri(), TIMES)
    await jwks.load()
    path.write_text(key_set(jwk(OTHER_RSA_KEY, kid="b")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(jwks.run)
        mock_clock.jump(59)
        await wait_all_tasks_blocked()
        assert jwks.find("a", "RS256")
        mock_clock.jump(2)
        await readings(jwks, 1)
        nursery.cancel_scope.cancel()

    assert not jwks.find("a", "RS256")
    assert jwks.find("b", "RS256")


async def test_a_missing_key_hurries_the_next_reading_and_a_failed_one_keeps_the_keys(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(key_set(jwk(RSA_KEY, kid="a")))
    jwks = Jwks(path.as_uri(), TIMES)
    await jwks.load()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(jwks.run)
        await wait_all_tasks_blocked()
        path.write_text("garbage")
        for _ in range(2):
            assert not jwks.find("b", "RS256")
        await wait_all_tasks_blocked()
        assert 0 == jwks.readings
        with caplog.at_level(logging.WARNING):
            mock_clock.jump(READINGS_SECONDS_MIN)
            await readings(jwks, 1)
        assert "keeping the old keys" in caplog.text
        assert jwks.find("a", "RS256")

        path.write_text(key_set(jwk(OTHER_RSA_KEY, kid="b")))
        mock_clock.jump(1)
        await readings(jwks, 2)
        nursery.cancel_scope.cancel()

    assert jwks.find("b", "RS256")


def test_failures_are_tried_again_ever_later() -> None:
    schedule = RefreshSchedule(TIMES, 0.0)
    waits = []
    for _ in range(5):
        schedule.failed(100.0)
        waits.append(schedule.next_at - 100)

    assert [1, 2, 4, 5, 5] == waits
    schedule.succeeded(200.0)
    assert 260 == schedule.next_at
    schedule.failed(300.0)
    assert 301 == schedule.next_at


@pytest.mark.parametrize("milliseconds", [-1, 0, 1])
def test_however_small_the_waits_are_readings_keep_some_distance(milliseconds: int) -> None:
    schedule = RefreshSchedule(RefreshTimes(milliseconds, milliseconds, milliseconds), 0.0)
    waits = [schedule.next_at]
    schedule.succeeded(100.0)
    waits.append(schedule.next_at - 100)
    schedule.failed(100.0)
    waits.append(schedule.next_at - 100)

    assert pytest.approx([WAIT_SECONDS_MIN] * 3) == waits


@given(st.lists(st.tuples(st.sampled_from(["hurry", "step"]), st.floats(0, 5)), max_size=200))
def test_however_often_keys_are_missing_readings_keep_their_distance(
    events: list[tuple[str, float]],
) -> None:
    schedule = RefreshSchedule(TIMES, 0.0)
    now, last = 0.0, 0.0
    for kind, seconds in events:
        if kind == "hurry":
            schedule.hurry()
        now += seconds
        if now >= schedule.next_at:
            assert now - last >= READINGS_SECONDS_MIN
            schedule.succeeded(now)
            last = now


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs Linux's devices")
async def test_a_path_to_what_is_no_file_is_an_error_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", "/dev/ptmx", str(pipe), str(tmp_path)):
        with pytest.raises(ConfigError, match=r"cannot read file:.*: it is a (pipe|dev|dir)"):
            await Jwks(f"file://{path}", TIMES).load()


def test_a_file_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be file:///"):
        Jwks("file://elsewhere/keys.json", TIMES)
