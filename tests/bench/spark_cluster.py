"""A Spark cluster that does one task, see `bench.spark_scale`: a line for each outcome."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import pyspark
from pyspark.sql import DataFrame, SparkSession

from support.process_list import children_of
from trionet.spark import TrionetDataSource
from trionet.spark.pipeline._fold import folded
from trionet.spark.pipeline._partials import COLUMNS, INTAKE

WARM_UP_ACTIONS = 2
TIMED_ACTIONS = 5
WORKER_MEGABYTES = 1024
#: The kinds of processes: the broker, the JVMs of executors, the Python workers below them, and
#: everything else of Spark's, which is the driver with master and workers inside it.
ROLES = ("broker", "executor", "Python", "driver")


@attrs.frozen
class Task:
    """What to measure.

    Attributes:
        bootstrap: of the broker.
        broker_pid: its process.
        workers: how many, with a core each.
        topics: how many partitions each has.
        rows: how many are in each.
        works: of `WORKS`.
    """

    bootstrap: str
    broker_pid: int
    workers: int
    topics: Mapping[str, int]
    rows: int
    works: Sequence[str]

    def as_text(self) -> str:
        """For a command line."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Task:
        """The inverse of `as_text`."""
        return cls(**json.loads(text))


@attrs.frozen
class Outcome:
    """What one work has taken on one topic.

    Attributes:
        work: of `WORKS`.
        partitions: of the topic.
        seconds: of each action.
        cpu: by role, the seconds of a core that all actions have taken together.
    """

    work: str
    partitions: int
    seconds: Sequence[float]
    cpu: Mapping[str, float]

    def as_text(self) -> str:
        """One line."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Outcome:
        """The inverse of `as_text`."""
        return cls(**json.loads(text))

    def figures(self, rows: int) -> dict[str, float]:
        """Rates of the median action, costs of all."""
        costs = {role: self.cpu[role] / len(self.seconds) / rows * 1e6 for role in ROLES}
        cores = sum(self.cpu.values()) / sum(self.seconds)
        return {"per_s": rows / statistics.median(self.seconds), "cores": cores, **costs}


@attrs.frozen
class Work:
    """What is done with a topic.

    Attributes:
        rows: what comes out.
        count: how many rows of the topic that is made of.
    """

    rows: Callable[[DataFrame], DataFrame]
    count: Callable[[DataFrame], int]


def _folded(table: DataFrame) -> DataFrame:
    """The sums and histograms of `trionet pipeline run`, before they are put together."""
    records = table.selectExpr("value", "partition", "offset", "current_timestamp() as read_at")
    return records.mapInArrow(folded, COLUMNS)


def _fold_count(table: DataFrame) -> int:
    intake = _folded(table).where(f"kind = {INTAKE}")
    [[requests]] = intake.selectExpr("sum(get(sums, 0))").collect()
    return int(requests)


WORKS: Mapping[str, Work] = {
    "source": Work(lambda table: table, DataFrame.count),
    "fold": Work(_folded, _fold_count),
}


def main(task: Task) -> None:
    """Do it, and print the outcomes."""
    with tempfile.TemporaryDirectory(prefix="trionet-bench-") as folder:
        spark = session(task.workers, Path(folder))
        wait_for_executors(spark, task.workers)
        for name, partitions in task.topics.items():
            reader = spark.read.format("trionet").option("subscribe", name)
            table = reader.option("kafka.bootstrap.servers", task.bootstrap).load()
            for key in task.works:
                work = WORKS[key]
                if (count := work.count(table)) != task.rows:
                    raise RuntimeError(f"{count} rows of {name}, not {task.rows}, in {key}")
                outcome = Outcome(key, partitions, *timed(work.rows(table), task))
                print(outcome.as_text(), flush=True)
        spark.stop()


def session(workers: int, folder: Path) -> SparkSession:
    """A cluster whose files are all in the folder."""
    home = folder / "home"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    # Workers write below it, and it is the installed package's own folder otherwise.
    os.environ["SPARK_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": f"{WORKER_MEGABYTES}m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.local.dir": folder / "local",
        "spark.sql.execution.arrow.maxRecordsPerBatch": 50_000,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,{WORKER_MEGABYTES}]")
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TrionetDataSource)
    return spark


def wait_for_executors(spark: SparkSession, count: int) -> None:
    """Until each worker has its executor: a cluster begins to work when the first one is there."""
    backend = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
    while backend().size() < count + 1:  # the driver is one of them
        time.sleep(0.1)


def timed(table: DataFrame, task: Task) -> tuple[list[float], dict[str, float]]:
    """The seconds of each action, and those of a core that all of them have taken, by role."""
    seconds = []
    before: Mapping[int, tuple[str, float]] = {}
    for number in range(WARM_UP_ACTIONS + TIMED_ACTIONS):
        if number == WARM_UP_ACTIONS:
            before = cpu_seconds(task.broker_pid)
        began = time.perf_counter()
        table.write.format("noop").mode("overwrite").save()
        if number >= WARM_UP_ACTIONS:
            seconds.append(time.perf_counter() - began)
    taken = dict.fromkeys(ROLES, 0.0)
    for pid, (role, until_now) in cpu_seconds(task.broker_pid).items():
        taken[role] += until_now - before.get(pid, (role, 0.0))[1]
    return seconds, taken


def cpu_seconds(broker_pid: int) -> Mapping[int, tuple[str, float]]:
    """By process: of which kind it is, and what it has taken since it started."""
    found = {broker_pid: ("broker", _cpu_seconds(broker_pid))}

    def add(pid: int, role: str) -> None:
        found[pid] = role, _cpu_seconds(pid)
        for child, command in children_of(pid).items():
            is_executor = "CoarseGrainedExecutorBackend" in command
            below = "Python" if role in {"executor", "Python"} else role
            add(child, "executor" if is_executor else below)

    add(os.getpid(), "driver")
    return found


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0  # the `ps` that has reported it
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(Task.of_text(sys.argv[1]))
