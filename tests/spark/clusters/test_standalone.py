"""What Spark does on a cluster that it does not do in one process."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark.clusters.cluster_jobs import MARKS, cluster_job, slow
from support.spark_cluster import SparkCluster, spark_cluster
from trionet.testing._threaded import ThreadedBroker

pytestmark = [*MARKS]

WORKERS = 4
PARTITIONS = 4
ROWS = 2_000
#: Spark hands rows on to Python by some 64 KB: a task has sent some long before its last row.
VALUE_CHARS = 1_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Four workers, as many hosts to Spark."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), WORKERS) as found:
        yield found


@pytest.fixture
def source(kafka: ThreadedBroker, topic: str) -> str:
    """A topic with numbers from 1 on, by turns in its partitions."""
    seed(kafka, topic)
    return topic


def seed(kafka: ThreadedBroker, topic: str) -> None:
    kafka.create_topic(topic, PARTITIONS)
    kafka.seed(
        topic,
        [
            {"key": f"{n}", "value": f"{n:>{VALUE_CHARS}}", "partition": n % PARTITIONS}
            for n in range(ROWS)
        ],
    )


def numbers_in(kafka: ThreadedBroker, topic: str) -> list[int]:
    return sorted(int((each.value or b"").decode()) for each in kafka.records(topic))


def has_tasks(cluster: SparkCluster) -> bool:
    """Whether every worker has a Python process at work."""
    return WORKERS <= sum("pyspark.daemon" in each.command for each in cluster.processes())


def test_a_batch_has_every_row_once_although_an_executor_is_killed(
    cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    some_take_long = slow("pmod(offset, 100) = 50", 1_000)
    with cluster_job(cluster, kafka, source, tmp_path, where=some_take_long) as job:
        job.begin()
        job.wait_until(lambda: has_tasks(cluster))
        os.kill(random.Random(1).choice(cluster.executors()), signal.SIGKILL)
        found = job.result()

    assert ROWS == found["rows"] == found["different"]


def test_a_sink_has_no_row_less_although_an_executor_is_killed(
    cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    kafka.create_topic(f"{source}-copy", 2)
    some_take_long = slow("pmod(offset, 100) = 50", 1_000)
    with cluster_job(
        cluster, kafka, source, tmp_path, sink=f"{source}-copy", where=some_take_long
    ) as job:
        job.begin()
        job.wait_until(lambda: has_tasks(cluster))
        os.kill(random.Random(2).choice(cluster.executors()), signal.SIGKILL)
        job.result()

    assert [*range(ROWS)] == sorted(set(numbers_in(kafka, f"{source}-copy")))


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "0ms",
    "spark.speculation.efficiency.enabled": "false",
    # A task hands its rows on before its last one, which takes long.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
}
#: The last row of one partition takes longer than a second attempt needs to come to it.
LATE_MS = 20_000
LATE = f"partition = 1 and offset = {ROWS // PARTITIONS - 1}"


def test_speculation_does_not_change_what_is_read(
    cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    with cluster_job(
        cluster, kafka, source, tmp_path, where=slow(LATE, LATE_MS), settings=SPECULATION
    ) as job:
        job.begin()
        found = job.result()

    assert ROWS == found["rows"] == found["different"]


def test_speculation_doubles_rows_of_the_sink_that_writes_at_least_once(
    cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    """Spark stops the attempt that is second; what it has sent until then stays."""
    kafka.create_topic(f"{source}-copy", 2)
    with cluster_job(
        cluster,
        kafka,
        source,
        tmp_path,
        sink=f"{source}-copy",
        where=slow(LATE, LATE_MS),
        settings=SPECULATION,
    ) as job:
        job.begin()
        job.result()
    written = numbers_in(kafka, f"{source}-copy")

    assert [*range(ROWS)] == sorted(set(written))
    doubled = {number for number in set(written) if written.count(number) > 1}
    assert doubled
    assert {1} == {number % PARTITIONS for number in doubled}


def test_executors_that_come_and_go_lose_and_double_nothing(
    cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    """Dynamic allocation: all executors go while the job is idle, and come back for its next."""
    kafka.create_topic(f"{source}-copy", 2)
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    }
    with cluster_job(
        cluster, kafka, source, tmp_path, sink=f"{source}-copy", settings=settings
    ) as job:
        for _ in range(2):
            job.begin()
            job.result()
            job.wait_until(lambda: not cluster.executors())

    assert sorted([*range(ROWS)] * 2) == numbers_in(kafka, f"{source}-copy")
