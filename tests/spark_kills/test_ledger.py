"""What a run of kills would find: records that were lost, doubled, or passed over."""

from __future__ import annotations

import pytest

from spark_kills.ledger import (
    Row,
    repeated,
    wrong_in_copy,
    wrong_in_exact_copy,
    wrong_in_files,
    wrong_in_source,
)

#: Keys a and b by turns in partition 0, and c in partition 1.
SOURCE = [
    *(Row(0, offset, "ab"[offset % 2], str(offset)) for offset in range(8)),
    *(Row(1, offset, "c", str(100 + offset)) for offset in range(4)),
]
#: The first is empty; then two of each key a micro-batch.
CUTS = [{0: 0, 1: 0}, {0: 4, 1: 2}, {0: 8, 1: 4}]
FIRST = [row for row in SOURCE if row.offset < (2 if row.partition else 4)]
SECOND = [row for row in SOURCE if row not in FIRST]


def of_key(key: str) -> list[Row]:
    return [row for row in SOURCE if row.key == key]


def test_what_is_where_the_broker_said_is_right() -> None:
    acknowledged = {row.number: row.place for row in SOURCE[:5]}

    assert [] == wrong_in_source(acknowledged, SOURCE)


def test_what_was_acknowledged_and_is_gone_is_found() -> None:
    acknowledged = {"3": (0, 3), "4": (0, 5), "999": (1, 7)}

    wrong = wrong_in_source(acknowledged, SOURCE)

    assert ["('4', (0, 5))", "('999', (1, 7))"] == [each.partition(": ")[2] for each in wrong]


def test_what_was_written_twice_is_found() -> None:
    wrong = wrong_in_source({}, [*SOURCE, Row(1, 4, "c", "103")])

    assert ["was written twice: 103", "out of order: key c: 103 comes after 103"] == wrong


def test_files_with_each_record_once_are_right() -> None:
    assert [] == wrong_in_files(SOURCE, CUTS, {0: [], 1: FIRST, 2: SECOND})


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({0: [], 1: FIRST[1:], 2: SECOND}, "was not read"),
        ({0: [], 1: FIRST, 2: [*SECOND, FIRST[0]]}, "twice"),
        ({0: [], 1: FIRST, 2: [*SECOND, SECOND[0]]}, "twice"),
        ({0: [], 1: [*FIRST, SECOND[0]], 2: SECOND[1:]}, "is not of micro-batch 1"),
        ({0: [], 1: FIRST, 2: [*SECOND, Row(0, 0, "a", "7")]}, "is not in the topic"),
        ({1: FIRST, 2: SECOND}, "have files for [1, 2]"),
    ],
)
def test_files_that_miss_or_double_a_record_are_found(
    files: dict[int, list[Row]], found: str
) -> None:
    assert any(found in each for each in wrong_in_files(SOURCE, CUTS, files))


def test_a_copy_may_have_micro_batches_that_were_repeated_from_their_begin() -> None:
    a, b, c = map(of_key, "abc")
    copies = {0: [*a[:1], *a[:2], *a[:2], *a[2:], *b], 1: [*c, *c[2:3], *c[2:]]}

    assert [] == wrong_in_copy(SOURCE, CUTS, copies)
    assert 6 == repeated(SOURCE, copies)


@pytest.mark.parametrize(
    ("of_a", "found"),
    [
        ([0, 1, 3], "was written after"),  # one is passed over
        ([0, 1, 3, 2, 3], "was written after"),
        ([0, 1, 2, 3, 3], "was written after"),  # repeated from the middle of its micro-batch
        ([0, 1, 2, 0, 1, 2, 3], "was written after"),  # of a micro-batch that was over
        ([0, 1, 2, 3, 2], "the last is not"),  # repeated in part
        ([0, 1, 2], "the last is not"),
        ([], "the last is not"),
    ],
)
def test_a_copy_out_of_order_or_with_gaps_is_found(of_a: list[int], found: str) -> None:
    a = of_key("a")
    copies = {0: [*(a[index] for index in of_a), *of_key("b")], 1: of_key("c")}

    wrong = wrong_in_copy(SOURCE, CUTS, copies)

    assert any(found in each for each in wrong)
    assert all(each.startswith("in the copy: key a: ") for each in wrong)


def test_a_key_in_two_partitions_is_found() -> None:
    copies = {0: [*of_key("a"), *of_key("b")[:2]], 1: [*of_key("b")[2:], *of_key("c")]}

    assert ["is in two partitions: b"] == wrong_in_copy(SOURCE, CUTS, copies)


def test_a_record_that_was_never_written_is_found() -> None:
    copies = {0: [*of_key("a"), *of_key("b"), Row(0, 1, "b", "999")], 1: of_key("c")}

    [wrong] = wrong_in_copy(SOURCE, CUTS, copies)

    assert "is not in the topic that is read" in wrong


EXACT = {0: [*of_key("a"), *of_key("b")], 1: of_key("c")}


def test_a_copy_with_each_record_once_is_right() -> None:
    assert [] == wrong_in_exact_copy(SOURCE, EXACT, in_order=True)


@pytest.mark.parametrize(
    ("copies", "found"),
    [
        ({0: EXACT[0][1:], 1: EXACT[1]}, [f"was lost: {SOURCE[0]}"]),
        ({0: [*EXACT[0], SOURCE[1]], 1: EXACT[1]}, [f"was doubled: {SOURCE[1]}"]),
        (
            {0: [*EXACT[0], SOURCE[0], SOURCE[0]], 1: EXACT[1]},
            [f"was doubled: {SOURCE[0]}"] * 2,
        ),
        (
            {0: [*EXACT[0], Row(0, 99, "a", "99")], 1: EXACT[1]},
            ["was written, and is not in the topic that is read: "],
        ),
        ({0: EXACT[0], 1: []}, [f"was lost: {row}" for row in EXACT[1]]),
        ({0: of_key("a"), 1: [*of_key("b")[:2], *EXACT[1]], 2: of_key("b")[2:]}, ["is in two"]),
    ],
)
def test_a_copy_that_is_not_exact_is_found(copies: dict[int, list[Row]], found: list[str]) -> None:
    wrong = wrong_in_exact_copy(SOURCE, copies, in_order=True)

    assert len(found) == len(wrong)
    assert all(there.startswith(each) for each, there in zip(found, wrong, strict=True))


def test_records_of_a_key_that_changed_places_are_found_where_there_is_no_shuffle() -> None:
    a = of_key("a")
    copies = {0: [a[1], a[0], *a[2:], *of_key("b")], 1: of_key("c")}

    [wrong] = wrong_in_exact_copy(SOURCE, copies, in_order=True)

    assert wrong.startswith("out of order: ")
    assert [] == wrong_in_exact_copy(SOURCE, copies, in_order=False)
