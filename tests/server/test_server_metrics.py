"""The metrics of a server that runs, as its connections see it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import Serving, answer, serving
from support.tls import client_context, server_context
from support.wire import Peer
from trionet.metrics._loop import LoopMonitor
from trionet.metrics._registry import Registry, Snapshot
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import Request, Response, SocketServer
from trionet.server._channel_builder import ListenerSecurity
from trionet.server.metrics._server_metrics import UnnamedRequests, server_collectors, server_state

GROUP = "kafka_server_socket_server_metrics_"
PROCESSORS_IDLE = "kafka_network_socketserver_networkprocessoravgidle_percent"
PROCESSOR_IDLE = "kafka_network_processor_idle_percent"
TOTAL_TIME = "kafka_network_requestmetrics_totaltimems"
HANDLERS_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
MEGABYTE = 1024 * 1024


class Measured:
    """Takes snapshots of a server, one second of the registry's clock after the other."""

    def __init__(self, server: SocketServer, monitor: LoopMonitor) -> None:
        self.registry = Registry()
        self._now = 0
        for collect in server_collectors(server, monitor.statistics, UnnamedRequests(server)):
            self.registry.register(collect)
        self.snapshot()

    def snapshot(self) -> Snapshot:
        self._now += 1
        return self.registry.snapshot(self._now)

    def sum(self, name: str) -> float:
        """A selector metric of all processors together."""
        return sum(sample.value for sample in self.snapshot()[GROUP + name].samples)


@asynccontextmanager
async def measured(kind: ReadinessKind) -> AsyncIterator[tuple[Serving, Measured]]:
    with LoopMonitor() as monitor:
        async with serving(kind, socket_send_buffer_bytes=4096) as rig:
            yield rig, Measured(rig.server, monitor)


async def test_bytes_are_counted_as_they_move_and_frames_when_they_are_whole(
    kind: ReadinessKind,
) -> None:
    """S11, KAFKA-9056: in the metrics, too."""
    payload = bytes(20 * 64 * 1024)
    async with measured(kind) as (rig, metrics):
        peer = await rig.connect(receive_buffer_bytes=4096)
        await peer.send(len(payload).to_bytes(4, "big") + payload[:100_000])
        await wait_all_tasks_blocked(0.01)
        assert 100_004 == metrics.sum("incoming_byte_total")
        assert 0 == metrics.sum("response_total")

        await peer.send(payload[100_000:])
        request = await rig.receive(payload)
        assert len(payload) + 4 == metrics.sum("incoming_byte_total")
        assert 1 == metrics.sum("response_total")

        request.respond(answer(payload))
        await peer.receive(4 + 100_000)
        assert 100_004 <= metrics.sum("outgoing_byte_total") < len(payload)
        assert 0 == metrics.sum("request_total")

        await peer.receive(len(payload) - 100_000)
        await wait_all_tasks_blocked()
        assert len(payload) + 4 == metrics.sum("outgoing_byte_total")
        assert 1 == metrics.sum("request_total")
        assert len(payload) + 4 == metrics.sum("request_size_max")


async def test_inbound_connections_are_counted(kind: ReadinessKind) -> None:
    """S29."""
    async with measured(kind) as (rig, metrics):
        peers = [await rig.connect() for _ in range(5)]
        for peer in peers:
            await rig.exchange(peer, b"hello")
        assert (5, 5, 0) == tuple(
            metrics.sum(f"connection_{name}") for name in ("creation_total", "count", "close_total")
        )

        for peer in peers[:2]:
            peer.close()
        await wait_all_tasks_blocked(0.01)
        assert (5, 3, 2) == tuple(
            metrics.sum(f"connection_{name}") for name in ("creation_total", "count", "close_total")
        )
        closed = metrics.snapshot()["trionet_connections_closed_total"]
        assert 2 == closed.of(CloseReason.PEER_CLOSED.name)


