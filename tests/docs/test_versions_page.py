"""docs/reference/versions.md has the versions that pyproject.toml asks for and the tests use."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import trionet
from spark.__main__ import NEWER
from support.kafka_jars import KAFKA_VERSION

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def asked_for(name: str, extra: str = "") -> str:
    """The range of a dependency."""
    listed = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    [found] = [each for each in listed if re.match(rf"{name}[^\w-]", each)]
    return str(found).removeprefix(name)


def spoken(range: str) -> str:
    """A range as the page says it."""
    lowest, _, beyond = range.removeprefix(">=").partition(",<")
    return f"{lowest} or newer, below {beyond}" if beyond else f"{lowest} or newer"


def row_of(what: str) -> list[str]:
    [found] = [line for line in PAGE.splitlines() if line.startswith(f"| {what} |")]
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_what_it_runs_with_is_what_pip_is_asked_for() -> None:
    assert f"CPython {spoken(PROJECT['requires-python'])}" == row_of("Python")[0]
    assert spoken(asked_for("trio")) == row_of("trio")[0]
    assert spoken(asked_for("pyspark", "spark")) == row_of("PySpark")[0]


def test_what_the_tests_use_is_what_they_ask_for() -> None:
    lowest, _, _ = asked_for("pyspark", "test").removeprefix(">=").partition(",")

    assert " and ".join([lowest, *map(minor, NEWER)]) == row_of("PySpark")[1]
    assert spoken(asked_for("pytest", "test")) == row_of("pytest, for the plugin")[1]
    assert KAFKA_VERSION == row_of("Kafka clusters, for the clients")[1]


def test_the_version_is_an_alpha() -> None:
    assert f"\ntrionet {minor(trionet.__version__)} is an alpha" in PAGE
    assert "Development Status :: 3 - Alpha" in PROJECT["classifiers"]
