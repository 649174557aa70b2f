"""`python3 tests spark [ARGUMENT]...`: everything in Spark, on each PySpark that is supported.

What the job without a name leaves out is run, too. Arguments are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from support.cache import Unavailable
from support.processes import stop
from support.spark_jars import pyspark_folder

#: Beside the one of the environment, which is the oldest.
NEWER: Final = ("4.3.0",)
TESTS: Final = (
    *("tests/spark", "tests/demo", "tests/test_docs.py"),
    *("-k", "spark", "-m", "spark or not spark"),
)
_STOP_SECONDS: Final = 60.0


def main(arguments: Sequence[str]) -> int:
    """Run the tests once for each PySpark; the first exit status that is not 0, if there is one."""
    statuses = [_run(version("pyspark"), None, arguments)]
    for each in NEWER:
        try:
            folder = pyspark_folder(each)
        except Unavailable as reason:
            print(f"PySpark {each}: {reason}", file=sys.stderr)
            statuses.append(1)
        else:
            statuses.append(_run(each, folder, arguments))
    return next(filter(None, statuses), 0)


def _run(name: str, folder: Path | None, arguments: Sequence[str]) -> int:
    print(f"PySpark {name}", flush=True)
    # Without what the job itself is found by: as under `python3 tests`, pytest adds that.
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, "-m", "pytest", *TESTS, *arguments]
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        stop(process, _STOP_SECONDS)  # what the tests have started ends with them
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
