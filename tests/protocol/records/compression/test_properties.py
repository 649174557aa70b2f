"""Bodies of 0 bytes to 1 MB go through every codec and every level, and come out as they were."""

from __future__ import annotations

import gzip
import random
from typing import Final

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.protocol.records.compression._codecs import (
    DEFAULT_LEVELS,
    GZIP,
    LZ4,
    NAMES,
    ZSTD,
    compress,
    decompress,
)

MEGABYTE: Final = 1 << 20
#: Where blocks and the steps of reading them end.
BORDERS: Final = [1 << bits for bits in (0, 15, 16, 18, 20)]
LEVELS: Final = {GZIP: (1, 9), LZ4: (1, 17), ZSTD: (-7, 12)}

each_codec = pytest.mark.parametrize("codec", list(NAMES), ids=NAMES.__getitem__)

sizes = st.one_of(
    st.integers(0, 200),
    st.builds(
        lambda border, off: max(0, border - off), st.sampled_from(BORDERS), st.integers(0, 2)
    ),
    st.integers(0, MEGABYTE),
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Random bytes, repetitions of a pattern, or one after the other, many times."""
    size, rng = draw(sizes), random.Random(draw(st.integers(0, 1 << 32)))
    kind = draw(st.sampled_from(("random", "repetitive", "mixed")))
    if kind == "random":
        return rng.randbytes(size)
    pattern = draw(st.binary(min_size=1, max_size=100))
    if kind == "mixed":
        pattern = pattern * rng.randrange(1, 500) + rng.randbytes(rng.randrange(1, 50_000))
    return (pattern * (size // len(pattern) + 1))[:size]


@pytest.mark.slow
@each_codec
@given(data=st.data(), body=bodies())
def test_what_goes_in_comes_out(codec: int, data: st.DataObject, body: bytes) -> None:
    level = None
    if codec in DEFAULT_LEVELS:
        level = data.draw(st.one_of(st.none(), st.integers(*LEVELS[codec])), "level")

    compressed = compress(codec, body, level)

    assert body == decompress(codec, compressed, len(body))
    assert body == decompress(codec, memoryview(compressed), MEGABYTE)


@each_codec
@pytest.mark.parametrize("kind", ["random", "repetitive"])
def test_a_megabyte_goes_in_and_comes_out(codec: int, kind: str) -> None:
    is_random = kind == "random"
    body = random.Random(1).randbytes(MEGABYTE) if is_random else b"text" * (MEGABYTE // 4)

    assert body == decompress(codec, compress(codec, body), MEGABYTE)


@pytest.mark.slow
@given(body=bodies(), more=bodies())
def test_others_read_what_we_write_and_we_read_theirs(body: bytes, more: bytes) -> None:
    assert body == gzip.decompress(compress(GZIP, body))
    assert body == lz4.frame.decompress(compress(LZ4, body))
    both = gzip.compress(body, 1) + gzip.compress(more, 1)
    assert body + more == decompress(GZIP, both, len(body) + len(more))
    frame = lz4.frame.compress(body, block_linked=len(more) % 2 == 0)
    assert body == decompress(LZ4, frame, len(body))
