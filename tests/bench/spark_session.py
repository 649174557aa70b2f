"""A session of Spark that does one task, see `bench.spark`: a line for each of its outcomes."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from bench.spark_floor import SyntheticSource
from bench.spark_task import CONNECTOR, EXACTLY_ONCE, OURS, SYNTHETIC, Outcome, Task
from support.spark_jars import connector_jars
from trionet.spark import TrionetDataSource

FORMATS = {
    OURS: "trionet",
    EXACTLY_ONCE: "trionet",
    CONNECTOR: "kafka",
    SYNTHETIC: SyntheticSource.name(),
}
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: So that batches are full.
LINGER_MS = 1000
WARM_UP_ACTIONS = 2
TIMED_ACTIONS = 3
#: Of each side; the first is not counted, in which the JVM still compiles.
STREAMS = 3
#: The first micro-batches of a stream are not counted either.
WARM_UP_BATCHES = 3


def main(task: Task) -> None:
    """Do it, and print the outcomes."""
    builder = SparkSession.builder.master("local[2]")
    if task.has_unix_sockets:
        builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.config("spark.jars", ",".join(map(str, connector_jars()))).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TrionetDataSource)
    spark.dataSource.register(SyntheticSource)
    spark.range(1).count()  # that Spark itself has begun to run is not what is compared
    WORKS[task.work](spark, task)


def fill(spark: SparkSession, task: Task) -> None:
    """Write what is then read."""
    [name] = {*task.topics.values()}
    saved(spark, task, CONNECTOR, name)()


def read(spark: SparkSession, task: Task) -> None:
    """All rows, in two ways."""
    for ask in (noop, counted):
        actions = {side: partial(ask, table(spark.read, task, side), task) for side in task.topics}
        take_turns(ask.__name__, task.rows, actions)


def write(spark: SparkSession, task: Task) -> None:
    """Rows that are made by Spark on both cores."""
    actions = {side: saved(spark, task, side, topic) for side, topic in task.topics.items()}
    take_turns("", task.rows, actions)


def saved(spark: SparkSession, task: Task, side: str, topic: str) -> Callable[[], None]:
    """What writes all rows through a side's sink."""
    columns = [f"cast(repeat('x', {task.size}) as binary) value"]
    if task.is_keyed:
        columns.append("cast(concat('key-', id % 1000) as binary) key")
    if task.has_headers:
        header = "named_struct('key', '{}', 'value', cast(cast({} as string) as binary))"
        columns.append(f"array({header.format('trace', 'id')}, {header.format('v', 1)}) headers")
    rows = spark.range(task.rows).selectExpr(*columns)
    writer = rows.write.format(FORMATS[side]).mode("append").option("topic", topic)
    writer = writer.option("kafka.compression.type", task.codec)
    if task.batch_bytes:
        writer = writer.option("kafka.batch.size", task.batch_bytes)
        writer = writer.option("kafka.linger.ms", LINGER_MS)
    return writer.option("kafka.bootstrap.servers", task.bootstrap).save


def first_query(spark: SparkSession, task: Task) -> None:
    """From `spark.read` to the rows."""
    for side in task.topics:
        began = time.perf_counter()
        rows = table(spark.read, task, side).collect()
        say(Outcome(side, "", 1, [time.perf_counter() - began]))
        if len(rows) != (1 if side == SYNTHETIC else task.rows):
            raise RuntimeError(f"{side} has read {len(rows)} rows")


def micro_batches(spark: SparkSession, task: Task) -> None:
    """Of one row each; a stream has none where there is no row."""
    _micro_batches(spark, task, lambda _, rows: rows.writeStream.format("noop"))


def copied_micro_batches(spark: SparkSession, task: Task) -> None:
    """The same, written to the end of the topic that they are read from."""
    _micro_batches(spark, task, partial(_copied, task))


def _micro_batches(
    spark: SparkSession, task: Task, writer: Callable[[str, DataFrame], DataStreamWriter]
) -> None:
    seconds: dict[str, list[float]] = {side: [] for side in task.topics}
    for number in range(STREAMS):
        for side, each in seconds.items():
            reader = spark.readStream.option("maxOffsetsPerTrigger", 1)
            found = batch_seconds(writer(side, table(reader, task, side)), task.rows)
            each += found if number else []
    for side, each in seconds.items():
        say(Outcome(side, "", 1, each))


def _copied(task: Task, side: str, rows: DataFrame) -> DataStreamWriter:
    writer = rows.select("value").writeStream.format(FORMATS[side])
    if side == EXACTLY_ONCE:
        writer = writer.option("delivery.guarantee", "exactly-once")
    writer = writer.option("kafka.bootstrap.servers", task.bootstrap)
    return writer.option("topic", task.topics[side])


WORKS: Mapping[str, Callable[[SparkSession, Task], None]] = {
    work.__name__: work
    for work in (fill, read, write, first_query, micro_batches, copied_micro_batches)
}


def table(reader: DataFrameReader | DataStreamReader, task: Task, side: str) -> DataFrame:
    """The topic of a side."""
    reader = reader.format(FORMATS[side])
    if side == SYNTHETIC:
        return reader.option("rows", task.rows).load()
    reader = reader.option("subscribe", task.topics[side]).option("startingOffsets", "earliest")
    reader = reader.option("includeHeaders", task.has_headers)
    return reader.option("kafka.bootstrap.servers", task.bootstrap).load()


def noop(table: DataFrame, _task: Task) -> None:
    """Read all columns."""
    table.write.format("noop").mode("overwrite").save()


def counted(table: DataFrame, task: Task) -> None:
    """Read all rows and look at each value."""
    [found] = table.selectExpr("count(*)", "sum(length(value))").collect()
    if tuple(found) != (task.rows, task.rows * task.size):
        raise RuntimeError(f"{found} are not {task.rows} values of {task.size} bytes")


def take_turns(ask: str, amount: int, actions: Mapping[str, Callable[[], object]]) -> None:
    """Time the sides, one after the other and again."""
    seconds: dict[str, list[float]] = {side: [] for side in actions}
    for number in range(WARM_UP_ACTIONS + TIMED_ACTIONS):
        for side, action in actions.items():
            began = time.perf_counter()
            action()
            if number >= WARM_UP_ACTIONS:
                seconds[side].append(time.perf_counter() - began)
    for side, each in seconds.items():
        say(Outcome(side, ask, amount, each))


def batch_seconds(writer: DataStreamWriter, rows: int) -> list[float]:
    """How long micro-batches took that had a row."""
    with tempfile.TemporaryDirectory(prefix="trionet-bench-") as folder:
        query = writer.option("checkpointLocation", folder).start()
        try:
            until_read(query, rows)
            found = [each for each in query.recentProgress if each.numInputRows]
        finally:
            query.stop()
    return [each.durationMs["triggerExecution"] / 1000 for each in found[WARM_UP_BATCHES:]]


def until_read(query: StreamingQuery, rows: int) -> None:
    """Wait until a stream has read so many rows."""
    while sum(each.numInputRows for each in query.recentProgress) < rows:
        if (error := query.exception()) is not None:
            raise error
        time.sleep(0.1)


def say(outcome: Outcome) -> None:
    """Tell the benchmark."""
    print(outcome.as_text(), flush=True)


if __name__ == "__main__":
    main(Task.of_text(sys.argv[1]))
