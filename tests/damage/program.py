"""The command line of the two jobs."""

from __future__ import annotations

import argparse
from collections import Counter

from damage.rounds import Outcome, run_round
from damage.strike import Strike

_SHOW_EVERY = 50


def run(job: str, description: str, strike: Strike, arguments: list[str]) -> int:
    """Run rounds, tell what was wrong, and say by the exit status whether nothing was."""
    parser = argparse.ArgumentParser(prog=f"python3 tests {job}", description=description)
    parser.add_argument("--rounds", type=int, default=1000, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the first (default %(default)s)")
    parser.add_argument(
        "--only", metavar="PATTERN", default="*", help="strike files with such a name, as *.index"
    )
    parser.add_argument("--verbose", action="store_true", help="tell what every broker said")
    parser.add_argument("--keep-going", action="store_true", help="also after one that went wrong")
    chosen = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for number in range(chosen.rounds):
        outcome = run_round(chosen.seed + number, strike, chosen.only)
        counts["rounds"] += 1
        counts[f"after a broker that was {outcome.end}"] += 1
        counts["refused to start"] += outcome.refusal is not None
        counts["with reports"] += bool(outcome.reports)
        counts["wrong"] += bool(outcome.wrong)
        if outcome.wrong or chosen.verbose:
            _tell(job, outcome)
        if outcome.wrong and not chosen.keep_going:
            break
        if number % _SHOW_EVERY == _SHOW_EVERY - 1:
            print(f"{number + 1} rounds, {counts['wrong']} wrong", flush=True)
    print("; ".join(f"{what}: {count}" for what, count in counts.items()))
    return 1 if counts["wrong"] else 0


def _tell(job: str, outcome: Outcome) -> None:
    print(f"seed {outcome.seed}: {outcome.damage}, after the broker was {outcome.end}")
    for kind, texts in (("said", outcome.reports), ("WRONG", outcome.wrong)):
        for text in texts:
            print(f"  {kind}: {text}")
    if outcome.refusal is not None:
        print(f"  refused: {outcome.refusal}")
    print(f"  once more: python3 tests {job} --rounds 1 --seed {outcome.seed}", flush=True)
