"""A folder as the pipeline writes it, added up by Spark, and by Arrow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests, write_results
from trionet.errors import ConfigError
from trionet.spark.pipeline.report._figures import Report
from trionet.spark.pipeline.report._inputs import Filters, TimeRange
from trionet.spark.pipeline.report._json import document
from trionet.spark.pipeline.report._report import make_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The first test of a session waits for all that Java loads then.
pytestmark = pytest.mark.timeout(300)

NOW = minute(60 * 24 * 30)
EVERYTHING = TimeRange()
NOBODY_ELSE = Filters()


@pytest.fixture(params=["arrow", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> SparkSession | None:
    """What adds up: Spark, or Arrow in this process, for which there is no session."""
    if request.param == "arrow":
        return None
    session: SparkSession = request.getfixturevalue("spark")
    return session


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_results(tmp_path_factory.mktemp("results"), **sample()))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    else:
        yield path, value


def said(report: Report) -> dict[str, Any]:
    return {**dict(leaves(json.loads(document(report)))), ".folder": ""}


def test_what_is_added_up_is_what_there_is(engine: SparkSession | None, folder: str) -> None:
    """Beside the same report added up in plain Python."""
    found = said(make_report(engine, folder, EVERYTHING, NOBODY_ELSE, 10, NOW))

    expected = said(report_of(sample()))
    assert expected.keys() == found.keys()
    different = {
        path: (value, found[path])
        for path, value in expected.items()
        if value != found[path]
        and not (isinstance(value, float) and math.isclose(value, found[path], rel_tol=1e-12))
    }
    assert {} == different


def test_a_range_has_the_minutes_that_begin_in_it(engine: SparkSession | None, folder: str) -> None:
    report = make_report(engine, folder, TimeRange(minute(2), minute(5)), NOBODY_ELSE, 10, NOW)

    assert (minute(2), minute(5), 3) == (report.start, report.end, report.windows)
    assert 300 + 2 * 5 == report.traffic.requests
    assert [] == report.anomalies
    assert not report.intake


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (Filters({1: "Fetch"}), 25),
        (Filters({}, ["shop"]), 1000),
        (Filters({}, [HOSTILE], ["INTERNAL"]), 25),
        (Filters({0: "Produce", 1: "Fetch"}, ["shop", HOSTILE]), 1025),
    ],
)
def test_filters_let_through_what_they_name(
    engine: SparkSession | None, folder: str, filters: Filters, count: int
) -> None:
    report = make_report(engine, folder, EVERYTHING, filters, 10, NOW)

    assert count == report.traffic.requests == sum(cell.requests for cell in report.timeline.heat)
    errors = {error.api for error in report.errors}
    assert errors <= {api.name for api in report.apis}


def test_nothing_in_the_range_is_an_error_that_says_what_there_is(
    engine: SparkSession | None, folder: str
) -> None:
    later = TimeRange(minute(60))
    with pytest.raises(ConfigError, match="from 2026-03-01 12:00 UTC to 2026-03-01 12:10 UTC"):
        make_report(engine, folder, later, NOBODY_ELSE, 10, NOW)

    another_day = TimeRange(minute(0) + timedelta(days=2), minute(0) + timedelta(days=3))
    with pytest.raises(ConfigError, match="no results from 2026-03-03 12:00 UTC"):
        make_report(engine, folder, another_day, NOBODY_ELSE, 10, NOW)


def test_filters_that_let_nothing_through_are_an_error(
    engine: SparkSession | None, folder: str
) -> None:
    with pytest.raises(ConfigError, match="matches the filters"):
        make_report(engine, folder, EVERYTHING, Filters({}, ["nobody"]), 10, NOW)


def test_a_folder_without_results_is_an_error(engine: SparkSession | None, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="contains no results yet"):
        make_report(engine, str(tmp_path / "nowhere"), EVERYTHING, NOBODY_ELSE, 10, NOW)


def test_tables_of_another_program_are_an_error(
    engine: SparkSession | None, tmp_path: Path
) -> None:
    write_results(tmp_path, windows=[{"window": minute(0), "planes": 3}])

    with pytest.raises(ConfigError, match="missing columns: records"):
        make_report(engine, str(tmp_path), EVERYTHING, NOBODY_ELSE, 10, NOW)


def test_minutes_of_many_days_are_one_report(engine: SparkSession | None, tmp_path: Path) -> None:
    days = [minute(60 * 24 * day) for day in range(5)]
    write_results(tmp_path, requests=[requests(day, [1000] * 3) for day in days])

    report = make_report(engine, str(tmp_path), TimeRange(days[1], days[3]), NOBODY_ELSE, 10, NOW)

    assert (days[1], days[2] + timedelta(minutes=1)) == (report.start, report.end)
    assert 6 == report.traffic.requests == sum(report.timeline.requests["Produce"])


def test_the_clock_of_this_machine_does_not_matter(
    engine: SparkSession | None, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark gives timestamps in the time zone of the process."""
    import time

    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        report = make_report(engine, folder, TimeRange(minute(8)), NOBODY_ELSE, 10, NOW)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert minute(8) == report.start
    assert {minute(8), minute(9)} == {each.window for each in report.anomalies}
