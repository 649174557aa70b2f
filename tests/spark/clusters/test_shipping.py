"""How trionet comes to executors that have not installed it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark.clusters.cluster_jobs import MARKS, cluster_job
from support.spark_cluster import SparkCluster, spark_cluster
from trionet.testing._threaded import ThreadedBroker

pytestmark = [*MARKS]

ROOT = Path(__file__).resolve().parents[3]
#: What a packed environment has beside trionet, or what nodes have installed.
DEPENDENCIES = ("trio", "attrs", "rich", "fastcrc", "cramjam", "pyarrow", "numpy")


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A cluster whose Python does not find trionet by itself."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), 1, has_trionet=False) as found:
        yield found


@pytest.fixture(scope="module")
def nodes_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has all that trionet needs, and not trionet."""
    folder = tmp_path_factory.mktemp("nodes") / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install(folder, *DEPENDENCIES)
    return folder / "bin" / "python"


def install(environment: Path, *packages: str) -> None:
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run(
        [*pip, "--disable-pip-version-check", *packages], check=True, env={"TRIONET_PURE": "1"}
    )


@pytest.fixture
def source(kafka: ThreadedBroker, topic: str) -> str:
    """A topic of three records."""
    kafka.seed(topic, ["one", "two", "three"])
    return topic


def test_a_packed_environment_brings_everything(
    bare_cluster: SparkCluster, kafka: ThreadedBroker, source: str, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    subprocess.run([sys.executable, "-m", "venv", str(job)], check=True)
    install(job, "venv-pack2", *DEPENDENCIES)
    install(job, "--no-deps", str(ROOT))
    packed = tmp_path / "job.tar.gz"
    subprocess.run(
        [job / "bin" / "venv-pack", "-q", "-p", job, "-o", packed, "--compress-level", "1"],
        check=True,
    )
    # Spark starts the planner of a Python source beside the driver by the path that tasks have.
    shutil.unpack_archive(packed, tmp_path / "environment", filter="fully_trusted")

    with cluster_job(
        bare_cluster,
        kafka,
        source,
        tmp_path,
        settings={"spark.archives": f"{packed}#environment"},
        environment={"PYSPARK_PYTHON": "./environment/bin/python"},
    ) as work:
        work.begin()
        found = work.result()

    assert 3 == found["rows"]
    [prefix] = found["prefixes"]
    assert prefix.endswith("/environment")
    assert str(job) not in prefix


def test_py_files_bring_trionet_to_nodes_that_have_what_it_needs(
    bare_cluster: SparkCluster,
    nodes_python: Path,
    kafka: ThreadedBroker,
    source: str,
    tmp_path: Path,
) -> None:
    content = tmp_path / "content"
    install(nodes_python.parents[1], "--no-deps", f"--target={content}", str(ROOT))
    packed = shutil.make_archive(str(tmp_path / "trionet"), "zip", content)

    with cluster_job(
        bare_cluster,
        kafka,
        source,
        tmp_path,
        settings={"spark.submit.pyFiles": packed},
        environment={"PYSPARK_PYTHON": str(nodes_python)},
    ) as work:
        work.begin()
        found = work.result()

    assert 3 == found["rows"]
    assert [str(nodes_python.parents[1])] == found["prefixes"]


def test_trionet_on_the_driver_alone_is_not_enough(
    bare_cluster: SparkCluster,
    nodes_python: Path,
    kafka: ThreadedBroker,
    source: str,
    tmp_path: Path,
) -> None:
    with cluster_job(
        bare_cluster,
        kafka,
        source,
        tmp_path,
        environment={"PYSPARK_PYTHON": str(nodes_python)},
    ) as work:
        work.begin()
        with pytest.raises(AssertionError, match="ended with 1"):
            work.result()

    assert "ModuleNotFoundError: No module named 'trionet'" in (tmp_path / "job.log").read_text()
