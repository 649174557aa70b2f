"""Turns the flights into their delays, with Spark, as they come. A process of its own.

``python -m demo.pipeline BOOTSTRAP TOPIC RESULTS SPEED FOLDER``: from one topic to another, by
``format("trionet")``. Spark keeps its files in the folder, and the checkpoint: started again with
it, the query goes on where it was. Told to stop, it takes first what the topic has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from demo.dataset import data_file
from demo.delays import delays, read_planes, read_weather
from demo.reporting import Reporter
from demo.windows import from_factor, windows_for
from trionet.spark import TrionetDataSource, lag

#: A micro-batch costs some 0.3 s of both cores with nothing in it.
TRIGGER_SECONDS = 1


class Counts(StreamingQueryListener):
    """What the micro-batches have done so far, from what Spark tells after each."""

    def __init__(self) -> None:
        self.latest: dict[str, Any] = {}
        self._read = self._late = 0

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        self._read += progress.numInputRows
        self._late += sum(each.numRowsDroppedByWatermark for each in progress.stateOperators)
        [behind] = lag(progress)
        self.latest = {
            "read": self._read,
            "waiting": behind.total_offsets_behind_latest,
            "late": self._late,
            "batch_ms": progress.durationMs.get("triggerExecution"),
        }

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...


def session(folder: Path) -> SparkSession:
    """Spark in this process and its JVM, on two cores, with all its files below the folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        # Starts sooner, at the price of a lower speed in the long run.
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        f" -Djava.io.tmpdir={folder}",
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.session.timeZone": "UTC",
        # Some hundred groups a window: one task and one state store are enough.
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("flight delays")
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start(
    spark: SparkSession, bootstrap_servers: str, topic: str, results: str, speed: str, folder: Path
) -> StreamingQuery:
    """Start the query from topic to topic."""
    servers = {"kafka.bootstrap.servers": bootstrap_servers}
    spark.dataSource.register(TrionetDataSource)
    records = spark.readStream.format("trionet").options(
        **servers, subscribe=topic, startingOffsets="earliest"
    )
    data = data_file().parent
    # Cached: every micro-batch is joined with them.
    planes, weather = read_planes(spark, data).cache(), read_weather(spark, data).cache()
    table = delays(records.load(), planes, weather, windows_for(from_factor(speed)))
    writer = table.writeStream.format("trionet").options(**servers, topic=results)
    checkpoint = str(folder / "checkpoint")
    return (
        writer.option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(processingTime=f"{TRIGGER_SECONDS} seconds")
        .start()
    )


def run(bootstrap_servers: str, topic: str, results: str, speed: str, folder: str) -> None:
    """Run the query and report on it, until the demo says stop.

    Raises:
        PySparkException: the query has failed.
    """
    reporter = Reporter()
    counts = Counts()
    spark = session(Path(folder))
    spark.streams.addListener(counts)
    query = start(spark, bootstrap_servers, topic, results, speed, Path(folder))
    while query.isActive and not reporter.must_stop:
        reporter.report(**counts.latest)
        reporter.wait(TRIGGER_SECONDS)
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    query.stop()
    reporter.report(**counts.latest, totals={})


def main(arguments: list[str]) -> int:
    # What the JVM prints is no report of ours.
    sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        run(*arguments)
    except PySparkException as error:
        print(str(error).strip().partition("\n")[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
