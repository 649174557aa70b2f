"""Topics as tables and streams of Spark, beside Spark's own Kafka connector.

Both sides take turns in one session of PySpark 4.2.0, which is the one that the connector is
published for: local[2], a topic of one partition, uncompressed batches of 16 KB, where a case says
no other. "noop" reads all columns and drops them, "counted" asks for
`count(*), sum(length(value))`. Headers are two for each record; keys are a thousand.
Spark and its Python workers are connected by TCP, or by Unix sockets.
A session is warm before it is measured; the figures are of the median action, and of the best.

What a query takes at least is that of a synthetic source in Python, which makes one row. The first
query of a session has a process of its own; micro-batches have one row each, and are dropped or
"copied": written to the end of the same topic, by the plain sink or exactly once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import attrs

from bench.brokers import Broker
from bench.clients.process import cases
from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.spark_task import CONNECTOR, EXACTLY_ONCE, OURS, SYNTHETIC, Outcome, Task
from bench.topics import topic
from support.cache import Unavailable, cache_folder
from support.kafka_jars import java
from support.processes import SAME_TRIONET
from support.spark_jars import connector_jars, pyspark_folder
from support.spark_python import spark_python

RUNS = 1
SECONDS = 2.0
MICRO_BATCHES = 25
BATCH_BYTES = 16_384
_SESSION_SECONDS_MAX = 900


@attrs.frozen
class Case:
    """One thing that is measured.

    Attributes:
        work: the function of `bench.spark_session`.
        size: bytes of a value.
        rows: of a topic, for each second that an action is to take.
        sides: who takes part.
        is_alone: each side has a session of its own.
        partitions: of the topic.
        is_keyed, has_headers, codec, batch_bytes, has_unix_sockets: see `Task`.
    """

    work: str
    size: int
    rows: int
    sides: Sequence[str] = (OURS, CONNECTOR)
    is_alone: bool = False
    partitions: int = 1
    is_keyed: bool = False
    has_headers: bool = False
    codec: str = "none"
    batch_bytes: int = 0
    has_unix_sockets: bool = False

    @property
    def is_filled_by_spark(self) -> bool:
        """The program that fills topics has neither headers nor codecs, and fills one partition."""
        is_other = self.has_headers or self.codec != "none" or self.partitions > 1
        return self.work == "read" and is_other


CASES = {
    "read 100 B": Case("read", 100, 1_500_000),
    "read 100 B, Unix sockets": Case("read", 100, 1_500_000, has_unix_sockets=True),
    "read 1 KB": Case("read", 1024, 300_000),
    "read 100 B, headers": Case("read", 100, 500_000, has_headers=True),
    "read 100 B, batches of 1 MB, 2 partitions": Case(
        "read", 100, 5_000_000, partitions=2, batch_bytes=1_000_000
    ),
    "read 100 B, gzip": Case("read", 100, 500_000, codec="gzip"),
    "write 100 B": Case("write", 100, 400_000),
    "write 100 B, keyed, 4 partitions": Case("write", 100, 400_000, partitions=4, is_keyed=True),
    "write 100 B, headers": Case("write", 100, 200_000, has_headers=True),
    "write 100 B, gzip": Case("write", 100, 200_000, codec="gzip"),
    "micro-batch": Case("micro_batches", 100, 0, (OURS, CONNECTOR, SYNTHETIC)),
    "micro-batch, Unix sockets": Case(
        "micro_batches", 100, 0, (OURS, CONNECTOR, SYNTHETIC), has_unix_sockets=True
    ),
    "micro-batch, copied": Case("copied_micro_batches", 100, 0, (OURS, EXACTLY_ONCE, CONNECTOR)),
    "first query": Case("first_query", 100, 0, (OURS, CONNECTOR, SYNTHETIC), is_alone=True),
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "rows, micro-batches or queries of Spark",
        (
            Figure("per_s", "per second", "{:,.1f}".format),
            Figure("best", "at best", "{:,.1f}".format),
            Figure("ms", "ms of an action"),
        ),
    )
    try:
        java()
        connector_jars(), pyspark_folder()
    except Unavailable as reason:
        measured.skipped["Spark"] = str(reason)
        return measured
    for broker, name, full_name in cases(CASES, options, measured):
        case = CASES[name]
        sides = [side for side in case.sides if options.wants(side)]
        with _task(broker, case, sides, options) as task:
            if case.is_alone:  # once for the byte code, which pip makes where it installs
                list(_outcomes(task, is_alone=True))
            for _ in range(options.runs):
                for outcome in _outcomes(task, is_alone=case.is_alone):
                    ask = f", {outcome.ask}" if outcome.ask else ""
                    measured.add(f"{full_name}{ask}", outcome.side, outcome.figures())
    return measured


@contextmanager
def _task(broker: Broker, case: Case, sides: Sequence[str], options: Options) -> Iterator[Task]:
    """What a session does, with a topic that is filled for it, or one for each side to fill."""
    rows = int(case.rows * options.seconds) or MICRO_BATCHES
    name = f"spark-{case.work}-{case.size}".replace("_", "-")
    with ExitStack() as stack:
        topics = dict.fromkeys(sides, name)
        if case.work == "write":
            topics = {side: f"{name}-{number}" for number, side in enumerate(sides)}
        for each in sorted(set(topics.values())):
            stack.enter_context(topic(broker.bootstrap, each, case.partitions))
        if case.work != "write" and not case.is_filled_by_spark:
            settings = {"acks": "all", "linger_ms": "5", "batch_size": str(BATCH_BYTES)}
            librdkafka("produce", broker.bootstrap, name, case.size, rows, **settings)
        task = Task(
            case.work,
            broker.bootstrap,
            topics,
            rows,
            case.size,
            case.is_keyed,
            case.has_headers,
            case.codec,
            case.batch_bytes,
            case.has_unix_sockets,
        )
        if case.is_filled_by_spark:
            _session(attrs.evolve(task, work="fill"))
        yield task


def _outcomes(task: Task, *, is_alone: bool) -> Iterator[Outcome]:
    if not is_alone:
        yield from _session(task)
        return
    for side, name in task.topics.items():
        yield from _session(attrs.evolve(task, topics={side: name}))


def _session(task: Task) -> list[Outcome]:
    """What a session of Spark says in a process of its own.

    Raises:
        RuntimeError: Spark has failed, or counts other rows.
    """
    pyspark = pyspark_folder()
    path = [str(pyspark), SAME_TRIONET["PYTHONPATH"], os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark_session", task.as_text()],
        env={
            **os.environ,
            "PYTHONPYCACHEPREFIX": str(cache_folder() / "bytecode"),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            **spark_python(),
            "SPARK_HOME": str(pyspark / "pyspark"),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=_SESSION_SECONDS_MAX,
    )
    if done.returncode:
        raise RuntimeError(f"Spark has failed: {done.stderr.strip()[-4000:]}")
    return [Outcome.of_text(line) for line in done.stdout.splitlines() if line.startswith("{")]
