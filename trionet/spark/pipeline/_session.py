"""Opens a Spark session for the duration of a command, and explains its failures.

The module imports pyspark only when a session is opened: :func:`check_master` is called earlier, so
that an invalid master is reported immediately.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigError, TrionetError
from .._worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_DEFAULTS: Final = {
    # Errors are reported once, by this program.
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_MASTERS: Final = ("local", "spark://", "k8s://")
#: How long a JVM may take to exit after its sockets are closed.
_REAP_SECONDS: Final = 1.0
_SHUFFLE: Final = "spark.sql.shuffle.partitions"


class Stop:
    """A request to stop.

    Attributes:
        is_requested: whether a signal has requested it.
    """

    def __init__(self) -> None:
        self.is_requested = False

    @classmethod
    @contextmanager
    def on_signals(cls) -> Iterator[Stop]:
        """Take SIGINT and SIGTERM for a request to stop, for the duration of a block.

        Neither interrupts what runs: Spark cannot be interrupted at any point of its start.
        """
        stop = cls()
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, stop._request) for number in numbers}
        try:
            yield stop
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.is_requested = True


class SparkError(TrionetError):
    """Raised when Spark cannot be started, or fails."""


@contextmanager
def open_session(
    name: str, master: str, settings: Mapping[str, str], *, keeps_handlers: bool = False
) -> Iterator[SparkSession]:
    """Open a Spark session for the duration of a block.

    Args:
        name: the name of the Spark application.
        master: the Spark master.
        settings: the configuration of Spark.
        keeps_handlers: whether the process keeps its handler of SIGINT. PySpark replaces it by one
            that raises KeyboardInterrupt wherever the main thread is, also between a request to the
            JVM and its response.

    Raises:
        ConfigError: the master is invalid.
        SparkError: Spark cannot be started, or failed during the block.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    check_master(master)
    try:
        if keeps_handlers:
            # PySpark installs its handler only if it is started by the main thread.
            with ThreadPoolExecutor(1) as threads:
                session = threads.submit(_session, name, master, settings).result()
        else:
            session = _session(name, master, settings)
        try:
            yield session
        finally:
            session.stop()
    except (PySparkException, Py4JError, ConnectionError) as error:
        is_java_well = isinstance(error, (PySparkException, Py4JJavaError))
        if how := _end_of_jvm(0.0 if is_java_well else _REAP_SECONDS):
            raise SparkError(f"Spark's JVM {how}") from error
        if isinstance(error, ConnectionError):
            raise  # not Spark's
        raise SparkError(f"Spark: {reason(error)}") from error


def _end_of_jvm(seconds: float) -> str | None:
    """Describe how this process's JVM ended; None if it is running or was never started.

    The original error says only that the connection to the JVM was refused or closed.

    Args:
        seconds: how long to wait for the JVM to exit.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public access to its JVM
    jvm: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if jvm is None:
        return None
    try:
        status = jvm.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    if status >= 0:
        return f"exited with status {status}; see its output above, if any"
    name = signal.Signals(-status).name
    if -status != signal.SIGKILL:
        return f"was killed by {name}; if it crashed, see hs_err_pid{jvm.pid}.log"
    return (
        f"was killed by {name}, by a user or because the machine ran out of memory (see dmesg); a"
        " restarted job continues where it left off"
    )


def check_master(master: str) -> None:
    """Check the master before Spark is started.

    Raises:
        ConfigError: Spark does not support the master.
    """
    if master != "yarn" and not master.startswith(_MASTERS):
        raise ConfigError(
            f"--master {master}: not a Spark master; use local[*], spark://HOST:PORT, k8s://URL or"
            " yarn"
        )


def _session(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    is_local = master.startswith("local")
    # Use this environment's Python for the workers, unless it is set, as for a cluster, whose
    # workers may have no more at the same path than a Python.
    os.environ.setdefault("PYSPARK_PYTHON", worker_python() if is_local else sys.executable)
    if is_local:
        # Without, Spark warns on stderr if the host name resolves to a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    merged = {**_DEFAULTS, **(_LOCAL if is_local else {}), **settings}
    builder: Any = SparkSession.builder.master(master).appName(name)
    for key, text in merged.items():
        builder = builder.config(key, text)
    session: SparkSession = builder.getOrCreate()
    if _SHUFFLE not in settings:
        # Results are small: Spark's default of 200 shuffle tasks would take longer than the rest.
        session.conf.set(_SHUFFLE, str(session.sparkContext.defaultParallelism))
    return session


def reason(error: Exception) -> str:
    """Return the reason for a Spark failure as one line: the message of the root cause in Java."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else str(cause.getMessage() or cause.toString())
    return next(iter(text.strip().splitlines()), type(error).__name__)
