"""What a job reports before it has finished a first minute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from trionet.spark.pipeline._batches import BatchProcessor, BatchResult
from trionet.spark.pipeline._closing import Outputs
from trionet.spark.pipeline._job import SILENCE_SECONDS, Event, Reporter, waiting_for
from trionet.spark.pipeline._storage import Intake

WAITING = {"message": "Waiting for data", "isDataAvailable": False, "isTriggerActive": False}


def query(batch: int | None = None, status: Mapping[str, Any] = WAITING) -> Any:
    """What a streaming query tells of itself, after a micro-batch or before the first."""
    progress = SimpleNamespace(batchId=batch, durationMs={"addBatch": 9}, json='{"sources": []}')
    return SimpleNamespace(status=status, lastProgress=None if batch is None else progress)


@pytest.fixture
def batches() -> BatchProcessor:
    return BatchProcessor(Outputs("results", "checkpoint", {}), 60_000_000)


def test_what_it_waits_for_is_reported_after_each_time_of_silence(batches: BatchProcessor) -> None:
    told: list[Event] = []
    times = iter([0.0, SILENCE_SECONDS - 1, SILENCE_SECONDS, SILENCE_SECONDS])
    reporter = Reporter(batches, told.append, lambda: next(times))

    reporter.report_waiting(query())
    assert [] == told

    reporter.report_waiting(query())
    assert ["no minute finished yet: waiting for records"] == told


def test_each_silence_is_twice_as_long_as_the_one_before(batches: BatchProcessor) -> None:
    """A job may wait for days."""
    told: list[Event] = []
    seconds = 0.0
    reporter = Reporter(batches, told.append, lambda: seconds)

    for seconds in range(86_400):  # noqa: B007 -- it is the clock
        reporter.report_waiting(query())

    assert 12 == len(told)


def test_nothing_is_waited_for_once_a_minute_is_finished(batches: BatchProcessor) -> None:
    told: list[Event] = []
    times: Iterator[float] = iter([0.0, 1.0, 100.0])
    reporter = Reporter(batches, told.append, lambda: next(times))
    batches.results[0] = BatchResult(0, Intake(requests_read=3), {29_923_190: 3}, 29_923_191)

    reporter.report_done(query(0))
    reporter.report_waiting(query())

    [done] = told
    assert not isinstance(done, str)


@pytest.mark.parametrize(
    ("is_active", "has_data", "expected"),
    [
        (True, True, "a micro-batch is being processed"),
        (True, False, "waiting for records"),
        (False, True, "waiting for records"),
    ],
)
def test_a_micro_batch_may_take_long(is_active: bool, has_data: bool, expected: str) -> None:
    status = {"isTriggerActive": is_active, "isDataAvailable": has_data}

    assert expected == waiting_for(status)
