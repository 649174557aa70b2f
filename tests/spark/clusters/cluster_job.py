"""A job on a cluster: for each line of its input it reads a topic, and says what came of it.

Run in a process of its own: ``cluster_job.py JSON``. It prints a line of JSON for each line that it
gets; the first one, when it is ready, is empty.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def main(job: Mapping[str, Any]) -> None:
    """Work as long as there are lines."""
    builder = SparkSession.builder.master(job["master"]).appName("cluster")
    for key, value in job["settings"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if job["registers"]:
        from trionet.spark import TrionetDataSource

        spark.dataSource.register(TrionetDataSource)
    print("{}", flush=True)
    for _ in sys.stdin:
        table = spark.read.format("trionet").options(**job["source"]).load().where(job["where"])
        print(json.dumps(_copied(table, job) if job["sink"] else _read(table)), flush=True)


def _copied(table: DataFrame, job: Mapping[str, Any]) -> dict[str, Any]:
    rows = table.select("key", "value").write.format("trionet").options(**job["sink"])
    rows.mode("append").save()
    return {}


def _read(table: DataFrame) -> dict[str, Any]:
    """How many rows there are, how many different ones, and where the tasks' Python is."""
    counts = table.selectExpr("count(*)", "count(distinct partition, offset)")
    [[rows, different]] = counts.collect()
    prefixes = table.select("partition").mapInArrow(_prefixes, "prefix string").distinct()
    return {
        "rows": rows,
        "different": different,
        "prefixes": [each[0] for each in prefixes.collect()],
    }


def _prefixes(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow

    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"prefix": [sys.prefix]})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
