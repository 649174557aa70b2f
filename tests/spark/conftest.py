"""Spark, for the tests that run in it: one session, one broker, a topic for each test.

Starting them takes some ten seconds, so that all tests share them. The broker has a thread of this
process; what Spark reads with are processes of their own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trionet
from spark.brokers import SETTINGS
from support.java import NO_JAVA, has_java
from support.spark_python import spark_python
from trionet.testing._threaded import ThreadedBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_SPARK = "PySpark cannot be imported: pip install 'trionet[spark]'"

_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # Queries of a few rows: compiling each to Java bytecode takes longer than interpreting it.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores, in which a task is tried three times."""
    if not has_java():
        pytest.skip(NO_JAVA)
    pytest.importorskip("pyspark", reason=_NO_SPARK)
    from pyspark.sql import SparkSession

    os.environ.update(spark_python())
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.master("local[2,3]").appName("trionet")
    folder = tmp_path_factory.mktemp("spark")
    for key, value in {
        **_SETTINGS,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    gateway = session.sparkContext._gateway
    assert gateway is not None
    session.stop()
    gateway.shutdown()


@pytest.fixture(scope="session")
def kafka() -> Iterator[ThreadedBroker]:
    """A broker that all tests share; each has topics of its own."""
    with trionet.testing.broker(SETTINGS) as broker:
        yield broker


@pytest.fixture
def topic(kafka: ThreadedBroker, request: pytest.FixtureRequest) -> str:
    """The name of a topic of this test's own, which is not made yet."""
    return f"t{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A folder for a query's checkpoint."""
    return str(tmp_path / "checkpoint")
