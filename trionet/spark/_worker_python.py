"""The Python for ``PYSPARK_PYTHON`` that imports PySpark as it is installed, not from Spark's ZIP.

Spark puts ``SPARK_HOME/python/lib/pyspark.zip`` before everything else on ``PYTHONPATH`` of each
Python process that it starts (Spark: PythonUtils.sparkPythonPath). Python keeps no bytecode for
modules in a ZIP: each process would compile PySpark anew, which takes longer than all else that it
does before a task. Before a first query there are three to five such processes, one after another.

``trionet-spark-python`` is installed beside the Python of an environment. It removes the archives
whose packages are installed there in the same version, and then becomes that Python. On a cluster
that has PySpark only in the ZIP, nothing is removed. It imports little, since it runs before each
of these processes.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import PathFinder
from zipimport import ZipImportError, zipimporter

_SCRIPT = "trionet-spark-python"


def worker_python() -> str:
    """Return the path of the Python with which Spark's workers start fastest, for this environment.

    Set the environment variable ``PYSPARK_PYTHON`` to it before the session is created. It is
    ``trionet-spark-python``; this Python itself if that is not installed.
    """
    script = os.path.join(sysconfig.get_path("scripts"), _SCRIPT)
    return script if os.access(script, os.X_OK) else sys.executable


def main() -> None:
    """Run Python with the arguments of this process, without Spark's archives on its path."""
    if text := os.environ.get("PYTHONPATH"):
        kept = without_archives(text.split(os.pathsep), sys.path[1:])
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 -- it becomes Python


def without_archives(entries: Sequence[str], path: Sequence[str]) -> list[str]:
    """Remove Spark's archives whose packages are installed in the same version.

    Args:
        entries: the entries of ``PYTHONPATH``.
        path: where packages are searched, including the entries.
    """
    archives = {entry: package for entry in entries if (package := _archived_package(entry))}
    # Python has made the entries of its path absolute and normal; those of PYTHONPATH are as given.
    places = {os.path.abspath(each) for each in archives}
    elsewhere = [each for each in path if os.path.abspath(each) not in places]
    return [
        entry
        for entry in entries
        if entry not in archives or not _is_installed(entry, archives[entry], elsewhere)
    ]


def _archived_package(entry: str) -> str | None:
    """Return the package in one of Spark's archives; None for any other entry."""
    name = os.path.basename(entry)
    if name == "pyspark.zip":
        return "pyspark"
    return "py4j" if name.startswith("py4j-") and name.endswith("-src.zip") else None


def _is_installed(archive: str, package: str, path: Sequence[str]) -> bool:
    found = PathFinder.find_spec(package, path)
    if found is None or not found.submodule_search_locations:
        return False
    [folder, *_] = found.submodule_search_locations
    try:
        packed = zipimporter(archive).get_data(os.path.join(archive, package, "version.py"))
        with open(os.path.join(folder, "version.py"), "rb") as file:
            return packed == file.read()
    except (ZipImportError, OSError):
        return False


if __name__ == "__main__":
    main()
