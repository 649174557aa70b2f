"""The four codecs: what the wire wants, every size and level, and bodies that want much memory."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from typing import Final

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import DecompressionLimitError, WireFormatError
from trionet.protocol.records.compression._codecs import (
    DECOMPRESSION_RATIO_MAX,
    DEFAULT_LEVELS,
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from trionet.protocol.records.compression._frames import (
    with_legacy_checksum,
    with_standard_checksum,
    xxh32,
)

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
RANDOM = random.Random(7)
TEXT = b'{"airport": "JFK", "delay": %d}' * 5000
BODIES = (b"", b"x", TEXT, RANDOM.randbytes(1 << 20), b"text" * (1 << 18))
MEGABYTE = 1 << 20


def name_of(codec: int) -> str:
    return NAMES[codec]


each_codec = pytest.mark.parametrize("codec", CODECS, ids=name_of)


@pytest.mark.parametrize("codec", [NONE, *CODECS], ids=name_of)
@pytest.mark.parametrize("body", BODIES, ids=len)
def test_round_trip(codec: int, body: bytes) -> None:
    compressed = compress(codec, body)

    assert decompress(codec, compressed, len(body)) == body
    assert decompress(codec, memoryview(compressed), MEGABYTE) == body


@each_codec
@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_buffer_goes_in_and_bytes_come_out(codec: int, kind: type) -> None:
    compressed = compress(codec, kind(TEXT))
    inflated = decompress(codec, kind(compressed), MEGABYTE)

    assert (type(compressed), type(inflated)) == (bytes, bytes)
    assert inflated == TEXT


@pytest.mark.parametrize("codec", [NONE, *CODECS], ids=name_of)
def test_one_byte_above_the_limit_is_refused(codec: int) -> None:
    compressed = compress(codec, TEXT)

    with pytest.raises(WireFormatError, match=f"larger than {len(TEXT) - 1} bytes"):
        decompress(codec, compressed, len(TEXT) - 1)


@each_codec
def test_bomb_is_refused_without_being_inflated(codec: int) -> None:
    bomb = compress(codec, bytes(100 * MEGABYTE))

    with pytest.raises(WireFormatError, match="larger than 1048576 bytes"):
        decompress(codec, bomb, MEGABYTE)


@each_codec
def test_what_is_damaged_is_not_said_to_be_large(codec: int) -> None:
    compressed = compress(codec, RANDOM.randbytes(10_000))

    with pytest.raises(WireFormatError) as caught:
        decompress(codec, compressed[: len(compressed) // 2], MEGABYTE)
    assert type(caught.value) is WireFormatError
    with pytest.raises(DecompressionLimitError) as too_large:
        decompress(codec, compressed, 9999)
    assert 9999 == too_large.value.bytes_max


@pytest.mark.parametrize("codec", [LZ4, ZSTD], ids=name_of)
def test_a_limit_may_be_larger_than_memory(codec: int) -> None:
    """Memory is taken for what comes out; the size that a frame claims may be a lie."""
    frame = TEXT + bytes(2 * MEGABYTE)
    stream = cramjam.zstd.Compressor() if codec == ZSTD else cramjam.lz4.Compressor()
    stream.compress(frame)

    assert frame == decompress(codec, bytes(stream.finish()), 2**63 - 1)
    with pytest.raises(WireFormatError, match="valid zstd"):
        decompress(ZSTD, zstd_with_size(TEXT, 1 << 60), 2**63 - 1)


def test_frame_that_lies_about_its_size_is_refused() -> None:
    claims_four_gigabytes = b"\xff\xff\xff\xff\x0f" + b"\x00a"

    with pytest.raises(WireFormatError, match="larger than 1048576 bytes"):
        decompress(SNAPPY, claims_four_gigabytes, MEGABYTE)


@each_codec
def test_body_cut_anywhere_is_refused_or_a_prefix(codec: int) -> None:
    body = RANDOM.randbytes(200) + bytes(200)
    compressed = compress(codec, body)
    for end in range(len(compressed)):
        try:
            inflated = decompress(codec, compressed[:end], MEGABYTE)
        except WireFormatError:
            continue
        # Only snappy's framing can end between blocks, where nothing tells that more should come.
        assert codec == SNAPPY
        assert end == 16
        assert inflated == b""


@each_codec
def test_mutated_body_is_a_value_or_a_wire_format_error(codec: int) -> None:
    compressed = compress(codec, TEXT[:2000])
    refused = 0
    for _ in range(2000):
        mutated = bytearray(compressed)
        mutated[RANDOM.randrange(len(mutated))] = RANDOM.randrange(256)
        try:
            assert len(decompress(codec, mutated, MEGABYTE)) <= MEGABYTE
        except WireFormatError:
            refused += 1

    assert refused > 0


def test_unknown_codecs() -> None:
    with pytest.raises(WireFormatError, match="unknown compression codec 5"):
        decompress(5, b"", MEGABYTE)
    with pytest.raises(ValueError, match="unknown compression codec 5"):
        compress(5, b"")


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=name_of)
def test_levels_trade_time_for_size(codec: int) -> None:
    fast, slow = {GZIP: (1, 9), LZ4: (9, 17), ZSTD: (-5, 19)}[codec]

    body = b"".join(b'{"flight": %d}' % RANDOM.randrange(9999) for _ in range(5000))
    quick, small = compress(codec, body, fast), compress(codec, body, slow)

    assert len(small) < len(quick)
    assert [body, body] == [decompress(codec, each, len(body)) for each in (quick, small)]


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=name_of)
def test_every_level_of_kafka_is_one(codec: int) -> None:
    levels = {GZIP: range(1, 10), LZ4: range(1, 18), ZSTD: (-131_072, -1, 0, 22)}[codec]

    for level in (*levels, DEFAULT_LEVELS[codec]):
        assert TEXT[:9000] == decompress(codec, compress(codec, TEXT[:9000], level), 9000)


@pytest.mark.parametrize("codec", [NONE, SNAPPY], ids=name_of)
def test_what_has_no_levels_takes_none(codec: int) -> None:
    with pytest.raises(ValueError, match=f"{NAMES[codec]} has no compression levels"):
        compress(codec, TEXT, 3)


def test_levels_are_kafkas_by_default() -> None:
    assert {GZIP: -1, LZ4: 9, ZSTD: 3} == DEFAULT_LEVELS
    for codec, level in DEFAULT_LEVELS.items():
        assert compress(codec, TEXT) == compress(codec, TEXT, level)


@pytest.mark.parametrize("level", [None, 17])
def test_lz4_blocks_are_independent_as_java_wants_them(level: int | None) -> None:
    magic, flags = struct.unpack_from("<IB", compress(LZ4, TEXT, level))

    version, independent, content_checksum = flags >> 6, flags >> 5 & 1, flags >> 2 & 1
    assert (magic, version, independent, content_checksum) == (0x184D2204, 1, 1, 0)


def test_lz4_blocks_are_of_64_kilobytes_and_have_no_checksums() -> None:
    body = TEXT + RANDOM.randbytes(100_000)

    frame = compress(LZ4, body)

    assert "04224d18604082" == frame[:7].hex()
    pos, sizes = 7, []
    while size := int.from_bytes(frame[pos : pos + 4], "little"):
        sizes.append(size & 0x7FFFFFFF)
        pos += 4 + sizes[-1]
    assert pos + 4 == len(frame)
    assert -(-len(body) // 65536) == len(sizes)
    assert all(size <= 65536 for size in sizes)
    assert len(frame) < len(TEXT) // 2 + 101_000, "what lz4 makes larger is stored as it is"


@pytest.mark.parametrize("block_linked", [True, False])
@pytest.mark.parametrize("content_checksum", [True, False])
def test_lz4_of_other_shapes_is_read(block_linked: bool, content_checksum: bool) -> None:
    stream = cramjam.lz4.Compressor(
        level=4, content_checksum=content_checksum, block_linked=block_linked
    )
    stream.compress(TEXT)

    assert decompress(LZ4, bytes(stream.finish()), MEGABYTE) == TEXT


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("body", [b"", b"x", TEXT * 9], ids=len)
def test_lz4_of_other_clients_is_read(block_size: int, store_size: bool, body: bytes) -> None:
    frame = lz4.frame.compress(
        body, block_size=block_size, store_size=store_size, block_linked=False
    )

    assert body == decompress(LZ4, frame, len(body))


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (b"", "lz4"),
        (compress(LZ4, TEXT)[:-4], "lz4"),
        (compress(LZ4, TEXT) + b"more", "lz4"),
        (compress(LZ4, TEXT)[:6] + b"\x83" + compress(LZ4, TEXT)[7:], "headerChecksum"),
        (compress(LZ4, b"")[:7] + b"\x01\x00\x01\x00" + bytes(65537), "65537 bytes does not fit"),
        (compress(LZ4, b"")[:7] + b"\x09\x00\x00\x80" + bytes(8), "9 bytes does not fit"),
    ],
    ids=[
        "nothing",
        "no end",
        "more behind the end",
        "header",
        "block too large",
        "block cut short",
    ],
)
def test_malformed_lz4_is_refused(frame: bytes, match: str) -> None:
    with pytest.raises(WireFormatError, match=match):
        decompress(LZ4, frame, MEGABYTE)


def test_snappy_is_written_in_xerial_blocks_of_32_kilobytes() -> None:
    compressed = compress(SNAPPY, TEXT)

    assert compressed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    lengths = []
    pos = 16
    while pos < len(compressed):
        (length,) = struct.unpack_from(">i", compressed, pos)
        lengths.append(cramjam.snappy.decompress_raw_len(compressed[pos + 4 : pos + 4 + length]))
        pos += 4 + length
    assert sum(lengths) == len(TEXT)
    assert set(lengths[:-1]) == {32 * 1024}


def test_bare_snappy_is_read() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), MEGABYTE) == TEXT


@pytest.mark.parametrize("length", [-1, 100, 0], ids=["negative", "too long", "empty"])
def test_impossible_snappy_block_is_refused(length: int) -> None:
    header = compress(SNAPPY, b"")

    with pytest.raises(WireFormatError, match="snappy block"):
        decompress(SNAPPY, header + struct.pack(">i", length), MEGABYTE)


def test_limit_counts_over_all_snappy_blocks() -> None:
    compressed = compress(SNAPPY, bytes(3 * 32 * 1024))

    with pytest.raises(WireFormatError, match="larger than"):
        decompress(SNAPPY, compressed, 2 * 32 * 1024 + 1)


def test_zstd_without_content_size_is_read() -> None:
    stream = cramjam.zstd.Compressor()
    stream.compress(TEXT[:1000])
    stream.compress(TEXT[1000:])
    compressed = bytes(stream.finish())

    descriptor = compressed[4]
    assert descriptor >> 5 == 0, "the frame must not say its size, or this tests nothing"
    assert decompress(ZSTD, compressed, MEGABYTE) == TEXT


def test_zstd_that_says_its_size_is_read_into_just_that() -> None:
    compressed = zstd_with_size(TEXT)

    assert decompress(ZSTD, compressed, len(TEXT)) == TEXT
    with pytest.raises(WireFormatError, match=f"larger than {len(TEXT) - 1} bytes when"):
        decompress(ZSTD, compressed, len(TEXT) - 1)


@pytest.mark.parametrize("claimed", [0, 1, 255, 256, 65535, 65536, 1 << 40])
def test_zstd_that_lies_about_its_size_is_refused(claimed: int) -> None:
    with pytest.raises(WireFormatError, match=r"valid zstd|bytes when"):
        decompress(ZSTD, zstd_with_size(TEXT, claimed), MEGABYTE)


def zstd_with_size(body: bytes, claimed: int | None = None) -> bytes:
    """One frame of stored blocks with a size of eight bytes, as clients that know it write it."""
    size = len(body) if claimed is None else claimed
    parts = [b"\x28\xb5\x2f\xfd\xe0", struct.pack("<Q", size)]
    for start in range(0, len(body), 65536):
        block = body[start : start + 65536]
        is_last = start + 65536 >= len(body)
        parts += (len(block) << 3 | is_last).to_bytes(3, "little"), block
    return b"".join(parts)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=name_of)
def test_several_members_are_read_as_one(codec: int) -> None:
    compressed = compress(codec, TEXT) + compress(codec, b"") + compress(codec, TEXT[:99])

    assert TEXT + TEXT[:99] == decompress(codec, compressed, len(TEXT) + 99)
    with pytest.raises(WireFormatError, match=f"larger than {len(TEXT) + 98} bytes"):
        decompress(codec, compressed, len(TEXT) + 98)


def test_zstd_frames_for_other_readers_are_skipped() -> None:
    other = struct.pack("<II", 0x184D2A50, 3) + b"abc"

    assert TEXT == decompress(ZSTD, other + compress(ZSTD, TEXT) + other, MEGABYTE)


def test_snappy_versions_of_swapped_bytes_are_read() -> None:
    compressed = compress(SNAPPY, TEXT)

    swapped = compressed[:8] + struct.pack("<ii", 1, 1) + compressed[16:]

    assert TEXT == decompress(SNAPPY, swapped, MEGABYTE)


@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_snappy_blocks_of_other_sizes_are_read(block_bytes: int) -> None:
    body = TEXT[:5000]
    parts = [compress(SNAPPY, b"")]
    for start in range(0, len(body), block_bytes):
        block = bytes(cramjam.snappy.compress_raw(body[start : start + block_bytes]))
        parts += struct.pack(">i", len(block)), block

    assert body == decompress(SNAPPY, b"".join(parts), MEGABYTE)


def test_gzip_that_goes_on_after_its_end_is_refused() -> None:
    with pytest.raises(WireFormatError, match="followed by other data"):
        decompress(GZIP, zlib.compress(TEXT, wbits=31) + b"more", MEGABYTE)


# What grows most: repetitions of one byte, by the widest copies that each format has.
BLOCK = 128 * 1024
ZSTD_HEAD = b"\x28\xb5\x2f\xfd\x00\x38"  # a window of 128 KB
ZSTD_REPEAT = (BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
ZSTD_LAST = (BLOCK << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
WIDEST = {
    GZIP: zlib.compress(bytes(16_000_000), 9, wbits=31),
    # A literal of one byte, then copies of 64 from one byte before.
    SNAPPY: b"\xc1\x98\x0d" + b"\0\0" + b"\xfe\x01\0" * 3_377,
    LZ4: cramjam.lz4.compress(bytes(4_000_000)),
    ZSTD: ZSTD_HEAD + ZSTD_REPEAT * 99 + ZSTD_LAST,
}


@pytest.mark.parametrize("codec", WIDEST)
def test_nothing_grows_more_than_its_format_allows(codec: int) -> None:
    data = bytes(WIDEST[codec])
    grown = len(decompress(codec, data, 20_000_000))

    assert 0.9 * DECOMPRESSION_RATIO_MAX[codec] < grown / len(data) < DECOMPRESSION_RATIO_MAX[codec]


FLIGHTS = b"flight delays " * 50


@pytest.mark.parametrize(
    ("data", "checksum"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_known_checksums(data: bytes, checksum: int) -> None:
    assert xxh32(data) == checksum


@pytest.mark.parametrize("has_size", [False, True])
def test_the_right_checksum_is_that_of_lz4_itself(has_size: bool) -> None:
    frame = lz4.frame.compress(FLIGHTS, store_size=has_size)

    assert with_standard_checksum(frame) == frame
    assert with_standard_checksum(with_legacy_checksum(memoryview(frame))) == frame


def test_the_old_checksum_covers_the_magic_number_too_and_no_other_version_takes_it() -> None:
    frame = compress(LZ4, FLIGHTS)
    old = with_legacy_checksum(frame)

    assert old[6] == xxh32(frame[:6]) >> 8 & 0xFF
    assert [at for at in range(len(frame)) if frame[at] != old[at]] == [6]
    with pytest.raises(WireFormatError, match="headerChecksum"):
        decompress(LZ4, old, 10_000)


@pytest.mark.parametrize(
    "frame", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x68\x40" + bytes(8)]
)
def test_a_header_that_ends_too_early_is_refused(frame: bytes) -> None:
    with pytest.raises(WireFormatError, match="truncated"):
        with_standard_checksum(frame)


def test_a_dictionary_is_refused() -> None:
    with pytest.raises(WireFormatError, match="dictionary"):
        with_standard_checksum(b"\x04\x22\x4d\x18\x61\x40" + bytes(20))


#: Where blocks and the steps of reading them end.
BORDERS: Final = [1 << bits for bits in (0, 15, 16, 18, 20)]
LEVELS: Final = {GZIP: (1, 9), LZ4: (1, 17), ZSTD: (-7, 12)}

every_codec = pytest.mark.parametrize("codec", list(NAMES), ids=NAMES.__getitem__)

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
@every_codec
@given(data=st.data(), body=bodies())
def test_what_goes_in_comes_out(codec: int, data: st.DataObject, body: bytes) -> None:
    level = None
    if codec in DEFAULT_LEVELS:
        level = data.draw(st.one_of(st.none(), st.integers(*LEVELS[codec])), "level")

    compressed = compress(codec, body, level)

    assert body == decompress(codec, compressed, len(body))
    assert body == decompress(codec, memoryview(compressed), MEGABYTE)


@pytest.mark.slow
@given(body=bodies(), more=bodies())
def test_others_read_what_we_write_and_we_read_theirs(body: bytes, more: bytes) -> None:
    assert body == gzip.decompress(compress(GZIP, body))
    assert body == lz4.frame.decompress(compress(LZ4, body))
    both = gzip.compress(body, 1) + gzip.compress(more, 1)
    assert body + more == decompress(GZIP, both, len(body) + len(more))
    frame = lz4.frame.compress(body, block_linked=len(more) % 2 == 0)
    assert body == decompress(LZ4, frame, len(body))
