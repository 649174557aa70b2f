"""What bombs take before they are refused: the limit, zstd's window, and a little more."""

from __future__ import annotations

import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from support.inflating_memory import Taken, refused
from trionet.protocol.records.compression._codecs import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)

MEGABYTE = 1 << 20
LIMIT = 6 * MEGABYTE
#: So large that twice the limit would be found out.
BOMB_BYTES = 18 * MEGABYTE
#: What a codec may hold beside what came out: its state, and the piece that it works on.
SLACK_BYTES = MEGABYTE + MEGABYTE // 2


def in_parts(stream: cramjam.lz4.Compressor | cramjam.zstd.Compressor) -> bytes:
    """As who does not know how much it will be compresses: the size is not told."""
    for _ in range(BOMB_BYTES // MEGABYTE):
        stream.compress(bytes(MEGABYTE))
    return bytes(stream.finish())


def linked_lz4() -> bytes:
    return in_parts(cramjam.lz4.Compressor(level=4, content_checksum=True, block_linked=True))


def over_and_over(codec: int) -> Callable[[], bytes]:
    return lambda: compress(codec, bytes(MEGABYTE)) * (BOMB_BYTES // MEGABYTE)


def zeros(codec: int) -> Callable[[], bytes]:
    return lambda: compress(codec, bytes(BOMB_BYTES))


# With the windows that a frame of zstd wants, where it has one.
BOMBS: dict[str, tuple[int, int, Callable[[], bytes]]] = {
    "gzip": (GZIP, 0, zeros(GZIP)),
    "members of gzip": (GZIP, 0, over_and_over(GZIP)),
    "snappy": (SNAPPY, 0, zeros(SNAPPY)),
    "bare snappy": (SNAPPY, 0, lambda: bytes(cramjam.snappy.compress_raw(bytes(BOMB_BYTES)))),
    "snappy that lies": (SNAPPY, 0, lambda: b"\x80\x80\x80\x05\x00a"),
    "lz4": (LZ4, 0, zeros(LZ4)),
    "linked lz4": (LZ4, 0, linked_lz4),
    "frames of lz4": (LZ4, 0, over_and_over(LZ4)),
    "zstd that says its size": (ZSTD, 0, zeros(ZSTD)),
    "zstd": (ZSTD, 2 * MEGABYTE, lambda: in_parts(cramjam.zstd.Compressor(3))),
    "zstd of level 22": (ZSTD, 128 * MEGABYTE, lambda: in_parts(cramjam.zstd.Compressor(22))),
    "frames of zstd": (ZSTD, 2 * MEGABYTE, over_and_over(ZSTD)),
}


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Taken]:
    if sys.platform != "linux":
        pytest.skip("only Linux tells the most memory that a process has had since a moment")
    folder = tmp_path_factory.mktemp("bombs")
    bodies = []
    for name, (codec, _, bomb) in BOMBS.items():
        path = Path(folder, name)
        path.write_bytes(bomb())
        bodies.append((codec, path))
    return dict(zip(BOMBS, refused(bodies, LIMIT), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_the_limit_and_no_more(name: str, taken: dict[str, Taken]) -> None:
    _, window, _ = BOMBS[name]
    each = taken[name]

    assert f"larger than {LIMIT} bytes" in each.error
    assert each.traced <= LIMIT + SLACK_BYTES
    assert each.resident <= LIMIT + min(LIMIT, window) + SLACK_BYTES
    assert each.kept <= SLACK_BYTES, "who keeps the error keeps nothing of the bomb"


@pytest.mark.slow
def test_what_is_measured_is_there(taken: dict[str, Taken]) -> None:
    """Or else the test above would find nothing."""
    assert taken["linked lz4"].resident > LIMIT - SLACK_BYTES
    assert taken["zstd of level 22"].resident > 2 * (LIMIT - SLACK_BYTES)
    assert taken["gzip"].traced > LIMIT - SLACK_BYTES


LZ4_HEADER = compress(LZ4, b"")[:7]
SNAPPY_HEADER = compress(SNAPPY, b"")
COUNT = 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "body", "inflated"),
    [
        pytest.param(LZ4, LZ4_HEADER + b"\1\0\0\x80x" * COUNT + bytes(4), b"x", id="stored lz4"),
        pytest.param(LZ4, LZ4_HEADER + b"\2\0\0\0\x10x" * COUNT + bytes(4), b"x", id="lz4"),
        pytest.param(SNAPPY, SNAPPY_HEADER + b"\0\0\0\3\1\0x" * COUNT, b"x", id="snappy"),
        pytest.param(SNAPPY, SNAPPY_HEADER + b"\0\0\0\1\0" * COUNT, b"", id="empty snappy"),
        pytest.param(GZIP, zlib.compress(b"x", wbits=31) * COUNT, b"x", id="gzip"),
        pytest.param(ZSTD, compress(ZSTD, b"x") * COUNT, b"x", id="zstd"),
    ],
)
def test_many_small_blocks_take_no_more_than_few_large_ones(
    codec: int, body: bytes, inflated: bytes
) -> None:
    tracemalloc.start()
    try:
        out = decompress(codec, body, COUNT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert inflated * COUNT == out
    assert peak < len(body) + 8 * COUNT + MEGABYTE // 4
