"""What ``trionet.spark`` offers by name, and that offering it costs nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import trionet.spark

ROOT = Path(__file__).resolve().parents[2]

#: Changing this list is changing the product; docs/reference explains every name in it.
PUBLIC = ["LagListener", "SourceLag", "TrionetDataSource", "lag", "worker_python"]

#: What Spark must not pay for when it looks into every `pyspark_*` module of an environment.
HEAVY = {"attrs", "logging", "numpy", "pyarrow", "pyspark", "ssl", "trio"}


def modules_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_public_names_are_these() -> None:
    assert sorted(PUBLIC) == sorted(trionet.spark.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_can_be_used(name: str) -> None:
    assert getattr(trionet.spark, name) is not None
    assert name in dir(trionet.spark)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'lags'"):
        trionet.spark.lags  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow
def test_importing_it_loads_nothing_heavy() -> None:
    actual = modules_after("import trionet.spark") - modules_after("pass")

    assert set() == actual & HEAVY


@pytest.mark.slow
def test_reading_options_needs_neither_spark_nor_arrow() -> None:
    actual = modules_after("import trionet.spark._options, trionet.spark.source._lag")

    assert "trionet" in actual
    assert set() == actual & {"numpy", "pyarrow", "pyspark"}


@pytest.mark.slow
def test_reading_topics_by_name_needs_no_engine_for_patterns_and_no_member_of_a_group() -> None:
    """Spark starts three processes for a first query, one after another."""
    pytest.importorskip("pyspark")
    program = "import sys, trionet.spark.source._readers, trionet.spark.source._range_reader"

    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    modules = set(done.stdout.split())
    assert "trionet.spark._topic_pattern" in modules
    assert [] == [
        each
        for each in modules
        if each.startswith(
            (
                "trionet._util.patterns._java",
                "trionet.client.consumer.assignors.",
                "trionet.client.consumer.coordinator.",
            )
        )
    ]


@pytest.mark.slow
def test_planning_and_committing_a_write_needs_nothing_that_only_a_task_needs() -> None:
    """Spark starts a process for each: pandas alone, which pyarrow imports, takes it 0.3 s."""
    pytest.importorskip("pyspark")
    program = """
        import pickle
        from pyspark.sql.types import BinaryType, StructType
        from trionet.spark import TrionetDataSource
        options = {"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "t"}
        source, columns = TrionetDataSource(options), StructType().add("value", BinaryType())
        writer = pickle.loads(pickle.dumps(source.writer(columns, overwrite=False)))
        source.streamWriter(columns, overwrite=False)
        TrionetDataSource({**options, "delivery.guarantee": "exactly-once"}).streamWriter(
            columns, overwrite=False
        )
        writer.commit([])
    """

    actual = modules_after(textwrap.dedent(program))

    assert "trionet" in actual
    assert set() == actual & {"numpy", "pandas", "pyarrow", "trio"}


@pytest.mark.slow
def test_spark_finds_the_source_by_the_name_of_its_module_and_that_costs_little() -> None:
    """Spark imports it in every session of the environment, in a process that has PySpark."""
    pytest.importorskip("pyspark")
    before = modules_after("import pyspark.sql.datasource")

    actual = modules_after(
        "import pyspark_trionet as m; assert m.DefaultSource.name() == 'trionet'"
    )

    assert set() == (actual - before) & HEAVY


def test_the_environment_of_the_tests_has_the_oldest_pyspark_that_the_package_allows() -> None:
    """`python3 tests spark` takes a newer one as well, see `spark.__main__`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]

    oldest, *_ = (each for each in extras["spark"] if each.startswith("pyspark>="))
    tested, *_ = (each for each in extras["test"] if each.startswith("pyspark>="))

    found = re.fullmatch(r"pyspark>=4\.(\d+),<4\.(\d+)", tested)
    assert found is not None
    assert int(found[1]) + 1 == int(found[2])
    assert f"pyspark>=4.{found[1]}" == oldest.partition(",")[0]
