"""Requests leave nothing behind in memory, with everything that is measured of them."""

from __future__ import annotations

import gc
import sys
from contextlib import ExitStack

import pytest
import trio

from support.serving import answer, listener
from support.wire import Peer
from trionet.metrics._loop import LoopMonitor
from trionet.metrics._registry import Registry
from trionet.net.wire._endpoint import Endpoint
from trionet.server import Request, Response, ServerConfig, SocketServer
from trionet.server.metrics._server_metrics import UnnamedRequests, server_collectors

CONNECTIONS = 16
ROUNDS = 10
# A count above 256 is an object of its own, and there are some hundred buckets. A leak of one
# object in a hundred requests is ten times as much in the short run.
BLOCKS_MAX = 400


async def exchange(peer: Peer, count: int) -> None:
    for _ in range(count):
        await peer.send_frames(b"x" * 100)
        await peer.receive_frame()


async def echo(request: Request) -> Response:
    return answer(bytes(request.payload))


def allocated() -> int:
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.slow
@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(16_000, id="16,000 requests"),
        pytest.param(1_000_000, id="1,000,000 requests", marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(0)
async def test_requests_leave_nothing_behind(requests: int) -> None:
    server = SocketServer(echo, [listener()], ServerConfig(num_network_threads=2))
    registry = Registry()
    blocks = []
    with LoopMonitor() as monitor, ExitStack() as opened:
        for collect in server_collectors(server, monitor.statistics, UnnamedRequests(server)):
            registry.register(collect)
        async with trio.open_nursery() as nursery:
            bound: list[Endpoint] = await nursery.start(server.run)
            peers = [
                opened.enter_context(await Peer.connect(bound[0].port)) for _ in range(CONNECTIONS)
            ]
            for round in range(ROUNDS + 1):
                async with trio.open_nursery() as clients:
                    for peer in peers:
                        count = requests // ROUNDS // CONNECTIONS
                        clients.start_soon(exchange, peer, count)
                for step in range(20):  # whole windows pass
                    registry.snapshot(1000 * round + 40 * step)
                blocks.append(allocated())
            assert requests <= server.statistics().requests
            nursery.cancel_scope.cancel()

    assert blocks[-1] - blocks[1] <= BLOCKS_MAX, blocks