async def test_a_request_is_timed_from_its_last_byte_to_that_of_its_response(
    kind: ReadinessKind,
) -> None:
    async with measured(kind) as (rig, metrics):
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        await wait_all_tasks_blocked()

        snapshot = metrics.snapshot()

        assert 1 == snapshot[TOTAL_TIME].of("")
        sums = {
            name: sample.value
            for name, family in snapshot.items()
            if name.endswith("timems")
            for sample in family.samples
            if sample.suffix == "_sum"
        }
        total = sums.pop(TOTAL_TIME)
        assert 0 < total == pytest.approx(sum(sums.values()))


async def test_a_request_whose_response_is_dropped_is_timed_all_the_same(
    kind: ReadinessKind,
) -> None:
    """P32, X11: the connection went before the response was there."""
    async with measured(kind) as (rig, metrics):
        peer = await rig.connect()
        await peer.send_frames(b"?")
        request = await rig.receive(b"?")
        peer.close()
        await wait_all_tasks_blocked(0.01)

        request.respond(answer(b"!"))
        await wait_all_tasks_blocked(0.01)

        assert 1 == metrics.snapshot()[TOTAL_TIME].of("")


@pytest.mark.parametrize("size", [0, 550_000])
async def test_a_request_whose_client_leaves_during_the_response_is_timed_all_the_same(
    kind: ReadinessKind, size: int
) -> None:
    """P29, KAFKA-3489."""
    async with measured(kind) as (rig, metrics):
        peer = await rig.connect(receive_buffer_bytes=4096)
        await peer.send_frames(b"?")
        (await rig.receive(b"?")).respond(answer(bytes(size)))
        await wait_all_tasks_blocked(0.01)
        peer.reset()
        await wait_all_tasks_blocked(0.01)

        assert 1 == metrics.snapshot()[TOTAL_TIME].of("")
        assert 0 == metrics.sum("connection_count")


async def test_handlers_with_nothing_to_do_are_idle_also_when_there_are_fewer(
    kind: ReadinessKind,
) -> None:
    """The time of those that have ended stays what it was."""
    async with measured(kind) as (rig, metrics):
        await trio.sleep(0.02)
        for now in range(100, 200, 20):
            metrics.registry.snapshot(now)
        rig.server.resize_handlers(1)
        await trio.sleep(0.02)

        assert 0.9 <= metrics.registry.snapshot(200)[HANDLERS_IDLE].of()


async def test_eight_handlers_on_a_saturated_loop_are_not_idle(kind: ReadinessKind) -> None:
    """And no processor, not even the one without connections; here clients share the loop, too."""

    async def handle(request: Request) -> Response:
        return answer(hashlib.sha256(bytes(100_000)).digest())

    async def ask(peer: Peer) -> None:
        while True:
            await peer.send_frames(b"?")
            await peer.receive_frame()

    with LoopMonitor() as monitor:
        async with serving(kind, handler=handle, num_io_threads=8, num_network_threads=3) as rig:
            peers = [await rig.connect() for _ in range(8)]
            metrics = Measured(rig.server, monitor)
            async with trio.open_nursery() as nursery:
                for peer in peers:
                    nursery.start_soon(ask, peer)
                await trio.sleep(0.5)
                nursery.cancel_scope.cancel()
            snapshot = metrics.snapshot()

    assert snapshot[HANDLERS_IDLE].of() < 0.2
    assert snapshot[PROCESSORS_IDLE].of() < 0.2
    idle = snapshot[PROCESSOR_IDLE]
    assert max(sample.value for sample in idle.samples) < 0.2


async def test_an_idle_processor_beside_a_busy_one_is_more_idle(kind: ReadinessKind) -> None:
    """What Kafka's IdlePercent is for: connections that are spread badly show."""

    async def handle(request: Request) -> Response:
        return answer(b"!")

    with LoopMonitor() as monitor:
        async with serving(kind, handler=handle, num_network_threads=2) as rig:
            peer = await rig.connect()
            metrics = Measured(rig.server, monitor)
            for _ in range(50):
                await peer.send_frames(bytes(100_000))
                await peer.receive_frame()
                await trio.sleep(0.002)
            idle = metrics.snapshot()[PROCESSOR_IDLE]

    assert 0 < idle.of("0") < idle.of("1") <= 1


