"""The two indexes of a segment, in memory and as bytes of a file."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.log.segments._segment_indexes import OffsetIndex, TimeIndex

INT32 = st.integers(0, 2**31 - 1)
RISING = st.sets(INT32, max_size=40).map(sorted)


def offset_index(entries: list[tuple[int, int]]) -> OffsetIndex:
    index = OffsetIndex()
    for offset, position in entries:
        index.append(offset, position)
    return index


def time_index(entries: list[tuple[int, int]]) -> TimeIndex:
    index = TimeIndex()
    for timestamp, offset in entries:
        index.append_if_newer(timestamp, offset)
    return index


def test_offset_index_file_is_big_endian_pairs() -> None:
    index = offset_index([(7, 4200), (19, 8500)])

    assert struct.pack(">iiii", 7, 4200, 19, 8500) == index.encode()
    assert struct.pack(">ii", 19, 8500) == index.encode(1)
    assert b"" == index.encode(2)


def test_time_index_file_is_big_endian_timestamp_and_offset() -> None:
    index = time_index([(2**40, 3), (2**40 + 5, 9)])

    assert struct.pack(">qiqi", 2**40, 3, 2**40 + 5, 9) == index.encode()
    assert struct.pack(">qi", 2**40 + 5, 9) == index.encode(1)


@given(RISING, RISING, INT32)
def test_floor_is_the_last_entry_at_or_before_an_offset(
    offsets: list[int], positions: list[int], wanted: int
) -> None:
    entries = list(zip(offsets, positions, strict=False))
    index = offset_index(entries)

    assert max((e for e in entries if e[0] <= wanted), default=(-1, 0)) == index.floor(wanted)
    assert (entries[-1] if entries else (-1, 0)) == index.last()


TOO_LARGE = 2**31


@pytest.mark.parametrize("entry", [(TOO_LARGE, 200), (9, TOO_LARGE), (TOO_LARGE, TOO_LARGE)])
def test_an_entry_that_does_not_fit_leaves_no_half_of_it(entry: tuple[int, int]) -> None:
    index = offset_index([(5, 100)])
    with pytest.raises(OverflowError):
        index.append(*entry)

    assert ((5, 100), 1) == (index.last(), len(index))
    assert struct.pack(">ii", 5, 100) == index.encode()
    index.append(9, 200)
    assert [(5, 100), (5, 100), (9, 200)] == [index.floor(offset) for offset in (5, 8, 9)]
    assert struct.pack(">iiii", 5, 100, 9, 200) == index.encode()


@pytest.mark.parametrize("entry", [(2**63, 9), (7, TOO_LARGE), (2**63, TOO_LARGE)])
def test_a_time_that_does_not_fit_leaves_no_half_of_it(entry: tuple[int, int]) -> None:
    index = time_index([(6, 5)])
    with pytest.raises(OverflowError):
        index.append_if_newer(*entry)

    assert ((6, 5), 1) == (index.last(), len(index))
    assert struct.pack(">qi", 6, 5) == index.encode()
    index.append_if_newer(7, 9)
    assert struct.pack(">qiqi", 6, 5, 7, 9) == index.encode()
    assert (5, 9) == (index.floor(6), index.floor(7))


@given(RISING, st.integers(0, 40))
def test_entries_can_be_taken_back_from_the_end(values: list[int], kept: int) -> None:
    entries = [(value, value) for value in values]
    index, times = offset_index(entries), time_index(entries)
    index.cut(kept)
    times.cut(kept)

    assert offset_index(entries[:kept]).encode() == index.encode()
    assert time_index(entries[:kept]).encode() == times.encode()
    assert b"" == index.encode(len(entries)) == times.encode(len(entries))


@given(RISING, RISING)
def test_offset_index_reads_back_what_it_wrote(offsets: list[int], positions: list[int]) -> None:
    index = offset_index(list(zip(offsets, positions, strict=False)))
    again = OffsetIndex.decode(index.encode(), 2**31)

    assert again is not None
    assert index.encode() == again.encode()
    assert len(index) == len(again)


@given(st.lists(st.tuples(st.integers(-1, 2**62), INT32), max_size=40), st.integers(0, 2**62))
def test_time_index_keeps_rising_timestamps_only(
    entries: list[tuple[int, int]], wanted: int
) -> None:
    entries = [(timestamp, number) for number, (timestamp, _) in enumerate(entries)]
    index = time_index(entries)
    again = TimeIndex.decode(index.encode())

    kept: list[tuple[int, int]] = []
    for timestamp, offset in entries:
        if timestamp > (kept[-1][0] if kept else -1):
            kept.append((timestamp, offset))
    assert b"".join(struct.pack(">qi", *entry) for entry in kept) == index.encode()
    assert (kept[-1] if kept else (-1, 0)) == index.last()
    assert max((entry for entry in kept if entry[0] <= wanted), default=(0, 0))[1] == index.floor(
        wanted
    )
    assert again is not None
    assert index.encode() == again.encode()


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([(5, 100), (5, 200)], "offsets that do not rise"),
        ([(5, 100), (9, 100)], "positions that do not rise"),
        ([(-1, 100)], "a negative offset"),
        ([(5, -1)], "a negative position"),
        ([(5, 100), (9, 1000)], "a position at the end of the log file"),
        ([(5, 100), (0, 0)], "zeros behind the entries"),
    ],
)
def test_impossible_offset_index_is_refused(entries: list[tuple[int, int]], fault: str) -> None:
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)

    assert OffsetIndex.decode(data, 1000) is None, fault


@pytest.mark.parametrize(
    "entries", [[(5, 1), (5, 2)], [(5, 2), (6, 2)], [(-5, 2)], [(5, -2)], [(5, 2), (0, 0)]]
)
def test_impossible_time_index_is_refused(entries: list[tuple[int, int]]) -> None:
    assert TimeIndex.decode(b"".join(struct.pack(">qi", *entry) for entry in entries)) is None


@given(st.binary(max_size=100))
def test_any_bytes_are_an_index_or_refused(data: bytes) -> None:
    offsets, times = OffsetIndex.decode(data, 2**31 - 1), TimeIndex.decode(data)

    assert offsets is None or data == offsets.encode()
    assert times is None or data == times.encode()
