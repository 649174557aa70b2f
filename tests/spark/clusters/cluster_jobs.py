"""Jobs on a standalone cluster, in processes of their own: `spark.clusters.cluster_job`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from support.java import NO_JAVA, has_java
from support.processes import SAME_TRIONET, running
from support.spark_cluster import SparkCluster
from support.spark_python import spark_python
from trionet.testing._threaded import ThreadedBroker

_PROGRAM: Final = Path(__file__).with_name("cluster_job.py")
#: Each starts JVMs by the half-dozen.
MARKS: Final = (
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_java(), reason=NO_JAVA),
)
EVERY_ROW: Final = "true"
_LOOK_SECONDS: Final = 0.05


def slow(condition: str, milliseconds: int) -> str:
    """A condition that every row meets, some of them later."""
    sleep = f"length(reflect('java.lang.Thread', 'sleep', {milliseconds}L)) > 0"
    return f"not ({condition}) or {sleep}"


@attrs.frozen
class ClusterJob:
    """A job that is ready for work."""

    process: subprocess.Popen[bytes]

    def begin(self) -> None:
        """Have it work once."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def wait_until(self, reached: Callable[[], object]) -> None:
        """The test's own limit ends what never is."""
        while not reached():
            with contextlib.suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the job has ended with {self.process.wait(_LOOK_SECONDS)}")

    def result(self) -> dict[str, Any]:
        """What came of it; waits for the end of the work."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the job has ended with {self.process.wait()}"
        found: dict[str, Any] = json.loads(line)
        return found


@contextlib.contextmanager
def cluster_job(
    cluster: SparkCluster,
    broker: ThreadedBroker,
    source: str,
    folder: Path,
    *,
    sink: str | None = None,
    where: str = EVERY_ROW,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    registers: bool = True,
) -> Iterator[ClusterJob]:
    """A job for the length of the block.

    Args:
        cluster: where it runs.
        broker: whose topics it reads and writes.
        source: the topic that is read, from its begin to its end.
        folder: an existing one, for what it leaves behind; the working directory of the driver.
        sink: the topic that is written; None counts the rows.
        where: a condition on the rows.
        settings: of Spark.
        environment: of the driver, beside what every driver of a test has.
        registers: whether the job registers the data source.
    """
    client = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    job = {
        "master": cluster.master,
        "settings": {**cluster.settings(folder), **(settings or {})},
        "source": {**client, "subscribe": source},
        "sink": {**client, "topic": sink} if sink is not None else None,
        "where": where,
        "registers": registers,
    }
    command = [sys.executable, str(_PROGRAM), json.dumps(job)]
    variables = {**os.environ, **spark_python(), **SAME_TRIONET, **(environment or {})}
    log = folder / "job.log"
    with running(command, env=variables, stderr=log, stop_seconds=60, cwd=folder) as process:
        ready = ClusterJob(process)
        ready.result()
        yield ready
