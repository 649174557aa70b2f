"""The job itself, with a few reports."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from reports.beside import Beside, LightJob, Outcome


@pytest.mark.slow
def test_reports_go_on_while_the_job_is_killed_and_started_again(tmp_path: Path) -> None:
    shown: list[int] = []

    def show(outcome: Outcome) -> None:
        shown.append(outcome.reports)

    job = LightJob(tmp_path)
    job.pauses = (0.0, 0.0)
    with job.open():
        outcome = trio.run(Beside(job, random.Random(0)).run, 6, show)

    assert ([], 6) == (outcome.wrong, outcome.reports)
    assert outcome.kills
    assert [1, 2, 3, 4, 5, 6] == shown


@pytest.mark.slow
def test_a_report_of_more_than_one_cut_is_noticed(tmp_path: Path) -> None:
    """A minute without its totals, among those that are whole."""
    job = LightJob(tmp_path)
    with job.open():
        assert [] == trio.run(Beside(job, random.Random(0)).run, 1, lambda _: None).wrong
    first, *_ = sorted((job.results / "requests").rglob("*.parquet"))
    first.unlink()

    assert [] != job.differences()
