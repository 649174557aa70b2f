"""`python3 tests reports [--spark]`: reports beside a job that is killed again and again."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import trio

from reports.beside import Beside, Job, LightJob, Outcome, SparkJob
from support.java import NO_JAVA, has_java


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests reports",
        description="A process writes the results of a pipeline, merges files and deletes days, and"
        " is killed at random; meanwhile reports are made of the folder. All tables of a report"
        " have to be of the same micro-batches.",
    )
    parser.add_argument("--reports", type=int, default=1000, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the kills (default %(default)s)")
    parser.add_argument(
        "--spark",
        action="store_true",
        help="beside `trionet pipeline run`, which needs Java (default: a process without Spark"
        " that does with the folder what the pipeline does, and a hundred times as often)",
    )
    chosen = parser.parse_args(arguments)
    if chosen.spark and not has_java():
        print(f"skipped: {NO_JAVA}")
        return 0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="trionet-reports-") as folder:
        job: Job = SparkJob(Path(folder)) if chosen.spark else LightJob(Path(folder))
        with job.open():
            beside = Beside(job, random.Random(chosen.seed))
            outcome = trio.run(beside.run, chosen.reports, show)
    print(f"{outcome}, in {time.perf_counter() - began:,.0f} s", flush=True)
    for each in outcome.wrong:
        print(each)
    return 1 if outcome.wrong else 0


def show(outcome: Outcome) -> None:
    """Say now and then how far it is."""
    if outcome.reports % 100 == 0:
        print(outcome, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
