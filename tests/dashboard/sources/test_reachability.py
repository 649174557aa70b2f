"""What cannot be reached is noticed within seconds, and so is that it is back."""

from __future__ import annotations

import socket

import pytest
import trio
from trio.testing import MockClock

from support.ports import free_ports
from support.watching import watching
from trionet.dashboard.sources import _reachability as reachability
from trionet.dashboard.sources._reachability import ReachabilitySource


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(reachability, name, 0.01)


def listening(port: int = 0, backlog: int = 5) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen(backlog)
    return sock


async def test_where_nothing_listens_the_address_is_said_as_it_was_given() -> None:
    [port] = free_ports(1)
    async with watching(ReachabilitySource(f"localhost:{port}")) as watched:
        model = await watched.until(lambda model: model.unreachable)

    assert f"nothing listens at localhost:{port} (connection refused)" == model.unreachable
    assert [f"{model.unreachable}; trying again every second"] == list(model.alarms.values())
    assert ["reachability"] == list(model.failing)


async def test_all_of_them_are_named() -> None:
    one, other = free_ports(2)
    async with watching(ReachabilitySource(f"127.0.0.1:{one},127.0.0.1:{other}")) as watched:
        model = await watched.until(lambda model: model.unreachable)

    said = f"nothing listens at 127.0.0.1:{one}, 127.0.0.1:{other} (connection refused)"
    assert said == model.unreachable


async def test_one_that_listens_is_enough_and_what_is_back_is_noticed() -> None:
    one, other = free_ports(2)
    async with watching(ReachabilitySource(f"127.0.0.1:{one},127.0.0.1:{other}")) as watched:
        await watched.until(lambda model: model.unreachable)
        with listening(other):
            model = await watched.until(lambda model: model.unreachable is None)

    assert ({}, {}) == (model.alarms, model.failing)


async def test_a_name_without_an_address_is_told_from_a_closed_port() -> None:
    async with watching(ReachabilitySource("nowhere.invalid:9092")) as watched:
        model = await watched.until(lambda model: model.unreachable)

    assert "nowhere.invalid:9092 cannot be reached: nowhere.invalid has no address" in (
        model.unreachable or ""
    )


async def test_a_server_that_does_not_accept_is_told_from_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reachability, "CONNECT_SECONDS_MAX", 0.1)
    with listening(backlog=0) as full, socket.socket() as waiting:
        waiting.connect(full.getsockname())
        port = full.getsockname()[1]
        async with watching(ReachabilitySource(f"127.0.0.1:{port}")) as watched:
            model = await watched.until(lambda model: model.unreachable)

    assert f"no connection to 127.0.0.1:{port} within 0.1 s" == model.unreachable


async def test_a_broker_that_responds_sees_no_connections_that_come_and_go(
    autojump_clock: MockClock,
) -> None:
    with listening() as sock:
        sock.setblocking(False)
        port = sock.getsockname()[1]
        async with watching(ReachabilitySource(f"127.0.0.1:{port}"), 1.0) as watched:
            for _ in range(10):
                watched.model.responded_at = trio.current_time()
                await trio.sleep(1)
            with pytest.raises(BlockingIOError):
                sock.accept()

            await trio.sleep(10)
            sock.accept()[0].close()


async def test_what_follows_from_it_is_not_shown_beside_it() -> None:
    [port] = free_ports(1)
    async with watching(ReachabilitySource(f"127.0.0.1:{port}")) as watched:
        watched.model.set_alarm("topics", "topics could not be read", 0.0)
        assert ["topics could not be read"] == watched.model.problems
        model = await watched.until(lambda model: model.unreachable)

    assert [f"{model.unreachable}; trying again every second"] == model.problems
