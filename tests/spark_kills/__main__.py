"""`python3 tests spark-kills [--runs N]`: jobs in Spark whose processes and broker are killed."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import trio

from spark_kills.analysis import Analysis
from spark_kills.copying import Copying
from spark_kills.exactly_once import PAUSE_SECONDS_MAX, ExactlyOnce
from spark_kills.run import CLUSTER_KINDS, KINDS, Kill, Outcome, plan
from support.java import NO_JAVA, has_java

SCENARIOS: Mapping[str, Callable[[Path], Copying | Analysis | ExactlyOnce]] = {
    "copying": Copying,
    "pipeline": Analysis,
    "exactly-once": ExactlyOnce.on_ours,
    "exactly-once-adaptive": ExactlyOnce.adaptive,
    "exactly-once-on-kafka": ExactlyOnce.on_kafka,
}


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests spark-kills",
        description="A job in Spark reads and writes topics while its Python workers, executors,"
        " its driver and the broker are killed at random points. copying: the source and the sink;"
        " pipeline: `trionet pipeline run`; exactly-once: the sink with that guarantee, on a"
        " cluster, with trionet's broker or Apache Kafka.",
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--runs", type=int, default=30, help="how many, scenarios by turns (default %(default)s)"
    )
    parser.add_argument("--kills", type=int, default=3, help="in a run (default %(default)s)")
    parser.add_argument(
        "--only", choices=CLUSTER_KINDS, help="what is killed (default: all by turns)"
    )
    parser.add_argument(
        "--keep", type=Path, help="a folder for those of runs that went wrong (default: none)"
    )
    chosen = parser.parse_args(arguments)
    names = chosen.scenarios or list(SCENARIOS)
    if unknown := set(names) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    without = [name for name in names if chosen.only and chosen.only not in kinds_of(name)]
    if without:
        parser.error(f"{', '.join(without)}: there is no {chosen.only}")
    if not has_java():
        print(f"skipped: {NO_JAVA}")
        return 0
    # Where brokers are killed warnings are no news; errors are.
    logging.basicConfig(level=logging.ERROR)
    bad = killed = 0
    began = time.perf_counter()
    for number in range(chosen.runs):
        name = names[number % len(names)]
        # Scenarios by turns, each with successive seeds.
        seed = chosen.seed + number // len(names)
        kinds = [chosen.only] if chosen.only else kinds_of(name)
        outcome = _run(name, seed, _plan(name, seed, chosen.kills, kinds), chosen.keep)
        bad += bool(outcome.wrong)
        killed += len(outcome.kills)
    took = time.perf_counter() - began
    print(f"{chosen.runs} runs, {killed} kills, {took:,.0f} s: {bad} runs went wrong", flush=True)
    return 1 if bad else 0


def kinds_of(name: str) -> Sequence[str]:
    """What is killed in a scenario."""
    return CLUSTER_KINDS if name.startswith("exactly-once") else KINDS


def _plan(name: str, seed: int, count: int, kinds: Sequence[str]) -> list[Kill]:
    if name.startswith("exactly-once"):
        return plan(seed, count, kinds, pause_max=PAUSE_SECONDS_MAX, commits=True)
    return plan(seed, count, kinds)


def _run(name: str, seed: int, kills: list[Kill], keep: Path | None) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="trionet-spark-kills-") as folder:
        outcome = trio.run(SCENARIOS[name](Path(folder)).run, seed, kills)
        _tell(name, outcome)
        if outcome.wrong and keep is not None:
            shutil.copytree(folder, keep / f"{name}-{seed}", dirs_exist_ok=True)
    return outcome


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
