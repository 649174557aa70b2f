"""Tables and streams written to topics, in Spark (the connector: KafkaSinkSuite)."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark.brokers import numbers
from spark.streams import FORMAT, batch, stream
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

HEADERS = "array<struct<key:string,value:binary>>"


def save(table: DataFrame, kafka: ThreadedBroker, *, mode: str = "append", **options: str) -> None:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "kafka.max.block.ms": "5000"}
    table.write.format(FORMAT).options(**given, **options).mode(mode).save()


def run_to_end(table: DataFrame, kafka: ThreadedBroker, checkpoint: str, **options: str) -> int:
    """Write a stream as far as it goes; how many rows Spark says were written."""
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "kafka.max.block.ms": "100"}
    writer = table.writeStream.format(FORMAT).options(**given, **options)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        return sum(max(each.sink.numOutputRows, 0) for each in query.recentProgress)
    finally:
        query.stop()


def values_in(kafka: ThreadedBroker, topic: str, count: int) -> list[str]:
    found = kafka.wait_for_records(topic, count)
    return sorted(each.value.decode() for each in found if each.value is not None)


@pytest.fixture
def numbers_stream(spark: SparkSession, kafka: ThreadedBroker, topic: str) -> DataFrame:
    """A stream with 1 to 5."""
    source = f"{topic}-from"
    kafka.create_topic(topic, 1)
    kafka.create_topic(source, 1)
    kafka.seed(source, numbers(1, 5))
    return stream(spark, kafka, subscribe=source, startingOffsets="earliest")


@pytest.mark.parametrize(
    ("column", "has_option"), [("'{}' topic", False), ("'other' topic", True), ("key", True)]
)
def test_a_stream_is_written_and_goes_on_after_its_checkpoint(
    numbers_stream: DataFrame,
    kafka: ThreadedBroker,
    topic: str,
    checkpoint: str,
    column: str,
    has_option: bool,
) -> None:
    """SI1, SI2, SI3, SI8: the option before the column; and Spark knows how many rows it were."""
    table = numbers_stream.selectExpr(column.format(topic), "cast(value as string) value")
    options = {"topic": topic} if has_option else {}

    assert 5 == run_to_end(table, kafka, checkpoint, **options)
    kafka.seed(f"{topic}-from", numbers(6, 10))
    assert 5 == run_to_end(table, kafka, checkpoint, **options)

    assert numbers(1, 10) == values_in(kafka, topic, 10)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (["value"], {}, "topic option required when no 'topic' attribute is present"),
        (["cast(1 as int) topic", "value"], {}, "topic must be a(n) string"),
        (["value"], {"topic": "none"}, "no metadata for topic 'none' within 0.1 s"),
    ],
)
def test_a_stream_fails_and_says_why(
    numbers_stream: DataFrame,
    kafka: ThreadedBroker,
    checkpoint: str,
    columns: list[str],
    options: dict[str, str],
    text: str,
) -> None:
    """SI4, SI5, SI6: columns that are missing or of a wrong type, and a topic that is not there."""
    with pytest.raises(PySparkException) as caught:
        run_to_end(numbers_stream.selectExpr(*columns), kafka, checkpoint, **options)

    assert text in str(caught.value)


def test_a_table_is_written_with_headers_and_read(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """SI9: null where a record has none."""
    kafka.create_topic(topic, 1)
    rows = [
        ("1", [("a", b"b")]),
        ("2", [("c", b"d"), ("e", b"f")]),
        ("3", [("g", b"h"), ("g", None)]),
        ("4", None),
    ]
    save(spark.createDataFrame(rows, f"value string, headers {HEADERS}"), kafka, topic=topic)

    table = batch(spark, kafka, subscribe=topic, includeHeaders=True)
    found = table.selectExpr("cast(value as string) value", "headers").collect()
    assert rows == sorted((row.value, row.headers) for row in found)


def test_a_partition_is_said_by_its_column_or_by_the_key(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """SI10: where the column is null, the partitioner decides."""
    kafka.create_topic(topic, 4)
    rows = [(str(n), str(n), 2 if n < 5 else None) for n in range(10)]
    save(spark.createDataFrame(rows, "key string, value string, partition int"), kafka, topic=topic)
    of = {int(each.value or b""): each.partition for each in kafka.wait_for_records(topic, 10)}

    assert {2} == {of[n] for n in range(5)}
    assert 1 < len({of[n] for n in range(5, 10)})


def test_a_row_without_a_topic_fails(spark: SparkSession, kafka: ThreadedBroker) -> None:
    """SI12: it could go nowhere."""
    table = spark.sql("select cast(null as string) topic, 'x' value")

    with pytest.raises(PySparkException, match="KAFKA_NULL_TOPIC_IN_DATA"):
        save(table, kafka)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("overwrite", "save mode overwrite not allowed for trionet"),
        ("ignore", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_a_topic_is_only_appended_to(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, mode: str, text: str
) -> None:
    """SI13: nothing is emptied, and nobody knows whether a topic has all rows already."""
    kafka.create_topic(topic, 1)

    with pytest.raises(PySparkException, match=text):
        save(spark.sql("select 'x' value"), kafka, mode=mode, topic=topic)


def test_a_plan_that_is_not_resolved_yet_is_written(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """SI14: rows of an expression over all columns (SPARK-20496)."""
    kafka.create_topic(topic, 1)

    save(spark.range(1, 100).selectExpr("to_json(struct(*)) value"), kafka, topic=topic)

    assert sorted(f'{{"id":{n}}}' for n in range(1, 100)) == values_in(kafka, topic, 99)


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_a_task_that_is_tried_again_writes_all_rows(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """PO2: at least once, with a new producer, and in the order of the rows."""
    kafka.create_topic(topic, 1)

    def fails_once(batches):  # type: ignore[no-untyped-def]  # pyarrow has no types
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        assert context is not None
        if not context.attemptNumber():
            raise RuntimeError("the first attempt fails behind its last row")

    table = spark.range(0, 50, 1, 1).selectExpr("cast(id as string) value")
    save(table.mapInArrow(fails_once, "value string"), kafka, topic=topic)

    found = [int(each.value or b"") for each in kafka.wait_for_records(topic, 50)]
    assert [*range(50)] == found[-50:]
