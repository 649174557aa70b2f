"""Tables of Spark's catalog: made, read, read as a stream and written to, in SQL and in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.brokers import numbers
from spark.streams import run, stream, values
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_INSERT = "INSERT INTO {} (key, value) VALUES (binary('k'), binary('{}'))"


def create(spark: SparkSession, kafka: ThreadedBroker, topic: str) -> str:
    """A topic with ten records, a table of its name to read it, and one to write to it."""
    kafka.create_topic(topic, 1)
    kafka.seed(topic, [str(number) for number in range(10)])
    written = f"{topic}_out"
    for table, option in ((topic, "subscribe"), (written, "topic")):
        spark.sql(
            f"CREATE TABLE {table} USING trionet OPTIONS ("
            f" 'kafka.bootstrap.servers' = '{kafka.bootstrap_servers}',"
            f" {option} = '{topic}') TBLPROPERTIES ('quality' = 'gold')"
        )
    return written


def texts(kafka: ThreadedBroker, topic: str) -> list[str]:
    return [(each.value or b"").decode() for each in kafka.records(topic)]


def create_by_catalog(spark: SparkSession, name: str, options: dict[str, str]) -> DataFrame:
    return spark.catalog.createTable(name, None, "trionet", None, None, **options)


def test_a_table_is_read_and_written_to(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str, tmp_path: Path
) -> None:
    written = create(spark, kafka, topic)
    end = f'{{"{topic}":{{"0":3}}}}'

    assert numbers(0, 9) == values(spark.table(topic))
    assert numbers(0, 2) == values(spark.read.option("endingOffsets", end).table(topic))
    assert numbers(0, 2) == values(
        spark.sql(f"SELECT * FROM {topic} WITH ('endingOffsets' = '{end}')")
    )
    early = spark.readStream.option("startingOffsets", "earliest").table(topic)
    assert numbers(0, 9) == run(early, checkpoint).values

    spark.sql(_INSERT.format(written, "10"))
    spark.sql(f"INSERT INTO {written} (key, value) SELECT key, value FROM {topic} WHERE offset=10")
    spark.sql("SELECT binary('k') key, binary('11') value").writeTo(written).append()
    assert [*"0123456789", "10", "10", "11"] == texts(kafka, topic)
    copy = str(tmp_path / "copy")
    spark.table(topic).write.parquet(copy)
    assert 13 == spark.read.parquet(copy).count()


def test_rows_of_a_table_go_to_the_topic_of_another_or_nowhere(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, tmp_path: Path
) -> None:
    """A writer is given the columns of the query; all of a table's keep its metadata."""
    create(spark, kafka, topic)
    other = create(spark, kafka, f"{topic}_2")
    copy = str(tmp_path / "copy")
    spark.table(topic).write.parquet(copy)

    for every in (f"TABLE {topic}", f"SELECT * FROM parquet.`{copy}`"):
        with pytest.raises(PySparkException, match="come from a table that is read"):
            spark.sql(f"INSERT INTO {other} {every}")
    with pytest.raises(PySparkException, match="come from a table that is read"):
        spark.table(topic).writeTo(other).append()
    forgotten = spark.table(topic).write.format("trionet").option("topic", topic)
    with pytest.raises(PySparkException, match=r"bootstrap\.servers' must be specified for a sink"):
        forgotten.mode("append").save()
    spark.sql(f"INSERT INTO {other} (value) SELECT value FROM {topic} WHERE offset = 9")
    spark.table(topic).where("offset = 8").select("value").writeTo(other).append()

    assert [*"0123456789"] == texts(kafka, topic)
    assert [*"0123456789", "9", "8"] == texts(kafka, f"{topic}_2")


def test_a_table_is_made_by_the_catalog(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    kafka.create_topic(topic, 1)
    kafka.seed(topic, ["a"])
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic}

    table = create_by_catalog(spark, topic, options)

    assert ["a"] == values(table) == values(spark.table(topic))
    with pytest.raises(AnalysisException, match="unknown option; did you mean startingOffsets"):
        create_by_catalog(spark, f"{topic}2", {**options, "startingOffset": "1"})
    secret = {"kafka.sasl.password": "secret"}
    with pytest.raises(AnalysisException, match="a table cannot keep secrets"):
        create_by_catalog(spark, f"{topic}3", {**options, **secret})


def test_a_mistake_of_a_stream_is_told_as_it_is(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """Not as an UnboundLocalError of PySpark, which one from `streamReader` would end in."""
    table = stream(spark, kafka, subscribe=topic, endingOffsets="latest")
    writer = table.writeStream.format("noop").option("checkpointLocation", checkpoint)

    def start() -> StreamingQuery:
        return writer.trigger(availableNow=True).start()

    with pytest.raises(StreamingQueryException, match="ConfigError: endingOffsets: ending offset"):
        start().awaitTermination()
