"""Peers that go away while the broker owes them a response, or as soon as they have come."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest
import trio

from support.brokers import close_reasons, settled
from support.calls import append, create_topic, fetch_request
from support.client import Client, connect, encode_request, host_and_port
from support.leaks import descriptors
from support.wire import Peer
from trionet import Broker, open_broker
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol.messages.api_versions import ApiVersionsRequest

LONG_POLL = encode_request(
    fetch_request({"t": {0: 0}}, max_wait_ms=2**31 - 1, min_bytes=1, session=(0, -1)), 12
)
# Of one core, in one second without anything to do; the idle broker needs less than 1 %.
BUSY_SECONDS_MAX = 0.2


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Both ends of all connections are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def broker_with_client() -> AsyncIterator[tuple[Broker, Client]]:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        yield broker, client


async def check_muted_resets(peers: int, *, is_staged: bool = False) -> None:
    """Reset while a Fetch waits, with another one after it if ``is_staged``."""
    async with broker_with_client() as (broker, client):
        port = host_and_port(broker.bootstrap_servers)[1]
        with ExitStack() as opened:
            polling = []
            for _ in range(peers):
                peer = opened.enter_context(await Peer.connect(port))
                await peer.send(LONG_POLL * (1 + is_staged))
                polling.append(peer)
            assert peers == (await settled(broker)).delayed
            for peer in polling:
                peer.reset()
            # What waits behind the first is handed out if that needs no response.
            gone = {} if is_staged else {CloseReason.PEER_RESET: peers}
            assert gone == await close_reasons(broker)
        # Nothing is left to do: a hang-up that was not dealt with would keep the loop busy.
        began = time.process_time()
        await trio.sleep(1)
        assert time.process_time() - began < BUSY_SECONDS_MAX
        await append(client, b"x")
        assert 0 == (await settled(broker)).delayed
        assert 1 == broker.statistics().server.connections
        reason = CloseReason.SEND_FAILED if is_staged else CloseReason.PEER_RESET
        assert {reason: peers} == await close_reasons(broker)


@pytest.mark.slow
async def test_peers_that_reset_during_a_long_poll_are_gone_at_once() -> None:
    await check_muted_resets(50)


@pytest.mark.slow
async def test_peers_that_reset_with_a_request_after_it_are_gone_with_the_response() -> None:
    await check_muted_resets(50, is_staged=True)


@pytest.mark.fuzz
async def test_a_thousand_peers_that_reset_during_a_long_poll(many_descriptors: None) -> None:
    await check_muted_resets(1000)


async def check_dropped(connections: int, at_once: int) -> None:
    async with broker_with_client() as (broker, client):
        port = host_and_port(broker.bootstrap_servers)[1]
        gc.collect()
        before = descriptors()
        request = encode_request(ApiVersionsRequest(), 0)
        for start in range(0, connections, at_once):
            peers = [await Peer.connect(port) for _ in range(at_once)]
            for number, peer in enumerate(peers, start):
                match number % 4:
                    case 0:
                        peer.close()
                    case 1:
                        peer.reset()
                    case 2:
                        peer.send_now(request)  # nobody waits for the response
                        peer.close()
                    case _:
                        peer.send_now(request[:7])
                        peer.reset()
            await settled(broker)
        server = (await settled(broker)).server
        assert connections == sum(server.closed.values())
        assert (1, connections + 1) == (server.connections, server.connections_created)
        assert 0 == sum(processor.counts.in_flight for processor in broker._server.processors)
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        gc.collect()
        assert before == descriptors()


async def test_connections_that_are_dropped_leave_nothing() -> None:
    await check_dropped(200, at_once=50)


@pytest.mark.fuzz
async def test_thousands_of_connections_that_are_dropped(many_descriptors: None) -> None:
    await check_dropped(5000, at_once=500)
