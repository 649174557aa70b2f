"""`python3 tests sim [--seed N] [--seeds K] [--steps M]`: a broker's life from a seed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sim.planted import BUGS, planted
from sim.run import Outcome, run

SEEDS = 10
STEPS = 1000
# How many seeds each planted bug is searched with at most.
SEEDS_FOR_BUG = 40
# Plain lines tell of the progress after so many seeds.
SEEDS_PER_LINE = 25


def main(arguments: list[str]) -> int:
    """Simulate, tell, and say by the exit status whether every rule held."""
    parser = argparse.ArgumentParser(
        prog="python3 tests sim",
        description="Simulate a broker, its clients, faults of the network and crashes, in virtual"
        " time. One seed gives one course of events.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--seeds", type=int, help=f"how many (default {SEEDS})")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--own", action="store_true", help="with the clients of trionet")
    parser.add_argument("--json", action="store_true", help="the outcome as JSON, and nothing else")
    parser.add_argument(
        "--planted",
        choices=[*BUGS, "all"],
        metavar="NAME",
        help=f"plant a bug, and search until it is found: {', '.join(BUGS)}, or all",
    )
    chosen = parser.parse_args(arguments)
    if chosen.planted is not None:
        names = list(BUGS) if chosen.planted == "all" else [chosen.planted]
        seeds = range(chosen.seed, chosen.seed + (chosen.seeds or SEEDS_FOR_BUG))
        return search_all(names, seeds, chosen.steps, as_json=chosen.json)
    seeds = range(chosen.seed, chosen.seed + (chosen.seeds or SEEDS))
    outcomes = list(
        shown(
            simulate(seeds, chosen.steps, chosen.jobs, own=chosen.own),
            len(seeds),
            quiet=chosen.json,
        )
    )
    return report(outcomes, chosen.steps, own=chosen.own, as_json=chosen.json)


def simulate(seeds: range, steps: int, jobs: int, *, own: bool) -> Iterator[Outcome]:
    """Run all seeds, until one breaks a rule."""
    if jobs == 1:
        for seed in seeds:
            outcome = run(seed, steps, own=own)
            yield outcome
            if outcome.violation:
                return
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
        futures = [executor.submit(run, seed, steps, own=own) for seed in seeds]
        for future in as_completed(futures):
            yield future.result()
            if future.result().violation:
                executor.shutdown(cancel_futures=True)
                return


def shown(outcomes: Iterator[Outcome], count: int, *, quiet: bool) -> Iterator[Outcome]:
    """Tell how far it is: with a bar on a terminal, with a line now and then elsewhere."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        for number, outcome in enumerate(outcomes, 1):
            if not quiet and (number % SEEDS_PER_LINE == 0 or number == count):
                print(f"{number} of {count} seeds", flush=True)
            yield outcome
        return
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=count)
        for outcome in outcomes:
            progress.advance(task)
            yield outcome


def report(outcomes: list[Outcome], steps: int, *, own: bool, as_json: bool) -> int:
    """The figures, and the violation if there is one."""
    broken = [each for each in outcomes if each.violation]
    virtual = sum(each.virtual_seconds for each in outcomes)
    real = sum(each.real_seconds for each in outcomes)
    cpu = sum(each.cpu_seconds for each in outcomes)
    if as_json:
        print(json.dumps([attrs.asdict(each) for each in outcomes]))
        return 1 if broken else 0
    for each in broken:
        print(*each.tail, sep="\n")
        print(f"\nseed {each.seed}: {each.violation}")
        which = f"--seed {each.seed} --seeds 1 --steps {steps}" + " --own" * own
        print(f"repeat it: python3 tests sim {which}")
    if len(outcomes) == 1:
        print(f"trace {outcomes[0].digest}")
    print(
        f"{len(outcomes)} seeds, {sum(each.steps for each in outcomes):,} steps,"
        f" {sum(each.crashes for each in outcomes):,} crashes, {virtual:,.0f} s in {real:,.1f} s"
        f" ({virtual / real:,.0f} x real time, {virtual / cpu:,.0f} x that of the processor):"
        f" {len(broken)} violations"
    )
    return 1 if broken else 0


def search(name: str, seeds: range, steps: int) -> Outcome | None:
    """The first run that finds a planted bug."""
    for seed in seeds:
        with planted(name):
            outcome = run(seed, steps)
        if outcome.violation:
            return outcome
    return None


def search_all(names: list[str], seeds: range, steps: int, *, as_json: bool) -> int:
    """Search for each bug, and say by the exit status whether all were found."""
    found = {name: search(name, seeds, steps) for name in names}
    if as_json:
        print(json.dumps({name: each and attrs.asdict(each) for name, each in found.items()}))
    else:
        for name, each in found.items():
            if each is None:
                print(f"{name}: NOT FOUND with {len(seeds)} seeds of {steps} steps")
            else:
                print(f"{name}: found with seed {each.seed}: {each.violation}")
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
