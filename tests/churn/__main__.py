"""`python3 tests churn [--seconds N]`: members of a group come, leave and crash at random."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import trio

from churn.run import SETTLE_SECONDS_MAX, Outcome, Wanted, run

_SHOW_EVERY = 10


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests churn",
        description="Members of one group, of three client libraries, come, leave and crash at "
        "random, while records are written, processed and committed.",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="default %(default)s")
    parser.add_argument("--members", type=int, default=50, help="default %(default)s")
    parser.add_argument(
        "--processes", type=int, default=2, help="for each library (default %(default)s)"
    )
    parser.add_argument("--records", type=int, default=500, help="a second (default %(default)s)")
    parser.add_argument("--session-ms", type=int, default=6000, help="default %(default)s")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: another each time)")
    chosen = parser.parse_args(arguments)
    seed = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    wanted = Wanted(
        seconds=chosen.seconds,
        members=chosen.members,
        processes=chosen.processes,
        session_ms=chosen.session_ms,
        records_per_second=chosen.records,
        seed=seed,
    )
    print(f"seed {seed}", flush=True)
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="trionet-churn-") as folder:
        outcome = trio.run(run, wanted, Path(folder), progress.show)
    progress.end()
    return summary(outcome, seed)


class Progress:
    """One line that changes on a terminal, and one every now and then elsewhere."""

    def __init__(self) -> None:
        self._lines = 0
        self._is_live = sys.stdout.isatty()

    def show(self, line: str) -> None:
        if self._is_live:
            print(f"\r\033[K{self._lines} s: {line}", end="", flush=True)
        elif self._lines % _SHOW_EVERY == 0:
            print(f"{self._lines} s: {line}", flush=True)
        self._lines += 1

    def end(self) -> None:
        if self._is_live:
            print()


def summary(outcome: Outcome, seed: int) -> int:
    """Report what came of it."""
    complaints = outcome.complaints()
    settled = outcome.settled or [0.0]
    print(
        f"{outcome.generations} generations; {outcome.changes};"
        f" {outcome.written:,} records written, {outcome.processed:,} times processed",
        f"settled {len(outcome.settled)} times: median {statistics.median(settled):.2f} s,"
        f" max {max(settled):.2f} s, allowed {SETTLE_SECONDS_MAX:.0f} s",
        *complaints,
        f"seed {seed}: {len(complaints)} complaints",
        sep="\n",
        flush=True,
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
