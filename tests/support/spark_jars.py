"""Spark's own Kafka connector, the PySpark that it belongs to, and other PySparks, fetched once.

This mix of versions is one that is published whole. Each jar comes without its dependencies: Spark
has them, or nobody asks for them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from support.cache import Unavailable, cache_folder, made_once, require_program

PYSPARK_VERSION = "4.2.0"
_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", PYSPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
_DOWNLOAD_SECONDS = 900


@cache
def connector_jars() -> tuple[Path, ...]:
    """The connector's jars; raises `Unavailable` without a copy or a Maven that fetches one."""
    fetch = partial(_fetch_jars, _JARS)
    folder = made_once(cache_folder() / f"spark-connector-{PYSPARK_VERSION}", fetch)
    return tuple(sorted(folder.glob("*.jar")))


@cache
def spark_jar(name: str) -> Path:
    """Another jar of Spark's, such as ``spark-avro_2.13``, for this PySpark; or `Unavailable`."""
    fetch = partial(_fetch_jars, (("org.apache.spark", name, PYSPARK_VERSION),))
    [jar] = made_once(cache_folder() / f"{name}-{PYSPARK_VERSION}", fetch).glob("*.jar")
    return jar


@cache
def pyspark_folder(version: str = PYSPARK_VERSION) -> Path:
    """A folder with this PySpark alone, to stand before others on the path; or `Unavailable`."""
    fetch = partial(_fetch_pyspark, version)
    return made_once(cache_folder() / f"pyspark-{version}", fetch)


def _fetch_jars(jars: Sequence[tuple[str, str, str]], folder: Path) -> None:
    maven = require_program("mvn", "fetches jars of Spark's")
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><exclusions><exclusion><groupId>*</groupId>"
        "<artifactId>*</artifactId></exclusion></exclusions></dependency>\n"
        for group, artifact, version in jars
    )
    pom = folder.with_name(f"{folder.name}.pom.xml")
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>trionet</groupId>"
        "<artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )
    copy = "dependency:copy-dependencies"
    _run([maven, "-q", "-B", "-f", str(pom), copy, f"-DoutputDirectory={folder}"], "Maven")


@cache
def connect_client_folder() -> Path:
    """A folder with what PySpark's extra ``connect`` has and the environment has not."""
    packages = ("grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "zstandard")
    return made_once(cache_folder() / "spark-connect-client", partial(_fetch_packages, packages))


def _fetch_pyspark(version: str, folder: Path) -> None:
    _fetch_packages((f"pyspark=={version}", "py4j"), folder)


def _fetch_packages(packages: Sequence[str], folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", f"--target={folder}"]
    _run([*pip, *packages], "pip")


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable(f"{what} could not fetch what Spark needs: {said[-1] if said else '?'}")
