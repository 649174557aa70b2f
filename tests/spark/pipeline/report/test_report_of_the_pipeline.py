"""What the pipeline writes, and what a report says of it: beside the single requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from spark.pipeline.logged import nearest_rank, table, traffic, window_of
from trionet.protocol.request_log import CLOSED, GONE, LoggedConnection, LoggedRequest
from trionet.spark.pipeline.histogram import ERROR_MAX
from trionet.spark.pipeline.report._figures import SHARES, Percentiles
from trionet.spark.pipeline.report._inputs import Filters, TimeRange
from trionet.spark.pipeline.report._report import make_report
from trionet.testing._threaded import ThreadedBroker

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from trionet.spark._data_source import TrionetDataSource
from trionet.spark.pipeline._batches import BatchProcessor
from trionet.spark.pipeline._closing import Outputs
from trionet.spark.pipeline._partials import PHASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


NOW = datetime(2026, 12, 1, tzinfo=UTC)


def is_error(request: LoggedRequest) -> bool:
    return request.error_code != 0 or request.end in {CLOSED, GONE}


def check_percentiles(found: Mapping[str, Percentiles], requests: Sequence[LoggedRequest]) -> None:
    for phase in PHASES:
        times = [getattr(each, f"{phase}_us") for each in requests]
        for name, per_mille in SHARES.items():
            exact = nearest_rank(times, per_mille)
            assert found[phase][name] == pytest.approx(exact, rel=ERROR_MAX, abs=0), (phase, name)


def test_a_report_says_of_the_pipelines_folder_what_was_logged(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, tmp_path: Path
) -> None:
    spark.dataSource.register(TrionetDataSource)
    kafka.create_topic(topic)
    sink = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
    folder = str(tmp_path / "results")
    batches = BatchProcessor(Outputs(folder, f"{folder}/_checkpoint", sink), 30_000_000)
    logged = traffic(seed=5, count=3000, seconds=12 * 60 + 45)
    for number, each in enumerate((logged[:1800], logged[1800:])):
        batches(spark.createDataFrame(pa.Table.from_batches([table(each)])), number)

    report = make_report(spark, folder, TimeRange(), Filters(), 100, NOW)

    latest = max(window_of(each) for each in logged)
    over = [each for each in logged if window_of(each) < latest]
    requests = [each for each in over if isinstance(each, LoggedRequest)]
    closed = Counter(each.reason for each in over if isinstance(each, LoggedConnection))
    assert len(requests) == report.traffic.records
    assert len(requests) == report.traffic.requests
    assert closed == Counter({each.reason: each.connections for each in report.closes})
    assert {each.origin.client_id for each in requests} == {
        each.client_id for each in report.talkers
    }
    failed = [each for each in requests if is_error(each)]
    assert sum(each.requests for each in report.errors) == report.traffic.errors
    assert len(failed) == report.traffic.errors
    check_percentiles(report.percentiles, requests)
