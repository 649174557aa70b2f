from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.log.files._checkpoint_files import (
    Extent,
    decode_extents,
    encode_extents,
    extent_line,
)

NUMBERS = st.integers(0, 2**63 - 1)
EXTENTS = st.dictionaries(
    st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 9999)),
    st.builds(
        Extent,
        st.binary(min_size=16, max_size=16),
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
    ),
)


def encoded(extents: dict[tuple[str, int], Extent]) -> bytes:
    return encode_extents(extent_line(key, extent) for key, extent in extents.items())


def test_the_file_is_a_line_for_each_partition_and_a_checksum() -> None:
    data = encoded({("orders", 3): Extent(bytes(15) + b"\1", 5, 42, 40, 100, 2000, 7)})

    *lines, seal = data.decode().splitlines()
    assert ["0", "1", f"orders 3 {'0' * 31}1 5 42 40 100 2000 7"] == lines
    assert seal.startswith("crc32c ")


@given(EXTENTS)
def test_the_file_reads_back(extents: dict[tuple[str, int], Extent]) -> None:
    assert extents == decode_extents(encoded(extents))


@given(st.data())
def test_a_byte_that_has_changed_is_found(data: st.DataObject) -> None:
    extents = data.draw(EXTENTS.filter(bool))
    content = bytearray(encoded(extents))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(ValueError, match="byte"):
        decode_extents(bytes(content))


@given(st.data())
def test_a_file_that_is_cut_is_found(data: st.DataObject) -> None:
    content = encoded(data.draw(EXTENTS))

    with pytest.raises(ValueError, match="byte"):
        decode_extents(content[: data.draw(st.integers(0, len(content) - 1))])


def test_no_partitions_are_no_lines() -> None:
    assert {} == decode_extents(encode_extents([]))
