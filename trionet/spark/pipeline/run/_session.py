"""A session of Spark for the length of a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ....errors import ConfigError, TrionetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS: Final = {
    # What goes wrong is told once, by this program.
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_MASTERS: Final = ("local", "spark://", "k8s://")
#: How long a JVM whose sockets are closed may take to be gone.
_REAP_SECONDS: Final = 1.0
_SHUFFLE: Final = "spark.sql.shuffle.partitions"


class SparkError(TrionetError):
    """Spark has not started, or has failed; the message says why."""


@contextmanager
def open_session(name: str, master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session until the end of the block.

    Args:
        name: what Spark calls it.
        master: the Spark that does the work.
        settings: of Spark.

    Raises:
        ConfigError: there is no such master.
        SparkError: Spark does not start, or fails in the block.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    check_master(master)
    try:
        session = _session(name, master, settings)
        try:
            yield session
        finally:
            session.stop()
    except (PySparkException, Py4JError, ConnectionError) as error:
        is_java_well = isinstance(error, (PySparkException, Py4JJavaError))
        if how := _end_of_jvm(0.0 if is_java_well else _REAP_SECONDS):
            raise SparkError(f"the JVM of Spark {how}") from error
        if isinstance(error, ConnectionError):
            raise  # of something else than Spark
        raise SparkError(f"Spark: {reason(error)}") from error


def _end_of_jvm(seconds: float) -> str | None:
    """How the JVM that this process has started has ended; None if it goes on, or there is none.

    Whoever asks it for something afterwards hears only that nobody listens.

    Args:
        seconds: how long it may take to be gone.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 - where PySpark keeps what it has started
    jvm: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if jvm is None:
        return None
    try:
        status = jvm.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    if status >= 0:
        return f"has ended with exit status {status}; what it said stands above, if anything"
    name = signal.Signals(-status).name
    if -status != signal.SIGKILL:
        return f"was killed by {name}; a crash leaves a file hs_err_pid{jvm.pid}.log"
    return (
        f"was killed by {name}: by somebody, or because the machine was out of memory (dmesg"
        " tells); started again, the job goes on where it was"
    )


def check_master(master: str) -> None:
    """Find out, before Spark is started, whether it can be told of such a master.

    Raises:
        ConfigError: it cannot.
    """
    if master != "yarn" and not master.startswith(_MASTERS):
        raise ConfigError(
            f"--master {master}: Spark has local[*], spark://HOST:PORT, k8s://URL and yarn"
        )


def _session(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    # Workers are this Python, unless somebody says which is theirs, as on a cluster.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_local = master.startswith("local")
    if is_local:
        # Else it warns on standard error of names that are this machine's.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = {**_DEFAULTS, **(_LOCAL if is_local else {}), **settings}
    builder: Any = SparkSession.builder.master(master).appName(name)
    for key, text in wanted.items():
        builder = builder.config(key, text)
    session: SparkSession = builder.getOrCreate()
    if _SHUFFLE not in settings:
        # Results are small: Spark's 200 tasks for each would take longer than all else.
        session.conf.set(_SHUFFLE, str(session.sparkContext.defaultParallelism))
    return session


def reason(error: Exception) -> str:
    """Why Spark failed, in a line: Java's innermost cause, without where in the code."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else str(cause.getMessage() or cause.toString())
    return next(iter(text.strip().splitlines()), type(error).__name__)
