"""`python3 tests sim [--seed N] [--seeds K] [--steps M]`: a broker's life from a seed.

`python3 tests sim first-batches` has short lives of producers in its place, which take less time;
`exactly-once` workers that commit by transactions, and `cut-short` records that are not finished.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from multiprocessing import get_context

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sim import cut_short, exactly_once, first_batches
from sim.outcome import Outcome
from sim.planted import (
    BUGS,
    CUT_SHORT_BUGS,
    EXACTLY_ONCE_BUGS,
    PRODUCER_BUGS,
    TRANSACTION_BUGS,
    planted,
)
from sim.run import run, run_bank

Run = Callable[[int], Outcome]
"""What is done with a seed."""

LIFE = "life"
FIRST_BATCHES = "first-batches"
BANK = "bank"
EXACTLY_ONCE = "exactly-once"
CUT_SHORT = "cut-short"
# How many seeds by default.
SEEDS = {LIFE: 10, FIRST_BATCHES: 1000, BANK: 100, EXACTLY_ONCE: 500, CUT_SHORT: 500}
# What has an end of its own, whatever the number of steps.
SHORT: dict[str, Run] = {
    FIRST_BATCHES: first_batches.run,
    EXACTLY_ONCE: exactly_once.run,
    CUT_SHORT: cut_short.run,
}
STEPS = 1000
# Where planted bugs are found.
FOUND_BY = {
    **dict.fromkeys(PRODUCER_BUGS, FIRST_BATCHES),
    **dict.fromkeys(EXACTLY_ONCE_BUGS, EXACTLY_ONCE),
    **dict.fromkeys(CUT_SHORT_BUGS, CUT_SHORT),
}
# How many seeds each planted bug is searched with at most.
SEEDS_FOR_BUG = 40
# Plain lines tell of the progress after so many seeds.
SEEDS_PER_LINE = {LIFE: 25, FIRST_BATCHES: 500, BANK: 25, EXACTLY_ONCE: 25, CUT_SHORT: 100}
# With several processes, so many seeds are under way or wait for one.
SEEDS_AHEAD = 100


def main(arguments: list[str]) -> int:
    """Simulate, report, and say by the exit status whether every rule held."""
    parser = argparse.ArgumentParser(
        prog="python3 tests sim",
        description="Simulate a broker, its clients, faults of the network and crashes, in virtual"
        " time. One seed gives one course of events.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=list(SEEDS),
        default=LIFE,
        help=f"a broker's {LIFE}; {FIRST_BATCHES}: short lives of producers of trionet whose first"
        f" requests are refused or lost; {BANK}: transactions; {EXACTLY_ONCE}: workers of trionet"
        " that read, write and commit by transactions, and are killed, cancelled and stalled; or"
        f" {CUT_SHORT}: records whose handling is cut short (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--seeds",
        type=int,
        help="how many (default "
        + ", ".join(f"{what}: {count}" for what, count in SEEDS.items())
        + ")",
    )
    parser.add_argument(
        "--steps", type=int, default=STEPS, help="of each life (default %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--own", action="store_true", help="a life with the clients of trionet")
    parser.add_argument("--keep-going", action="store_true", help="also after a violation")
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
    seeds = range(chosen.seed, chosen.seed + (chosen.seeds or SEEDS[chosen.what]))
    run_seed: Run = partial(run, steps=chosen.steps, own=chosen.own)
    repeat = f"python3 tests sim --seed {{}} --seeds 1 --steps {chosen.steps}"
    repeat += " --own" * chosen.own
    if chosen.what in SHORT:
        run_seed = SHORT[chosen.what]
        repeat = f"python3 tests sim {chosen.what} --seed {{}} --seeds 1"
    elif chosen.what == BANK:
        run_seed = partial(run_bank, steps=chosen.steps)
        repeat = f"python3 tests sim {BANK} --seed {{}} --seeds 1 --steps {chosen.steps}"
    outcomes = simulate(run_seed, seeds, chosen.jobs, keeps_going=chosen.keep_going)
    per_line = SEEDS_PER_LINE[chosen.what]
    return report(
        list(shown(outcomes, len(seeds), per_line, quiet=chosen.json)), repeat, as_json=chosen.json
    )


def simulate(run_seed: Run, seeds: range, jobs: int, *, keeps_going: bool) -> Iterator[Outcome]:
    """Run all seeds, until one breaks a rule if it is not to go on then."""
    for outcome in outcomes_of(run_seed, seeds, jobs):
        yield outcome
        if outcome.violation and not keeps_going:
            return


def outcomes_of(run_seed: Run, seeds: range, jobs: int) -> Iterator[Outcome]:
    """What becomes of the seeds, as it becomes known."""
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    waiting = iter(seeds)
    running = {executor.submit(run_seed, seed) for seed in islice(waiting, SEEDS_AHEAD)}
    try:
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {executor.submit(run_seed, seed) for seed in islice(waiting, len(ended))}
            yield from (each.result() for each in ended)
    finally:
        executor.shutdown(cancel_futures=True)


def shown(
    outcomes: Iterator[Outcome], count: int, per_line: int, *, quiet: bool
) -> Iterator[Outcome]:
    """Show the progress: with a bar on a terminal, with a line now and then elsewhere."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        for number, outcome in enumerate(outcomes, 1):
            if not quiet and (number % per_line == 0 or number == count):
                print(f"{number} of {count} seeds", flush=True)
            yield outcome
        return
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=count)
        for outcome in outcomes:
            progress.advance(task)
            yield outcome


def report(outcomes: list[Outcome], repeat: str, *, as_json: bool) -> int:
    """Print the figures, and each violation with the command that repeats it."""
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
        print(f"repeat it: {repeat.format(each.seed)}")
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
            if short := SHORT.get(FOUND_BY.get(name, "")):
                outcome = short(seed)
            else:
                outcome = (run_bank if name in TRANSACTION_BUGS else run)(seed, steps)
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
