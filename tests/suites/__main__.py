"""`python3 tests suites [NAME]...`: other projects' own integration tests, against our broker."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from suites.aiokafka import AIOKAFKA
from suites.confluent import CONFLUENT
from suites.franz_go import NAME as FRANZ_GO
from suites.franz_go import VERSION as FRANZ_GO_VERSION
from suites.franz_go import run_franz_go
from suites.kafka_python import KAFKA_PYTHON
from suites.librdkafka import NAME as LIBRDKAFKA
from suites.librdkafka import VERSION as LIBRDKAFKA_VERSION
from suites.librdkafka import run_librdkafka
from suites.report import Report
from suites.run import run
from suites.source import installed
from support.cache import Unavailable

PYTHON = {suite.name: suite for suite in (KAFKA_PYTHON, AIOKAFKA, CONFLUENT)}
NAMES = (*PYTHON, FRANZ_GO, LIBRDKAFKA)


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 if all of it is good, and what could not be had says so."""
    parser = argparse.ArgumentParser(
        prog="python3 tests suites",
        description="The integration tests of client libraries, fetched at the version that is "
        "installed here, run against this project's broker. Tests that need what is not served "
        "are left out, and listed with what they need.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--checkout",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="take the source of a library from a folder where it cannot be fetched, except that "
        f"of {FRANZ_GO}; {LIBRDKAFKA} is built there",
    )
    parser.add_argument(
        "-k", metavar="EXPRESSION", help="only tests with such names, as pytest's; of Python only"
    )
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        parser.error(f"no suite is called {unknown[0]!r}; there are {', '.join(NAMES)}")
    checkouts = {
        name: Path(folder).resolve()
        for name, _, folder in (each.partition("=") for each in chosen.checkout)
    }
    more = ["-k", chosen.k] if chosen.k else []
    good = [_is_good(name, checkouts.get(name), more) for name in chosen.names or NAMES]
    return 0 if all(good) else 1


def _is_good(name: str, checkout: Path | None, more: list[str]) -> bool:
    try:
        report = _report(name, checkout, more)
    except Unavailable as reason:
        print(f"{name}: not run: {reason}", flush=True)
        return True
    print("\n".join(report.lines()), flush=True)
    return report.is_good


def _report(name: str, checkout: Path | None, more: list[str]) -> Report:
    if name == FRANZ_GO:
        print(f"== {name} {FRANZ_GO_VERSION}", flush=True)
        return run_franz_go([])
    if name == LIBRDKAFKA:
        print(f"== {name} {LIBRDKAFKA_VERSION}", flush=True)
        return run_librdkafka(checkout)
    suite = PYTHON[name]
    print(f"== {name} {installed(suite)}", flush=True)
    return run(suite, checkout, more)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
