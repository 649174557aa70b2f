"""`python3 tests compaction`: cleanings of random logs, and a broker that its cleaner kills."""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import trio

from compaction.comparison import compare
from compaction.kills import Outcome, can_dump, kill_rounds
from compaction.table import check_tables
from support.cache import Unavailable
from support.kafka_cleaner import KafkaCleaner, kafka_cleaner
from support.kafka_node import memory_folder

DESCRIPTION = """\
Random histories of a compacted log (keys, tombstones, transactions, idempotent producers, codecs,
time) are cleaned several times by trionet and by a model, and a part of them by Kafka's own
cleaner; what each keeps must be the same, and so must be what a consumer makes of a log before and
after a cleaning. Then a broker is killed at each step of its cleaner in
turn while producers write, and the last record of each key must be right each time.
"""
EVERY_SECONDS = 10


def main(arguments: list[str]) -> int:
    """Compare, kill, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python3 tests compaction", description=DESCRIPTION)
    parser.add_argument("--runs", type=int, default=5000, help="histories (default %(default)s)")
    parser.add_argument(
        "--kafka",
        type=int,
        default=50,
        help="how many of them for Kafka, too (default %(default)s)",
    )
    parser.add_argument("--kill-rounds", type=int, default=200, help="default %(default)s")
    parser.add_argument(
        "--dump-every", type=int, default=20, help="rounds per dump by Kafka (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="the first one (default: another each time)")
    parser.add_argument("--keep", type=Path, help="keep the broker's folder here if it went wrong")
    chosen = parser.parse_args(arguments)
    seed = time.time_ns() % 2**32 if chosen.seed is None else chosen.seed
    logging.disable(logging.WARNING)  # such as that records have no key
    is_right = compare_all(seed, chosen.runs, chosen.kafka)
    if is_right and chosen.kill_rounds:
        is_right = kill_all(seed, chosen.kill_rounds, chosen.dump_every, chosen.keep)
    return 0 if is_right else 1


def compare_all(first: int, runs: int, kafka_runs: int) -> bool:
    """Compare the histories with consecutive seeds; the first ones with Kafka."""
    counts: Counter[str] = Counter()
    began = told = time.monotonic()
    with ExitStack() as stack:
        cleaner = _started(stack) if kafka_runs else None
        for number in range(runs):
            seed = first + number
            try:
                counts += compare(random.Random(seed), cleaner if number < kafka_runs else None)
                trio.run(check_tables, random.Random(seed))
            except Exception as error:  # boundary: whatever it is, the seed is what one needs
                say(f"WRONG with --seed {seed} --runs 1 --kill-rounds 0: {error!r}"[:5000])
                return False
            if time.monotonic() - told > EVERY_SECONDS:
                told = time.monotonic()
                say(f"{number + 1:,} of {runs:,} histories")
    compared = min(kafka_runs, runs) if cleaner is not None else 0
    say(
        f"{runs:,} histories end as the model's, {compared:,} of them as Kafka's,"
        f" in {time.monotonic() - began:.0f} s: {listed(counts)}"
    )
    return True


def _started(stack: ExitStack) -> KafkaCleaner | None:
    try:
        return stack.enter_context(kafka_cleaner())
    except Unavailable as reason:
        say(f"without Kafka: {reason}")
        return None


def kill_all(seed: int, rounds: int, dump_every: int, keep: Path | None) -> bool:
    """Kill a broker, and report what was wrong."""
    if not can_dump():
        say("without Kafka's dump tool: there is no Java")
        dump_every = rounds + 2
    outcome = Outcome()
    began = told = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trionet-compaction-", dir=memory_folder()) as name:
        folder = Path(name) / "data"
        for number, latest in enumerate(kill_rounds(rounds, seed, folder, dump_every)):
            outcome = latest
            if time.monotonic() - told > EVERY_SECONDS:
                told = time.monotonic()
                say(f"{number} of {rounds} kills")
        if outcome.wrong and keep is not None:
            shutil.copytree(name, keep / str(seed))
    for line in outcome.wrong:
        say(f"WRONG: {line}")
    say(
        f"{rounds} kills in {time.monotonic() - began:.0f} s, {outcome.dumps} dumps by Kafka:"
        f" {outcome.written:,} records written, {outcome.left:,} left;"
        f" {len(outcome.wrong)} mistakes"
    )
    say(f"killed at: {listed(outcome.steps)}")
    return not outcome.wrong


def listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


def say(line: str) -> None:
    """Report how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
