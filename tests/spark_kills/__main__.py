"""`python3 tests spark-kills [--runs N]`: jobs in Spark whose processes and broker are killed."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

from spark_kills.analysis import Analysis
from spark_kills.copying import Copying
from spark_kills.run import KINDS, Outcome, plan
from support.java import NO_JAVA, has_java

SCENARIOS: Mapping[str, type[Copying | Analysis]] = {
    "copying": Copying,
    "pipeline": Analysis,
}


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests spark-kills",
        description="A job in Spark reads and writes topics while its Python workers, its driver"
        " and the broker are killed at random points. copying: the source and the sink; pipeline:"
        " `trionet pipeline run`.",
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--runs", type=int, default=30, help="how many, scenarios by turns (default %(default)s)"
    )
    parser.add_argument("--kills", type=int, default=3, help="in a run (default %(default)s)")
    parser.add_argument("--only", choices=KINDS, help="what is killed (default: all by turns)")
    parser.add_argument(
        "--keep", type=Path, help="a folder for those of runs that went wrong (default: none)"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    if not has_java():
        print(f"skipped: {NO_JAVA}")
        return 0
    # Where brokers are killed warnings are no news; errors are.
    logging.basicConfig(level=logging.ERROR)
    names = chosen.scenarios or list(SCENARIOS)
    kinds: Sequence[str] = [chosen.only] if chosen.only else KINDS
    bad = 0
    began = time.perf_counter()
    for number in range(chosen.runs):
        name = names[number % len(names)]
        # Scenarios by turns, each with successive seeds.
        seed = chosen.seed + number // len(names)
        bad += _run(name, seed, chosen.kills, kinds, chosen.keep)
    took = time.perf_counter() - began
    print(f"{chosen.runs} runs, {took:,.0f} s: {bad} runs went wrong", flush=True)
    return 1 if bad else 0


def _run(name: str, seed: int, count: int, kinds: Sequence[str], keep: Path | None) -> bool:
    """Run once; whether it went wrong."""
    with tempfile.TemporaryDirectory(prefix="trionet-spark-kills-") as folder:
        outcome = trio.run(SCENARIOS[name](Path(folder)).run, seed, plan(seed, count, kinds))
        _tell(name, outcome)
        if outcome.wrong and keep is not None:
            shutil.copytree(folder, keep / f"{name}-{seed}", dirs_exist_ok=True)
    return bool(outcome.wrong)


def _tell(name: str, outcome: Outcome) -> None:
    print(
        f"{name} seed {outcome.seed}, {outcome.seconds:.0f} s: killed {', '.join(outcome.kills)};"
        f" {', '.join(outcome.told)}: {'WRONG' if outcome.wrong else 'right'}",
        *(f"  WRONG: {each}" for each in outcome.wrong),
        sep="\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
