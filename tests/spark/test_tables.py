"""Tables of Spark's catalog: made, read, read as a stream and written to, in SQL and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark.brokers import numbers
from spark.streams import run, stream, values
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "read-topics-in-spark.md"
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


def test_text_and_bytes_are_inserted_as_they_are_typed(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    written = create(spark, kafka, topic)
    before = len(kafka.records(topic))

    spark.sql(f"INSERT INTO {written} (key, value) SELECT 'k', 'v'")
    spark.sql(f"INSERT INTO {written} (key, value) VALUES ('k', 'w'), (null, null)")
    spark.sql(f"INSERT INTO {written} BY NAME SELECT 7 AS value")
    spark.sql("SELECT 'k' key, 'x' value").writeTo(written).append()
    spark.sql(f"INSERT INTO {written} (key, value) SELECT X'00FF', X'FFFE0041C328'")

    # Rows of one statement are written by several tasks, in any order.
    found = {(each.key, each.value) for each in kafka.records(topic)[before:]}
    bytes_alone = (b"\x00\xff", b"\xff\xfe\x00A\xc3(")
    text = {(b"k", b"v"), (b"k", b"w"), (None, None), (None, b"7"), (b"k", b"x")}
    assert text | {bytes_alone} == found


def test_what_spark_does_not_ask_a_sink_it_refuses_in_its_own_words(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    """Those of the page, which says what to do."""
    written = create(spark, kafka, topic)
    page = PAGE.read_text("utf-8")
    row = spark.sql("SELECT 'k' key, 'v' value")
    writer = row.write.format("trionet").option("kafka.bootstrap.servers", kafka.bootstrap_servers)

    def partitioned() -> None:
        writer.option("topic", topic).partitionBy("key").mode("append").save()

    for attempt, words in (
        (lambda: spark.sql(f"TRUNCATE TABLE {written}"), "Table does not support truncates"),
        (lambda: spark.sql(f"DELETE FROM {written}"), "deletes"),
        (
            lambda: spark.sql(f"ANALYZE TABLE {topic} COMPUTE STATISTICS"),
            "ANALYZE TABLE is not supported for v2 tables",
        ),
        (partitioned, "The provided partitioning or clustering columns do not match"),
        (lambda: row.write.insertInto(written), "NOT_ENOUGH_DATA_COLUMNS"),
    ):
        assert f"`{words}" in page
        with pytest.raises(PySparkException, match=words):
            attempt()
    with pytest.raises(PySparkException, match=r"cannot be overwritten.*INSERT INTO"):
        spark.sql(f"INSERT OVERWRITE {written} (value) SELECT 'v'")
    options = spark.table(topic).schema["key"].metadata["trionet.options"]
    assert topic == json.loads(options)["subscribe"]


def test_rows_of_a_table_go_to_the_topic_of_another(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, tmp_path: Path
) -> None:
    """A writer is given the columns of the query, which are not those of the table."""
    create(spark, kafka, topic)
    other = create(spark, kafka, f"{topic}_2")
    copy = str(tmp_path / "copy")
    spark.table(topic).write.parquet(copy)

    for every in (f"TABLE {topic}", f"SELECT * FROM parquet.`{copy}`"):
        spark.sql(f"INSERT INTO {other} {every}")
    spark.table(topic).writeTo(other).append()
    forgotten = spark.table(topic).write.format("trionet").option("topic", topic)
    with pytest.raises(PySparkException, match=r"bootstrap\.servers' must be specified for a sink"):
        forgotten.mode("append").save()
    spark.sql(f"INSERT INTO {other} (value) SELECT value FROM {topic} WHERE offset = 9")
    spark.table(topic).where("offset = 8").select("value").writeTo(other).append()

    assert [*"0123456789"] == texts(kafka, topic)
    assert [*"0123456789" * 4, "9", "8"] == texts(kafka, f"{topic}_2")


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
