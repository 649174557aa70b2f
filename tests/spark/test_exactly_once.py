"""Streams that write each row exactly once, in Spark: what their readers see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark.brokers import numbers
from spark.streams import FORMAT, batch, stream, values
from trionet.testing._threaded import ThreadedBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def run_to_end(table: DataFrame, kafka: ThreadedBroker, checkpoint: str, topic: str) -> None:
    """Write a stream as far as it goes."""
    writer = table.writeStream.format(FORMAT).options(
        **{
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "delivery.guarantee": "exactly-once",
        }
    )
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


@pytest.fixture
def source(spark: SparkSession, kafka: ThreadedBroker, topic: str) -> DataFrame:
    """A stream of two partitions with 1 to 12, in three micro-batches; and the topic it goes to."""
    name = f"{topic}-from"
    kafka.create_topic(topic, 2)
    kafka.create_topic(name, 2)
    for number in range(1, 13):
        kafka.seed(name, [{"value": str(number), "partition": number % 2}])
    return stream(spark, kafka, subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=4)


def committed(spark: SparkSession, kafka: ThreadedBroker, topic: str) -> list[str]:
    return values(batch(spark, kafka, subscribe=topic, kafka_isolation_level="read_committed"))


def test_each_row_of_a_stream_is_written_once(
    spark: SparkSession, kafka: ThreadedBroker, source: DataFrame, topic: str, checkpoint: str
) -> None:
    run_to_end(source, kafka, checkpoint, topic)

    assert numbers(1, 12) == committed(spark, kafka, topic)
    # Also what read_uncommitted shows: no transaction was aborted.
    assert numbers(1, 12) == values(batch(spark, kafka, subscribe=topic))

    kafka.seed(f"{topic}-from", numbers(13, 16))
    run_to_end(source, kafka, checkpoint, topic)

    assert numbers(1, 16) == committed(spark, kafka, topic)


def test_a_task_that_fails_is_retried_and_its_rows_are_written_once(
    spark: SparkSession,
    kafka: ThreadedBroker,
    source: DataFrame,
    topic: str,
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """The session tries a task three times; what its first attempt has written is aborted."""
    failed = str(tmp_path / "failed")

    def fail_once(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            yield part
            if b"7" in part.column("value").to_pylist() and not Path(failed).exists():
                Path(failed).touch()
                raise RuntimeError("a task fails after its rows")

    run_to_end(source.mapInArrow(fail_once, source.schema), kafka, checkpoint, topic)

    assert Path(failed).exists()
    assert numbers(1, 12) == committed(spark, kafka, topic)


def test_a_task_whose_transaction_must_be_aborted_is_retried(
    spark: SparkSession, kafka: ThreadedBroker, source: DataFrame, topic: str, checkpoint: str
) -> None:
    """TRANSACTION_ABORTABLE (KIP-890): aborted and written again, as with Kafka's own client."""
    fault = kafka.faults.fail("Produce", "TRANSACTION_ABORTABLE", topic=topic)

    run_to_end(source, kafka, checkpoint, topic)

    assert 1 == fault.hits
    assert numbers(1, 12) == committed(spark, kafka, topic)


def test_a_query_that_fails_and_is_started_again_writes_each_row_once(
    spark: SparkSession,
    kafka: ThreadedBroker,
    source: DataFrame,
    topic: str,
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """One task of the last micro-batch fails each time, until the file is there."""
    repaired = tmp_path / "repaired"

    def fail(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            if b"11" in part.column("value").to_pylist() and not repaired.exists():
                raise RuntimeError("a bug in the query")
            yield part

    table = source.mapInArrow(fail, source.schema)
    with pytest.raises(PySparkException, match="a bug in the query"):
        run_to_end(table, kafka, checkpoint, topic)
    # The other task of the micro-batch was ready: nothing of it is left, and no reader waits.
    assert numbers(1, 8) == committed(spark, kafka, topic)

    repaired.touch()
    run_to_end(table, kafka, checkpoint, topic)

    assert numbers(1, 12) == committed(spark, kafka, topic)
