"""A folder as the pipeline writes it, added up by Spark, and by Arrow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import (
    anomaly,
    close,
    error,
    incident,
    intake,
    objective,
    quota,
    requests,
    write_results,
    write_table,
)
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
    assert {} == different(expected, found)


def different(expected: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs, but for the last digits of sums, which depend on the order of the rows."""
    return {
        path: (value, found[path])
        for path, value in expected.items()
        if value != found[path]
        and not (isinstance(value, float) and math.isclose(value, found[path], rel_tol=1e-12))
    }


@st.composite
def results(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Tables of a quarter of an hour, in which any may be empty."""

    def some(one: Callable[[], Any]) -> list[Any]:
        return [one() for _ in range(draw(st.integers(0, 4)))]

    def at() -> Any:
        return minute(draw(st.integers(0, 14)))

    def requested() -> Any:
        return requests(
            at(),
            draw(st.lists(st.integers(0, 10**7), min_size=1, max_size=5)),
            api=draw(st.sampled_from([(0, "Produce"), (1, "Fetch")])),
            client_id=draw(st.sampled_from(["shop", HOSTILE, ""])),
            listener=draw(st.sampled_from(["PLAINTEXT", "INTERNAL"])),
            weight=draw(st.integers(1, 3)),
            errors=draw(st.integers(0, 3)),
            throttled=draw(st.integers(0, 3)),
        )

    def failed() -> Any:
        code = draw(st.sampled_from([(0, "NONE"), (6, "NOT_LEADER_OR_FOLLOWER")]))
        end = draw(st.sampled_from(["answered", "unanswered", "closed", "gone"]))
        return error(draw(st.sampled_from(requested_rows)), *code, draw(st.integers(1, 9)), end=end)

    def unusual() -> Any:
        row = draw(st.sampled_from(requested_rows))
        nobody = {"api_key": None, "api": None} if draw(st.booleans()) else {}
        return {**anomaly(row, "errors", 1.0, draw(st.sampled_from([-7.5, 5.0, 7.5]))), **nobody}

    def happened() -> Any:
        state, client_id = draw(st.sampled_from(["open", "over"])), draw(st.sampled_from(CLIENTS))
        return incident(at(), state, minute(draw(st.integers(0, 2))), client_id=client_id)

    def promised() -> Any:
        alert = draw(st.sampled_from([None, "page", "ticket"]))
        return {**objective(at(), draw(st.integers(0, 99)), alert), "client_id": draw(ANYBODY)}

    def clock() -> tuple[int, int] | None:
        # Of brokers that are as far ahead, the order is not the same for ever.
        return draw(st.sampled_from([None, (1, 2), (1, 50), (2, 3), (3, 59)]))

    requested_rows = [requested() for _ in range(draw(st.integers(1, 12)))]
    return {
        "requests": requested_rows,
        "errors": some(failed),
        "closes": some(lambda: close(at(), "PEER_CLOSED", draw(st.integers(1, 9)), 0.5)),
        "quotas": some(lambda: quota(at(), draw(st.integers(1, 9)), draw(st.integers(0, 9)))),
        "anomalies": some(unusual),
        # An incident is there once in each minute that changes it.
        "incidents": [*{(row["incident"], row["window"]): row for row in some(happened)}.values()],
        "objectives": some(promised),
        "intake": some(lambda: intake(at(), draw(st.integers(0, 9)), clock())),
    }


CLIENTS = ["shop", HOSTILE, None]
ANYBODY = st.sampled_from(CLIENTS)


@pytest.mark.spark
@settings(  # An example takes seconds, and a smaller one is not worth minutes.
    max_examples=6,
    deadline=None,
    phases=set(Phase) - {Phase.shrink},
    suppress_health_check=list(HealthCheck),
)
@given(
    tables=results(),
    filters=st.sampled_from(
        [NOBODY_ELSE, Filters({1: "Fetch"}), Filters({}, ["shop"], ["INTERNAL"])]
    ),
    top=st.integers(1, 3),
)
def test_spark_and_arrow_add_up_the_same(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    tables: dict[str, list[Any]],
    filters: Filters,
    top: int,
) -> None:
    """The rules are one statement, which each of them translates."""
    folder = str(write_results(tmp_path_factory.mktemp("any"), **tables))

    def outcome(engine: SparkSession | None) -> dict[str, Any]:
        try:
            return said(make_report(engine, folder, EVERYTHING, filters, top, NOW))
        except ConfigError as error:
            return {"error": str(error)}

    by_arrow, by_spark = outcome(None), outcome(spark)
    assert by_arrow.keys() == by_spark.keys()
    assert {} == different(by_arrow, by_spark)


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


def test_tables_of_before_a_column_was_there_are_read(
    engine: SparkSession | None, tmp_path: Path
) -> None:
    """Both those of which only some files have it, and those of which none has."""
    hours = [minute(0), minute(60 * 24)]
    rows = [requests(hour, [1000] * 3, errors=1, throttled=2) for hour in hours]
    for name in ("throttled", "local_mean_us"):
        del rows[0][name]
    for row in rows:
        del row["remote_mean_us"]
    kept = [intake(hour, late=3) for hour in hours]
    del kept[0]["ahead"]
    for each in kept:
        del each["newer"]
    write_results(tmp_path, requests=rows, intake=kept)

    report = make_report(engine, str(tmp_path), EVERYTHING, NOBODY_ELSE, 10, NOW)

    assert (6, 2, 2) == (
        report.traffic.requests,
        report.traffic.errors,
        report.traffic.throttled,
    )
    assert (6, 0, 0) == (report.intake.late, report.intake.newer, report.intake.ahead)
    assert 0 == report.traffic.phase_us["remote"]


def test_a_folder_without_all_columns_of_later_versions_is_read(
    engine: SparkSession | None, tmp_path: Path
) -> None:
    read = intake(minute(0), late=3)
    begun = incident(minute(0), "open", minute(0))
    for row, later in (
        (read, ("old", "ahead_node_id", "ahead_minutes")),
        (begun, ("causes",)),
    ):
        for name in later:
            del row[name]
    write_results(
        tmp_path, requests=[requests(minute(0), [1000])], intake=[read], incidents=[begun]
    )

    report = make_report(engine, str(tmp_path), EVERYTHING, NOBODY_ELSE, 10, NOW)

    assert (3, 0, {}) == (report.intake.late, report.intake.old, report.clocks_ahead)
    assert [[]] == [each.causes for each in report.incidents]


def test_tables_that_an_earlier_version_has_left_half_written_are_read_up_to_its_last_minutes(
    engine: SparkSession | None, tmp_path: Path
) -> None:
    """It marks nothing, and writes the windows after the other tables."""
    row = requests(minute(0), [1000] * 3)
    folder = write_results(tmp_path, requests=[row])
    write_table(folder, "requests", [requests(minute(90), [1000] * 5)], batch=8)

    report = make_report(engine, str(folder), EVERYTHING, NOBODY_ELSE, 10, NOW)

    assert (1, 3) == (report.windows, report.traffic.requests)


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
