"""A standalone cluster of Spark on this machine: a master and workers, processes of their own.

PySpark's package has no ``sbin/start-master.sh``, and needs none: ``bin/spark-class`` starts the
same classes. Each worker has an address of its own (127.0.0.2 and on, which Linux has without any
set-up), since Spark runs a second attempt of a slow task on another host only.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import pyspark

from support.ports import free_ports
from support.process_list import Listed, descendants_of
from support.processes import SAME_TRIONET, running
from support.spark_python import spark_python

#: Of an executor's heap; Spark refuses less than 450.
EXECUTOR_MEGABYTES: Final = 512
#: For short-lived JVMs: what the second compiler and a concurrent collector gain comes too late.
SMALL_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_LOOK_SECONDS: Final = 0.1
#: Five minutes: however busy the machine is.
_LOOKS_MAX: Final = 3_000


@attrs.frozen
class SparkCluster:
    """A running cluster.

    Attributes:
        master: its URL, for ``master()`` and ``--master``.
        workers: the process ids of its workers, below which executors and their Python run.
    """

    master: str
    workers: tuple[int, ...]

    def settings(self, temporary: Path) -> dict[str, str]:
        """What a session needs to use it.

        Args:
            temporary: where its JVM leaves what it would not remove when it is killed.
        """
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{EXECUTOR_MEGABYTES}m",
            "spark.driver.extraJavaOptions": f"{SMALL_JVM} -Djava.io.tmpdir={temporary}",
            "spark.executor.memory": f"{EXECUTOR_MEGABYTES}m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }

    def executors(self) -> list[int]:
        """The process ids of the executors."""
        return [each.pid for each in self.processes() if _EXECUTOR in each.command]

    def processes(self) -> list[Listed]:
        """All that the workers have started."""
        return [each for worker in self.workers for each in descendants_of(worker)]


@contextlib.contextmanager
def spark_cluster(
    folder: Path, workers: int, *, has_trionet: bool = True
) -> Iterator[SparkCluster]:
    """A cluster whose workers have a core each, for the length of the block.

    Args:
        folder: an existing one, for logs and for what executors write.
        workers: how many.
        has_trionet: whether the Python of executors finds this trionet, whichever Python it is.
    """
    environment = _environment(folder, SAME_TRIONET if has_trionet else {})
    port, web_port, *worker_ports = free_ports(2 + workers)
    with contextlib.ExitStack() as stack:
        address = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web_port)]
        command = [_SPARK_CLASS, "org.apache.spark.deploy.master.Master", *address]
        log = folder / "master.log"
        master = stack.enter_context(running(command, env=environment, stderr=log))
        url = f"spark://127.0.0.1:{port}"
        pids = []
        for number, worker_port in enumerate(worker_ports):
            work = folder / f"worker-{number}"
            command = [_SPARK_CLASS, "org.apache.spark.deploy.worker.Worker", url]
            command += ["--host", f"127.0.0.{2 + number}", "--webui-port", str(worker_port)]
            command += ["--cores", "1", "--memory", f"{2 * EXECUTOR_MEGABYTES}m"]
            command += ["--work-dir", str(work)]
            log = folder / f"worker-{number}.log"
            process = running(command, env=environment, stderr=log, stop_seconds=30)
            pids.append(stack.enter_context(process).pid)
        _wait_for_workers(master, web_port, workers)
        yield SparkCluster(url, tuple(pids))


_SPARK_CLASS: Final = str(Path(pyspark.__file__).parent / "bin" / "spark-class")


def _environment(folder: Path, also: Mapping[str, str]) -> dict[str, str]:
    return {
        **spark_python(),
        "PYTHONPATH": "",
        **also,  # executors inherit it, and their Python from them
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_DAEMON_MEMORY": "256m",
        # Its REST server would have a fixed port, and nobody asks it.
        "SPARK_DAEMON_JAVA_OPTS": f"{SMALL_JVM} -Dspark.master.rest.enabled=false",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }


def _wait_for_workers(master: subprocess.Popen[bytes], web_port: int, count: int) -> None:
    """Until all workers have registered with the master, whose page says how many there are."""
    for _ in range(_LOOKS_MAX):
        with (
            # Until it is up, its page is not there, or says something else.
            contextlib.suppress(urllib.error.URLError, ConnectionError, json.JSONDecodeError),
            urllib.request.urlopen(f"http://127.0.0.1:{web_port}/json/", timeout=30) as page,
        ):
            if json.load(page)["aliveworkers"] == count:
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"the master has ended with {master.wait(_LOOK_SECONDS)}")
    raise RuntimeError(f"the master does not know {count} workers")
