"""The whole way: a broker's own request log, the streaming query, and its results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest
import trio

import trionet
from spark.pipeline.logged import Logged, counted, window_of
from spark.pipeline.written_results import documents, published, tables
from trionet.protocol.request_log import decode
from trionet.testing._threaded import ThreadedBroker

pytest.importorskip("pyspark", reason="PySpark cannot be imported")

from pyspark.errors import PySparkException

from spark.streams import stream
from trionet.spark._data_source import TrionetDataSource
from trionet.spark.pipeline._batches import BatchProcessor
from trionet.spark.pipeline._closing import Outputs
from trionet.spark.pipeline._job import last_completed, prepare_topics, reason, start
from trionet.spark.pipeline._settings import JobSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LOG, RESULTS = "requests", "requests-results"
#: A minute may end while the test runs, and its results must not come before they are meant to.
DELAY_MINUTES = 10


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    """A broker with a request log."""
    with trionet.testing.broker({"request.log.topic": LOG, "request.log.linger.ms": 10}) as running:
        yield running


def settings_of(broker: ThreadedBroker, folder: Path) -> JobSettings:
    return JobSettings(
        bootstrap_servers=broker.bootstrap_servers,
        topic=LOG,
        results_topic=RESULTS,
        folder=str(folder),
        checkpoint=f"{folder}/_checkpoint",
        master="local[2]",
        delay_seconds=DELAY_MINUTES * 60,
        interval_seconds=10,
        max_records=None,
        available_now=True,
        allow_data_loss=False,
    )


def test_a_failure_in_python_is_named_by_its_cause_and_not_by_a_traceback() -> None:
    worker = (
        "pyspark.errors.exceptions.captured.PythonException: \n  An exception was thrown from the"
        ' Python worker.\nTraceback (most recent call last):\n  File "anomalies.py", line 1\n'
        "    sort(values)\n\nMemoryError: Unable to allocate 13.4 GiB\n\n\tat java.Thread.run\n"
    )
    told = (
        "[FOREACH_BATCH_USER_FUNCTION_ERROR] Return Message: Traceback (most recent"
        f' call last):\n  File "batches.py", line 2\n    collect()\n{worker}'
    )

    assert "MemoryError: Unable to allocate 13.4 GiB" == reason(PySparkException(message=told))
    ours = told.replace("MemoryError", "trionet.errors.ConfigError")
    assert "Unable to allocate 13.4 GiB" == reason(PySparkException(message=ours))
    assert "no traceback" == reason(PySparkException(message="\n no traceback\nat all"))


async def ask(broker: ThreadedBroker, client_id: str, count: int) -> None:
    """Make some requests."""
    async with trionet.open_producer(broker.bootstrap_servers, client_id=client_id) as producer:
        for _ in range(count):
            await producer.send("orders", b"an order")


def logged(broker: ThreadedBroker, until: int | None = None) -> list[Logged]:
    """What is in the log, or what is in it before an offset."""
    return [decode(each.value) for each in broker.records(LOG)[:until] if each.value is not None]


def run(spark: SparkSession, settings: JobSettings) -> tuple[BatchProcessor, int]:
    """Read what there is, as a job that was started just now; and the offset where that ends."""
    batches = BatchProcessor(
        Outputs(settings.folder, settings.checkpoint, settings.sink()), settings.delay_us
    )
    query = start(spark, settings, batches)
    try:
        query.awaitTermination()
    finally:
        query.stop()
    progress = query.lastProgress
    assert progress is not None
    return batches, json.loads(progress.sources[0].endOffset)[LOG]["0"]


def test_the_requests_of_a_broker_are_reported_by_the_minute_also_by_a_job_that_is_started_again(
    spark: SparkSession, broker: ThreadedBroker, tmp_path: Path
) -> None:
    spark.dataSource.register(TrionetDataSource)
    settings = settings_of(broker, tmp_path / "results")
    assert trio.run(prepare_topics, settings, _never, pytest.fail)
    trio.run(ask, broker, "shop", 5)
    first, _ = run(spark, settings)

    assert {} == tables(tmp_path / "results")  # no minute is over
    assert 0 < sum(each.intake.records for each in first.results.values())

    trio.run(ask, broker, "shop", 3)
    # As if the log had gone on until its last minute is over.
    _, end = run(spark, attrs.evolve(settings, delay_seconds=-120))

    found = tables(tmp_path / "results")
    told = {row["window"] for row in found["windows"]}
    over = counted(each for each in logged(broker, end) if window_of(each) in told)
    assert [row["requests"] for _, row in sorted(over["windows"].items())] == [
        row["requests"] for row in sorted(found["windows"], key=lambda row: row["window"])
    ]
    produced = [r for r in found["requests"] if (r["api"], r["client_id"]) == ("Produce", "shop")]
    assert 8 == sum(row["requests"] for row in produced)
    kinds = {key["kind"] for key, _ in documents(published(broker, RESULTS))}
    assert {"requests", "windows", "talkers", "closes"} <= kinds


@pytest.mark.spark
def test_a_trigger_that_has_found_nothing_does_not_say_of_the_next_micro_batch_that_it_is_done(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, tmp_path: Path
) -> None:
    spark.dataSource.register(TrionetDataSource)
    kafka.seed(topic, [b"a record"])
    done: list[int] = []
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
    query = (
        stream(spark, kafka, subscribe=topic, startingOffsets="earliest")
        .writeStream.foreachBatch(lambda table, number: done.extend([number] * table.count()))
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        told = len(query.recentProgress)
        while len(query.recentProgress) < told + 2:
            assert not query.awaitTermination(1)
    finally:
        query.stop()
        spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")

    busy = [each for each in query.recentProgress if each.numInputRows]
    idle = query.recentProgress[-1]
    assert done == [last_completed(each) for each in busy]
    assert (done[-1] + 1, done[-1]) == (idle.batchId, last_completed(idle))


def _never() -> bool:
    return False
