"""Splitting ranges into tasks: the numbers of the connector's own suite, and what holds for all."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.spark.offsets._ranges import OffsetRange, needs_split, split

#: A partition of topic t1, t2 or t3, by its digit, from an offset until before another.
Piece = tuple[int, int, int]


def ranges_of(*pieces: Piece) -> list[OffsetRange]:
    return [OffsetRange(f"t{number}", 1, start, until) for number, start, until in pieces]


def cuts(number: int, *offsets: int) -> list[Piece]:
    return [(number, *pair) for pair in pairwise(offsets)]


@pytest.mark.parametrize(
    ("min_partitions", "given_ranges", "expected"),
    [
        pytest.param(None, [(1, 1, 2)], [(1, 1, 2)], id="as many as partitions"),
        pytest.param(None, [(1, 1, 2), (2, 1, 1)], [(1, 1, 2)], id="nothing to read"),
        pytest.param(
            3, [(n, 1, 2) for n in (1, 2, 3)], [(n, 1, 2) for n in (1, 2, 3)], id="N to N"
        ),
        pytest.param(4, [(1, 1, 5)], cuts(1, 1, 2, 3, 4, 5), id="1 to N"),
        pytest.param(4, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), *cuts(2, 1, 7, 14, 21)], id="skewed"),
        pytest.param(
            4, [(1, 1, 1), (2, 1, 21)], cuts(2, 1, 6, 11, 16, 21), id="an empty one beside"
        ),
        pytest.param(
            4, [(1, 1, 2), (2, 1, 1001)], [(1, 1, 2), *cuts(2, 1, 334, 667, 1001)], id="very skewed"
        ),
        pytest.param(1, [(1, 1, 5), (2, 1, 21)], [(1, 1, 5), (2, 1, 21)], id="enough already"),
        pytest.param(
            12,
            [(1, 0, 16), (2, 0, 5), *((3, n, n + 1) for n in range(10))],
            [(1, 0, 16), (2, 0, 5), *((3, n, n + 1) for n in range(10))],
            id="just enough",
        ),
        pytest.param(3, [(1, 1, 11)], cuts(1, 1, 4, 7, 11), id="inexact multiple"),
        pytest.param(
            4,
            [(1, 1, 5), (2, 1, 21), (3, 1, 1)],
            [(1, 1, 5), *cuts(2, 1, 7, 14, 21)],
            id="an empty one beside skewed",
        ),
        pytest.param(
            6,
            [(1, 0, 10), (2, 0, 10), (3, 0, 1)],
            [*cuts(1, 0, 3, 6, 10), *cuts(2, 0, 3, 6, 10), (3, 0, 1)],
            id="no offset is lost",
        ),
        pytest.param(
            9,
            [(1, 0, 10_000), (2, 0, 15_000), (3, 0, 20_000)],
            [
                *cuts(1, 0, 5000, 10_000),
                *cuts(2, 0, 5000, 10_000, 15_000),
                *cuts(3, 0, 5000, 10_000, 15_000, 20_000),
            ],
            id="no small range and 3 large",
        ),
        pytest.param(
            6,
            [(1, 0, 500), (2, 0, 12_000), (3, 0, 15_001)],
            [(1, 0, 500), *cuts(2, 0, 6000, 12_000), *cuts(3, 0, 5000, 10_000, 15_001)],
            id="1 small range and 2 large",
        ),
        pytest.param(
            6,
            [(1, 0, 1), (2, 0, 1), (3, 0, 10_000)],
            [(1, 0, 1), (2, 0, 1), *cuts(3, 0, 2500, 5000, 7500, 10_000)],
            id="2 small ranges and 1 large",
        ),
    ],
)
def test_ranges_are_cut_until_there_are_about_as_many_as_wanted(
    min_partitions: int | None, given_ranges: list[Piece], expected: list[Piece]
) -> None:
    """RC1, RC2, RC3, RC4, RC5, RC6, RC7, RC8, RC9, RC10, RC11, RC12, RC13, RC14: its table."""
    actual = split(ranges_of(*given_ranges), min_partitions, None)

    assert ranges_of(*expected) == actual


@pytest.mark.parametrize(
    ("min_partitions", "max_records", "given_ranges", "expected"),
    [
        (None, 4, [(1, 1, 5)], [(1, 1, 5)]),
        (None, 4, [(1, 1, 2)], [(1, 1, 2)]),
        (None, 4, [(1, 1, 6)], cuts(1, 1, 3, 6)),
        (
            None,
            20,
            [(1, 1, 40), (2, 1, 50), (3, 1, 60)],
            [*cuts(1, 1, 20, 40), *cuts(2, 1, 17, 33, 50), *cuts(3, 1, 20, 40, 60)],
        ),
        (1, 20, [(1, 1, 40)], cuts(1, 1, 20, 40)),
        (4, 20, [(1, 1, 40)], cuts(1, 1, 10, 20, 30, 40)),
    ],
)
def test_no_range_is_longer_than_it_may_be(
    min_partitions: int | None, max_records: int, given_ranges: list[Piece], expected: list[Piece]
) -> None:
    """RC15, RC16, RC17, RC18: alone, and before they are cut further."""
    actual = split(ranges_of(*given_ranges), min_partitions, max_records)

    assert ranges_of(*expected) == actual


SIZES = st.lists(st.tuples(st.integers(0, 2**40), st.integers(-5, 3000)), max_size=6)
LIMITS = st.one_of(st.none(), st.integers(min_value=1, max_value=500))


@settings(max_examples=50)
@given(SIZES, LIMITS, LIMITS)
def test_every_offset_is_in_one_range(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    """None is lost, none is read twice, and each partition is read in order."""
    ranges = [OffsetRange("t", n, start, start + size) for n, (start, size) in enumerate(sizes)]

    pieces = split(ranges, min_partitions, max_records)

    assert all(each.size > 0 for each in pieces)
    assert max_records is None or all(each.size <= max_records for each in pieces)
    for whole in ranges:
        own = [each for each in pieces if each.partition == whole.partition]
        joints = [each.start for each in own] + [each.until for each in own[-1:]]
        assert joints[1:] == [each.until for each in own]
        assert [whole.start, whole.until] == [joints[0], joints[-1]] if own else whole.size <= 0


@pytest.mark.parametrize(
    ("count", "min_partitions", "max_records", "expected"),
    [(3, None, None, False), (3, 3, None, False), (3, 4, None, True), (3, None, 10, True)],
)
def test_only_who_cuts_has_to_know_the_ends(
    count: int, min_partitions: int | None, max_records: int | None, expected: bool
) -> None:
    assert expected == needs_split(count, min_partitions, max_records)


def test_a_range_travels_to_a_worker_with_the_id_of_its_topic() -> None:
    [_, second] = split([OffsetRange("t", 1, 0, 10, bytes(range(16)))], 2, None)

    assert second == pickle.loads(pickle.dumps(second))
    assert ("t", 1) == second.topic_partition
    assert bytes(range(16)) == second.topic_id
