"""`python3 tests jafka`: a million frames that something has changed, at a Jafka broker.

After each connection the broker must still respond to another; at the end nothing lies outside its
data folder, every segment holds whole entries only, and no descriptor is left.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import random
import struct
import sys
import tempfile
import time
from pathlib import Path

import trio

from support.jafka_wire import connect, entry, messages
from support.leaks import nothing_left_behind
from trionet.jafka import JafkaBroker, open_jafka_broker
from trionet.jafka._codec import encode_request, valid_bytes
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    FetchRequest,
    JafkaRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    OffsetRequest,
    ProducerRequest,
)

COUNT = 1_000_000
FRAMES_PER_CONNECTION = 50
PROGRESS_SECONDS = 10.0
TOPICS = ["a", "b", "../a", "..", "a/b", "/tmp/a", "", "a\0", "主", None]


def request(rng: random.Random) -> JafkaRequest:
    """A good request, but for its topic and numbers."""
    topic, partition = rng.choice(TOPICS), rng.choice([0, 0, 0, 1, -1, 2**31 - 1])
    size = rng.choice([0, 10, 1000, 2**31 - 1, -1])
    fetch = FetchRequest(topic, partition, rng.choice([0, 5, 2**40, -1]), size)
    produce = ProducerRequest(topic, partition, message_set(rng))
    requests: list[JafkaRequest] = [
        produce,
        fetch,
        MultiFetchRequest((fetch,) * rng.randrange(4)),
        MultiProducerRequest((produce,) * rng.randrange(4)),
        OffsetRequest(topic, partition, rng.choice([-1, -2, 0, 2**62]), rng.choice([-1, 0, 9])),
        CreaterRequest(topic, rng.choice([-1, 0, 1, 3]), rng.randrange(3)),
        DeleterRequest(topic, rng.choice([None, "x"])),
    ]
    return rng.choice(requests)


def message_set(rng: random.Random) -> bytes:
    plain = messages(*(rng.randbytes(rng.randrange(30)) for _ in range(rng.randrange(4))))
    packed = entry(gzip.compress(plain, 1), attributes=1)
    odd = entry(b"x", magic=rng.randrange(3), attributes=rng.randrange(256))
    return rng.choice([plain, packed, plain + packed, plain + odd, plain[:-1]])


def changed(frame: bytes, rng: random.Random) -> bytes:
    """The frame with some bytes changed, removed or doubled; mostly with a size that fits."""
    body = bytearray(frame[4:])
    for _ in range(rng.choice([0, 1, 1, 2, 8])):
        at = rng.randrange(len(body))
        match rng.randrange(3):
            case 0:
                body[at] = rng.choice([0, 0xFF, rng.randrange(256)])
            case 1:
                del body[at : at + rng.randrange(4)]
            case _:
                body[at:at] = body[at : at + rng.randrange(8)]
        if not body:
            break
    size = (
        rng.choice([0, -1, 2**31 - 1, rng.randrange(200)]) if not rng.randrange(50) else len(body)
    )
    return struct.pack(">i", size) + bytes(body)


async def attack(broker: JafkaBroker, rng: random.Random) -> None:
    """Send changed frames until the broker closes the connection, and see that it still works."""
    frames = b"".join(
        changed(encode_request(request(rng)), rng) for _ in range(FRAMES_PER_CONNECTION)
    )
    with await connect(broker) as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.receive_to_end)
            try:
                await peer.send(frames)
                peer.finish()
            except (BrokenPipeError, ConnectionResetError, OSError):
                pass


async def run(count: int, seed: str, path: Path) -> None:
    """Attack a broker whose folder is below ``path``."""
    rng = random.Random(seed)
    sent, said_at = 0, time.monotonic()
    settings = {"log.file.size": 5_000, "max.socket.request.bytes": 100_000, "num.partitions": 2}
    async with open_jafka_broker(settings, log_dir=path / "data") as broker:
        while sent < count:
            await attack(broker, rng)
            sent += FRAMES_PER_CONNECTION
            if sent % (100 * FRAMES_PER_CONNECTION) == 0:
                with await connect(broker) as peer:
                    await peer.delete(topic="ok")
                    await peer.produce(messages(b"fine"), "ok")
                    assert (0, messages(b"fine")) == await peer.fetch(topic="ok")
            if time.monotonic() > said_at + PROGRESS_SECONDS:
                said_at = time.monotonic()
                print(f"{sent:,} of {count:,} frames", flush=True)
        reasons = {each.name: number for each, number in broker.statistics().closed.items()}
    check(path)
    print(f"{sent:,} frames; closed: {reasons}")
    if reasons.get("ERROR"):
        raise SystemExit("errors of our own")


def check(path: Path) -> None:
    """See that there is nothing beside the data, and that all of it is whole."""
    assert [path / "data"] == list(path.iterdir())
    for segment in path.rglob("*.jafka"):
        assert segment.stat().st_size == valid_bytes(segment.read_bytes()), segment


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="tests jafka", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", default="1")
    given = parser.parse_args(arguments)
    logging.getLogger("trionet").setLevel(logging.ERROR)  # not each connection that is closed
    with tempfile.TemporaryDirectory() as folder, nothing_left_behind():
        trio.run(run, given.count, given.seed, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
