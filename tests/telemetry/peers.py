"""Few requests of many kinds: clients that work and err, and whose connections end in every way."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Awaitable, Callable

import trio

import trionet
from support.calls import batch, fetch_request, produce_request
from support.client import Client, connect
from telemetry.loads import EMPTY, NOWHERE, ORDERS
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.list_groups import ListGroupsRequest

NOTES = "notes"
#: After so long a connection that says nothing is closed.
IDLE_SECONDS = 8.0
#: How long a fetch waits that nobody will read the response of.
WAIT_MS = 1500
_PAUSE_SECONDS = 1.0
_ROUND = 20

Peer = Callable[[str, random.Random], Awaitable[None]]


async def _goes(address: str, _: random.Random) -> None:
    async with connect(address, "guest") as client:
        await client.call(ApiVersionsRequest(), 2)


async def _goes_in_a_frame(address: str, _: random.Random) -> None:
    async with connect(address, "hasty") as client:
        await client.send_bytes(b"\0\0\0\x20 half")


async def _resets(address: str, _: random.Random) -> None:
    async with connect(address, "rude") as client:
        await client.call(ApiVersionsRequest(), 0)
        stream = client.stream
        assert isinstance(stream, trio.SocketStream)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _talks_nonsense(address: str, _: random.Random) -> None:
    await _until_closed(address, b"\0\0\0\x08\0\x03\0\x0c\0\0\0\x01")


async def _asks_for_what_is_not_served(address: str, _: random.Random) -> None:
    await _until_closed(address, b"\0\0\0\x0b\0\x03\0\x63\0\0\0\x01\0\1t")


async def _announces_too_much(address: str, _: random.Random) -> None:
    await _until_closed(address, b"\x7f\xff\xff\xff")


async def _says_nothing(address: str, _: random.Random) -> None:
    await _until_closed(address, b"")


async def _until_closed(address: str, data: bytes) -> None:
    async with connect(address, "broken") as client:
        await client.send_bytes(data)
        await client.receive_to_end()


async def _wants_no_answer(address: str, rng: random.Random) -> None:
    async with connect(address, "fire and forget") as client:
        for _ in range(rng.randrange(_ROUND)):
            await client.send_unanswered(produce_request(ORDERS, batch(b"x"), acks=0), 12)
        await client.send_unanswered(produce_request(NOWHERE, batch(b"x"), acks=0), 12)
        await client.receive_to_end()


async def _goes_while_it_waits(address: str, _: random.Random) -> None:
    async with connect(address, "impatient") as client:
        await client.send(fetch_request({EMPTY: {0: 0}}, max_wait_ms=WAIT_MS), 12)
        await trio.sleep(WAIT_MS / 3000)


async def _makes_it_again(address: str, _: random.Random) -> None:
    async with connect(address, "admin") as client:
        await client.call(CreateTopicsRequest(topics=[CreatableTopic(name=ORDERS)]), 5)


async def _exceeds_a_quota(address: str, rng: random.Random) -> None:
    """Which it does only at times (see :mod:`telemetry.broker`)."""
    async with connect(address, "greedy") as client:
        for _ in range(rng.randrange(_ROUND)):
            await client.call(ListGroupsRequest(), 4)
            await trio.sleep(0.05)


async def _works(address: str, rng: random.Random) -> None:
    async with trionet.open_producer(address, client_id="shop") as producer:
        for _ in range(rng.randrange(_ROUND)):
            await producer.send(NOTES, b"a note", key=b"k")
    async with trionet.open_consumer(
        address, topics=[NOTES], group_id="readers", client_id="reader",
        auto_offset_reset="earliest",
    ) as consumer:  # fmt: skip
        with trio.move_on_after(rng.random() * 5):
            async for _ in consumer:
                pass


PEERS: tuple[Peer, ...] = (
    _goes,
    _goes_in_a_frame,
    _resets,
    _talks_nonsense,
    _asks_for_what_is_not_served,
    _announces_too_much,
    _says_nothing,
    _wants_no_answer,
    _goes_while_it_waits,
    _makes_it_again,
    _exceeds_a_quota,
    _works,
)


async def make_topics(address: str) -> None:
    """The topics that loads and peers use."""
    async with trionet.open_admin(address, client_id="setup") as admin:
        await admin.create_topics([ORDERS, EMPTY, NOTES])


async def be_peers(address: str, rng: random.Random) -> None:
    """Until cancelled, each of them comes again and again."""
    async with trio.open_nursery() as nursery:
        for peer in PEERS:
            nursery.start_soon(_again_and_again, peer, address, random.Random(rng.random()))


async def _again_and_again(peer: Peer, address: str, rng: random.Random) -> None:
    while True:
        await peer(address, rng)
        await trio.sleep(rng.random() * _PAUSE_SECONDS)


async def tick(address: str) -> None:
    """Ask for something four times a second, until cancelled: time goes on in the log."""
    async with connect(address, "clock") as client:
        while True:
            await client.call(ApiVersionsRequest(), 0)
            await trio.sleep(0.25)


__all__ = ["Client", "be_peers", "make_topics", "tick"]
