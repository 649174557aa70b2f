"""`python3 tests log-lives`: logs over many lives, compared with what was acknowledged."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter

import trio
from trio.testing import MockClock

from log_lives.life import Life
from log_lives.planted import BUGS, planted
from support.ledger import Violation

DESCRIPTION = """\
Let logs be appended to by idempotent and transactional producers, rolled, deleted, retained and
compacted, while the broker is stopped, killed at any change of its disk, or loses its power, and
its producers go on. Each time, records, producers, transactions and the index of aborted ones must
be what was acknowledged. One seed gives one course of events.
"""
RUNS = 10_000
STEPS = 60
#: How many seeds each planted bug is searched with at most.
RUNS_FOR_BUG = 1_000
EVERY_SECONDS = 10


def main(arguments: list[str]) -> int:
    """Let them live, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python3 tests log-lives", description=DESCRIPTION)
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--runs", type=int, help=f"how many logs (default {RUNS:,})")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each (default %(default)s)")
    parser.add_argument(
        "--planted",
        choices=[*BUGS, "all"],
        metavar="NAME",
        help=f"plant a bug, and search until it is found: {', '.join(BUGS)}, or all",
    )
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    if chosen.planted is not None:
        names = list(BUGS) if chosen.planted == "all" else [chosen.planted]
        seeds = range(chosen.seed, chosen.seed + (chosen.runs or RUNS_FOR_BUG))
        found = [search(name, seeds, chosen.steps) for name in names]
        return 0 if all(found) else 1
    return run_all(range(chosen.seed, chosen.seed + (chosen.runs or RUNS)), chosen.steps)


def run_all(seeds: range, steps: int) -> int:
    """Run all seeds, up to the first that goes wrong."""
    counts: Counter[str] = Counter()
    began = told = time.monotonic()
    for number, seed in enumerate(seeds, 1):
        wrong, found = run(seed, steps)
        counts += found
        if wrong:
            print(f"WRONG with --seed {seed} --runs 1 --steps {steps}: {wrong}")
            return 1
        if time.monotonic() - told > EVERY_SECONDS:
            told = time.monotonic()
            print(f"{number:,} of {len(seeds):,} logs", flush=True)
    figures = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"{len(seeds):,} logs in {time.monotonic() - began:.0f} s, 0 wrong: {figures}")
    return 0


def run(seed: int, steps: int) -> tuple[str, Counter[str]]:
    """Return what is wrong with one log, if anything, and what has happened to it."""
    life = Life(seed)
    try:
        trio.run(life.run, steps, clock=MockClock(autojump_threshold=0))
    except Violation as violation:
        return str(violation), life.counts
    except Exception as error:  # boundary: whatever it is, the seed is what one needs
        return repr(error), life.counts
    finally:
        life.close()
    return "", life.counts


def search(name: str, seeds: range, steps: int) -> bool:
    """Search for a planted bug, and say with which seed it was found."""
    with planted(name):
        for seed in seeds:
            wrong, _ = run(seed, steps)
            if wrong:
                print(f"{name}: found with seed {seed}: {wrong}", flush=True)
                return True
    print(f"{name}: NOT FOUND with {len(seeds)} seeds of {steps} steps", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
