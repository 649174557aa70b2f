"""Whatever peers send, a broker goes on serving the others and keeps nothing of it."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest
import trio

from fuzz.frames import TOPIC, Disturbance, good_frames
from support.calls import append, create_topic, fetch, values_of
from support.client import Client, connect, encode_request, host_and_port
from support.processes import memory_bytes
from support.trionet_process import trionet_broker_process
from support.wire import Peer
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol.messages.api_versions import ApiVersionsRequest

PEERS = 64
FRAMES_PER_CONNECTION_MAX = 4
# What the broker may say of peers that leave while they are accepted or answered.
EXPECTED = re.compile(" INFO |could not set up an accepted connection|dropping a response")
GROWTH_BYTES_MAX = 64 * 1024 * 1024
WAIT_SECONDS_MAX = 3.0

# How long a peer waits for the response to its last request: it may have asked for a long poll.
PATIENCE_SECONDS = 1.0
LAST_CORRELATION_ID = 0x7A7B7C7D
LAST = encode_request(ApiVersionsRequest(), 0, LAST_CORRELATION_ID)


class Fuzz:
    """Peers that send garbage to one port."""

    def __init__(self, port: int, disturbance: Disturbance, rng: random.Random) -> None:
        self.answered = 0
        self._port = port
        self._disturbance = disturbance
        self._chance = rng
        self._left = 0

    async def run(self, frames: int) -> None:
        """Send so many frames."""
        self._left = frames
        async with trio.open_nursery() as nursery:
            for _ in range(PEERS):
                nursery.start_soon(self._peer)

    async def _peer(self) -> None:
        while self._left > 0:
            count = min(self._left, self._chance.randint(1, FRAMES_PER_CONNECTION_MAX))
            self._left -= count
            data = b"".join(self._disturbance.next() for _ in range(count)) + LAST
            with await Peer.connect(self._port) as peer:
                await self._send(peer, data)

    async def _send(self, peer: Peer, data: bytes) -> None:
        is_answered = False
        with trio.move_on_after(PATIENCE_SECONDS):
            is_answered = await self._is_last_answered(peer, data)
        self.answered += is_answered
        if not is_answered or self._chance.random() < 0.9:
            peer.reset()  # it also leaves the port free at once

    async def _is_last_answered(self, peer: Peer, data: bytes) -> bool:
        try:
            await peer.send(data)
            while (await peer.receive_frame())[:4] != LAST_CORRELATION_ID.to_bytes(4, "big"):
                pass
        except (EOFError, OSError):
            return False  # it was asked to go
        return True


class Worker:
    """A client that does ordinary work, and how long it had to wait for it."""

    def __init__(self, client: Client) -> None:
        self.rounds = 0
        self.longest_seconds = 0.0
        self._client = client

    async def run(self) -> None:
        """Write a record and read it, again and again, until cancelled."""
        while True:
            began = time.monotonic()
            await append(self._client, b"%d" % self.rounds, topic="good")
            found = await fetch(self._client, "good", self.rounds, max_wait_ms=1000)
            assert [b"%d" % self.rounds] == values_of(found)
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
            self.rounds += 1


def descriptors(pid: int, data: Path) -> Counter[str]:
    """What a process has open beside its logs, whose number is that of its topics.

    Nor does a module count that is being imported at this moment.
    """
    found: Counter[str] = Counter()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue  # closed since the list was made
        if not target.startswith(str(data)) and not target.endswith((".py", ".pyc")):
            found[target.partition(":[")[0]] += 1
    return found


async def disturb(address: str, pid: int, data: Path, seed: int, frames: int) -> None:
    """Send garbage, and check what can be seen from outside."""
    rng = random.Random(seed)
    async with connect(address) as client:
        served = (await client.call(ApiVersionsRequest(), 0)).api_keys
        await create_topic(client, TOPIC, 2)
        await create_topic(client, "good")
        disturbance = Disturbance(good_frames(served), rng)
        fuzz = Fuzz(host_and_port(address)[1], disturbance, rng)
        worker = Worker(client)
        open_before = descriptors(pid, data)
        await fuzz.run(min(500, frames // 4))  # so that everything is loaded once
        memory_before = memory_bytes(pid)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker.run)
            await fuzz.run(frames)
            nursery.cancel_scope.cancel()
        print(f"{fuzz.answered=} {worker.rounds=} {worker.longest_seconds=:.3f}")
    async with connect(address) as client:
        # Each call is a turn of its loop, in which it sees more ends of connections.
        for _ in range(1000):
            if open_before == descriptors(pid, data):
                break
            await client.call(ApiVersionsRequest(), 0)
        assert open_before == descriptors(pid, data)
    print(f"grown by {(memory_bytes(pid) - memory_before) / 2**20:.1f} MiB")
    assert memory_bytes(pid) - memory_before < GROWTH_BYTES_MAX
    assert worker.rounds > 0
    assert worker.longest_seconds < WAIT_SECONDS_MAX
    assert fuzz.answered > 0


def check_log(log: Path) -> Counter[str]:
    """Every connection ended, with a reason that is the peer's; nothing took us by surprise."""
    text = log.read_text()
    assert "Traceback" not in text, text[text.index("Traceback") - 300 :][:5000]
    assert "unexpected" not in text
    reasons = Counter(re.findall(r"disconnected: ([^(\n]+?)(?: \(.*\))?$", text, re.MULTILINE))
    assert text.count("created connection") == sum(reasons.values())
    return reasons


def run(seed: int, folder: Path, frames: int) -> None:
    data, log = folder / "data", folder / "log"
    settings = {"auto.create.topics.enable": "false"}
    with trionet_broker_process(data, settings=settings, log=log, log_level="debug") as (
        address,
        process,
    ):
        trio.run(disturb, address, process.pid, data, seed, frames)
        process.terminate()
        assert 0 == process.wait()
    reasons = check_log(log)
    print(*reasons.items(), sep="\n")
    for reason in (
        CloseReason.INVALID_RECEIVE,
        CloseReason.INVALID_REQUEST,
        CloseReason.UNSUPPORTED_VERSION,
        CloseReason.PEER_CLOSED,
    ):
        assert reasons[reason.value] > 0, reasons
    assert not reasons[CloseReason.ERROR.value]


@pytest.mark.slow
def test_garbage_disturbs_no_other(tmp_path: Path) -> None:
    run(1, tmp_path, 800)


@pytest.mark.fuzz
def test_much_garbage_disturbs_no_other(tmp_path: Path) -> None:
    seed = time.monotonic_ns()
    print(f"{seed=}")
    run(seed, tmp_path, 100_000)
