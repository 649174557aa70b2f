"""What the job does with its results directory: cuts, merged files, days that are deleted."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from spark.pipeline.light_job import LightJob, LocalFiles, differences_of_tables, end_of
from spark.pipeline.results_folder import START
from trionet.spark.pipeline.report._arrow_queries import ArrowResults
from trionet.spark.pipeline.report._inputs import TimeRange
from trionet.spark.pipeline.results._cuts import Cut
from trionet.spark.pipeline.results._result_folder import CLOSED_DAYS_MAX, ResultFolder


def quiet(_: str) -> None:
    pass


def latest(folder: Path) -> Cut | None:
    return Cut.latest(os.listdir(folder / "_cuts"))


def merge(paths: Sequence[str], folder: str) -> None:
    Path(folder).mkdir(parents=True)
    merged = pa.concat_tables([pq.ParquetFile(each).read() for each in paths])
    pq.write_table(merged, f"{folder}/part-00000.parquet")


def put(folder: Path, day: str, batch: int) -> None:
    """The minute of a micro-batch, in one table."""
    path = folder / "windows" / f"day={day}" / f"batch={batch}"
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"window": [START], "records": [batch]}), path / "part-00000.parquet")


def files_of(folder: Path) -> list[str]:
    table = folder / "windows"
    return sorted(str(each.relative_to(table)) for each in table.rglob("*.parquet"))


class KilledError(BaseException):
    """Ends a job at once."""


@pytest.fixture
def results(tmp_path: Path) -> ResultFolder:
    return ResultFolder(LocalFiles(quiet), str(tmp_path))


def test_readers_see_a_micro_batch_when_it_is_whole(results: ResultFolder, tmp_path: Path) -> None:
    results.begin(0)
    assert Cut(0) == latest(tmp_path)
    assert not results.has(0)

    results.complete(0)
    assert Cut(1) == latest(tmp_path)
    assert results.has(0)


def test_results_of_an_earlier_version_are_whole_up_to_the_first_micro_batch_with_a_cut(
    results: ResultFolder, tmp_path: Path
) -> None:
    put(tmp_path, "2026-03-01", 7)

    results.begin(8)

    assert Cut(8) == latest(tmp_path)


def test_earlier_cuts_are_deleted_but_for_those_of_the_micro_batch_before(
    results: ResultFolder, tmp_path: Path
) -> None:
    results.begin(0)
    for batch in range(5):
        results.complete(batch)

    assert {"4-0", "5-0"} == set(os.listdir(tmp_path / "_cuts"))


def test_hours_are_merged_and_then_days(results: ResultFolder, tmp_path: Path) -> None:
    for batch in range(3):
        put(tmp_path, "2026-03-01", batch)
    results.begin(3)
    results.tidy("2026-03-01", None, merge)
    assert ["day=2026-03-01/batch=2/merged-0-2.parquet"] == files_of(tmp_path)

    put(tmp_path, "2026-03-01", 3)
    results.complete(3)
    results.tidy("2026-03-01", None, merge)
    put(tmp_path, "2026-03-01", 4)
    results.complete(4)
    assert 3 == len(files_of(tmp_path))  # one file has nothing to be merged with

    results.tidy("2026-03-02", None, merge)
    [path] = files_of(tmp_path)
    assert "day=2026-03-01/batch=4/merged-0-4.parquet" == path
    merged = pq.ParquetFile(tmp_path / "windows" / path).read()
    assert [0, 1, 2, 3, 4] == merged["records"].to_pylist()
    assert 2 == (latest(tmp_path) or Cut(0)).removals


def test_what_is_not_whole_is_not_merged(results: ResultFolder, tmp_path: Path) -> None:
    results.begin(0)
    for batch in range(3):
        put(tmp_path, "2026-03-01", batch)

    results.tidy("2026-03-02", None, merge)

    assert 3 == len(files_of(tmp_path))


def test_days_are_kept_as_long_as_they_should_be(results: ResultFolder, tmp_path: Path) -> None:
    for batch in range(5):
        put(tmp_path, f"2026-03-0{batch + 1}", batch)
    results.begin(5)

    results.tidy("2026-03-05", 2, merge)

    days = sorted(os.listdir(tmp_path / "windows"))
    assert ["day=2026-03-03", "day=2026-03-04", "day=2026-03-05"] == days
    assert Cut(5, 1, "2026-03-03") == latest(tmp_path)


def test_a_file_that_cannot_be_read_stays_and_the_others_are_merged(
    results: ResultFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However many days have such a file."""
    days = range(1, 2 * CLOSED_DAYS_MAX + 1)
    for day in days:
        for batch in (0, 1):
            put(tmp_path, f"2026-03-0{day}", 2 * day + batch)
    for day in days[:CLOSED_DAYS_MAX]:
        damaged = tmp_path / f"windows/day=2026-03-0{day}/batch={2 * day}/part-00000.parquet"
        damaged.write_bytes(b"?")
    results.begin(9 * len(days))

    with caplog.at_level(logging.WARNING):
        results.tidy("2026-03-09", None, _merge_or_os_error)

    assert 3 * CLOSED_DAYS_MAX == len(files_of(tmp_path))
    assert CLOSED_DAYS_MAX == len(caplog.records)
    assert all("cannot merge 2 files" in each.getMessage() for each in caplog.records)


