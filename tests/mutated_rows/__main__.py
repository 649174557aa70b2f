"""`python3 tests mutated-rows [--count N] [--seed N]`: input that strangers may write, changed."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from random import Random

from mutated_rows.attacks import ATTACKS, HELD_SECONDS_MAX


def main(arguments: list[str]) -> int:
    """Try all sources, report, and say by the exit status whether any input ended a program."""
    parser = argparse.ArgumentParser(
        prog="python3 tests mutated-rows",
        description="Give the dashboard and the pipeline records, result rows and pages of metrics "
        "that something has changed: none may end them, or hold their loop for 50 ms.",
    )
    parser.add_argument("--count", type=int, default=20_000, help="inputs (default %(default)s)")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: another each time)")
    chosen = parser.parse_args(arguments)
    seed = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    gc.freeze()  # what Spark's and Arrow's modules hold, of which a dashboard has loaded none
    wrong = 0
    for name, (attack, share) in ATTACKS.items():
        outcome = attack(Random(f"{seed} {name}"), round(chosen.count * share))
        print(
            f"{name}: {outcome.tried:,} inputs, {len(outcome.ended)} would have ended a program,"
            f" longest hold {outcome.held_seconds * 1e3:.1f} ms",
            flush=True,
        )
        for each in outcome.ended[:5]:
            print(each)
        if outcome.held_seconds > HELD_SECONDS_MAX:
            print(f"  held by {outcome.slowest[:500]!r}")
        wrong += len(outcome.ended) + (outcome.held_seconds > HELD_SECONDS_MAX)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
