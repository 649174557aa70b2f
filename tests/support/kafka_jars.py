"""Apache Kafka's own jars, fetched once by Maven: the broker, its tools and the Java client.

Clients of older versions are fetched too, each into a folder of its own.
"""

from __future__ import annotations

import subprocess
from functools import cache, partial
from pathlib import Path

from support.cache import Unavailable, cache_folder, made_once, require_program

KAFKA_VERSION = "4.3.1"
_ARTIFACTS = ("kafka_2.13", "kafka-tools")
_CLIENT = ("kafka-clients",)
_STREAMS = ("kafka-streams",)


def _pom(version: str, artifacts: tuple[str, ...]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for artifact in artifacts
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>trionet</groupId><artifactId>jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def _download(version: str, artifacts: tuple[str, ...], folder: Path) -> None:
    maven = require_program("mvn", "fetches Apache Kafka's jars")
    pom = folder.with_name(f"{folder.name}.pom.xml")
    pom.write_text(_pom(version, artifacts))
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode != 0 or not any(folder.glob(f"{artifacts[0]}-*.jar")):
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable("Maven could not fetch Kafka's jars: " + (said[0] if said else "?"))


@cache
def kafka_jars() -> tuple[Path, ...]:
    """The jars of Apache Kafka `KAFKA_VERSION` with all their dependencies.

    Raises `Unavailable` when there is neither a cached copy nor a Maven that can fetch one.
    """
    download = partial(_download, KAFKA_VERSION, _ARTIFACTS)
    return _jars(made_once(cache_folder() / "kafka" / "lib", download))


@cache
def client_jars(version: str) -> tuple[Path, ...]:
    """The jars of the Java client of that version, and no others; raises as `kafka_jars`."""
    download = partial(_download, version, _CLIENT)
    return _jars(made_once(cache_folder() / "kafka" / f"clients-{version}", download))


@cache
def streams_jars() -> tuple[Path, ...]:
    """The jars of Kafka Streams `KAFKA_VERSION` with its store, RocksDB; raises as `kafka_jars`."""
    download = partial(_download, KAFKA_VERSION, _STREAMS)
    return _jars(made_once(cache_folder() / "kafka" / f"streams-{KAFKA_VERSION}", download))


def _jars(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.jar")))


def java() -> str:
    """The Java launcher; raises `Unavailable` when there is none."""
    return require_program("java", "runs Apache Kafka and its tools")


def class_path(client_version: str | None = None) -> str:
    """Kafka's jars as a Java class path, or those of an older client."""
    jars = kafka_jars() if client_version is None else client_jars(client_version)
    return ":".join(map(str, jars))
