"""The Python of Spark's workers: PySpark comes from where it is installed, if that is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trionet.spark import worker_python
from trionet.spark._worker_python import without_archives


def archive(folder: Path, package: str, version: str, name: str) -> str:
    path = folder / name
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{package}/__init__.py", "")
        file.writestr(f"{package}/version.py", f"__version__ = '{version}'\n")
    return str(path)


def installed(folder: Path, package: str, version: str) -> str:
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").touch()
    (folder / package / "version.py").write_text(f"__version__ = '{version}'\n")
    return str(folder)


def test_archives_of_what_is_installed_are_removed(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "pyspark", "4.2.0")
    installed(tmp_path / "site", "py4j", "0.10.9.9")
    archives = [
        archive(tmp_path, "pyspark", "4.2.0", "pyspark.zip"),
        archive(tmp_path, "py4j", "0.10.9.9", "py4j-0.10.9.9-src.zip"),
    ]
    entries = [*archives, "/opt/spark/jars/spark-core.jar", "/home/me/job.zip"]

    assert entries[2:] == without_archives(entries, [*entries, site])


@pytest.mark.parametrize("folder", ["{0}/", "{0}/x/..", "{0}//."])
def test_the_folder_of_an_archive_may_be_written_in_any_way(folder: str, tmp_path: Path) -> None:
    """As SPARK_HOME is; Python's own path has it absolute and normal."""
    site = installed(tmp_path / "site", "pyspark", "4.2.0")
    (tmp_path / "x").mkdir()
    normal = archive(tmp_path, "pyspark", "4.2.0", "pyspark.zip")

    assert [] == without_archives([f"{folder.format(tmp_path)}/pyspark.zip"], [normal, site])


@pytest.mark.parametrize("version", ["4.2.1", None], ids=["another version", "nothing"])
def test_an_archive_is_kept_if_it_is_not_what_is_installed(
    version: str | None, tmp_path: Path
) -> None:
    path = [] if version is None else [installed(tmp_path / "site", "pyspark", version)]
    entries = [archive(tmp_path, "pyspark", "4.2.0", "pyspark.zip")]

    assert entries == without_archives(entries, [*entries, *path])


def test_an_archive_that_is_not_there_is_no_obstacle(tmp_path: Path) -> None:
    """Python ignores it, as well."""
    site = installed(tmp_path / "site", "pyspark", "4.2.0")
    entries = [str(tmp_path / "pyspark.zip")]

    assert entries == without_archives(entries, [*entries, site])


def test_it_is_python_in_all_else(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "pyspark", "1")
    zipped = archive(tmp_path, "pyspark", "1", "pyspark.zip")
    (tmp_path / "program.py").write_text(
        "import pyspark, sys\nprint(pyspark.__file__, sys.executable, sys.argv[1:], sys.path[0])\n"
    )
    python = [sys.executable, "-m", "trionet.spark._worker_python"]
    done = subprocess.run(
        [*python, "-m", "program", "a", "-b"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([zipped, site, *sys.path])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    expected = [f"{site}/pyspark/__init__.py", sys.executable, "['a',", "'-b']", str(tmp_path)]
    assert expected == done.stdout.split()


def test_it_is_installed_beside_python() -> None:
    found = worker_python()

    done = subprocess.run(
        [found, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
    )
    assert "trionet-spark-python" == Path(found).name
    assert sys.prefix == done.stdout.strip()
