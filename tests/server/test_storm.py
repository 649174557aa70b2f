"""Many peers, good and bad, at once: nobody's fault reaches another, and nothing is left behind.

Each round draws everything from its seed. The good peers pipeline requests and compare what comes
back; the bad ones stop anywhere, in any way. Afterwards every connection must have ended once, with
one reason, and the server must hold nothing of any of them.
"""

from __future__ import annotations

import gc
import logging
import random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.serving import Serving, answer, serving
from support.wire import Peer, frame
from trionet.net._channel import Channel
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, CloseConnection, Request, Response

LARGE = 300_000


async def handle(request: Request) -> Response:
    """The echo, with a few words that do something else."""
    word = bytes(request.payload[:5])
    for _ in range(len(request.payload) % 4):
        await trio.lowlevel.checkpoint()
    if word == b"no-op":
        return NO_OP
    if word == b"close":
        return CloseConnection()
    if word == b"raise":
        raise ZeroDivisionError
    return answer(bytes(request.payload))


def payload_of(draw: random.Random) -> bytes:
    size = draw.choice([0, 1, 10, 100, 5_000, 5_000, LARGE])
    return b"echo " + draw.randbytes(16) * (size // 16)


async def behave(rig: Serving, draw: random.Random) -> None:
    """Pipeline requests, in pieces of any size, and check every answer."""
    with await rig.connect() as peer:
        expected = [payload_of(draw) for _ in range(draw.randrange(1, 12))]
        stream = b""
        for payload in expected:
            if draw.random() < 0.2:
                stream += frame(b"no-op")
            stream += frame(payload)

        async def send() -> None:
            rest = stream
            while rest:
                size = draw.choice([1, 3, 100, 4096, 100_000, len(rest)])
                await peer.send(rest[:size])
                rest = rest[size:]
            if draw.random() < 0.5:
                peer.finish()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            for payload in expected:
                assert payload == await peer.receive_frame()


async def misbehave(rig: Serving, draw: random.Random) -> None:
    """Send something, perhaps read something, and go without a word."""
    with await rig.connect() as peer:
        for _ in range(draw.randrange(4)):
            await act(peer, draw)
        if draw.random() < 0.5:
            peer.reset()


async def act(peer: Peer, draw: random.Random) -> None:
    stream = frame(payload_of(draw))
    match draw.randrange(6):
        case 0:
            peer.send_now(stream[: draw.randrange(1, 50)])
        case 1:
            peer.send_now(draw.randbytes(draw.randrange(1, 50)))
        case 2:
            peer.send_now(frame(draw.choice([b"raise", b"close", b"no-op"])) * draw.randrange(1, 4))
        case 3:
            peer.send_now(stream[:1000] if len(stream) > 1000 else stream)
            await trio.lowlevel.checkpoint()
        case 4:
            for _ in range(draw.randrange(1, 20)):
                await trio.lowlevel.checkpoint()
        case 5:
            peer.send_now(frame(b"echo") * 20)


async def weather(rig: Serving, draw: random.Random) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(60):
            peer = random.Random(draw.random())  # its own, whatever the scheduler does
            nursery.start_soon(draw.choice([behave, forgivingly_misbehave]), rig, peer)
            for _ in range(draw.randrange(3)):
                await trio.lowlevel.checkpoint()


async def forgivingly_misbehave(rig: Serving, draw: random.Random) -> None:
    try:
        await misbehave(rig, draw)
    except (ConnectionError, trio.BrokenResourceError):
        pass  # it was thrown out before it had finished


def channels_alive() -> int:
    gc.collect()
    return sum(isinstance(thing, Channel) for thing in gc.get_objects())


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 6))]
)
async def test_storm(kind: ReadinessKind, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "trionet.server")  # tracebacks keep what was on the stack
    draw = random.Random(seed)
    before = channels_alive()
    async with serving(
        kind,
        handler=handle,
        num_network_threads=draw.choice([1, 2, 3]),
        num_io_threads=draw.choice([1, 3, 8]),
        queued_max_requests=draw.choice([1, 2, 10, 500]),
        socket_request_max_bytes=LARGE + 100,
        socket_send_buffer_bytes=draw.choice([-1, 5_000]),
    ) as rig:
        await weather(rig, draw)
        await wait_all_tasks_blocked(0.001)

        statistics = rig.server.statistics()
        assert 0 == statistics.request_queue_size
        assert 0 == statistics.response_queue_size
        assert statistics.connections_created == sum(statistics.closed.values())
        assert 0 == statistics.connections
        assert 0 == sum(processor.counts.in_flight for processor in rig.processors)
        assert before == channels_alive()
