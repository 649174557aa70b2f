"""`python3 tests log-faults`: a log under hostile batches and exceptions, for many steps."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from log_faults.machine import LogUnderFaults, totals

STEPS = 100_000
STEPS_OF_A_MACHINE = 60
#: So many machines with one seed; then the next.
MACHINES = 100


def main(arguments: list[str]) -> int:
    """Take the steps; hypothesis raises what it finds, with the steps that lead there."""
    parser = argparse.ArgumentParser(
        prog="python3 tests log-faults",
        description="Append good and hostile batches to a log, in memory and on a disk, while the"
        " file system fails and exceptions come at any line; after each step everything that was"
        " acknowledged has to be there, before and after a restart.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help="at least so many (default %(default)s)"
    )
    chosen = parser.parse_args(arguments)
    number, begin = chosen.seed, time.monotonic()
    while totals["steps"] < chosen.steps:
        machine = seed(number)(LogUnderFaults)
        run_state_machine_as_test(machine, settings=_settings())
        number += 1
        print(f"seed {number - 1}: {_figures()}, {time.monotonic() - begin:.0f} s", flush=True)
    return 0


def _settings() -> settings:
    return settings(
        max_examples=MACHINES,
        stateful_step_count=STEPS_OF_A_MACHINE,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def _figures() -> str:
    return ", ".join(f"{count:,} {name}" for name, count in totals.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
