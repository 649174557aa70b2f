"""Running a streaming query in a test: to its end, and never by waiting for a while."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from trionet.testing._threaded import ThreadedBroker

FORMAT = "trionet"


def batch(spark: SparkSession, broker: ThreadedBroker, **options: object) -> DataFrame:
    """A table of topics; underscores in the names of options are dots."""
    reader = spark.read.format(FORMAT).options(**_texts(broker, options))
    return reader.load()


def stream(spark: SparkSession, broker: ThreadedBroker, **options: object) -> DataFrame:
    """A stream of topics; underscores in the names of options are dots."""
    return spark.readStream.format(FORMAT).options(**_texts(broker, options)).load()


def _texts(broker: ThreadedBroker, options: Mapping[str, object]) -> dict[str, str]:
    texts = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    for name, value in options.items():
        is_text = isinstance(value, str)
        text = str(value) if is_text or not isinstance(value, dict) else json.dumps(value)
        texts[name.replace("_", ".")] = text.lower() if isinstance(value, bool) else text
    return texts


def values(table: DataFrame) -> list[str]:
    """The values of a table as texts, sorted."""
    rows = table.selectExpr("cast(value as string) v").collect()
    return sorted(row.v for row in rows)


@attrs.define
class Run:
    """What one run of a query has read.

    Attributes:
        by_batch: the values of each micro-batch that had any, sorted, by its number.
        progress: what Spark tells of each micro-batch.
    """

    by_batch: dict[int, list[str]] = attrs.field(factory=dict)
    progress: list[Mapping[str, Any]] = attrs.field(factory=list)

    @property
    def batches(self) -> list[list[str]]:
        """The values of the micro-batches that had any, in order."""
        return [each for _, each in sorted(self.by_batch.items())]

    @property
    def values(self) -> list[str]:
        """All values that were read, sorted."""
        return sorted(value for each in self.by_batch.values() for value in each)

    def add(self, table: DataFrame, number: int) -> None:
        """Take one micro-batch; one that is repeated takes the place of the first."""
        if found := values(table):
            self.by_batch[number] = found


def run(table: DataFrame, checkpoint: str, *, once: bool = False, done: Run | None = None) -> Run:
    """Read all that there is when it starts.

    Args:
        table: from :func:`stream`.
        checkpoint: its folder; a second run goes on after the first.
        once: by ``Trigger.Once``, in one micro-batch.
        done: where to put it.
    """
    done = Run() if done is None else done
    query = start(table, checkpoint, done, once=once)
    try:
        query.awaitTermination()
    finally:
        query.stop()
        done.progress = [json.loads(each.json) for each in query.recentProgress]
    return done


def start(table: DataFrame, checkpoint: str, done: Run, *, once: bool = False) -> StreamingQuery:
    """Start a query that ends by itself."""
    writer = table.writeStream.option("checkpointLocation", checkpoint).foreachBatch(done.add)
    return (writer.trigger(once=True) if once else writer.trigger(availableNow=True)).start()


def logged_offsets(checkpoint: str) -> list[dict[str, dict[str, int]]]:
    """The offsets that a checkpoint has of each micro-batch's end."""
    logs = (Path(checkpoint) / "offsets").iterdir()
    numbered = sorted((int(each.name), each) for each in logs if each.name.isdigit())
    return [json.loads(each.read_text("utf-8").splitlines()[2]) for _, each in numbered]
