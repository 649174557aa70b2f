"""`python3 tests jafka`: a million mutated frames for a Jafka broker.

It counts the frames that are handled: most connections end with the first that is invalid.
Meanwhile the broker must respond to others, and log no unexpected error. At the end nothing lies
outside its data folder, every segment holds whole entries only, and no descriptor is left.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import random
import struct
import sys
import tempfile
from pathlib import Path

import trio

from support.jafka_wire import JafkaPeer, connect, entry, messages
from support.leaks import nothing_left_behind
from trionet.errors import WireFormatError
from trionet.jafka import JafkaBroker, open_jafka_broker
from trionet.jafka._codec import decode_request, encode_request, valid_bytes
from trionet.jafka._frames import JafkaDecoder
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
from trionet.jafka._topics import PARTITIONS_MAX

COUNT = 1_000_000
FRAMES_PER_CONNECTION = 10
CONNECTIONS = 8
CONNECTIONS_PER_LOOK = 100
MESSAGE_SETS = 300
REQUEST_BYTES_MAX = 100_000
#: What another connection produces meanwhile, and fetches.
FINE = messages(b"fine")
PROGRESS_SECONDS = 10.0
LEGAL = ["a", "b", "主"]
TOPICS = [*LEGAL * 6, "../a", "..", "a/b", "/tmp/a", "", "a\0", None]


def request(rng: random.Random, sets: list[bytes]) -> JafkaRequest:
    """A good request, but for its topic and numbers."""
    topic, partition = rng.choice(TOPICS), rng.choice([0, 0, 0, 0, 0, 1, -1, 2**31 - 1])
    size = rng.choice([0, 10, 1000, 2**31 - 1, -1])
    fetch = FetchRequest(topic, partition, rng.choice([0, 5, 2**40, -1]), size)
    produce = ProducerRequest(topic, partition, rng.choice(sets))
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
    nested = packed
    for _ in range(rng.randrange(1, 20)):
        nested = entry(gzip.compress(plain + nested, 1), attributes=1)
    odd = entry(b"x", magic=rng.randrange(3), attributes=rng.randrange(256))
    return rng.choice([plain, packed, nested, plain + packed, plain + odd, plain[:-1]])


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


def is_slow(frame: bytes | bytearray) -> bool:
    """Whether a request asks for so many partitions that most of the time would be theirs."""
    try:
        found = decode_request(frame)
    except WireFormatError:
        return False
    return isinstance(found, CreaterRequest) and 10 < found.partitions <= PARTITIONS_MAX


async def attack(
    broker: JafkaBroker, rng: random.Random, sets: list[bytes], local_host: str
) -> None:
    """Send changed frames until all are handled, or the broker closes the connection."""
    frames = b"".join(
        changed(encode_request(request(rng, sets)), rng) for _ in range(FRAMES_PER_CONNECTION)
    )
    decoder = JafkaDecoder(REQUEST_BYTES_MAX)
    decoder.receive_data(frames)
    if any(map(is_slow, decoder.frames)):
        return
    port = int(broker.address.rpartition(":")[2])
    with await JafkaPeer.connect(port, local_host=local_host) as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.receive_to_end)
            try:
                await peer.send(frames)
                peer.finish()
            except (BrokenPipeError, ConnectionResetError, OSError):
                pass


async def attack_often(broker: JafkaBroker, count: int, seed: str, topic: str) -> None:
    """Attack until the broker has handled a number of frames, of any connection."""
    rng = random.Random(seed)
    sets = [message_set(rng) for _ in range(MESSAGE_SETS)]
    end = 0
    while broker.statistics().requests < count:
        for _ in range(CONNECTIONS_PER_LOOK):
            # From random addresses: a single one would soon run out of ports.
            local_host = f"127.{rng.randrange(1, 255)}.{rng.randrange(255)}.{rng.randrange(1, 255)}"
            await attack(broker, rng, sets, local_host)
        with await connect(broker) as peer:
            await peer.produce(FINE, topic)
            assert (0, FINE) == await peer.fetch(end, topic=topic)
            end += len(FINE)


async def attack_together(broker: JafkaBroker, count: int, seed: str) -> None:
    """Attack over several connections at a time, and show progress."""

    async def show_progress() -> None:
        while True:
            await trio.sleep(PROGRESS_SECONDS)
            print(f"{broker.statistics().requests:,} of {count:,} frames", flush=True)

    async with trio.open_nursery() as progress:
        progress.start_soon(show_progress)
        async with trio.open_nursery() as nursery:
            for number in range(CONNECTIONS):
                topic = f"topic of {number}"
                nursery.start_soon(attack_often, broker, count, f"{seed} {number}", topic)
        progress.cancel_scope.cancel()


class Errors(logging.Handler):
    """Prints and counts what is logged as an error, as every unexpected exception is."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        print(self.format(record), file=sys.stderr)


async def run(count: int, seed: str, path: Path) -> None:
    """Attack a broker whose folder is below ``path``."""
    settings = {
        "log.file.size": 5_000,
        "max.socket.request.bytes": REQUEST_BYTES_MAX,
        "num.partitions": 2,
    }
    logger = logging.getLogger("trionet")
    logger.addHandler(errors := Errors())
    try:
        async with open_jafka_broker(settings, log_dir=path / "data") as broker:
            with await connect(broker) as peer:
                for number in range(CONNECTIONS):
                    await peer.produce(b"", f"topic of {number}")  # creates its log
            await attack_together(broker, count, seed)
            found = broker.statistics()
    finally:
        logger.removeHandler(errors)
    check(path)
    reasons = {each.name: number for each, number in found.closed.items()}
    print(f"{found.requests:,} frames; closed: {reasons}")
    if errors.count or reasons.get("ERROR"):
        raise SystemExit(f"{errors.count} unexpected errors")


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
