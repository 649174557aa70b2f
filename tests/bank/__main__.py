"""`python3 tests bank`: transactions of real processes, which are killed at random."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs
import trio

from bank.run import COPIERS, PRODUCERS, READERS, Outcome, run
from support.kafka_node import memory_folder

DESCRIPTION = f"""\
{len(PRODUCERS)} producers, of trionet and of confluent-kafka, move amounts between accounts by
transactions; {len(COPIERS)} members of a group copy all records exactly once; {READERS} readers of
committed records look on. Each producer and the broker are processes, which are killed and started
again, while leaders and coordinators move. After each round nothing may be missing, in part, there
twice, or open. Rounds with odd seeds have the older protocol of transactions.
"""


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python3 tests bank", description=DESCRIPTION)
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of disturbances in each (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="the first one (default: another each time)")
    parser.add_argument("--keep", type=Path, help="keep the folders of rounds that went wrong here")
    parser.add_argument("--json", action="store_true", help="the outcome as JSON, and nothing else")
    chosen = parser.parse_args(arguments)
    first = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    outcomes = []
    for seed in range(first, first + chosen.rounds):
        outcomes.append(run_one(seed, chosen.seconds, chosen.keep))
        if not chosen.json:
            print(described(outcomes[-1]), flush=True)
    if chosen.json:
        print(json.dumps([attrs.asdict(each) for each in outcomes]))
    else:
        print(summary(outcomes))
    return 1 if any(each.wrong for each in outcomes) else 0


def run_one(seed: int, seconds: float, keep: Path | None) -> Outcome:
    """One round in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="trionet-bank-", dir=memory_folder()) as name:
        outcome = trio.run(run, seed, seconds, Path(name))
        if outcome.wrong and keep is not None:
            shutil.copytree(name, keep / str(seed))
    return outcome


def described(outcome: Outcome) -> str:
    lines = [f"seed {outcome.seed}, {outcome.seconds:.0f} s: {listed(outcome.counts)}"]
    return "\n".join(lines + [f"  WRONG: {each}" for each in outcome.wrong])


def summary(outcomes: list[Outcome]) -> str:
    counts: Counter[str] = Counter()
    for each in outcomes:
        counts.update(each.counts)
    bad = sum(bool(each.wrong) for each in outcomes)
    return f"{len(outcomes)} rounds: {bad} went wrong\n  {listed(counts)}"


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
