"""`python3 tests telemetry`: a pipeline that is killed again and again counts everything once.

A broker with a request log under load, `trionet pipeline run` beside it, killed at random points
and started again; at the end its results are compared with the broker's own metrics, exactly, and
its percentiles with those of the records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import trio

from support.java import NO_JAVA, has_java
from telemetry.exactness import compare, exact_rows
from telemetry.loads import WARMED_UP
from telemetry.results import Results, differences
from telemetry.run import TOPIC, Outcome, Wanted, run


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether everything was as it must be."""
    parser = argparse.ArgumentParser(prog="python3 tests telemetry", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="default %(default)s")
    parser.add_argument(
        "--rate", type=float, default=20_000.0, help="requests a second (default %(default)s)"
    )
    parser.add_argument("--restarts", type=int, default=2, help="default %(default)s")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: another each time)")
    parser.add_argument("--master", default="local[*]", help="of Spark (default %(default)s)")
    parser.add_argument("--keep", type=Path, help="a new folder that is not removed at the end")
    chosen = parser.parse_args(arguments)
    if not has_java():
        print(NO_JAVA, file=sys.stderr)
        return 2
    seed = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    wanted = Wanted(chosen.seconds, chosen.rate, chosen.restarts, seed, chosen.master)
    say(f"seed {seed}, {os.cpu_count()} cores")
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="trionet-telemetry-"))
    folder.mkdir(exist_ok=True)
    try:
        outcome = trio.run(run, wanted, folder, say)
        return summary(wanted, outcome)
    finally:
        if chosen.keep is None:
            shutil.rmtree(folder)


def say(line: str) -> None:
    """Report how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def summary(wanted: Wanted, outcome: Outcome) -> int:
    """Compare, and tell what came of it."""
    results = Results(outcome.results, outcome.end)
    counts, found, late = outcome.counts, results.counted(), results.late()
    for api in sorted({*counts.requests, *found.requests}):
        say(
            f"{api}: {counts.requests.get(api, 0):,} by the broker,"
            f" {found.requests.get(api, 0):,} in the results"
        )
    for (api, error), count in sorted(counts.errors.items()):
        say(f"{api} {error}: {count:,} by the broker, {found.errors.get((api, error), 0):,}")
    for reason, count in sorted(counts.closes.items()):
        say(f"{reason}: {count:,} by the broker, {found.closes.get(reason, 0):,} in the results")
    say(f"counted apart: {dict(counts.fate)}, late {late:,}")
    rate = sum(outcome.answered.values()) / (wanted.seconds * WARMED_UP)
    say(f"{rate:,.0f} requests a second, of {wanted.rate:,.0f} wanted")
    wrong = differences(counts, found, late)
    say("reading the records of the log")
    exact = dict(exact_rows(outcome.data, TOPIC, outcome.end))
    compared = compare(exact, results.table("requests"))
    say(
        f"{compared.rows:,} rows of {sum(each.records for each in exact.values()):,} records;"
        f" {compared.percentiles:,} percentiles and maxima, at worst {compared.worst:.2%} wrong"
    )
    wrong += compared.told()
    for each in wrong:
        say(f"WRONG: {each}")
    say("not as it must be" if wrong else "everything was counted once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
