"""The requests of connections that somebody watches."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from support.serving import Serving, answer, serving
from trionet.metrics._request_times import PHASES
from trionet.net.wire._readiness import ReadinessKind
from trionet.server.metrics import _request_tap as taps
from trionet.server.metrics._http_exchange import Refused
from trionet.server.metrics._request_tap import RequestTap


def rows(tap: RequestTap, id: str, before: int | None = None) -> list[Any]:
    return list(tap.watch(id)(100, before).rows)


def ids(rig: Serving) -> list[str]:
    """The ids of the connections, in the order in which they were opened."""
    return [channel.id for channel in rig.processors[0].selector.channels]


async def test_requests_are_those_of_one_connection_since_it_is_watched(
    kind: ReadinessKind,
) -> None:
    async with serving(kind) as rig:
        tap = RequestTap(rig.server.recording, lambda request: "Echo")
        peer, other = await rig.connect(), await rig.connect()
        await rig.exchange(peer, b"before")
        await rig.exchange(other, b"before")
        first, _ = ids(rig)
        assert [] == rows(tap, first)

        await rig.exchange(peer, b"one")
        await rig.exchange(other, b"another")
        await rig.exchange(peer, b"the second")
        newest, oldest = rows(tap, first)

        assert [oldest] == rows(tap, first, newest["number"])
        assert 1 == newest["number"] - oldest["number"]
        assert newest["time"] > oldest["time"]
        assert ("Echo", len(b"? one"), len(b"! one"), 0) == (
            oldest["api"],
            oldest["request_bytes"],
            oldest["response_bytes"],
            oldest["error_code"],
        )
        assert list(PHASES) == list(oldest["phases_ms"])
        *phases, total = oldest["phases_ms"].values()
        assert total == pytest.approx(sum(phases))


async def test_a_throttle_is_known_when_it_is_over(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        tap = RequestTap(rig.server.recording, lambda request: "Echo")
        peer = await rig.connect()
        await rig.exchange(peer, b"first")
        [id] = ids(rig)
        tap.watch(id)
        await peer.send_frames(b"?")
        request = await rig.receive(b"?")
        request.start_throttling()
        request.respond(answer(b"!"))
        await peer.receive_frame()
        with trio.fail_after(5):
            while not (found := rows(tap, id)):
                await trio.lowlevel.checkpoint()
        assert 0 == found[0]["phases_ms"]["ThrottleTimeMs"]

        request.end_throttling()
        assert 0 < rows(tap, id)[0]["phases_ms"]["ThrottleTimeMs"]


async def test_nothing_is_recorded_once_nobody_has_asked_for_long(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(kind) as rig:
        tap = RequestTap(rig.server.recording, lambda request: "Echo")
        peer = await rig.connect()
        await rig.exchange(peer, b"first")
        [id] = ids(rig)
        tap.watch(id)
        await rig.exchange(peer, b"recorded")
        [before] = rows(tap, id)

        monkeypatch.setattr(taps, "WATCHED_NS", 0)
        await rig.exchange(peer, b"the last one")
        assert () == rig.server.recording.recorders
        monkeypatch.undo()
        assert [] == rows(tap, id)
        await rig.exchange(peer, b"recorded again")
        [after] = rows(tap, id)
        assert after["number"] > before["number"]


async def test_each_set_of_metrics_watches_for_itself(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dashboard in the broker's process and one by its local socket do."""
    async with serving(kind) as rig:
        first, second, third = (
            RequestTap(rig.server.recording, lambda request: "Echo") for _ in range(3)
        )
        peer = await rig.connect()
        await rig.exchange(peer, b"first")
        [id] = ids(rig)
        first.watch(id)
        second.watch(id)
        monkeypatch.setattr(taps, "WATCHED_NS", 0)
        await rig.exchange(peer, b"the last one of both")
        monkeypatch.undo()
        third.watch(id)
        first.watch(id)
        await rig.exchange(peer, b"seen by two")

        assert (1, 1) == (len(rows(third, id)), len(rows(first, id)))
        assert (third, first) == rig.server.recording.recorders


async def test_of_a_long_client_id_only_the_beginning_is_kept(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        tap = RequestTap(rig.server.recording, lambda request: "Echo")
        peer = await rig.connect()
        await rig.exchange(peer, b"first")
        [id] = ids(rig)
        tap.watch(id)
        await peer.send_frames(b"?")
        request = await rig.receive(b"?")
        request.client_id = "x" * 32_767
        request.respond(answer(b"!"))
        await peer.receive_frame()
        with trio.fail_after(5):
            while not (found := rows(tap, id)):
                await trio.lowlevel.checkpoint()

        assert "x" * 256 == found[0]["client_id"]


async def test_only_a_few_connections_are_watched_at_a_time(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        tap = RequestTap(rig.server.recording, lambda request: "Echo")
        peer = await rig.connect()
        await rig.exchange(peer, b"first")
        [id] = ids(rig)
        tap.watch(id)
        for number in range(taps.CONNECTIONS_MAX):
            tap.watch(f"another-{number}")
        await rig.exchange(peer, b"unseen")

        assert [] == rows(tap, id)


def test_which_connection_is_asked_for() -> None:
    with pytest.raises(Refused, match="connection is missing"):
        RequestTap(None, lambda request: None).section({})  # type: ignore[arg-type] # untouched
