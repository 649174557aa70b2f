"""`python3 tests mutations`: decode a million frames that were good until something changed them.

Each is a value or a WireFormatError; what is raised else, and what takes long, is printed with the
bytes that did it. The frames are the messages of every API and version, whole requests with their
headers, record batches, message sets, and compressed bodies.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from fuzz.blind import at_most
from protocol.samples import Sample, samples
from trionet.errors import WireFormatError
from trionet.protocol._codec import REQUEST_KEYS, lookup
from trionet.protocol._header import decode_request_header, encode_request_header, skip_tags
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression import _codecs as compression
from trionet.protocol.records.message_sets._message_set import (
    CRC_START,
    check_message_crc,
    decode_message_set,
    encode_message_set,
    iter_messages,
)

COUNT = 1_000_000
#: The most that one frame of a few KB may take; milliseconds where nothing is wrong.
FRAME_SECONDS_MAX = 5.0
#: How often a frame is changed before the next random one takes its place.
ROUNDS = 20
_FRAME_BYTES_MAX = 3000
_INFLATED_BYTES_MAX = 100_000
_CODECS = (compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD)
_PROGRESS_SECONDS = 10.0


class Frame(NamedTuple):
    """A good frame and what reads it: returns for a value, and raises WireFormatError for none."""

    name: str
    wire: bytes
    read: Callable[[bytes], object]


def frames(seed: str, *, size_max: int = _FRAME_BYTES_MAX) -> Iterator[Frame]:
    """Good frames of every kind, others for each seed; messages of at most ``size_max`` bytes."""
    for sample in samples(seed, size_max=size_max):
        yield Frame(f"{sample.name} v{sample.version}", sample.wire, partial(_read_message, sample))
        codec = lookup(REQUEST_KEYS.get(sample.name, -1), sample.version)
        if codec is not None:
            head = encode_request_header(codec, 7, "client")
            yield Frame(f"{codec!r} with its header", head + sample.wire, _read_request)
    yield from record_frames(random.Random(seed))


def record_frames(rng: random.Random) -> Iterator[Frame]:
    """Batches, message sets, and compressed bodies of random records."""
    for codec in (compression.NONE, *_CODECS):
        rows = [_row(rng) for _ in range(rng.randrange(1, 30))]
        name = compression.NAMES[codec]
        batches = encode_batch(rows, codec=codec) + encode_batch(rows[:1])
        yield Frame(f"batches, {name}", batches, _read_batches)
        if codec:
            body = compression.compress(codec, rng.randbytes(300) * 3)
            yield Frame(f"compressed, {name}", body, partial(_inflate, codec))
    for magic, codec in ((0, 0), (0, compression.GZIP), (1, 0), (1, compression.LZ4)):
        olds: list[Record] = [
            (n, 5, b"k", rng.randbytes(9), []) for n in range(rng.randrange(1, 9))
        ]
        wire = encode_message_set(olds, magic=magic, codec=codec)
        yield Frame(f"messages of format {magic}, codec {codec}", wire, _read_message_set)


def _row(rng: random.Random) -> Any:
    key = rng.choice((None, b"", rng.randbytes(rng.randrange(200))))
    value = rng.choice((None, b"", rng.randbytes(rng.randrange(200))))
    headers = [("header", rng.choice((None, b"v"))) for _ in range(rng.randrange(3))]
    return rng.randrange(2**40), key, value, headers


def _read_message(sample: Sample, wire: bytes) -> None:
    """What is read can be written, and is the same then."""
    canonical = sample.encoded(sample.decode(wire, 0))

    assert sample.encoded(sample.decode(canonical, 0)) == canonical


def _read_request(wire: bytes) -> None:
    key, version, _, _, position = decode_request_header(wire)
    codec = lookup(key, version)
    if codec is None:
        return  # a version that nobody serves: the connection ends
    if codec.request_header_version == 2:
        position = skip_tags(wire, position)
    codec.decode_request(wire, position)


def _read_batches(wire: bytes) -> None:
    for position, header in iter_batches(wire):
        check_crc(wire, position, header)
        decode_batch(wire, position, inflated_bytes_max=_INFLATED_BYTES_MAX)


def _read_message_set(wire: bytes) -> None:
    """With right checksums, since nothing behind a wrong one is looked at."""
    stamped = bytearray(wire)
    for position, header in iter_messages(wire):
        content = memoryview(wire)[position + CRC_START : position + header.size]
        struct.pack_into(">I", stamped, position + CRC_START - 4, zlib.crc32(content))
        check_message_crc(wire, position, header)
    decode_message_set(bytes(stamped), inflated_bytes_max=_INFLATED_BYTES_MAX)


def _inflate(codec: int, wire: bytes) -> None:
    assert len(compression.decompress(codec, wire, _INFLATED_BYTES_MAX)) <= _INFLATED_BYTES_MAX


def mutate(wire: bytes, rng: random.Random) -> bytes:
    """A frame with one to three changes."""
    mutated = bytearray(wire)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(mutated) + 1)
        kind = rng.randrange(4)
        if kind == 0 and mutated:
            mutated[place - 1] = rng.randrange(256)
        elif kind == 1 and mutated:
            mutated[place - 1] ^= 1 << rng.randrange(8)
        elif kind == 2:
            insert = rng.choice((b"\x00", b"\xff\xff\xff\xff\x07", rng.randbytes(3)))
            mutated[place:place] = insert
        else:
            del mutated[place : place + rng.randrange(1, 4)]
    return bytes(mutated)


class Outcome:
    """What became of the frames so far; ``finds`` are those that broke something."""

    def __init__(self) -> None:
        self.read = 0
        self.refused = 0
        self.finds: list[str] = []

    @property
    def count(self) -> int:
        """How many there were."""
        return self.read + self.refused + len(self.finds)

    def add(self, frame: Frame, wire: bytes) -> None:
        """Read one frame, changed or not."""
        try:
            frame.read(wire)
        except WireFormatError:
            self.refused += 1
        except Exception:  # boundary: whatever else is raised is what is searched for
            self.finds.append(f"{frame.name}: {wire.hex()}\n{traceback.format_exc()}")
        else:
            self.read += 1


def search(count: int, seed: int, tell: Callable[[Outcome], None]) -> Outcome:
    """Read so many changed frames; ``tell`` is called now and then.

    Args:
        count: how many.
        seed: decides which.
        tell: is shown what became of those so far.
    """
    outcome = Outcome()
    rng = random.Random(seed)
    told_at = time.monotonic()
    while outcome.count < count:
        seed += 1
        for frame in frames(str(seed)):
            if outcome.count >= count:
                break
            rounds = min(ROUNDS, count - outcome.count)
            for wire in [mutate(frame.wire, rng) for _ in range(rounds)]:
                with at_most(FRAME_SECONDS_MAX):
                    outcome.add(frame, wire)
            if time.monotonic() - told_at > _PROGRESS_SECONDS:
                told_at = time.monotonic()
                tell(outcome)
    return outcome


def main(arguments: list[str]) -> int:
    """Search; the exit status says whether nothing was found."""
    parser = argparse.ArgumentParser(
        prog="python3 tests mutations",
        description="Decode frames that were good until something changed them: a value or a"
        " WireFormatError. The exit status is 1 if there was anything else.",
    )
    parser.add_argument("--count", type=int, default=COUNT, help="frames (default %(default)s)")
    parser.add_argument("--seed", type=int, help="repeats a search; printed without")
    chosen = parser.parse_args(arguments)
    seed = time.time_ns() if chosen.seed is None else chosen.seed
    print(f"mutations: {chosen.count:,} frames, seed {seed}", flush=True)
    began = time.monotonic()
    outcome = search(chosen.count, seed, lambda so_far: print(f"{so_far.count:,}", flush=True))
    for find in outcome.finds:
        print(find)
    print(
        f"mutations: {outcome.count:,} frames in {time.monotonic() - began:.0f} s:"
        f" {outcome.read:,} read, {outcome.refused:,} refused, {len(outcome.finds)} found"
    )
    return 1 if outcome.finds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
