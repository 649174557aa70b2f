"""Connections that come faster than processors take them (KIP-402)."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from support.selecting import CountingReadiness
from support.serving import answer, serving
from support.wire import LOOPBACK
from trionet.net.wire._readiness import ReadinessKind
from trionet.server._connection import CONNECTION_QUEUE_SIZE


async def test_flood_of_connections_is_registered_a_queue_at_a_time(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P53, KIP-402: the loop polls between, so that old connections are served meanwhile."""
    count = 5 * CONNECTION_QUEUE_SIZE
    # More than a queue holds, so that the acceptor has to wait, whoever runs first.
    monkeypatch.setattr("trionet.server._acceptor.ACCEPTS_PER_WAKEUP_MAX", count)
    async with serving(kind) as rig:
        old = await rig.connect()
        await rig.exchange(old, b"old")
        await wait_all_tasks_blocked()
        [processor] = rig.processors
        selector = processor.selector
        seen = []

        class Watched(CountingReadiness):
            def poll(self, *arguments: Any, **named: Any) -> list[tuple[int, int]]:
                seen.append(processor.counts.connection_count)
                return super().poll(*arguments, **named)

        selector._steps.readiness = Watched(selector._steps.readiness)
        with ExitStack() as opened:
            for _ in range(count):
                address = (LOOPBACK, rig.server.endpoints[0].port)
                opened.enter_context(socket.create_connection(address, timeout=5))
            await wait_all_tasks_blocked()

            assert 1 + count == processor.counts.connection_count
            steps = [after - before for before, after in pairwise(seen)]
            assert max(steps) <= CONNECTION_QUEUE_SIZE + 1
            assert len([step for step in steps if step]) >= 4
            assert 0 < rig.server.quotas.listener("L0").blocked_seconds
            await rig.exchange(old, b"still")


async def test_full_processor_is_passed_over(kind: ReadinessKind) -> None:
    """Two processors take two queues at once, and nobody is lost when both are full."""
    count = 5 * CONNECTION_QUEUE_SIZE
    async with serving(kind, num_network_threads=2) as rig:
        with ExitStack() as opened:
            for _ in range(count):
                address = (LOOPBACK, rig.server.endpoints[0].port)
                opened.enter_context(socket.create_connection(address, timeout=5))
            await wait_all_tasks_blocked()

            shares = [processor.counts.connection_count for processor in rig.processors]
            assert count == sum(shares)
            assert min(shares) >= CONNECTION_QUEUE_SIZE


async def test_connection_that_waited_for_room_is_registered_without_another_event(
    kind: ReadinessKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than the queue holds; and the loop parks as soon as it finds nothing."""
    monkeypatch.setattr("trionet.net._selector.EMPTY_POLLS_BEFORE_PARK", 0)
    async with serving(kind) as rig:
        port = rig.server.endpoints[0].port
        with ExitStack() as opened:
            for _ in range(CONNECTION_QUEUE_SIZE + 1):
                opened.enter_context(socket.create_connection((LOOPBACK, port), timeout=5))
            await wait_all_tasks_blocked()

            assert CONNECTION_QUEUE_SIZE + 1 == rig.server.statistics().connections


class Deaf(CountingReadiness):
    """A backend that cannot be woken up."""

    def wakeup(self) -> None:
        pass


@pytest.mark.parametrize("turns", [0, 1])
async def test_last_processor_in_turn_is_waited_for_when_all_are_full(
    kind: ReadinessKind, turns: int
) -> None:
    """KIP-402: and the next connection begins with the same one again."""
    async with serving(kind, num_network_threads=2) as rig:
        for _ in range(turns):
            await rig.connect()
        await wait_all_tasks_blocked()
        for processor in rig.processors:
            processor.selector._steps.readiness = Deaf(processor.selector._steps.readiness)
        for _ in range(2 * CONNECTION_QUEUE_SIZE + 1):
            await rig.connect()
        await wait_all_tasks_blocked()

        waiting = [
            processor.new_connections._outgoing.statistics().tasks_waiting_send
            for processor in rig.processors
        ]
        assert ([0, 1] if turns == 0 else [1, 0]) == waiting


@pytest.mark.parametrize("how", ["cancelled", "stopped"])
async def test_server_that_ends_while_its_acceptor_waits_for_room_leaves_nothing_open(
    kind: ReadinessKind, how: str
) -> None:
    """P6, KAFKA-9796: and neither waits for the other."""
    async with serving(kind) as rig:
        await wait_all_tasks_blocked()
        [processor] = rig.processors
        processor.selector._steps.readiness = Deaf(processor.selector._steps.readiness)
        for _ in range(CONNECTION_QUEUE_SIZE + 5):
            await rig.connect()
        await wait_all_tasks_blocked()
        assert 1 == processor.new_connections._outgoing.statistics().tasks_waiting_send

        if how == "stopped":
            await rig.server.stop()

    assert 0 == rig.server.quotas.total


async def test_full_queue_does_not_keep_the_response_of_a_connection(kind: ReadinessKind) -> None:
    async with serving(kind) as rig:
        peers = [await rig.connect() for _ in range(3 * CONNECTION_QUEUE_SIZE)]
        for number, peer in enumerate(peers):
            await peer.send_frames(b"%d" % number)
        for _ in peers:
            request = await rig.requests.receive()
            request.respond(answer(bytes(request.payload)))

        for number, peer in enumerate(peers):
            assert b"%d" % number == await peer.receive_frame()
