"""A session of Spark that does one task, see `bench.spark`: a line for each of its outcomes."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from bench.spark_floor import SyntheticSource
from bench.spark_task import CONNECTOR, OURS, SYNTHETIC, Outcome, Task
from support.spark_jars import connector_jars
from trionet.spark import TrionetDataSource

FORMATS = {OURS: "trionet", CONNECTOR: "kafka", SYNTHETIC: SyntheticSource.name()}
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
WARM_UP_ACTIONS = 2
TIMED_ACTIONS = 3
STREAMS = 2
#: The first micro-batches of a stream are not counted.
WARM_UP_BATCHES = 3


def main(task: Task) -> None:
    """Do it, and print the outcomes."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.config("spark.jars", ",".join(map(str, connector_jars()))).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TrionetDataSource)
    spark.dataSource.register(SyntheticSource)
    spark.range(1).count()  # that Spark itself has begun to run is not what is compared
    WORKS[task.work](spark, task)


def read(spark: SparkSession, task: Task) -> None:
    """All rows, in two ways."""
    for ask in (noop, counted):
        actions = {side: partial(ask, table(spark.read, task, side), task) for side in task.topics}
        take_turns(ask.__name__, task.rows, actions)


def write(spark: SparkSession, task: Task) -> None:
    """Rows that are made by Spark on both cores."""
    values = f"cast(repeat('x', {task.size}) as binary) value"
    rows = spark.range(task.rows).selectExpr(values)
    actions = {}
    for side, topic in task.topics.items():
        writer = rows.write.format(FORMATS[side]).mode("append").option("topic", topic)
        actions[side] = writer.option("kafka.bootstrap.servers", task.bootstrap).save
    take_turns("", task.rows, actions)


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
    seconds: dict[str, list[float]] = {side: [] for side in task.topics}
    for _ in range(STREAMS):
        for side, each in seconds.items():
            reader = spark.readStream.option("maxOffsetsPerTrigger", 1)
            each += batch_seconds(table(reader, task, side), task.rows)
    for side, each in seconds.items():
        say(Outcome(side, "", 1, each))


WORKS: Mapping[str, Callable[[SparkSession, Task], None]] = {
    work.__name__: work for work in (read, write, first_query, micro_batches)
}


def table(reader: DataFrameReader | DataStreamReader, task: Task, side: str) -> DataFrame:
    """The topic of a side."""
    reader = reader.format(FORMATS[side])
    if side == SYNTHETIC:
        return reader.option("rows", task.rows).load()
    reader = reader.option("subscribe", task.topics[side]).option("startingOffsets", "earliest")
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


def batch_seconds(table: DataFrame, rows: int) -> list[float]:
    """How long micro-batches took that had a row."""
    with tempfile.TemporaryDirectory(prefix="trionet-bench-") as folder:
        query = table.writeStream.format("noop").option("checkpointLocation", folder).start()
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
