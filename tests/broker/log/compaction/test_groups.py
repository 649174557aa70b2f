"""Segments that are cleaned into one."""

from __future__ import annotations

from trionet.broker.log.compaction._groups import SegmentSizes, group_segments

MIB = 1024 * 1024


def groups(*sizes: tuple[int, int, int, int], end: int, at_most: int = 100) -> list[list[int]]:
    segments = [SegmentSizes(*each) for each in sizes]
    found = group_segments(segments, 10 * MIB, MIB, end, at_most)
    return [[segments[position].base_offset for position in group] for group in found]


def test_a_group_fits_into_one_segment() -> None:
    sizes = [(offset, 4 * MIB, 0, 0) for offset in (0, 10, 20, 30, 40)]

    assert [[0, 10], [20, 30], [40]] == groups(*sizes, end=50)


def test_a_segment_that_is_too_large_is_cleaned_alone() -> None:
    assert [[0], [10], [20]] == groups(
        (0, MIB, 0, 0), (10, 11 * MIB, 0, 0), (20, MIB, 0, 0), end=30
    )


def test_the_indexes_of_a_group_fit_into_those_of_one_segment() -> None:
    by_offset = [(offset, 1, MIB // 2, 0) for offset in (0, 10, 20)]
    by_time = [(offset, 1, 0, MIB // 2) for offset in (0, 10, 20)]

    assert [[0, 10], [20]] == groups(*by_offset, end=30)
    assert [[0, 10], [20]] == groups(*by_time, end=30)


def test_an_offset_of_a_group_fits_into_an_index_entry() -> None:
    sizes = (0, 1, 0, 0), (10, 1, 0, 0), (2**31 - 1, 1, 0, 0)

    assert [[0, 10, 2**31 - 1]] == groups(*sizes, end=2**31)
    assert [[0, 10], [2**31 - 1]] == groups(*sizes, end=2**31 + 1)


def test_a_group_has_a_limited_number_of_segments() -> None:
    sizes = [(offset, 0, 0, 0) for offset in range(5)]

    assert [[0, 1], [2, 3], [4]] == groups(*sizes, end=5, at_most=2)


def test_no_segments_are_no_group() -> None:
    assert [] == groups(end=0)
