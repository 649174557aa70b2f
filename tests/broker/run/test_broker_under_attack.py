"""Peers that behave as badly as peers can, and a good client that must not notice."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio

from support.brokers import broker_and_client, close_reasons, settled, waiting
from support.calls import (
    append,
    batch,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    values_of,
)
from support.client import Client, connect, encode_request, host_and_port
from support.leaks import nothing_left_behind
from support.wire import Peer
from trionet import Broker, open_broker
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._framing import FrameDecoder
from trionet.protocol.messages.api_versions import ApiVersionsRequest

FOREVER_MS = 2**31 - 1
MEGABYTE = 1024 * 1024
WAITING_FETCH = encode_request(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
API_VERSIONS = encode_request(ApiVersionsRequest(), 0)


@asynccontextmanager
async def attacked() -> AsyncIterator[tuple[Broker, Client, int]]:
    """A broker with topic t, a good client of it, and its port; nothing may be left of them."""
    with nothing_left_behind():
        async with broker_and_client(socket_listen_backlog_size=2000) as (broker, client):
            await create_topic(client, "t", max_message_bytes=20 * MEGABYTE)
            yield broker, client, host_and_port(broker.bootstrap_servers)[1]


async def connections(broker: Broker) -> int:
    return (await settled(broker)).server.connections


@pytest.mark.slow
async def test_a_thousand_peers_are_reset_while_they_wait(caplog: pytest.LogCaptureFixture) -> None:
    async with attacked() as (broker, client, port):
        peers = [await Peer.connect(port) for _ in range(1000)]
        for peer in peers:
            await peer.send(WAITING_FETCH)
        await waiting(broker, 1000)

        for peer in peers:
            peer.reset()

        assert 1 == await connections(broker)
        assert {CloseReason.PEER_RESET: 1000} == await close_reasons(broker)
        await append(client, b"a")
        await waiting(broker, 0)
        assert [b"a"] == values_of(await fetch(client, "t"))
    assert [] == [record for record in caplog.records if record.levelname != "INFO"]


@pytest.mark.slow
async def test_five_thousand_connections_are_opened_and_dropped() -> None:
    async with attacked() as (broker, client, port):
        left = iter(range(5000))

        async def come_and_go() -> None:
            for number in left:
                with await Peer.connect(port) as peer:
                    match number % 4:
                        case 1:
                            await peer.send(API_VERSIONS)
                        case 2:
                            await peer.send(API_VERSIONS[:5])
                        case 3:
                            peer.reset()

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(come_and_go)
        await append(client, b"a")

        assert 1 == await connections(broker)
        assert 5001 == broker.statistics().server.connections_created


async def test_peers_that_do_not_read_their_responses_hold_up_no_other() -> None:
    async with attacked() as (broker, client, port):
        value = b"x" * (4 * MEGABYTE)
        await produce(client, "t", batch(value))
        whole = fetch_request({"t": {0: 0}}, partition_max_bytes=2**31 - 1)
        peers = [await Peer.connect(port, receive_buffer_bytes=4096) for _ in range(20)]
        for peer in peers:
            await peer.send(encode_request(whole, 12))
        await settled(broker)

        await append(client, b"a")
        assert [b"a"] == values_of(await fetch(client, "t", 1))
        assert 21 == await connections(broker)

        sizes = []
        for peer in peers:
            with peer:
                sizes.append(len(await peer.receive_frame()))
        assert {sizes[0]} == set(sizes)
        assert len(value) < sizes[0] < len(value) + 1000


async def test_a_peer_that_reads_byte_by_byte_gets_every_byte() -> None:
    async with attacked() as (_, client, port):
        await produce(client, "t", batch(b"x" * 50_000))
        request = encode_request(fetch_request({"t": {0: 0}}), 12)
        with await Peer.connect(port, receive_buffer_bytes=2048) as peer:
            await peer.send(request)
            (size,) = struct.unpack(">i", await peer.receive(4))
            answer = b"".join([await peer.receive(1) for _ in range(size)])

        assert b"x" * 50_000 in answer


async def test_a_peer_that_says_no_more_still_gets_its_responses() -> None:
    async with attacked() as (broker, client, port):
        with await Peer.connect(port) as peer, await Peer.connect(port) as waiter:
            await peer.send(API_VERSIONS * 3)
            peer.finish()
            await waiter.send(WAITING_FETCH)
            waiter.finish()
            await waiting(broker, 1)
            await append(client, b"late")

            answers = [await peer.receive_frame() for _ in range(3)]
            late = await waiter.receive_frame()

            assert 1 == len(set(answers))
            assert b"late" in late
            assert b"" == await peer.receive_to_end() == await waiter.receive_to_end()
        assert {CloseReason.PEER_CLOSED: 2} == await close_reasons(broker)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", CloseReason.PEER_CLOSED),
        (b"\x00", CloseReason.PEER_CLOSED_IN_FRAME),
        (b"\x00\x00\x00", CloseReason.PEER_CLOSED_IN_FRAME),
        (API_VERSIONS[:4], CloseReason.PEER_CLOSED_IN_FRAME),
        (API_VERSIONS[:-1], CloseReason.PEER_CLOSED_IN_FRAME),
        (API_VERSIONS, CloseReason.PEER_CLOSED),
        (b"\x00\x00\x00\x00", CloseReason.INVALID_REQUEST),
        (b"\xff\xff\xff\xff", CloseReason.INVALID_RECEIVE),
        (b"\x7f\xff\xff\xff", CloseReason.INVALID_RECEIVE),
        (struct.pack(">i", 104_857_601), CloseReason.INVALID_RECEIVE),
        (struct.pack(">i", 104_857_600), CloseReason.PEER_CLOSED_IN_FRAME),
        (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", CloseReason.INVALID_RECEIVE),
    ],
)
async def test_a_stream_that_ends_anywhere_is_closed_with_its_reason(
    sent: bytes, reason: CloseReason
) -> None:
    async with attacked() as (broker, _, port):
        with await Peer.connect(port) as peer:
            await peer.send(sent)
            peer.finish()
            await peer.receive_to_end()

        assert {reason: 1} == await close_reasons(broker)


async def test_announcing_large_frames_costs_the_broker_little() -> None:
    async with attacked() as (broker, client, port):
        peers = [await Peer.connect(port) for _ in range(50)]
        for peer in peers:
            await peer.send(struct.pack(">i", 100_000_000) + b"x" * 10_000)
        await settled(broker)

        held = sum(
            len(cast(FrameDecoder, channel._decoder)._payload or b"")
            for processor in broker._server.processors
            for channel in processor.selector.channels
        )
        await append(client, b"a")
        for peer in peers:
            peer.close()

        assert held < 50 * 2 * MEGABYTE
        assert 1 == await connections(broker)


async def test_many_requests_in_one_go_get_responses_one_after_the_other() -> None:
    async with attacked() as (_, client, port):
        with await Peer.connect(port) as peer:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.send, API_VERSIONS * 2000)
                answers = {await peer.receive_frame() for _ in range(2000)}
        await append(client, b"a")

        assert 1 == len(answers)


async def test_a_full_request_queue_loses_nothing() -> None:
    settings: dict[str, object] = {"queued.max.requests": 1, "num.io.threads": 1}
    async with open_broker(settings) as broker, trio.open_nursery() as nursery:
        answered: list[int] = []

        async def ask() -> None:
            async with connect(broker.bootstrap_servers) as each:
                for _ in range(20):
                    response = await each.call(ApiVersionsRequest(), 0)
                    answered.append(response.error_code)

        for _ in range(30):
            nursery.start_soon(ask)

    assert [0] * 600 == answered


async def test_a_peer_that_leaves_between_request_and_response_disturbs_no_other() -> None:
    async with attacked() as (broker, client, port):
        for _ in range(50):
            with await Peer.connect(port) as peer:
                await peer.send(WAITING_FETCH)
        await waiting(broker, 50)

        await client.send(fetch_request({"t": {0: 0}}, max_wait_ms=FOREVER_MS), 12)
        async with connect(broker.bootstrap_servers) as other:
            await append(other, b"a")

        assert [b"a"] == values_of(only_partition(await client.receive()))
        assert 1 == await connections(broker)
