"""What is killed: a program that copies a topic, and puts what each micro-batch read into files.

Run in a process of its own: ``copying_job.py JSON``. Two queries read the same topic: one writes
another topic by the sink of streams, one a folder for each number of a micro-batch, which takes the
place of what an earlier attempt has left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from trionet.spark import TrionetDataSource

_LOOK_SECONDS = 1
_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    # Where each micro-batch has ended is looked at when all is over.
    "spark.sql.streaming.minBatchesToRetain": "100000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def open_session(temporary: str) -> SparkSession:
    """A session in which a task is tried three times: a worker may die."""
    builder = SparkSession.builder.master("local[2,3]").appName("copying")
    java = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={temporary}"
    builder = builder.config("spark.driver.extraJavaOptions", java)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(TrionetDataSource)
    return session


def main(job: Mapping[str, Any]) -> None:
    """Run both queries until one fails."""
    spark = open_session(job["temporary"])
    table = spark.readStream.format("trionet").options(**job["source"]).load()
    rows = table.selectExpr(
        "key",
        "concat_ws(' ', partition, offset, cast(key as string), cast(value as string)) value",
    )

    def put(batch: DataFrame, number: int) -> None:
        batch.select("value").write.mode("overwrite").text(f"{job['files']}/batch={number}")

    copied = rows.writeStream.format("trionet").options(**job["sink"])
    query = copied.option("checkpointLocation", job["copied"]).start()
    # Spark waits ten seconds for each Python process: not all are to start at the same time.
    while query.lastProgress is None and not query.awaitTermination(_LOOK_SECONDS):
        pass
    rows.writeStream.foreachBatch(put).option("checkpointLocation", job["filed"]).start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
