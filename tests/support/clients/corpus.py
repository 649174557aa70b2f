"""Records that clients exchange: every shape that the format knows, the same in every run."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from support.clients.client import Headers, Record

SIZE = 300
# An hour ago: what is older than a week would be deleted by a broker's default retention.
EPOCH = int(time.time() * 1000) - 3_600_000
_STEP = 1000

_HEADERS: tuple[Headers, ...] = (
    (),
    (("one", b"1"),),
    (("same", b"first"), ("same", b"second")),
    (("empty", b""), ("null", None)),
    (("näme", b"text"), ("x" * 200, b"y" * 300)),
)


def corpus() -> list[Record]:
    """`SIZE` records: null, empty and binary keys and values, headers, timestamps out of order."""
    rng = random.Random(20)
    records = []
    for index in range(SIZE):
        key = (None, b"", b"key-%d" % (index % 7), rng.randbytes(index % 40))[index % 4]
        value = (
            b"value %d " % index * (index % 50),
            rng.randbytes(index * 3),
            None,
            b"",
            b"\0" * index,
        )[index % 5]
        # Now and then a record is older than the one before.
        timestamp = EPOCH + index * _STEP - (5 * _STEP if index % 10 == 9 else 0)
        records.append(Record(key, value, _HEADERS[index % len(_HEADERS)], timestamp))
    return records


def large_records() -> list[Record]:
    """Records of 900 KB, text that hardly compresses and bytes that compress to nothing."""
    rng = random.Random(21)
    texts = ("".join(rng.choices("0123456789abcdef", k=900_000)), "z" * 900_000)
    return [Record(b"large", text.encode(), (), EPOCH) for text in texts]


def sized_records(sizes: Sequence[int]) -> list[Record]:
    """Values of each size, of random bytes and of text, with keys and headers that grow along."""
    rng = random.Random(22)
    records = []
    for index, size in enumerate(sizes):
        key = rng.randbytes(min(size, 20_000))
        headers: Headers = (("size", b"%d" % size), ("size", key[:300]), ("null", None))
        values = (rng.randbytes(size), b"text" * (size // 4) + b"t" * (size % 4))
        records += [Record(key, value, headers, EPOCH + index) for value in values]
    return records


def small_records(count: int) -> list[Record]:
    """So many records of a few bytes, as many of which as possible fill one batch."""
    return [Record(None, b"%d" % index, (), EPOCH + index) for index in range(count)]
