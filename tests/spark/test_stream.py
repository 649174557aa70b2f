"""Topics as streams, in Spark (the connector: KafkaMicroBatchSourceSuite and its base)."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from spark.brokers import add_partitions, delete_records, numbers
from spark.streams import Run, logged_offsets, run, stream
from trionet.client._topic_partition import TopicPartition
from trionet.spark import lag
from trionet.spark._offset_limits import start_in
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Runs with `python3 tests spark`; without, what every change has to pass.
more = pytest.mark.spark


def seed(kafka: ThreadedBroker, topic: str, partition: int, first: int, last: int) -> None:
    """Numbers as values, into one partition."""
    kafka.seed(topic, [{"partition": partition, "value": str(n)} for n in range(first, last + 1)])


def test_at_most_so_many_offsets_go_into_a_micro_batch(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB1: AvailableNow: 15 records, 5 at most a batch, are 3 batches."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 14)
    table = stream(
        spark, kafka, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=5
    )

    done = run(table, checkpoint)

    assert [numbers(0, 4), numbers(5, 9), numbers(10, 14)] == done.batches
    first, *others = logged_offsets(checkpoint)
    assert {"0": 5} == first[topic]
    assert {TopicPartition(topic, 0): 0} == start_in(first)
    assert [{topic: {"0": end}} for end in (10, 15)] == others


def test_a_run_goes_on_where_the_one_before_has_ended(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """SB1, SB6, MB2, SO3: started again, by the log; new partitions from their begin."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 4)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    first = run(stream(spark, kafka, **options), checkpoint)
    seed(kafka, topic, 0, 5, 9)
    add_partitions(kafka, topic, 2)
    seed(kafka, topic, 1, 10, 12)

    second = run(stream(spark, kafka, **options), checkpoint)
    third = run(stream(spark, kafka, **options), checkpoint)

    assert [numbers(0, 4), numbers(5, 12), []] == [first.values, second.values, third.values]


