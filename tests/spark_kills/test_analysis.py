"""Results that are other than those of an undisturbed run are found."""

from __future__ import annotations

import attrs
import pytest

from spark_kills.analysis import Results, differences

WANTED = Results(
    {"windows": [{"window": 1, "requests": 5}, {"window": 2, "requests": 6}]},
    {b"k": {b"5"}, b"l": {b"6"}},
    repeats=0,
)


def test_the_same_results_published_again_are_right() -> None:
    assert [] == differences(WANTED, attrs.evolve(WANTED, repeats=3))


@pytest.mark.parametrize(
    ("rows", "missing", "other"),
    [
        ([1], 1, 0),
        ([1, 2, 2], 0, 1),
        ([1, 3], 1, 1),
        ([], 2, 0),
    ],
)
def test_rows_that_are_missing_doubled_or_other_are_found(
    rows: list[int], missing: int, other: int
) -> None:
    found = attrs.evolve(
        WANTED, tables={"windows": [{"window": row, "requests": row + 4} for row in rows]}
    )

    told = f"{missing} rows are missing, {other} are other or there too often"
    assert [f"table windows: {told}"] == differences(WANTED, found)


@pytest.mark.parametrize(
    ("published", "found"),
    [
        ({b"k": {b"5"}}, "1 keys are missing"),
        ({b"k": {b"5", b"4"}, b"l": {b"6"}}, "b'k' has"),
        ({b"k": {b"5"}, b"l": {b"6"}, b"m": {b"7"}}, "b'm' has"),
    ],
)
def test_keys_that_are_missing_or_have_other_values_are_found(
    published: dict[bytes, set[bytes]], found: str
) -> None:
    [wrong] = differences(WANTED, attrs.evolve(WANTED, published=published))

    assert found in wrong
