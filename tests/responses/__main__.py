"""`python3 tests responses [--seed N] [--count M]`: change the responses that our clients read."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count

from responses.run import PROGRAMS, Outcome, run

RESPONSES = 20_000
_PROGRESS_SECONDS = 20.0
#: Of address space: what a program asks for beyond it is a find, and not the machine's end.
_MEMORY_BYTES_MAX = 4 << 30


def main(arguments: list[str]) -> int:
    """Search; the exit status says whether nothing was found."""
    parser = argparse.ArgumentParser(
        prog="python3 tests responses",
        description="Run programs of producers, consumers, admin and network clients, in virtual"
        " time, with responses that were good until something changed them. No value ends a program"
        " with an error that is not documented, holds its loop for 50 ms, keeps it busy, or grows"
        " its memory by 24 MB. The exit status is 1 if one did.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--count", type=int, default=RESPONSES, help="changed responses (default %(default)s)"
    )
    parser.add_argument("--only", default="", choices=["", *PROGRAMS], help="one program")
    parser.add_argument(
        "--keep", nargs="*", default=(), metavar="FIELD", help="fields that stay as they are"
    )
    chosen = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, resource.RLIM_INFINITY))
    began = time.monotonic()
    outcomes = list(search(chosen.seed, chosen.count, chosen.only, tuple(chosen.keep)))
    return report(outcomes, time.monotonic() - began)


def search(seed: int, wanted: int, only: str, kept: tuple[str, ...]) -> Iterator[Outcome]:
    """Run seed after seed until so many responses were changed."""
    changed = 0
    told_at = time.monotonic()
    for each in count(seed):
        if only and list(PROGRAMS)[each % len(PROGRAMS)] != only:
            continue
        outcome = run(each, kept)
        yield outcome
        for find in outcome.finds:
            print(f"\nseed {each}, {outcome.program}: {find}")
            print("\n".join(f"  {change}" for change in outcome.changes[-12:]), flush=True)
        changed += len(outcome.changes)
        if time.monotonic() - told_at > _PROGRESS_SECONDS:
            told_at = time.monotonic()
            print(f"{changed:,} of {wanted:,} responses", flush=True)
        if changed >= wanted:
            return


def report(outcomes: list[Outcome], seconds: float) -> int:
    """The figures."""
    apis = sum((each.apis for each in outcomes), Counter[str]())
    for name, number in sorted(apis.items()):
        print(f"{number:>8,} {name}")
    broken = [each for each in outcomes if each.finds]
    steps = max(each.steps for each in outcomes)
    print(
        f"{apis.total():,} changed responses of {len(outcomes):,} programs in {seconds:,.0f} s,"
        f" at most {steps:,} steps in one: {len(broken)} found"
    )
    for each in broken:
        print(f"repeat it: python3 tests responses --seed {each.seed} --count 1")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
