"""Which files of a results directory belong together."""

from __future__ import annotations

import pytest

from trionet.spark.pipeline.results._cuts import (
    Cut,
    ResultFile,
    current_files,
    is_listing_whole,
    merged_path,
    unmarked_cut,
    whole_files,
)


def part(batch: int, day: str = "2026-03-01") -> str:
    return f"day={day}/batch={batch}/part-00000.parquet"


def merged(first: int, last: int, day: str = "2026-03-01") -> str:
    return f"day={day}/batch={last}/merged-{first}-{last}.parquet"


def read(*paths: str, cut: Cut | None = None) -> list[str]:
    """The paths that a reader reads."""
    return [each.path for each in current_files(whole_files(paths, cut))]


@pytest.mark.parametrize("cut", [Cut(0), Cut(17, 3), Cut(17, 4, "2026-11-22")])
def test_the_name_of_a_cut_says_everything(cut: Cut) -> None:
    assert cut == Cut.latest([cut.name])


def test_the_latest_cut_is_that_of_the_last_micro_batch_and_then_of_the_last_removal() -> None:
    names = ["9-5", "10-4", "10-5-2026-01-01", ".10-9.crc", "11", "x-1", "99999999999999999999-1"]

    assert Cut(10, 5, "2026-01-01") == Cut.latest(names)


def test_results_without_a_cut_are_read_up_to_the_last_windows() -> None:
    assert Cut.latest([]) is None
    assert [part(1), part(2)] == read(part(2), part(1))
    assert (Cut(3), Cut(0)) == (unmarked_cut([part(1), part(2)]), unmarked_cut([]))


def test_a_micro_batch_that_is_not_whole_is_not_read() -> None:
    assert [part(1), part(2)] == read(part(1), part(2), part(3), cut=Cut(3))
    assert [] == read(part(0), cut=Cut(0))


def test_days_before_the_first_one_are_not_read() -> None:
    paths = [part(1, "2026-02-27"), part(2, "2026-02-28"), part(3)]

    assert paths[1:] == read(*paths, cut=Cut(9, 1, "2026-02-28"))


def test_a_merged_file_is_read_instead_of_those_that_are_in_it() -> None:
    paths = [part(1), part(2), part(4), merged(1, 4), part(5)]

    assert [merged(1, 4), part(5)] == read(*paths, cut=Cut(9))


def test_a_file_of_the_whole_day_replaces_those_of_its_hours() -> None:
    paths = [merged(1, 4), merged(5, 8), part(9), merged(1, 9)]

    assert [merged(1, 9)] == read(*paths, cut=Cut(10))


def test_several_files_of_a_micro_batch_are_replaced_by_one() -> None:
    paths = [part(4), part(4).replace("00000", "00001"), merged(4, 4)]

    assert [merged(4, 4)] == read(*paths, cut=Cut(9))


def test_other_days_are_not_replaced() -> None:
    paths = [part(4, "2026-02-28"), part(4), part(5), merged(4, 5)]

    assert [part(4, "2026-02-28"), merged(4, 5)] == read(*paths, cut=Cut(9))


@pytest.mark.parametrize(
    "path",
    [
        "_SUCCESS",
        "day=2026-03-01/batch=1/_part",
        "day=2026-03-01/batch=1/.part-00000.parquet.crc",
        "_temporary/0/day=2026-03-01/batch=1/part-00000.parquet",
        "day=2026-03-01/batch=x/part-00000.parquet",
        "day=2026-03-01/part-00000.parquet",
    ],
)
def test_other_names_are_not_data(path: str) -> None:
    assert ResultFile.parse(path) is None


def test_the_name_of_a_merged_file_has_the_range_of_all_that_are_in_it() -> None:
    files = whole_files([merged(1, 4), part(5), part(7)], None)

    assert merged(1, 7) == merged_path(files)


def test_a_listing_is_whole_if_there_was_no_removal_meanwhile() -> None:
    assert is_listing_whole(None, None)
    assert is_listing_whole(Cut(5, 1), Cut(6, 1))
    assert not is_listing_whole(Cut(5, 1), Cut(5, 2))
    assert not is_listing_whole(None, Cut(0))
