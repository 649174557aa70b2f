from __future__ import annotations

from itertools import islice, pairwise

from demo.roster import SIZES, rosters


def test_the_newest_comes_and_the_oldest_goes() -> None:
    actual = [[int(name.removeprefix("consumer-")) for name in each] for each in first(8)]

    assert [
        [1, 2],
        [1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4],
        [3, 4],
        [4],
        [4, 5],
        [4, 5, 6],
    ] == actual


def test_there_is_always_a_member_that_stays_and_one_that_comes_or_goes() -> None:
    for before, after in pairwise(first(3 * len(SIZES))):
        assert set(before) & set(after)
        assert 1 == len(set(before) ^ set(after))


def first(count: int) -> list[list[str]]:
    return list(islice(rosters(), count))
