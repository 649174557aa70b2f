"""A program as people have it for Spark's Kafka connector; only ``format`` says which one it uses.

Run in a process of its own, with PySpark 4.2.0 on the path: ``migrating_job.py JSON``, where the
JSON has the jars and the parts of the job. ``kafka`` and ``trionet`` are the formats.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from trionet.spark import TrionetDataSource


def open_session(jars: str) -> SparkSession:
    """A session that knows both connectors."""
    builder = SparkSession.builder.master("local[2]").appName("migrating")
    for key, value in {
        "spark.jars": jars,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(TrionetDataSource)
    return session


def start_stream(spark: SparkSession, job: dict[str, Any]) -> StreamingQuery:
    """From topics to a topic; with ``distinct``, each value once, which takes a state store."""
    table = spark.readStream.format(job["format"]).options(**job["source"]).load()
    if job.get("distinct"):
        table = table.dropDuplicates(["value"])
    table = table.selectExpr("key", "concat(topic, ':', cast(value as string)) value")
    writer = table.writeStream.format(job["format"]).options(**job["sink"])
    writer = writer.option("checkpointLocation", job["checkpoint"])
    return writer.trigger(**job["trigger"]).start()


def run_batch(spark: SparkSession, job: dict[str, Any]) -> list[str]:
    """From a range of offsets to a topic; what was read, as JSON."""
    table = spark.read.format(job["format"]).options(**job["source"]).load()
    writer = table.select("key", "value", "partition").write.format(job["format"])
    writer.options(**job["sink"]).mode("append").save()
    return sorted(str(row) for row in table.toJSON().collect())


def main(arguments: dict[str, Any]) -> None:
    """Run the streams, those that never end side by side, and then the batches."""
    spark = open_session(arguments["jars"])
    for job in arguments["streams"]:
        query = start_stream(spark, job)
        if "availableNow" in job["trigger"]:
            query.awaitTermination()
    if not arguments["batches"]:
        spark.streams.awaitAnyTermination()
    for job in arguments["batches"]:
        print(json.dumps(run_batch(spark, job)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
