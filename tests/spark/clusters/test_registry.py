"""Values as a schema registry's serializers write them, decoded by Spark's own functions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spark.clusters.cluster_jobs import MARKS
from spark.clusters.page_programs import program_below
from support.cache import Unavailable
from support.spark_jars import pyspark_folder, spark_jar
from support.spark_python import spark_python
from test_docs import run

pytestmark = [*MARKS]


def test_avro_behind_the_five_bytes_of_a_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the PySpark that the jar belongs to."""
    try:
        jar, pyspark = spark_jar("spark-avro_2.13"), pyspark_folder()
    except Unavailable as reason:
        pytest.skip(str(reason))
    for key, value in spark_python().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("PYTHONPATH", str(pyspark))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jar} pyspark-shell")
    program = program_below("Avro and Protobuf with a schema registry")

    printed = run([sys.executable, "-"], program, tmp_path, 600)

    assert "|coffee|    2|" in printed
    assert "|   tea|    1|" in printed
