"""Run cases in one session of Spark, with the connector and with trionet, and compare them.

All cases, or those whose names contain a text. The session has PySpark 4.2.0 and the connector's
jars, in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from spark.beside.cases import CASES
from spark.beside.expected import CONNECTOR, differences, store
from support.spark_jars import pyspark_folder
from support.spark_python import spark_python

TESTS = Path(__file__).resolve().parents[2]


def run(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Run cases; yield each with its format and its outcome."""
    pyspark = pyspark_folder()
    environment = {
        **os.environ,
        **spark_python(),
        "PYTHONPATH": os.pathsep.join(map(str, (pyspark, TESTS, TESTS.parent))),
        "SPARK_HOME": str(pyspark / "pyspark"),
    }
    command = [sys.executable, "-m", "spark.beside.session", *names]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.count("\t") == 2:
                name, form, outcome = line.rstrip("\n").split("\t")
                yield name, form, outcome
    if process.returncode:
        raise SystemExit(f"the session has ended with {process.returncode}")


def main(arguments: list[str]) -> None:
    """Compare, and exit with 1 if a case is not as :mod:`spark.beside.expected` says."""
    parser = argparse.ArgumentParser(prog="python3 tests beside", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="a part of the names of cases")
    parser.add_argument("--store", action="store_true", help="store what the connector gives")
    options = parser.parse_args(arguments)
    texts = options.names or [""]
    names = [name for name in CASES if any(text in name for text in texts)]
    if not names:
        parser.error(f"no case has {' or '.join(texts)} in its name")
    outcomes: dict[str, dict[str, str]] = {CONNECTOR: {}, "trionet": {}}
    for name, form, outcome in run(names):
        outcomes[form][name] = outcome
        print(f"{name} | {form} | {outcome}", flush=True)
    if options.store:
        store(outcomes[CONNECTOR])
    wrong = differences(outcomes[CONNECTOR], outcomes["trionet"])
    print("\n".join(wrong) or f"{len(outcomes['trionet'])} cases are as they should be")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
