"""How far a query is behind, from whatever Spark tells of it, and what the log has of that."""

from __future__ import annotations

import json
import logging
from uuid import UUID

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.spark import SourceLag, lag
from trionet.spark._offset_limits import Offsets, to_json, to_plain

T, U = TopicPartition("t", 0), TopicPartition("u", 0)


def source(end: object, latest: object, description: str = "trionet") -> dict[str, object]:
    return {"description": description, "endOffset": end, "latestOffset": latest}


class Progress:
    """What Spark's StreamingQueryProgress has."""

    def __init__(self, json_text: str) -> None:
        self.json = json_text


PROGRESS = {"sources": [source(to_plain({T: 1, U: 2}), to_plain({T: 3, U: 6}))]}


@pytest.mark.parametrize(
    "progress",
    [
        PROGRESS,
        json.dumps(PROGRESS),
        Progress(json.dumps(PROGRESS)),
        # In Python's own classes offsets are texts.
        {"sources": [source(to_json({T: 1, U: 2}), to_json({T: 3, U: 6}))]},
    ],
)
def test_what_waits_is_the_difference_to_the_latest(
    progress: Progress | dict[str, object] | str,
) -> None:
    """ME3: the least, the most, the mean, and each partition."""
    [actual] = lag(progress)

    assert SourceLag("trionet", {T: 2, U: 4}) == actual
    assert 2 == actual.min_offsets_behind_latest
    assert 4 == actual.max_offsets_behind_latest
    assert 3.0 == actual.avg_offsets_behind_latest
    assert 6 == actual.total_offsets_behind_latest


@pytest.mark.parametrize(
    "progress",
    [
        None,
        {"sources": []},
        {"sources": [source(None, to_plain({T: 3}))]},
        {"sources": [source(to_plain({T: 3}), None)]},
        {"sources": [source(to_plain({T: 3}), {})]},
        {"sources": [source(3, 7, "RateStreamV2")]},
        {"sources": [source("null", "null")]},
        {"sources": [{}]},
    ],
)
def test_what_has_nothing_to_report_is_left_out(progress: dict[str, object] | None) -> None:
    """ME3: no end, no latest, or another kind of source."""
    assert [] == lag(progress)


@pytest.mark.parametrize(
    ("end", "latest", "expected"),
    [
        ({T: 5}, {T: 5}, {T: 0}),
        # A broker that is behind has told the latest.
        ({T: 5}, {T: 4}, {T: 0}),
        # Partitions come and go.
        ({T: 5}, {T: 6, U: 3}, {T: 1, U: 3}),
        ({T: 5, U: 3}, {T: 6}, {T: 1}),
    ],
)
def test_nothing_waits_less_than_nothing(end: Offsets, latest: Offsets, expected: Offsets) -> None:
    [actual] = lag({"sources": [source(to_plain(end), to_plain(latest))]})

    assert expected == actual.partitions


def test_each_source_is_reported_by_itself() -> None:
    sources = [source({}, to_plain({T: 2}), "one"), source({}, to_plain({U: 3}), "two")]

    actual = lag({"sources": sources})

    assert ["one", "two"] == [each.description for each in actual]


@pytest.mark.parametrize("progress", [{}, {"sources": "kafka"}, "{}"])
def test_what_is_no_progress_is_refused(progress: dict[str, object] | str) -> None:
    with pytest.raises(TypeError, match=r"query\.lastProgress"):
        lag(progress)


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
EVENT_PROGRESS = {
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
        tell(EVENT_PROGRESS | {"name": name})

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
        tell(EVENT_PROGRESS, warn_offsets)

    assert [level] == [record.levelno for record in caplog.records]


def test_a_source_of_another_kind_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    other = SOURCE | {"endOffset": 3, "latestOffset": 7}
    with caplog.at_level(logging.INFO, "trionet.spark"):
        tell(EVENT_PROGRESS | {"sources": [other]})

    assert [] == caplog.messages


def test_spark_s_own_progress_is_read() -> None:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    progress = StreamingQueryProgress.fromJson(EVENT_PROGRESS)

    [actual] = lag(progress)

    assert isinstance(actual, SourceLag)
    assert [actual] == lag(progress.json) == lag(json.dumps(EVENT_PROGRESS))
    assert 6 == actual.total_offsets_behind_latest