def test_a_merge_into_several_files_replaces_none_and_ends_no_job(
    results: ResultFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def divided(paths: Sequence[str], folder: str) -> None:
        merge(paths, folder)
        Path(folder, "part-00001.parquet").write_bytes(b"")

    for batch in range(2):
        put(tmp_path, "2026-03-01", batch)
    results.begin(2)

    with caplog.at_level(logging.WARNING):
        results.tidy("2026-03-02", None, divided)

    assert 2 == len(files_of(tmp_path))
    assert "2 files instead of one" in caplog.text


def _merge_or_os_error(paths: Sequence[str], folder: str) -> None:
    try:
        merge(paths, folder)
    except pa.ArrowInvalid as error:
        raise OSError(str(error)) from error


def test_many_days_of_an_earlier_version_are_merged_little_by_little(
    results: ResultFolder, tmp_path: Path
) -> None:
    for batch in range(10):
        put(tmp_path, f"2026-03-0{batch // 2 + 1}", batch)
    results.begin(10)

    counts = []
    for _ in range(3):
        results.tidy("2026-03-09", None, merge)
        counts.append(len(files_of(tmp_path)))

    assert [8, 6, 5] == counts


def test_files_that_are_deleted_while_they_are_listed_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing has the last directory as it was, and no more those that were merged with it."""

    def kill(change: str) -> None:
        if change.endswith("batch=2/part-00000.parquet"):
            raise KilledError

    def walk(day: Path) -> list[tuple[str, list[str], list[str]]]:
        monkeypatch.undo()
        found = list(os.walk(day))
        with pytest.raises(KilledError):
            ResultFolder(LocalFiles(kill), str(tmp_path)).tidy("2026-03-02", None, merge)
        return [each for each in found if Path(each[0]).exists()]

    for batch in range(3):
        put(tmp_path, "2026-03-01", batch)
    ResultFolder(LocalFiles(quiet), str(tmp_path)).begin(3)
    monkeypatch.setattr("os.walk", walk)

    found = ArrowResults(str(tmp_path), TimeRange()).table("windows", ("records",))

    assert [0, 1, 2] == sorted(found["records"].to_pylist())


def test_what_a_job_left_when_it_was_killed_is_deleted_by_the_next(tmp_path: Path) -> None:
    """After the merged file is there, and before those that are in it are gone."""

    def kill(change: str) -> None:
        if change.startswith("delete"):
            raise KilledError

    batches = 3  # of an hour
    job = LightJob(tmp_path, quiet)
    for batch in range(batches - 1):
        job.write(batch)
    with pytest.raises(KilledError):
        LightJob(tmp_path, kill).write(batches - 1)
    assert [] == differences_of_tables(tmp_path)

    left = set(files_of(tmp_path))
    LightJob(tmp_path, quiet).write(batches)

    assert [] == differences_of_tables(tmp_path)
    assert len(files_of(tmp_path)) < len(left)
    assert end_of(batches).hour == 13
