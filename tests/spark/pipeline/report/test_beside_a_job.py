"""Reports beside a job that writes, merges and deletes, and that is killed."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from spark.pipeline.light_job import LightJob, differences, differences_of_tables
from spark.pipeline.results_folder import START

NOW = START + timedelta(days=30)
READS = 1000


class KilledError(BaseException):
    """Ends a job at once."""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_whatever_a_job_is_doing_what_is_read_is_of_one_cut(tmp_path: Path) -> None:
    """It is read before each change that the job makes; at one of fifty of them, it is killed."""
    rng = random.Random(1)
    reads = batch = 0

    def read(_: str) -> None:
        nonlocal reads
        if batch:
            reads += 1
            assert [] == differences_of_tables(tmp_path)
            if reads % 50 == 0:
                assert [] == differences(tmp_path, NOW)
        if rng.random() < 0.02:
            raise KilledError

    job = LightJob(tmp_path, read)
    while reads < READS:
        try:
            job.write(batch)
            batch += 1
        except KilledError:
            job = LightJob(tmp_path, read)

    assert {f"day={START.date()}", f"day={START.date() + timedelta(days=1)}"} >= {
        each.name for each in (tmp_path / "windows").iterdir()
    }
