"""Nothing ends a server but its cancellation: what raises outside a channel's step is noted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.serving import answer, serving
from trionet.net.wire._readiness import ReadinessKind
from trionet.server._recorder import LoopFaults
from trionet.server.quotas._connection_quotas import ConnectionQuotas


class FaultyRecorder:
    """Raises whenever it is told something."""

    def take(self, finished: list[Any]) -> None:
        raise RuntimeError(f"no room for {len(finished)}")

    def throttle_ended(self, request: Any) -> None:
        raise RuntimeError("no room for a pause")

    def closed(self, closed: Any, connection: Any) -> None:
        raise RuntimeError("no room for a connection")


def failing(times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """Raises so often before it does what it should."""
    left = iter(range(times))

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is not None:
            raise RuntimeError("not today")
        return then(*args, **kwargs)

    return call


async def test_a_recorder_that_raises_costs_nothing_but_its_records(
    kind: ReadinessKind, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(kind, recorder=FaultyRecorder()) as rig:
        peer = await rig.connect()
        for number in range(20):
            await rig.exchange(peer, b"%d" % number)
        await peer.send_frames(b"slow")
        request = await rig.receive(b"slow")
        request.start_throttling()
        request.end_throttling()
        request.respond(answer(b"done"))
        assert b"done" == await peer.receive_frame()
        peer.close()
        await wait_all_tasks_blocked()
        await rig.exchange(await rig.connect(), b"next")

        assert rig.server.statistics().unexpected_errors >= 20
    assert "the recorder of requests failed; the server keeps running" in caplog.text
    assert "the recorder of connections failed; the server keeps running" in caplog.text
    lines = [each for each in caplog.records if "; the server keeps running" in each.getMessage()]
    assert 2 <= len(lines) <= 8  # at most one a second of each kind
    assert all(each.exc_info is not None for each in lines)


async def test_a_turn_that_fails_is_followed_by_the_next(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota is asked in every turn that was woken."""
    async with serving(kind) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"before")
        [processor] = rig.processors
        quotas = rig.server.quotas
        monkeypatch.setattr(quotas, "is_exceeded", failing(3, quotas.is_exceeded))

        for number in range(5):
            processor.selector.wakeup()
            await rig.exchange(peer, b"%d" % number)

        assert 3 == rig.server.statistics().unexpected_errors
        assert processor.counts.in_flight == 0


async def test_an_acceptor_whose_quota_fails_goes_on(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that was to be counted is closed."""
    async with serving(kind) as rig:
        quotas: ConnectionQuotas = rig.server.quotas
        monkeypatch.setattr(quotas, "try_admit", failing(1, quotas.try_admit))
        unlucky = await rig.connect()
        assert b"" == await unlucky.receive_to_end()

        await rig.exchange(await rig.connect(), b"next")

        assert 1 == rig.server.statistics().unexpected_errors
        assert 1 == quotas.total


async def test_a_failure_of_the_listening_socket_ends_nothing(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(kind) as rig:
        [acceptor] = rig.server._listeners.values()
        monkeypatch.setattr(acceptor, "_accept", failing(1, acceptor._accept))
        peer = await rig.connect()

        await rig.exchange(peer, b"after a pause")

        assert 1 == rig.server.statistics().unexpected_errors
        assert {} == rig.reasons()


async def test_who_fails_again_and_again_is_logged_once_a_second(
    caplog: pytest.LogCaptureFixture, mock_clock: MockClock
) -> None:
    log = logging.LoggerAdapter(logging.getLogger("trionet.server"))
    faults = LoopFaults(log)
    for _ in range(10):
        faults.note("one", RuntimeError("a"))
        faults.note("other", RuntimeError("b"))
    assert 2 == len(caplog.records)

    mock_clock.jump(1.0)
    faults.note("one", RuntimeError("c"))

    assert 21 == faults.count
    assert 3 == len(caplog.records)
    assert "one failed, and 9 more times since the last such line; the server" in caplog.text
    await trio.lowlevel.checkpoint()