@more
def test_what_no_query_has_limited_is_one_micro_batch(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB5: maxOffsetsPerTrigger is ignored by Trigger.Once."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 3}

    first = run(stream(spark, kafka, **options), checkpoint, once=True)
    seed(kafka, topic, 0, 10, 19)
    second = run(stream(spark, kafka, **options), checkpoint, once=True)

    assert [numbers(0, 9)] == first.batches
    assert [numbers(10, 19)] == second.batches
    assert 2 == len(first.progress) + len(second.progress)


@more
@pytest.mark.parametrize("trigger", ["once", "available now"])
def test_a_query_from_the_latest_reads_what_comes_after_its_start(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str, trigger: str
) -> None:
    """SB3: subscribe from latest, with and without failOnDataLoss."""
    kafka.create_topic(topic, 2)
    seed(kafka, topic, 0, 0, 4)
    table = stream(spark, kafka, subscribe=topic, failOnDataLoss=trigger == "once")

    first = run(table, checkpoint, once=trigger == "once")
    seed(kafka, topic, 1, 5, 9)
    second = run(table, checkpoint, once=trigger == "once")

    assert [[], numbers(5, 9)] == [first.values, second.values]
    assert {"0": 5, "1": 0} == logged_offsets(checkpoint)[0][topic]


def test_a_query_from_the_earliest_reads_in_its_first_micro_batch(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """There is no other within an hour: what is there is not left for the second."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 4)
    done = Run()
    read = Event()

    def add(table: DataFrame, number: int) -> None:
        done.add(table, number)
        read.set()

    table = stream(spark, kafka, subscribe=topic, startingOffsets="earliest")
    writer = table.writeStream.option("checkpointLocation", checkpoint).foreachBatch(add)
    query = writer.trigger(processingTime="1 hour").start()
    try:
        assert read.wait(240)
    finally:
        query.stop()

    assert {0: numbers(0, 4)} == done.by_batch


@more
def test_a_query_that_is_lost_before_its_first_batch_is_written_reads_all(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """Where a query begins is not asked again once it is in the checkpoint."""
    kafka.create_topic(topic, 1)
    table = stream(spark, kafka, subscribe=topic)
    run(table, checkpoint)
    for path in (Path(checkpoint) / "commits").iterdir():  # as if it had died inside of batch 0
        path.unlink()
    seed(kafka, topic, 0, 0, 4)

    assert numbers(0, 4) == run(table, checkpoint).values


def test_a_micro_batch_that_fails_is_read_again(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """The same offsets under the same number."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 4}
    table = stream(spark, kafka, **options)
    fails_at_1 = Fails(1)
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run(table, checkpoint, done=fails_at_1)
    seed(kafka, topic, 0, 10, 19)

    again = run(table, checkpoint)

    assert {0: numbers(0, 3)} == fails_at_1.by_batch
    assert numbers(4, 7) == again.by_batch[1]
    assert numbers(4, 19) == again.values


def test_the_first_micro_batch_that_fails_is_read_again(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """With the same offsets, although its start is found elsewhere by now: it is not silent."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run(stream(spark, kafka, **options), checkpoint, once=True, done=Fails(0))
    seed(kafka, topic, 0, 10, 19)
    delete_records(kafka, topic, 3)

    with pytest.raises(StreamingQueryException, match=r"no longer has the records in \[0, 3\)"):
        run(stream(spark, kafka, **options), checkpoint, once=True)
    again = run(stream(spark, kafka, failOnDataLoss=False, **options), checkpoint)

    assert [numbers(3, 9), numbers(10, 19)] == again.batches


class Fails(Run):
    """A run whose sink fails in one micro-batch."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.fails_at = number

    def add(self, table: DataFrame, number: int) -> None:
        if number == self.fails_at:
            raise ValueError("on purpose")
        super().add(table, number)


@more
def test_the_progress_reports_rows_offsets_and_lag(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB10, ME1: the rows in the progress are those that were read; what waits behind them."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 9)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 4}

    done = run(stream(spark, kafka, **options), checkpoint)

    assert [4, 4, 2] == [each["numInputRows"] for each in done.progress]
    behind = [source.max_offsets_behind_latest for each in done.progress for source in lag(each)]
    assert [6, 2, 0] == behind


@more
def test_a_watermark_follows_the_timestamps(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB16: a watermark on the column timestamp."""
    kafka.create_topic(topic, 1)
    kafka.seed(topic, [{"value": str(n), "timestamp": n * 1000} for n in (1, 2, 11, 40, 41)])
    table = stream(
        spark, kafka, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4
    )
    counts = (
        table.withWatermark("timestamp", "5 seconds")
        .groupBy(window("timestamp", "10 seconds"))
        .count()
        .selectExpr("cast(unix_seconds(window.start) || ':' || count as binary) value")
    )

    assert ["0:2", "10:1"] == run(counts, checkpoint).values


@more
def test_a_union_of_two_topics_one_of_them_idle(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB18: a union of two topics, one of them idle (SPARK-22956)."""
    for name in (topic, f"{topic}-idle"):
        kafka.create_topic(name, 1)
        seed(kafka, name, 0, 0, 4)
    both = [
        stream(spark, kafka, subscribe=name, startingOffsets="earliest")
        for name in (topic, f"{topic}-idle")
    ]
    table = both[0].union(both[1])
    first = run(table, checkpoint)
    seed(kafka, topic, 0, 5, 9)

    second = run(table, checkpoint)

    assert [sorted(numbers(0, 4) * 2), numbers(5, 9)] == [first.values, second.values]


@more
def test_a_topic_of_a_pattern_that_was_made_anew_is_a_loss(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB12: a topic of a pattern is made anew: its offset was changed from 2 to 1."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 1)
    options = {"subscribePattern": topic, "startingOffsets": "earliest"}
    run(stream(spark, kafka, **options), checkpoint)
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 2, 2)

    with pytest.raises(StreamingQueryException, match="decreased from 2 to 1"):
        run(stream(spark, kafka, fetchOffset_retryIntervalMs=1, **options), checkpoint)


@more
def test_deleted_topics_of_a_pattern_are_let_go(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB11: a topic of a pattern is deleted, another made, without failOnDataLoss."""
    kafka.create_topic(f"{topic}-1", 1)
    seed(kafka, f"{topic}-1", 0, 0, 4)
    options = {
        "subscribePattern": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": False,
    }
    first = run(stream(spark, kafka, **options), checkpoint)
    kafka.create_topic(f"{topic}-2", 1)
    seed(kafka, f"{topic}-2", 0, 5, 9)
    kafka.delete_topic(f"{topic}-1")

    second = run(stream(spark, kafka, **options), checkpoint)

    assert [numbers(0, 4), numbers(5, 9)] == [first.values, second.values]


@more
def test_records_that_are_gone_are_read_neither_once_nor_twice(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """DL1: without failOnDataLoss nothing is read twice: micro-batch."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 0, 4)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    first = run(stream(spark, kafka, failOnDataLoss=False, **options), checkpoint)
    seed(kafka, topic, 0, 5, 19)
    delete_records(kafka, topic, 10)

    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        run(stream(spark, kafka, **options), checkpoint)
    second = run(stream(spark, kafka, failOnDataLoss=False, **options), checkpoint)

    assert [numbers(0, 4), numbers(10, 19)] == [first.values, second.values]


@more
def test_without_a_limit_nothing_waits(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """ME2: offsets behind the latest without a limit: none."""
    kafka.create_topic(topic, 2)
    seed(kafka, topic, 0, 0, 4)
    seed(kafka, topic, 1, 5, 9)
    table = stream(spark, kafka, subscribe=topic, startingOffsets="earliest")

    done = run(table, checkpoint)

    [source] = lag(done.progress[-1])
    assert 10 == done.progress[-1]["numInputRows"]
    behind = (source.min_offsets_behind_latest, source.max_offsets_behind_latest)
    assert (0, 0) == behind
    assert 0 == source.avg_offsets_behind_latest


@more
def test_a_stream_has_the_columns_of_the_connector(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """SB21: the columns and their types, headers among them."""
    kafka.create_topic(topic, 1)
    headers = {"a": "b", "c": None, "é": ""}
    kafka.seed(topic, [{"key": "k", "value": "v", "timestamp": 1500, "headers": headers}])
    kafka.seed(topic, [{"value": "w", "timestamp": 2000}])
    plain = stream(spark, kafka, subscribe=topic)
    table = stream(spark, kafka, subscribe=topic, startingOffsets="earliest", includeHeaders=True)

    rows = run(table.selectExpr("cast(to_json(struct(*)) as binary) value"), checkpoint).values

    columns = (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int"
    )
    of_headers = ",headers:array<struct<key:string,value:binary>>"
    assert f"{columns}>" == plain.schema.simpleString()
    assert f"{columns}{of_headers}>" == table.schema.simpleString()
    by_offset = {row["offset"]: row for row in map(json.loads, rows)}
    place = {"topic": topic, "partition": 0, "timestampType": 0}
    told = [{"key": "a", "value": "Yg=="}, {"key": "c"}, {"key": "é", "value": ""}]
    assert {
        0: {
            **place,
            "key": "aw==",
            "value": "dg==",
            "offset": 0,
            "timestamp": "1970-01-01T00:00:01.500Z",
            "headers": told,
        },
        1: {**place, "value": "dw==", "offset": 1, "timestamp": "1970-01-01T00:00:02.000Z"},
    } == by_offset


@more
def test_a_join_with_itself_reads_the_same_in_both_places(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """Spark plans the source once for each place, and both go on at the same offsets."""
    kafka.create_topic(topic, 1)
    seed(kafka, topic, 0, 1, 5)
    table = stream(spark, kafka, subscribe=topic, startingOffsets="earliest")
    texts = table.selectExpr("cast(value as string) v")
    joined = texts.join(texts, "v").selectExpr("v value")

    first = run(joined, checkpoint)
    seed(kafka, topic, 0, 4, 8)
    second = run(joined, checkpoint)

    assert numbers(1, 5) == first.values
    # What is there twice meets itself and the earlier one, in both places.
    assert sorted([*numbers(4, 5) * 3, *numbers(6, 8)]) == second.values
    last = max((Path(checkpoint) / "offsets").glob("[0-9]*"), key=lambda each: int(each.name))
    logged = [json.loads(each) for each in last.read_text("utf-8").splitlines()[2:]]
    assert [{topic: {"0": 10}}] * 2 == logged


@more
def test_a_checkpoint_of_spark_2_4_goes_on(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """MB28: a checkpoint of Spark 2.4, without headers, goes on."""
    kafka.create_topic(topic, 2)
    seed(kafka, topic, 0, 0, 9)
    seed(kafka, topic, 1, 10, 19)
    written_by_2_4(Path(checkpoint), topic, {"1": 4, "0": 7})
    options = {"subscribe": topic, "startingOffsets": "earliest", "includeHeaders": True}

    done = run(stream(spark, kafka, **options), checkpoint)

    assert sorted([*numbers(7, 9), *numbers(14, 19)]) == done.values


def written_by_2_4(checkpoint: Path, topic: str, ends: dict[str, int]) -> None:
    """A checkpoint as that version leaves it after its first micro-batch."""
    conf = {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
        ),
        "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "2",
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
        "spark.sql.streaming.aggregation.stateFormatVersion": "2",
        "spark.sql.shuffle.partitions": "1",
    }
    batch = {"batchWatermarkMs": 0, "batchTimestampMs": 1_540_000_000_000, "conf": conf}
    compact = json.dumps({topic: ends}, separators=(",", ":"))
    files = {
        "metadata": '{"id":"0b2c3d4e-1111-4222-8333-944455556666"}',
        "offsets/0": f"v1\n{json.dumps(batch)}\n{compact}",
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
        # The byte is there for the readers of Spark 2.1, which leave it out.
        "sources/0/0": f"\0v1\n{compact}",
    }
    for name, text in files.items():
        path = checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