async def test_after_the_stop_requests_are_still_reported_and_no_processor_is_idle(
    kind: ReadinessKind,
) -> None:
    """P33, P34."""
    async with measured(kind) as (rig, metrics):
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        await rig.server.stop()

        snapshot = metrics.snapshot()

    assert 0 == snapshot["trionet_metrics_collector_errors_total"].of()
    assert 1 == snapshot[TOTAL_TIME].of("")
    assert 0 == snapshot[PROCESSORS_IDLE].of()
    assert () == snapshot[PROCESSOR_IDLE].samples
    assert 0 == snapshot[HANDLERS_IDLE].of()
    assert 0 == snapshot["kafka_network_requestchannel_requestqueuesize"].of()


async def test_bytes_over_tls_are_those_of_the_frames() -> None:
    """T11, S37: a request of 1 MB, and the size before it; and the cipher that protects it."""
    endpoint = Endpoint("TLS", SecurityProtocol.SSL, "127.0.0.1", 0)
    context = server_context()
    security = {"TLS": ListenerSecurity(tls_context=lambda: context)}
    payload = bytes(MEGABYTE)

    async def acknowledge(request: Request) -> Response:
        return answer(b"ok")

    server = SocketServer(acknowledge, [endpoint], security=security)
    with LoopMonitor() as monitor:
        async with trio.open_nursery() as nursery:
            bound: list[Endpoint] = await nursery.start(server.run)
            metrics = Measured(server, monitor)
            stream = await trio.open_ssl_over_tcp_stream(
                "127.0.0.1", bound[0].port, ssl_context=client_context()
            )
            await stream.send_all(len(payload).to_bytes(4, "big") + payload)
            assert b"\x00\x00\x00\x02ok" == await stream.receive_some()
            await wait_all_tasks_blocked(0.01)

            assert MEGABYTE + 4 == metrics.sum("incoming_byte_total")
            assert 6 == metrics.sum("outgoing_byte_total")
            assert (1, 1) == (metrics.sum("response_total"), metrics.sum("request_total"))
            [sample] = metrics.snapshot()[f"{GROUP}connections_tls_info"].samples
            assert "TLSv1.3" == sample.labels[1]
            assert 1 == sample.value
            await trio.aclose_forcefully(stream)
            await wait_all_tasks_blocked(0.01)
            assert () == metrics.snapshot()[f"{GROUP}connections_tls_info"].samples
            nursery.cancel_scope.cancel()


async def test_the_state_of_a_server_in_a_few_words(kind: ReadinessKind) -> None:
    async with measured(kind) as (rig, _):
        peer = await rig.connect()
        await rig.exchange(peer, b"hello")
        peer.close()
        await wait_all_tasks_blocked(0.01)

        state = server_state(rig.server, UnnamedRequests(rig.server))

        [api] = cast(list[dict[str, Any]], state.pop("apis"))
        [processor] = cast(list[dict[str, Any]], state.pop("processors"))
        quotas = cast(list[dict[str, Any]], state.pop("quotas"))
        size = len(b"....? hello")
        counts = {"requests": 1, "responses": 1, "bytes_received": size, "bytes_sent": size}
        assert {
            "listeners": [str(endpoint) for endpoint in rig.server.endpoints],
            "queues": {"requests": 0, "requests_max": 500, "responses": {"0": 0}},
            "closed": {"PEER_CLOSED": 1},
            "totals": {**counts, "connections_created": 1, "connections_closed": 1},
            "channels": {
                **dict.fromkeys(("total", "examined", "muted", "staged", "with_staged"), 0),
                "phases": {},
            },
        } == state
        assert {
            "id": 0,
            "listener": "L0",
            "connections": 0,
            "in_flight": 0,
            "response_queue": 0,
            "request_queue_full": 0,
            **counts,
        } == processor
        assert (1, len(b"? hello")) == (api["requests"], api["bytes"])
        assert [1] == [count for _, count in api["total_ms"]]
        assert ("broker", "max.connections", None, 0) == (
            quotas[0]["entity"],
            quotas[0]["key"],
            quotas[0]["limit"],
            quotas[0]["value"],
        )
