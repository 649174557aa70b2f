"""The demo's second Spark: what is said of it, and what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from demo.child import ChildFailed, early_end
from demo.telemetry import FAILED, LOG, RESULTS, Telemetry
from demo.telemetry_job import command
from trionet.cli.main import whole_parser


class Reporting:
    """A child, as far as it is looked at."""

    def __init__(self, **latest: Any) -> None:
        self.latest = latest


def test_who_wants_no_telemetry_hears_nothing_of_it() -> None:
    telemetry = Telemetry(is_shown=False)

    assert ([], [], False) == (telemetry.lines(), telemetry.news(), telemetry.has_failed)


def test_before_the_first_minute_there_is_no_news_but_a_page_to_look_at() -> None:
    telemetry = Telemetry()

    assert [] == telemetry.news()
    [line] = telemetry.lines()
    assert "page 9" in line


def test_the_newest_minute_is_shown_until_there_is_another() -> None:
    windows = {"2026-11-22T11:44:00Z": 12, "2026-11-22T11:45:00Z": 3456}
    batch = Reporting(event="batch", windows=windows)
    telemetry = Telemetry(child=batch)  # type: ignore[arg-type] # see there
    told = ["Telemetry by Spark: 3,456 requests in the minute of 2026-11-22T11:45:00Z"]
    assert told == telemetry.news()

    for latest in ({"event": "batch", "windows": {}}, {"event": "end", "windows": 2}):
        telemetry._child = Reporting(**latest)  # type: ignore[assignment] # see there

        assert told == telemetry.news() == telemetry.lines()


def test_an_early_end_is_reported_with_the_last_reason() -> None:
    stderr = f"of the JVM\n{FAILED}retrying\n{FAILED}no such topic\nof the JVM, too"
    failure = ChildFailed(f"the telemetry_job ended early, with exit status 1\n{stderr}")
    why = early_end(ExceptionGroup("", [failure]), FAILED)
    telemetry = Telemetry(obstacle=why)

    assert "the telemetry_job ended early, with exit status 1: no such topic" == why
    assert telemetry.has_failed
    assert [f"no telemetry by Spark: {why}"] == telemetry.lines() == telemetry.news()


def test_all_files_of_the_job_are_below_its_folder(tmp_path: Path) -> None:
    arguments = command("localhost:1", LOG, RESULTS, str(tmp_path))
    parsed = whole_parser().parse_args(arguments)

    assert (LOG, RESULTS) == (parsed.topic, parsed.results_topic)
    assert Path(parsed.folder).parent == tmp_path
    assert 3 == sum(str(tmp_path) in each for each in parsed.set)
    assert parsed.json
