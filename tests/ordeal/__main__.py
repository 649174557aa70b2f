"""`python3 tests ordeal [CLUSTER]...`: our clients while brokers move, stop and are killed."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import trio

from ordeal import exactly_once, first_batches, new_topics
from ordeal.client_log import add_log_argument, log_to
from ordeal.rigs import RIGS
from ordeal.run import Outcome, run
from support.cache import Unavailable

logger = logging.getLogger("ordeal")

#: Other scenarios: each is chosen by its name in front, and has arguments of its own.
SCENARIOS: Final = {
    "exactly-once": exactly_once.main,
    "first-batches": first_batches.main,
    "new-topics": new_topics.main,
}

DESCRIPTION: Final = """\
Our producers and consumers while leaders move and brokers are restarted and killed.

  trionet         three nodes of our own
  process         one, on disk, with SIGKILL
  kafka, kafka3   Apache Kafka with one node and with three

Other scenarios, each with --help of its own:

  python3 tests ordeal exactly-once    workers commit by transactions, and are killed and stalled
  python3 tests ordeal first-batches   producers begin, and their first batches fail
  python3 tests ordeal new-topics      records for topics that are a moment old
"""


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    if arguments and arguments[0] in SCENARIOS:
        return SCENARIOS[arguments[0]](arguments[1:])
    parser = argparse.ArgumentParser(
        prog="python3 tests ordeal",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
    )
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=", ".join(RIGS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=50, help="how many (default %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of disturbances (default %(default)s)"
    )
    add_log_argument(parser)
    chosen = parser.parse_args(arguments)
    log_to(chosen.log)
    unknown = set(chosen.clusters) - set(RIGS)
    if unknown:
        parser.error(f"no such cluster: {', '.join(unknown)}; there are {', '.join(RIGS)}")
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    bad = 0
    for name in chosen.clusters or RIGS:
        try:
            bad += trio.run(_run_all, name, seeds, chosen.seconds)
        except Unavailable as reason:
            print(f"{name}: skipped: {reason}")
    return 1 if bad else 0


async def _run_all(name: str, seeds: range, seconds: float) -> int:
    """All seeds against one cluster; how many went wrong."""
    bad = 0
    counts: Counter[str] = Counter()
    disturbances: Counter[str] = Counter()
    began = time.perf_counter()
    async with RIGS[name]() as rig:
        for seed in seeds:
            logger.info("%s seed %d", name, seed)
            outcome = await run(rig, seed, seconds)
            counts += Counter(outcome.counts) + Counter(acknowledged=outcome.acknowledged)
            disturbances += Counter(outcome.disturbances)
            bad += bool(outcome.wrong)
            _tell(name, outcome)
    took = time.perf_counter() - began
    print(
        f"{name}: {len(seeds)} runs, {took:,.0f} s: {bad} runs went wrong",
        f"  {_listed(counts)}",
        f"  {_listed(disturbances)}",
        sep="\n",
        flush=True,
    )
    return bad


def _tell(name: str, outcome: Outcome) -> None:
    print(
        f"{name} seed {outcome.seed}, {outcome.seconds:.0f} s: {outcome.acknowledged} acknowledged,"
        f" {_listed(outcome.counts)}; {', '.join(outcome.disturbances)}",
        *(f"  WRONG: {each}" for each in outcome.wrong),
        sep="\n",
        flush=True,
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
