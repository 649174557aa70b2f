"""The header checksum of lz4 frames, right and as message format 0 has it."""

from __future__ import annotations

import lz4.frame
import pytest

from trionet.errors import WireFormatError
from trionet.protocol.records.compression._codecs import LZ4, compress, decompress
from trionet.protocol.records.compression._frames import (
    with_legacy_checksum,
    with_standard_checksum,
    xxh32,
)

TEXT = b"flight delays " * 50


@pytest.mark.parametrize(
    ("data", "checksum"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_known_checksums(data: bytes, checksum: int) -> None:
    assert xxh32(data) == checksum


@pytest.mark.parametrize("has_size", [False, True])
def test_the_right_checksum_is_that_of_lz4_itself(has_size: bool) -> None:
    frame = lz4.frame.compress(TEXT, store_size=has_size)

    assert with_standard_checksum(frame) == frame
    assert with_standard_checksum(with_legacy_checksum(memoryview(frame))) == frame


def test_the_old_checksum_covers_the_magic_number_too_and_no_other_version_takes_it() -> None:
    frame = compress(LZ4, TEXT)
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
