"""Turns the flights into their delays, with Spark, as they come. A process of its own.

``python -m demo.pipeline BOOTSTRAP TOPIC RESULTS SPEED FOLDER``: from one topic to another, by
``format("trionet")``. Spark keeps its files in the folder, and the checkpoint: started again with
it, the query goes on where it was. When asked to stop, it first processes what the topic has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from demo.analysis import FAILED
from demo.dataset import data_file
from demo.delays import delays, read_planes, read_weather
from demo.reporting import Reporter, keep_reports_apart
from demo.small_spark import settings
from demo.windows import Windows, from_factor, windows_for
from trionet.spark import TrionetDataSource, lag, worker_python

#: A micro-batch costs some 0.3 s of both cores with nothing in it.
TRIGGER_SECONDS = 1


class Counts:
    """What the micro-batches have done so far, from what Spark reports of the last ones."""

    def __init__(self) -> None:
        self._read = self._late = 0
        self._newest = ""

    def figures(self, query: StreamingQuery) -> dict[str, Any]:
        """Those of a report; none before the first micro-batch.

        What is too late is counted in groups: Spark adds up the flights of a window, carrier and
        route before it looks at the watermark.
        """
        recent = query.recentProgress
        for progress in recent:
            # Not by its number: Spark gives a trigger that finds nothing that of the next one.
            if progress.timestamp > self._newest:
                self._newest = progress.timestamp
                self._read += progress.numInputRows
                self._late += sum(
                    each.numRowsDroppedByWatermark for each in progress.stateOperators
                )
        if not recent:
            return {}
        [topic_lag] = lag(recent[-1])
        return {
            "read": self._read,
            "waiting": topic_lag.total_offsets_behind_latest,
            "late": self._late,
            "batch_ms": recent[-1].durationMs.get("triggerExecution"),
        }


def session(folder: Path) -> SparkSession:
    """Spark in this process and its JVM, on two cores, with all its files below the folder."""
    os.environ["PYSPARK_PYTHON"] = worker_python()
    wanted = {
        **settings(folder),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        # Some hundred groups a window: one task and one state store are enough.
        "spark.sql.shuffle.partitions": 1,
        # As many as can end between two reports, and more.
        "spark.sql.streaming.numRecentProgressUpdates": 10,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("flight delays")
    for key, value in wanted.items():
        builder = builder.config(key, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start(
    spark: SparkSession,
    bootstrap_servers: str,
    topic: str,
    results: str,
    windows: Windows,
    folder: Path,
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
    table = delays(records.load(), planes, weather, windows)
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
        StreamingQueryException: the query has failed.
    """
    reporter = Reporter()
    counts = Counts()
    windows = windows_for(from_factor(speed))
    spark = session(Path(folder))
    query = start(spark, bootstrap_servers, topic, results, windows, Path(folder))
    while query.isActive and not reporter.must_stop:
        reporter.report(**counts.figures(query))
        reporter.wait(TRIGGER_SECONDS)
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    figures = counts.figures(query)
    query.stop()
    reporter.report(**figures, totals={})


def main(arguments: list[str]) -> int:
    keep_reports_apart()
    try:
        run(*arguments)
    except Exception as error:  # boundary: the process
        reason = str(error).strip().partition("\n")[0]
        print(f"{FAILED}{type(error).__name__}: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
