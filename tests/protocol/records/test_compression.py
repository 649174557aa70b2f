"""The four codecs: what the wire wants, and bodies that want too much memory."""

from __future__ import annotations

import random
import struct
import zlib

import cramjam
import pytest

from trionet.errors import WireFormatError
from trionet.protocol.records.compression import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
RANDOM = random.Random(7)
TEXT = b'{"airport": "JFK", "delay": %d}' * 5000
BODIES = (b"", b"x", TEXT, RANDOM.randbytes(100_000), bytes(300_000))
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

    with pytest.raises(WireFormatError, match=f"beyond {len(TEXT) - 1} bytes"):
        decompress(codec, compressed, len(TEXT) - 1)


@each_codec
def test_bomb_is_refused_without_being_inflated(codec: int) -> None:
    bomb = compress(codec, bytes(100 * MEGABYTE))

    with pytest.raises(WireFormatError, match="beyond 1048576 bytes"):
        decompress(codec, bomb, MEGABYTE)


def test_frame_that_lies_about_its_size_is_refused() -> None:
    claims_four_gigabytes = b"\xff\xff\xff\xff\x0f" + b"\x00a"

    with pytest.raises(WireFormatError, match="beyond 1048576 bytes"):
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
    with pytest.raises(WireFormatError, match="codec 5 is unknown"):
        decompress(5, b"", MEGABYTE)
    with pytest.raises(ValueError, match="5 is no codec"):
        compress(5, b"")


def test_lz4_blocks_are_independent_as_java_wants_them() -> None:
    magic, flags = struct.unpack_from("<IB", compress(LZ4, TEXT))

    version, independent, content_checksum = flags >> 6, flags >> 5 & 1, flags >> 2 & 1
    assert (magic, version, independent, content_checksum) == (0x184D2204, 1, 1, 0)


@pytest.mark.parametrize("block_linked", [True, False])
@pytest.mark.parametrize("content_checksum", [True, False])
def test_lz4_of_other_shapes_is_read(block_linked: bool, content_checksum: bool) -> None:
    stream = cramjam.lz4.Compressor(
        level=4, content_checksum=content_checksum, block_linked=block_linked
    )
    stream.compress(TEXT)

    assert decompress(LZ4, bytes(stream.finish()), MEGABYTE) == TEXT


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

    with pytest.raises(WireFormatError, match="grow beyond"):
        decompress(SNAPPY, compressed, 2 * 32 * 1024 + 1)


def test_zstd_without_content_size_is_read() -> None:
    stream = cramjam.zstd.Compressor()
    stream.compress(TEXT[:1000])
    stream.compress(TEXT[1000:])
    compressed = bytes(stream.finish())

    descriptor = compressed[4]
    assert descriptor >> 5 == 0, "the frame must not say its size, or this tests nothing"
    assert decompress(ZSTD, compressed, MEGABYTE) == TEXT


def test_gzip_that_goes_on_behind_its_end_is_refused() -> None:
    with pytest.raises(WireFormatError, match="behind their end"):
        decompress(GZIP, zlib.compress(TEXT, wbits=31) + b"more", MEGABYTE)
