"""`python3 tests ordeal exactly-once [CLUSTER]...`: records are copied by transactions, each once.

Three workers, each a process of its own, copy records with the loops of the documentation. They are
killed, cancelled, stopped until their session has ended, and stalled beyond
``max.poll.interval.ms`` (:mod:`support.exactly_once`); a reader of committed records counts.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs
import trio

import trionet
from ordeal.client_log import add_log_argument, log_to
from ordeal.copier import FENCED, SESSION_SECONDS, Start, target_of
from ordeal.rigs import RIGS, Rig
from ordeal.run import in_words
from sim.planted import EXACTLY_ONCE_BUGS
from support.cache import Unavailable
from support.exactly_once import Copies
from support.ledger import Violation
from support.processes import SAME_TRIONET
from support.protocol_level import finalize
from trionet import Admin, Consumer, TopicPartition
from trionet.client.admin import CommittedOffset, NewTopic

WORKERS: Final = 3
PARTITIONS: Final = 6
#: How many records are written at once, and how often.
_RECORDS: Final = (1, 10)
_PAUSE_SECONDS: Final = (0.0, 0.3)
#: How long a worker works until something is done to it.
_LIFE_SECONDS: Final = (0.3, 12.0)
#: How long it stands still: some lose their session meanwhile.
_STOPPED_SECONDS: Final = (0.1, 2.0 * SESSION_SECONDS)
_DOWN_SECONDS: Final = (0.0, 1.0)
#: SIGTERM may come before a worker is ready for it.
_MAY_END_WITH: Final = (0, -signal.SIGKILL, -signal.SIGTERM)
_LOOK_AGAIN_SECONDS: Final = 0.3
#: Everything has to be copied within this after the last disturbance.
_PATIENCE_SECONDS: Final = 240.0
_WRONG_SHOWN: Final = 5
_CLUSTERS: Final = ("trionet", "kafka")
_TESTS: Final = Path(__file__).parents[1]


@attrs.frozen
class Outcome:
    """What came of a seed.

    Attributes:
        seed: of what was drawn.
        seconds: how long it took.
        counts: how often what happened.
        wrong: in words.
    """

    seed: int
    seconds: float
    counts: Counter[str]
    wrong: list[str]


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests ordeal exactly-once",
        description="Three processes copy records by transactions, and are killed, cancelled and"
        " stalled; each record is copied once. For half an hour: --seeds 30 --seconds 60.",
    )
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=", ".join(RIGS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="how many (default %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of disturbances (default %(default)s)"
    )
    parser.add_argument("--keep", type=Path, help="keep what workers say in seeds that went wrong")
    parser.add_argument(
        "--planted",
        choices=EXACTLY_ONCE_BUGS,
        default="",
        help="a bug that the workers have, and that is to be found",
    )
    add_log_argument(parser)
    chosen = parser.parse_args(arguments)
    log_to(chosen.log)
    unknown = set(chosen.clusters) - set(RIGS)
    if unknown:
        parser.error(f"no such cluster: {', '.join(unknown)}; there are {', '.join(RIGS)}")
    bad = 0
    for name in chosen.clusters or _CLUSTERS:
        try:
            bad += trio.run(_run_all, name, chosen)
        except Unavailable as reason:
            print(f"{name}: skipped: {reason}")
    return 1 if bad else 0


async def _run_all(name: str, chosen: argparse.Namespace) -> int:
    """All seeds against one cluster; how many went wrong."""
    bad = 0
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    async with RIGS[name]() as rig:
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            outcome = await run(rig, seed, chosen.seconds, chosen.keep, chosen.planted)
            counts += outcome.counts
            bad += bool(outcome.wrong)
            print(
                f"{name} seed {seed}, {outcome.seconds:.0f} s: {_listed(outcome.counts)}",
                *(f"  WRONG: {each}" for each in outcome.wrong[:_WRONG_SHOWN]),
                *(["  and more"] if len(outcome.wrong) > _WRONG_SHOWN else []),
                sep="\n",
                flush=True,
            )
    took = time.perf_counter() - began
    print(
        f"{name}: {chosen.seeds} seeds, {took:,.0f} s: {bad} seeds went wrong",
        f"  {_listed(counts)}",
        sep="\n",
        flush=True,
    )
    return bad


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


async def run(
    rig: Rig, seed: int, seconds: float, keep: Path | None = None, planted: str = ""
) -> Outcome:
    """Run one seed against a cluster."""
    began = trio.current_time()
    with tempfile.TemporaryDirectory(prefix="trionet-exactly-once-") as name:
        copying = _Copying(rig, seed, Path(name), planted)
        try:
            async with trionet.open_admin(rig.bootstrap_servers) as admin:
                await copying.live(seconds, admin)
        except* Exception as errors:  # boundary: one run
            copying.wrong += in_words(errors)
        if copying.wrong and keep is not None:
            shutil.copytree(name, keep / copying.topic)
    wrong = list(dict.fromkeys(copying.wrong))
    return Outcome(seed, trio.current_time() - began, copying.counts, wrong)


class _Copying:
    """The workers of one run, what they are given, and what is found of it.

    Args:
        rig: the cluster.
        seed: of what is drawn.
        folder: for what the workers say.
        planted: a bug that they have; empty for none.

    Attributes:
        counts: how often what happened.
        topic: what is copied; no other run has it.
        wrong: in words.
    """

    def __init__(self, rig: Rig, seed: int, folder: Path, planted: str) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._rig = rig
        self._servers = rig.bootstrap_servers
        self._seed = seed
        self._folder = folder
        self._planted = planted
        self.topic = f"exactly-once-{seed}-{random.SystemRandom().randrange(1 << 32):08x}"
        self._copies = Copies()
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._processes: dict[int, trio.Process] = {}
        self._calm = folder / "calm"

    async def live(self, seconds: float, admin: Admin) -> None:
        """Disturb the workers for a while, let them come to their end, and count."""
        await finalize(admin, 1 if self._seed % 3 == 2 else 2)
        replicas = self._rig.replicas
        topics = [NewTopic(each, PARTITIONS, replicas) for each in (self.topic, self._target)]
        (await admin.create_topics(topics)).checked()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._audit, admin)
                async with trio.open_nursery() as working:
                    for number in range(WORKERS):
                        working.start_soon(self._keep, number)
                    await self._write(seconds)
                    self._calm.touch()
                    for process in self._processes.values():
                        _send(process, signal.SIGTERM)  # its successor is calm
                    await self._until_all_is_copied()
                    working.cancel_scope.cancel()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):  # all are killed
                for process in self._processes.values():
                    process.kill()
                    await process.wait()
        await self._count()
        (await admin.delete_topics([self.topic, self._target])).checked()

    @property
    def _target(self) -> str:
        return target_of(self.topic)

    async def _write(self, seconds: float) -> None:
        rng = random.Random(f"{self._seed} records")
        until = trio.current_time() + seconds
        async with trionet.open_producer(self._servers) as producer:
            while trio.current_time() < until:
                partition, values = rng.randrange(PARTITIONS), [b""] * rng.randint(*_RECORDS)
                await producer.send_batch(self.topic, values, partition=partition)
                self._ends[partition] += len(values)
                self.counts["records"] += len(values)
                await trio.sleep(rng.uniform(*_PAUSE_SECONDS))

    # The workers.

    async def _keep(self, number: int) -> None:
        """Run one process after the other with a transactional id."""
        rng = random.Random(f"{self._seed} worker {number}")
        while True:
            process = await self._start(number)
            assert process.stdout is not None
            await process.stdout.receive_some()  # it works, or has ended before
            while True:
                with trio.move_on_after(rng.uniform(*_LIFE_SECONDS)) as lives:
                    status = await process.wait()
                if not lives.cancelled_caught:
                    break
                if not self._calm.exists():
                    await self._disturb(process, rng)
            if status == FENCED:
                self.counts["workers fenced"] += 1
            elif status not in _MAY_END_WITH:
                words = (self._folder / f"{number}.log").read_text(errors="replace")[-1000:]
                self.wrong.append(f"worker {number} ended with {status}: {words}")
            await trio.sleep(rng.uniform(*_DOWN_SECONDS))

    async def _start(self, number: int) -> trio.Process:
        self.counts["workers"] += 1
        seed = f"{self._seed},{number} {self.counts['workers']}"
        name = f"{self.topic}-{number}"
        start = Start(self._servers, self.topic, name, seed, self._planted, self._calm)
        path = os.pathsep.join([str(_TESTS), SAME_TRIONET["PYTHONPATH"]])
        with (self._folder / f"{number}.log").open("ab") as log:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "ordeal.copier", *start.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
            )
        self._processes[number] = process
        return process

    async def _disturb(self, process: trio.Process, rng: random.Random) -> None:
        what = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
        self.counts[what.name] += 1
        _send(process, what)
        if what is signal.SIGSTOP:
            await trio.sleep(rng.uniform(*_STOPPED_SECONDS))
            _send(process, signal.SIGCONT)
        else:
            await process.wait()

    # What must hold.

    async def _committed(self, admin: Admin) -> dict[int, int]:
        found = (await admin.list_group_offsets([self.topic])).checked()[self.topic].checked()
        return {
            each.partition: at.offset
            for each, at in found.items()
            if isinstance(at, CommittedOffset)
        }

    async def _audit(self, admin: Admin) -> None:
        while True:
            with self._noting():
                self._copies.commits(await self._committed(admin))
            await trio.sleep(_LOOK_AGAIN_SECONDS)

    async def _until_all_is_copied(self) -> None:
        until = trio.current_time() + _PATIENCE_SECONDS
        while {**dict.fromkeys(self._ends, 0), **self._copies.committed} != self._ends:
            if trio.current_time() > until:
                self.wrong.append(f"not all of {self._ends} is copied: {self._copies.committed}")
                return
            await trio.sleep(_LOOK_AGAIN_SECONDS)

    async def _count(self) -> None:
        """Read all that is committed, when no transaction is open any more."""
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        places = [TopicPartition(self._target, each) for each in range(PARTITIONS)]
        async with (
            trionet.open_consumer(self._servers, settings) as consumer,
            trionet.open_consumer(self._servers) as uncommitted,
        ):
            until = trio.current_time() + _PATIENCE_SECONDS
            while await consumer.end_offsets(places) != await uncommitted.end_offsets(places):
                if trio.current_time() > until:
                    self.wrong.append("a transaction hangs")
                    break
                await trio.sleep(_LOOK_AGAIN_SECONDS)
            consumer.assign(places)
            consumer.stop_at(await consumer.end_offsets(places))
            await self._read(consumer)
        with self._noting():
            self._copies.check_whole(self._ends)

    async def _read(self, consumer: Consumer) -> None:
        async for batch in consumer.batches():
            for offset, value in zip(batch.offsets, batch.values, strict=True):
                with self._noting():
                    self._copies.saw(batch.partition, offset, value or b"")
                self.counts["copies"] += 1

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note a violation, and go on: there may be more."""
        try:
            yield
        except Violation as violation:
            self.wrong.append(str(violation))


def _send(process: trio.Process, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended
        process.send_signal(what)
