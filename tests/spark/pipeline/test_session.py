"""A session of Spark whose JVM goes away."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.java import NO_JAVA, has_java

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not has_java(), reason=NO_JAVA),
]

#: A process of its own: its JVM is not the one of the other tests.
PROGRAM = """
import os, signal, sys
from pyspark import SparkContext
from trionet.spark.pipeline._session import SparkError, open_session

try:
    with open_session("killed", "local[1]", {"spark.driver.memory": "1g"}) as spark:
        if sys.argv[1] != "none":
            os.kill(SparkContext._gateway.proc.pid, signal.Signals[sys.argv[1]])
        try:
            spark.range(3).count()
        finally:
            spark.range(3).count()  # as a query that is stopped: nobody listens by now
        raise ConnectionRefusedError("of somebody else")
except (SparkError, ConnectionError) as error:
    print(type(error).__name__, error, sep=": ")
"""


@pytest.mark.parametrize(
    ("number", "told"),
    [
        ("SIGKILL", "SparkError: Spark's JVM was killed by SIGKILL, by a user or because"),
        ("SIGTERM", "SparkError: Spark's JVM exited with status 143;"),
        ("none", "ConnectionRefusedError: of somebody else"),
    ],
)
def test_that_its_jvm_has_ended_is_reported_with_how(number: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, number], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1].startswith(told)
