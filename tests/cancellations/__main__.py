"""`python3 tests cancellations [--seed N] [--schedules M]`: cancel each await of our clients."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context

from cancellations.run import PROGRAMS, Outcome, program_of, run

SCHEDULES = 10_000
# A line reports the progress after so many schedules.
SCHEDULES_PER_LINE = 500


def main(arguments: list[str]) -> int:
    """Cancel, report, and say by the exit status whether every rule held."""
    parser = argparse.ArgumentParser(
        prog="python3 tests cancellations",
        description="Run programs of producers, consumers and an admin client again and again, in"
        " virtual time, and cancel one await point after the other. A seed gives a program.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--schedules", type=int, default=SCHEDULES, help="at least so many (default %(default)s)"
    )
    parser.add_argument("--at", type=int, help="only this await point, of the one seed")
    parser.add_argument("--only", default="", help="programs whose names begin so")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--keep-going", action="store_true", help="also after a violation")
    chosen = parser.parse_args(arguments)
    if chosen.at is not None:
        outcomes = [run(chosen.seed, first=chosen.at, schedules_max=1)]
    else:
        if not any(name.startswith(chosen.only) for name in PROGRAMS):
            parser.error(f"no program begins with {chosen.only}; there are {', '.join(PROGRAMS)}")
        seeds = (each for each in count(chosen.seed) if program_of(each).startswith(chosen.only))
        outcomes = list(cancel(seeds, chosen.schedules, chosen.jobs, chosen.keep_going))
    return report(outcomes)


def cancel(seeds: Iterator[int], schedules: int, jobs: int, keep_going: bool) -> Iterator[Outcome]:
    """Run seed after seed until there were enough schedules, or one has broken a rule."""
    done = told = 0
    for outcome in outcomes_from(seeds, jobs):
        yield outcome
        done += outcome.schedules
        if done // SCHEDULES_PER_LINE > told:
            told = done // SCHEDULES_PER_LINE
            print(f"{done:,} of {schedules:,} schedules", flush=True)
        if done >= schedules or (outcome.violation and not keep_going):
            return


def outcomes_from(seeds: Iterator[int], jobs: int) -> Iterator[Outcome]:
    """What becomes of one seed after the other, for ever."""
    if jobs == 1:
        yield from map(run, seeds)
        return
    executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    running: set[Future[Outcome]] = set()
    try:
        while True:
            while len(running) < jobs:
                running.add(executor.submit(run, next(seeds)))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in ended)
    finally:
        executor.shutdown(cancel_futures=True)


def report(outcomes: list[Outcome]) -> int:
    """The figures, and each violation."""
    broken = [each for each in outcomes if each.violation]
    for each in broken:
        print(f"\nseed {each.seed}: {each.violation}")
        print(f"repeat it: python3 tests cancellations --seed {each.seed} --schedules 1")
    made = Counter[str]()
    for each in outcomes:
        made[each.program] += each.schedules
    for name in PROGRAMS:
        print(f"{made[name]:>7,} {name}")
    virtual, real = (
        sum(each.virtual_seconds for each in outcomes),
        sum(each.real_seconds for each in outcomes),
    )
    print(
        f"{made.total():,} schedules of {len(outcomes)} seeds, {virtual:,.0f} s in {real:,.1f} s:"
        f" {len(broken)} violations"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
