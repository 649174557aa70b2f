"""Where a password in an option is seen, and where it is not."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from trionet.spark import TrionetDataSource
from trionet.testing._threaded import ThreadedBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "k1-swordfish"
#: Settings that are looked at only once a connection is made: the broker of the tests has no SASL.
OPTIONS = {
    "kafka.security.protocol": "PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="me" password="{SECRET}";'
    ),
}


def test_a_plan_does_not_have_the_options_of_a_source(
    spark: SparkSession, kafka: ThreadedBroker, topic: str
) -> None:
    kafka.create_topic(topic)
    spark.dataSource.register(TrionetDataSource)
    options = {**OPTIONS, "kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic}
    table = spark.read.format("trionet").options(**options).load()

    plans = io.StringIO()
    with contextlib.redirect_stdout(plans):
        for mode in ("extended", "formatted", "cost", "codegen"):
            table.groupBy("topic").count().explain(mode)

    assert "trionet" in plans.getvalue()
    assert SECRET not in plans.getvalue()


def test_the_progress_of_a_query_and_its_plan_do_not_have_options(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    kafka.seed(topic, ["one"])
    kafka.create_topic(f"{topic}-copy")
    spark.dataSource.register(TrionetDataSource)
    options = {**OPTIONS, "kafka.bootstrap.servers": kafka.bootstrap_servers}
    stream = spark.readStream.format("trionet").options(**options, subscribe=topic)
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("trionet")
    query = (
        writer.options(**options, topic=f"{topic}-copy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        query.explain(extended=True)
    told = "".join(map(str, query.recentProgress))

    assert "trionet" in plan.getvalue()
    assert SECRET not in plan.getvalue()
    assert "endOffset" in told
    assert SECRET not in told
