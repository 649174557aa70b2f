"""The lists of a snapshot, of a server that runs."""

from __future__ import annotations

import logging
from typing import Any

import trio
import trio.testing

from support.serving import Serving, serving
from trionet.metrics._log_ring import LogRing
from trionet.metrics._registry import Registry
from trionet.net.wire._readiness import ReadinessKind
from trionet.server._closed_connections import ClosedConnections
from trionet.server.metrics._server_metrics import KINDS_MAX, ConnectionKinds
from trionet.server.metrics._snapshot_sections import (
    channels_summary,
    closed_page,
    connections_page,
    log_page,
)


def rows(rig: Serving, count_max: int = 100, before: int | None = None) -> list[dict[str, Any]]:
    page = connections_page(
        lambda: rig.server.processors, lambda request: "Echo", count_max, before
    )
    assert rig.server.statistics().connections == page.total
    return [dict(row) for row in page.rows]


async def test_an_open_connection_is_reported_with_what_it_did(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        await rig.exchange(peer, b"again")

        [row] = rows(rig)

        [channel] = rig.processors[0].selector.channels
        assert {
            "number": 0,
            "id": channel.id,
            "listener": "L0",
            "processor": 0,
            "peer": channel.attachment.peer,
            "principal": "User:ANONYMOUS",
            "software": "unknown",
            "software_version": "unknown",
            "client_id": None,
            "cipher": None,
            "protocol": None,
            "requests": 2,
            "bytes_received": len(b"....? hello....? again"),
            "bytes_sent": len(b"....! hello....! again"),
            "is_muted": False,
            "mute_state": "NOT_MUTED",
            "phase": "idle",
            "request": None,
            "staged": 0,
        } == {key: value for key, value in row.items() if not key.endswith("_seconds")}
        assert 0 <= row["idle_seconds"] <= row["age_seconds"]


async def test_a_connection_whose_request_is_in_work_is_muted(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"?")
        await rig.receive(b"?")

        [row] = rows(rig)
        assert row["is_muted"]
        assert ("MUTED_AND_RESPONSE_PENDING", "remote", "Echo") == (
            row["mute_state"],
            row["phase"],
            row["request"],
        )
        assert row["request_seconds"] > 0


async def test_frames_that_came_with_a_request_are_staged(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await peer.send_frames(b"?", b"?", b"?")
        await rig.receive(b"?")

        assert [2] == [row["staged"] for row in rows(rig)]


async def test_channels_are_counted_by_what_they_wait_for(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        await rig.exchange(await rig.connect(), b"hello")
        peer = await rig.connect()
        await peer.send_frames(b"?", b"?", b"?")
        await rig.receive(b"?")

        assert {
            "total": 2,
            "examined": 2,
            "muted": 1,
            "staged": 2,
            "with_staged": 1,
            "phases": {"idle": 1, "remote": 1},
        } == channels_summary(rig.server.processors)


async def test_pages_are_the_newest_first_and_none_comes_twice(kind: ReadinessKind) -> None:
    async with serving(kind, num_network_threads=3) as rig:
        for number in range(20):
            await rig.exchange(await rig.connect(), b"%d" % number)
        found: list[dict[str, Any]] = []
        while page := rows(rig, 3, found[-1]["number"] if found else None):
            found += page
            await rig.exchange(await rig.connect(), b"one more while pages are turned")

        numbers = [row["number"] for row in found]
        assert sorted(numbers, reverse=True) == numbers
        assert 20 <= len(set(numbers))
        oldest = {(row["processor"], row["number"] - (row["processor"] << 32)) for row in found}
        assert {(0, 6), (1, 6), (2, 5)} <= oldest


async def test_software_is_counted_as_it_comes_and_goes(kind: ReadinessKind) -> None:
    """S30."""
    async with serving(kind) as rig:
        registry = Registry()
        registry.register(ConnectionKinds(lambda: rig.server.processors).collect)

        def counts() -> dict[tuple[str, ...], float]:
            family = registry.snapshot(0)["kafka_server_socket_server_metrics_connections_software"]
            return {sample.labels: sample.value for sample in family.samples}

        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        before = counts()
        [channel] = rig.processors[0].selector.channels
        channel.attachment.client_software = ("A", "B")
        known = counts()
        peer.close()
        await trio.testing.wait_all_tasks_blocked()

        assert {("unknown", "unknown", "L0", "0"): 1} == before
        assert {("A", "B", "L0", "0"): 1} == known
        assert {} == counts()


async def test_clients_cannot_make_labels_without_end(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        for _ in range(KINDS_MAX + 20):
            await rig.exchange(await rig.connect(), b"hello")
        for number, channel in enumerate(rig.processors[0].selector.channels):
            channel.attachment.client_software = ("client", str(number))
        registry = Registry()
        registry.register(ConnectionKinds(lambda: rig.server.processors).collect)

        family = registry.snapshot(0)["kafka_server_socket_server_metrics_connections_software"]

        assert KINDS_MAX + 1 == len(family.samples)
        assert 20 == family.of("other", "other", "L0", "0")


async def test_a_closed_connection_is_reported_with_its_reason(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        port = peer.port
        peer.close()
        await trio.testing.wait_all_tasks_blocked()

        page = closed_page(rig.server.closed_connections, 10, None)

        [row] = page.rows
        assert 1 == page.total
        assert {
            "number": 0,
            "peer": f"127.0.0.1:{port}",
            "reason": "PEER_CLOSED",
            "reason_text": "the peer closed the connection",
            "listener": "L0",
            "principal": "User:ANONYMOUS",
            "requests": 1,
        }.items() <= row.items()


async def test_without_any_closed_connection_the_page_is_empty() -> None:
    page = closed_page(ClosedConnections(), 10, None)

    assert (0, []) == (page.total, page.rows)


def test_log_lines_are_reported() -> None:
    ring = LogRing()
    logger = logging.getLogger("trionet.test")
    logger.addHandler(ring)
    try:
        logger.warning("one")
        logger.warning("two")
    finally:
        logger.removeHandler(ring)

    page = log_page(ring, 1, None)

    assert 2 == page.total
    assert [(1, "WARNING", "trionet.test", "two")] == [
        (row["number"], row["level"], row["logger"], row["text"]) for row in page.rows
    ]
