"""Apache Kafka's own jars, fetched once by Maven: the broker, its tools and the Java client."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from support.cache import Unavailable, cache_folder, made_once, require_program

KAFKA_VERSION = "4.3.1"
_ARTIFACTS = ("kafka_2.13", "kafka-tools")


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{KAFKA_VERSION}</version></dependency>\n"
        for artifact in _ARTIFACTS
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>trionet</groupId><artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def _download(folder: Path) -> None:
    maven = require_program("mvn", "fetches Apache Kafka's jars")
    pom = folder.with_name("pom.xml")
    pom.write_text(_pom())
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode != 0 or not any(folder.glob("kafka_2.13-*.jar")):
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable("Maven could not fetch Kafka's jars: " + (said[0] if said else "?"))


@cache
def kafka_jars() -> tuple[Path, ...]:
    """The jars of Apache Kafka `KAFKA_VERSION` with all their dependencies.

    Raises `Unavailable` when there is neither a cached copy nor a Maven that can fetch one.
    """
    folder = made_once(cache_folder() / "kafka" / "lib", _download)
    return tuple(sorted(folder.glob("*.jar")))


def java() -> str:
    """The Java launcher; raises `Unavailable` when there is none."""
    return require_program("java", "runs Apache Kafka and its tools")


def class_path() -> str:
    """Kafka's jars as a Java class path."""
    return ":".join(str(jar) for jar in kafka_jars())
