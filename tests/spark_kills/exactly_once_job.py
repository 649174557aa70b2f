"""What is killed: a program that copies a topic on a cluster, by the sink with some guarantee.

Run in a process of its own: ``exactly_once_job.py JSON``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from trionet.spark import TrionetDataSource

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Where each micro-batch has ended is looked at when all is over.
    "spark.sql.streaming.minBatchesToRetain": "100000",
    # Not what is looked for here: many tasks die, and some several times.
    "spark.task.maxFailures": "20",
}
#: A second attempt of a task begins as soon as it takes longer than others of its stage.
_SPECULATION: Final[Mapping[str, str]] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "0ms",
    "spark.speculation.efficiency.enabled": "false",
}
#: The partitions of a shuffle are joined into as many as suit the executors.
_ADAPTIVE: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.streaming.stateless.enabled": "true",
}
#: A few rows take up to so long, at each attempt differently: either of the two may end first.
_SLOW_MS: Final = 800
_SLOW_ROW: Final = (
    "pmod(offset, 211) != 7 or length(reflect('java.lang.Thread', 'sleep', pmod("
    f"cast(reflect('java.lang.System', 'nanoTime') as bigint), {_SLOW_MS}L))) > 0"
)


def main(job: Mapping[str, Any]) -> None:
    """Copy until the query fails."""
    builder = SparkSession.builder.master(job["master"]).appName("exactly-once")
    settings = {**_SETTINGS, **job["settings"]}
    settings |= _SPECULATION if job["speculation"] else {}
    settings |= _ADAPTIVE if job["adaptive"] else {}
    settings["spark.sql.shuffle.partitions"] = str(max(1, job["shuffle"]))
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(TrionetDataSource)
    table = spark.readStream.format("trionet").options(**job["source"]).load()
    query = (
        _rows(table, job)
        .writeStream.format("trionet")
        .options(**job["sink"])
        .option("checkpointLocation", job["checkpoint"])
        .start()
    )
    query.awaitTermination()


def _rows(table: DataFrame, job: Mapping[str, Any]) -> DataFrame:
    if job["speculation"]:
        table = table.where(_SLOW_ROW)
    if job["adaptive"]:
        table = table.repartition("key")
    elif job["shuffle"]:
        # By key and with a fixed number: a replay gives each task the same rows.
        table = table.repartition(job["shuffle"], "key")
    return table.selectExpr(
        "key",
        "concat_ws(' ', partition, offset, cast(key as string), cast(value as string)) value",
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
