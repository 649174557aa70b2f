"""What a second worker brings: a standalone Spark cluster of one worker and of two, one core each.

Master, workers and executors are those of `local-cluster[1,1,...]` and `local-cluster[2,1,...]`,
processes of this machine. They read a request log from topics of 1, 2 and 4 partitions: "source"
takes all columns and drops them, "fold" is the first step of `trionet pipeline run`, which makes
sums and histograms of the records.

Efficiency is the rate divided by the number of workers times the rate of one worker. Everything
shares the cores of one machine: "cores busy" says how many of them had something to do, and where
that is as many as there are, what the machine has limits the rate. What a row costs each kind of
process, in µs of a core, holds on any number of machines.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import trio

import trionet
from bench.measured import Figure, Measured
from bench.options import Options
from bench.spark_cluster import ROLES, WORKS, Outcome, Task
from support.java import NO_JAVA, has_java
from support.processes import SAME_TRIONET
from support.trionet_process import trionet_broker_process
from trionet.client.admin import NewTopic
from trionet.protocol.request_log import LoggedRequest, Origin, encode

RUNS = 1
SECONDS = 4.0
ROWS_PER_SECOND = 400_000
WORKERS = (1, 2)
PARTITIONS = (1, 2, 4)
#: Requests of so many clients in the last minutes, again and again.
DIFFERENT_ROWS, CLIENTS, MINUTES = 20_000, 40, 3
_SENT_AT_ONCE = 50_000
_SESSION_SECONDS_MAX = 1800


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    values = logged_requests()
    size = sum(map(len, values)) / len(values)
    measured = Measured(
        f"rows of a request log, {size:.0f} bytes each",
        (
            Figure("per_s", "rows/s"),
            Figure("efficiency", "efficiency", "{:.2f}".format),
            Figure("cores", "cores busy", "{:.1f}".format),
            *(Figure(role, f"{role}, µs/row", "{:.2f}".format) for role in ROLES),
        ),
    )
    if not has_java():
        measured.skipped["Spark"] = NO_JAVA
        return measured
    rows = int(ROWS_PER_SECOND * options.seconds)
    with trionet_broker_process() as (bootstrap, process):
        topics = {f"log-{count}": count for count in PARTITIONS}
        works = [work for work in WORKS if options.wants_case(work)]
        trio.run(fill, bootstrap, topics, values, rows)
        for _ in range(options.runs):
            alone: dict[str, float] = {}
            for workers in WORKERS:
                task = Task(bootstrap, process.pid, workers, topics, rows, works)
                for outcome in _session(task):
                    case = f"{outcome.work}, {_counted(outcome.partitions, 'partition')}"
                    figures = outcome.figures(rows)
                    alone.setdefault(case, figures["per_s"])
                    figures["efficiency"] = figures["per_s"] / workers / alone[case]
                    measured.add(case, _counted(workers, "worker"), figures)
    return measured


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def logged_requests() -> Sequence[bytes]:
    """Values as a busy broker logs them: some APIs, many clients, all times."""
    rng = random.Random(1)
    now_us = int(time.time() * 1e6)
    origins = [
        Origin(
            node_id=1,
            processor=number % 3,
            listener="PLAINTEXT",
            client_id=f"service-{number}",
            software_name="librdkafka",
            software_version="2.6.1",
            principal="User:ANONYMOUS",
        )
        for number in range(CLIENTS)
    ]
    found = []
    for _ in range(DIFFERENT_ROWS):
        queue, local, send = (int(rng.lognormvariate(3.5, 1)) for _ in range(3))
        logged = LoggedRequest(
            origin=rng.choice(origins),
            api_key=rng.choice((0, 0, 0, 1, 1, 1, 3, 9)),
            api_version=9,
            completed_at_us=now_us - rng.randrange(MINUTES * 60_000_000),
            request_bytes=rng.randrange(80, 20_000),
            response_bytes=rng.randrange(40, 20_000),
            request_queue_us=queue,
            local_us=local,
            remote_us=0,
            throttle_us=0,
            response_queue_us=5,
            response_send_us=send,
            total_us=queue + local + send + 5,
        )
        found.append(encode(logged))
    return found


async def fill(bootstrap: str, topics: dict[str, int], values: Sequence[bytes], rows: int) -> None:
    """Make topics of so many rows each, the same in every partition."""
    async with (
        trionet.open_admin(bootstrap) as admin,
        trionet.open_producer(bootstrap, {"batch.size": "131072"}) as producer,
    ):
        for name, partitions in topics.items():
            (await admin.create_topics([NewTopic(name, partitions)])).checked()
            for partition in range(partitions):
                share = rows // partitions + (partition < rows % partitions)
                for some in _repeated(values, share):
                    await producer.send_batch(name, some, partition=partition)


def _repeated(values: Sequence[bytes], count: int) -> Iterator[Sequence[bytes]]:
    many = [*values] * (_SENT_AT_ONCE // len(values) + 1)
    while count:
        some = many[: min(count, _SENT_AT_ONCE)]
        count -= len(some)
        yield some


def _session(task: Task) -> list[Outcome]:
    """What a cluster of its own says.

    Raises:
        RuntimeError: Spark has failed.
    """
    path = [SAME_TRIONET["PYTHONPATH"], *filter(None, [os.environ.get("PYTHONPATH")])]
    with ExitStack() as stack:
        session = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "bench.spark_cluster", task.as_text()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(session.kill)
        output, errors = session.communicate(timeout=_SESSION_SECONDS_MAX)
    if session.returncode:
        raise RuntimeError(f"Spark has failed: {errors.strip()[-4000:]}")
    return [Outcome.of_text(line) for line in output.splitlines() if line.startswith("{")]
