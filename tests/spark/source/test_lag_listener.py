"""What the log has of how far queries are behind."""

from __future__ import annotations

import json
import logging
from uuid import UUID

import pytest

from trionet.spark import SourceLag, lag

pytestmark = pytest.mark.slow  # importing pyspark

ID = str(UUID(int=7))
SOURCE = {
    "description": "trionet",
    "startOffset": {"t": {"0": 0, "1": 0}},
    "endOffset": {"t": {"0": 1, "1": 2}},
    "latestOffset": {"t": {"0": 3, "1": 6}},
    "numInputRows": 3,
    "inputRowsPerSecond": 1.0,
    "processedRowsPerSecond": 1.0,
}
PROGRESS = {
    "id": ID,
    "runId": ID,
    "name": "mine",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 5,
    "batchDuration": 100,
    "durationMs": {},
    "stateOperators": [],
    "sources": [SOURCE],
    "sink": {"description": "noop", "numOutputRows": 3},
}


def tell(progress: dict[str, object], warn_offsets: int | None = None) -> None:
    from pyspark.sql.streaming.listener import QueryProgressEvent

    from trionet.spark import LagListener

    event = QueryProgressEvent.fromJson({"progress": progress})
    LagListener(warn_offsets).onQueryProgress(event)


@pytest.mark.parametrize(
    ("name", "shown"), [("mine", "mine"), (None, "00000000-0000-0000-0000-000000000007")]
)
def test_each_batch_reports_how_far_its_sources_are_behind(
    name: str | None, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trionet.spark"):
        tell(PROGRESS | {"name": name})

    [message] = caplog.messages
    assert message.startswith(f"query {shown}, batch 5: trionet is 6 offsets behind (min 2,")
    assert message.endswith("max 4, mean 3.0 over 2 partitions)")


@pytest.mark.parametrize(
    ("warn_offsets", "level"), [(None, logging.INFO), (7, logging.INFO), (6, logging.WARNING)]
)
def test_much_is_a_warning(
    warn_offsets: int | None, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "trionet.spark"):
        tell(PROGRESS, warn_offsets)

    assert [level] == [record.levelno for record in caplog.records]


def test_a_source_of_another_kind_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    other = SOURCE | {"endOffset": 3, "latestOffset": 7}
    with caplog.at_level(logging.INFO, "trionet.spark"):
        tell(PROGRESS | {"sources": [other]})

    assert [] == caplog.messages


def test_spark_s_own_progress_is_read() -> None:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    progress = StreamingQueryProgress.fromJson(PROGRESS)

    [actual] = lag(progress)

    assert isinstance(actual, SourceLag)
    assert [actual] == lag(progress.json) == lag(json.dumps(PROGRESS))
    assert 6 == actual.total_offsets_behind_latest
