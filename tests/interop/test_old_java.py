"""Java clients of several ages, which choose their versions from what ApiVersions tells them."""

from __future__ import annotations

import uuid

import pytest

from support.cache import Unavailable
from support.clients.old_java import exchange

COUNT = 300
CODECS = ("none", "gzip", "snappy", "lz4")
ZSTD = (*CODECS, "zstd")


@pytest.mark.parametrize(
    ("version", "codecs"),
    [
        ("0.10.2.2", CODECS),  # Produce 2, Fetch 3: message sets
        ("0.11.0.3", CODECS),
        ("1.1.1", CODECS),
        ("2.8.2", ZSTD),
        (None, ZSTD),
    ],
    ids=["0.10.2", "0.11.0", "1.1", "2.8", "newest"],
)
def test_records_go_there_and_back(
    bootstrap: str, version: str | None, codecs: tuple[str, ...]
) -> None:
    topics = {f"old-java-{uuid.uuid4()}": codec for codec in codecs}
    try:
        found = exchange(bootstrap, version, topics, COUNT)
    except Unavailable as reason:
        pytest.skip(str(reason))

    everything = [
        (at, at, f"k{at}", "-" if at % 10 == 9 else f"v{at}")  # a record in ten has no value
        for at in range(3 * COUNT)
    ]
    assert [*topics] == [*found]
    for topic, codec in topics.items():
        seen = found[topic]
        assert everything == seen.read, codec
        assert {
            "all": [*range(COUNT)],
            "1": [*range(COUNT, 2 * COUNT)],
            "0": [-1] * COUNT,
        } == seen.written, codec
        assert (3 * COUNT, (0, 3 * COUNT), (5, 5)) == (seen.committed, seen.ends, seen.time), codec
