"""Spark's own Kafka connector and the PySpark that it belongs to, fetched once.

This mix of versions is one that is published whole. Each jar comes without its dependencies: Spark
has them, or nobody asks for them.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
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
    folder = made_once(cache_folder() / f"spark-connector-{PYSPARK_VERSION}", _fetch_jars)
    return tuple(sorted(folder.glob("*.jar")))


@cache
def pyspark_folder() -> Path:
    """A folder with this PySpark alone, to stand before others on the path; or `Unavailable`."""
    return made_once(cache_folder() / f"pyspark-{PYSPARK_VERSION}", _fetch_pyspark)


def _fetch_jars(folder: Path) -> None:
    maven = require_program("mvn", "fetches Spark's Kafka connector")
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><exclusions><exclusion><groupId>*</groupId>"
        "<artifactId>*</artifactId></exclusion></exclusions></dependency>\n"
        for group, artifact, version in _JARS
    )
    pom = folder.with_name(f"{folder.name}.pom.xml")
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>trionet</groupId>"
        "<artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )
    copy = "dependency:copy-dependencies"
    _run([maven, "-q", "-B", "-f", str(pom), copy, f"-DoutputDirectory={folder}"], "Maven")


def _fetch_pyspark(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", f"--target={folder}"]
    _run([*pip, f"pyspark=={PYSPARK_VERSION}", "py4j"], "pip")


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable(f"{what} could not fetch what Spark needs: {said[-1] if said else '?'}")
