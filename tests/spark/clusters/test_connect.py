"""Spark Connect: the program of the page runs, and does what the page says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spark.clusters.cluster_jobs import MARKS
from spark.clusters.page_programs import program_below
from support.cache import Unavailable
from support.spark_jars import connect_client_folder
from support.spark_python import spark_python
from test_docs import run

pytestmark = [*MARKS]


def test_batches_streams_for_each_batch_and_lag_work_through_spark_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        client = connect_client_folder()
    except Unavailable as reason:
        pytest.skip(str(reason))
    for key, value in spark_python().items():
        monkeypatch.setenv(key, value)
    path = [os.environ.get("PYTHONPATH"), str(client)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))

    printed = run([sys.executable, "-"], program_below("Spark Connect"), tmp_path, 600)

    assert "lag: 0\n" in printed
    assert "copied: 6 picked: 2\n" in printed
