"""`python3 tests ordeal [CLUSTER]...`: our clients while brokers move, stop and are killed."""

from __future__ import annotations

import argparse
import sys
import time

import trio

from ordeal.rigs import RIGS
from ordeal.run import run
from support.cache import Unavailable


def main(arguments: list[str]) -> int:
    """Run, tell, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests ordeal",
        description="Our producers and consumers while leaders move and brokers are restarted and"
        " killed. trionet: three nodes of our own; process: one, on disk, with SIGKILL; kafka and"
        " kafka3: Apache Kafka with one node and with three.",
    )
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=", ".join(RIGS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=50, help="how many (default %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of disturbances (default %(default)s)"
    )
    chosen = parser.parse_args(arguments)
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
    bad = acknowledged = disturbances = 0
    began = time.perf_counter()
    async with RIGS[name]() as rig:
        for seed in seeds:
            outcome = await run(rig, seed, seconds)
            acknowledged += outcome.acknowledged
            disturbances += len(outcome.disturbances)
            bad += bool(outcome.wrong)
            print(
                f"{name} seed {seed}: {outcome.acknowledged} acknowledged,"
                f" {outcome.processed} times processed; {', '.join(outcome.disturbances)}",
                *(f"  WRONG: {each}" for each in outcome.wrong),
                sep="\n",
                flush=True,
            )
    print(
        f"{name}: {len(seeds)} runs, {acknowledged:,} records acknowledged, {disturbances}"
        f" disturbances, {time.perf_counter() - began:,.0f} s: {bad} runs went wrong",
        flush=True,
    )
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
