"""One round: a bank whose processes are killed for a while, and its audit."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

import trionet
from bank import audit
from bank.broker import NODES
from bank.readers import Reader, Records, read_with_confluent
from bank.work import (
    BANK,
    COPIES,
    FENCED,
    GIVEN_UP,
    GROUP,
    PARTITIONS,
    PATIENCE_SECONDS,
    READY,
    Work,
)
from ordeal.run import in_words
from support.bank import Place
from support.ports import free_neighbours
from support.processes import SAME_TRIONET
from support.protocol_level import finalize
from trionet import TopicPartition
from trionet.client.admin import Admin, CommittedOffset, NewTopic, OffsetSpec

#: Which program has each transactional id.
PRODUCERS: Final = {
    "ours-0": "bank.transferring",
    "ours-1": "bank.transferring",
    "ours-2": "bank.transferring",
    "confluent-0": "bank.transferring_confluent",
    "confluent-1": "bank.transferring_confluent",
    "confluent-2": "bank.transferring_confluent",
}
COPIERS: Final = {"copier-0": "bank.copying", "copier-1": "bank.copying_confluent"}
READERS: Final = 4

#: How long a process works until it is killed, and how often that may be before it works.
_LIFE_SECONDS: Final = (0.0, 8.0)
_KILLED_EARLY_SHARE: Final = 0.15
_BROKER_LIFE_SECONDS: Final = (2.0, 9.0)
_DOWN_SECONDS: Final = (0.0, 1.0)
#: How often a producer is not killed, but goes on beside its successor, which fences it.
_SUCCEEDED_SHARE: Final = 0.25
_FENCED_SECONDS: Final = 15.0
_LOOK_AGAIN_SECONDS: Final = 0.1
_TESTS: Final = Path(__file__).parents[1]


@attrs.frozen
class Outcome:
    """What came of a round.

    Attributes:
        seed: of what was drawn.
        seconds: how long it took.
        counts: how often what happened.
        wrong: in words.
    """

    seed: int
    seconds: float
    counts: dict[str, int]
    wrong: list[str]


async def run(seed: int, seconds: float, folder: Path) -> Outcome:
    """Run one round in an empty folder, and leave the journals and logs of its processes there."""
    began = trio.current_time()
    bank = Bank(seed, folder)
    try:
        await bank.live(seconds)
    except* Exception as errors:  # boundary: one round
        bank.wrong += in_words(errors)
    bank.wrong += complaints(folder)
    seconds = trio.current_time() - began
    return Outcome(seed, seconds, dict(sorted(bank.counts.items())), bank.wrong)


def complaints(folder: Path) -> list[str]:
    """Tracebacks in the broker's log."""
    lines = (folder / "broker.log").read_text(errors="replace").splitlines()
    return [f"the broker logged {each}" for each in lines if each.startswith("Traceback")]


class Bank:
    """One round.

    Args:
        seed: of what is drawn.
        folder: of everything.

    Attributes:
        counts: how often what happened.
        wrong: in words.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._seed = seed
        self._folder = folder
        self._ports = free_neighbours(NODES)
        self._servers = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        self._starts = itertools.count()
        self._processes: list[trio.Process] = []
        self._is_calm = False  # then no process is killed any more

    async def live(self, seconds: float) -> None:
        """Disturb the bank for a while, let it come to its end, and audit it."""
        try:
            self._broker = await self._start_broker()
            async with trionet.open_admin(self._servers) as admin:
                # Logs roll now and then, also in the middle of a transaction.
                configs = {"internal.segment.bytes": "20000"}
                topics = [NewTopic(each, PARTITIONS, configs=configs) for each in (BANK, COPIES)]
                (await admin.create_topics(topics)).checked()
                if self._seed % 2:  # trionet's producers speak the older protocol in these rounds
                    await finalize(admin, 1)
                await self._live(seconds, admin)
        finally:
            for process in self._processes:
                process.kill()
            with trio.CancelScope(shield=True):  # all have been killed
                for process in self._processes:
                    await process.wait()

    async def _live(self, seconds: float, admin: Admin) -> None:
        readers = {f"reader {number}": Reader(self._servers) for number in range(READERS)}
        async with trio.open_nursery() as reading:
            for reader in readers.values():
                reading.start_soon(reader.run)
            async with trio.open_nursery() as copying:
                for id, module in COPIERS.items():
                    copying.start_soon(self._keep, id, module)
                async with trio.open_nursery() as nursery:
                    for id, module in PRODUCERS.items():
                        nursery.start_soon(self._keep, id, module)
                    await self._disturb(seconds)
                    self._is_calm = True
                    self._end(PRODUCERS)
                ends = await self._settled(admin, BANK)
                await self._copied(admin)
                self._end(COPIERS)
            for reader in readers.values():
                reader.end(ends)
            reading.cancel_scope.deadline = trio.current_time() + PATIENCE_SECONDS
        for name, reader in readers.items():
            if reader.lag():
                self.wrong.append(f"{name} does not come to the end: {reader.lag()}")
        await self._audit(admin, {name: each.seen for name, each in readers.items()})

    # Disturbances.

    async def _disturb(self, seconds: float) -> None:
        """Kill the broker again and again; it is whole, and left in peace, in the end."""
        rng = random.Random(f"{self._seed} broker")
        with trio.move_on_after(seconds):
            while True:
                await trio.sleep(rng.uniform(*_BROKER_LIFE_SECONDS))
                with trio.CancelScope(shield=True):  # it is there in the end
                    self._broker.kill()
                    await self._broker.wait()
                    self.counts["brokers killed"] += 1
                    await trio.sleep(rng.uniform(*_DOWN_SECONDS))
                    self._broker = await self._start_broker()
        assert self._broker.stdin is not None
        await self._broker.stdin.send_all(b"\n")

    async def _start_broker(self) -> trio.Process:
        ports, data = ",".join(map(str, self._ports)), str(self._folder / "data")
        seed = f"{self._seed} {next(self._starts)}"
        arguments = [ports, data, seed, *PRODUCERS, *COPIERS]
        process = await self._open("bank.broker", arguments, "broker")
        assert process.stdout is not None
        with trio.fail_after(PATIENCE_SECONDS):
            line = await process.stdout.receive_some()
        if line.decode().strip() != READY:
            raise RuntimeError(f"the broker does not start: {self._last_words('broker')}")
        return process

    async def _open(self, module: str, arguments: list[str], log: str) -> trio.Process:
        path = os.pathsep.join([str(_TESTS), SAME_TRIONET["PYTHONPATH"]])
        with (self._folder / f"{log}.log").open("ab") as file:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, "PYTHONPATH": path},
            )
        self._processes.append(process)
        return process

    def _last_words(self, log: str) -> str:
        text = (self._folder / f"{log}.log").read_text(errors="replace")
        return " | ".join(text.splitlines()[-3:])

    # Producers.

    def _work(self, id: str, instance: int = 0) -> Work:
        return Work(self._servers, self._folder, id, instance, str(self._seed))

    def _end(self, ids: dict[str, str]) -> None:
        for id in ids:
            self._work(id).end()

    async def _keep(self, id: str, module: str) -> None:
        """Run one process after the other with a transactional id, until it is over."""
        rng = random.Random(f"{self._seed} {id}")
        has_rival = False
        async with trio.open_nursery() as rivals:
            for instance in itertools.count():
                work = self._work(id, instance)
                process = await self._open(module, work.arguments, work.name)
                await self._let_work(process, rng)
                if process.returncode is not None:
                    if not self._may_end(process.returncode, work, has_rival=has_rival):
                        return
                    has_rival = False
                    continue
                if self._is_calm:
                    process.send_signal(signal.SIGABRT)  # its stacks are in its log
                    self.wrong.append(f"{work.name} does not come to its end")
                    return
                has_rival = rng.random() < _SUCCEEDED_SHARE
                if has_rival:
                    rivals.start_soon(self._retire, process, work)
                else:
                    process.kill()
                    await process.wait()
                    self.counts["producers killed"] += 1

    async def _let_work(self, process: trio.Process, rng: random.Random) -> None:
        """Wait for a while, or until the process has ended."""
        assert process.stdout is not None
        if rng.random() > _KILLED_EARLY_SHARE:
            with trio.move_on_after(PATIENCE_SECONDS):
                await process.stdout.receive_some()
        with trio.move_on_after(rng.uniform(*_LIFE_SECONDS)):
            await process.wait()
        if self._is_calm:
            with trio.move_on_after(2 * PATIENCE_SECONDS):
                await process.wait()

    def _may_end(self, status: int, work: Work, *, has_rival: bool) -> bool:
        """Judge how a process has ended; return whether there must be another one."""
        if status == 0 and work.is_over():
            return False
        if status == FENCED and has_rival:
            # It was the successor that came first.
            self.counts["producers fenced"] += 1
            return True
        if status == GIVEN_UP:
            self.counts["producers given up"] += 1
            return True
        self.wrong.append(f"{work.name} ended with {status}: {self._last_words(work.name)}")
        return False

    async def _retire(self, process: trio.Process, work: Work) -> None:
        """A process goes on until it is fenced; a copier without records may not notice that."""
        with trio.move_on_after(_FENCED_SECONDS):
            await process.wait()
        if process.returncode is None:
            process.kill()
            self.counts["producers killed"] += 1
        elif process.returncode == FENCED:
            self.counts["producers fenced"] += 1
        elif not (process.returncode == 0 and work.is_over()):
            self._may_end(process.returncode, work, has_rival=False)

    # The end.

    async def _settled(self, admin: Admin, topic: str) -> dict[TopicPartition, int]:
        """Wait until no transaction is open any more; return the ends of the logs."""
        latest = {TopicPartition(topic, each): OffsetSpec.LATEST for each in range(PARTITIONS)}
        with trio.move_on_after(PATIENCE_SECONDS):
            while True:
                high = (await admin.list_offsets(latest)).checked()
                stable = (await admin.list_offsets(latest, read_committed=True)).checked()
                open_ones = {
                    str(each): (stable[each].offset, high[each].offset)
                    for each in latest
                    if stable[each].offset != high[each].offset
                }
                if not open_ones:
                    break
                await trio.sleep(_LOOK_AGAIN_SECONDS)
        if open_ones:
            raise RuntimeError(f"transactions hang: LSO and high watermark are {open_ones}")
        return {each: found.offset or 0 for each, found in high.items()}

    async def _copied(self, admin: Admin) -> None:
        """Wait until the group has copied everything there is, which ends with markers."""
        reader = await self._read(admin, BANK)
        ends = {place: max(records) + 1 for place, records in reader.items()}
        left, committed = ends, {}
        with trio.move_on_after(PATIENCE_SECONDS):
            while left:
                committed = await self._committed(admin)
                left = {each: end for each, end in ends.items() if committed.get(each, 0) < end}
                await trio.sleep(_LOOK_AGAIN_SECONDS)
        if left:
            self.wrong.append(f"the group does not copy up to {left}: {committed}")

    async def _committed(self, admin: Admin) -> dict[Place, int]:
        found = (await admin.list_group_offsets([GROUP], require_stable=True)).checked()[GROUP]
        return {
            (each.topic, each.partition): at.offset
            for each, at in found.items()
            if isinstance(at, CommittedOffset)
        }

    async def _read(self, admin: Admin, topic: str) -> Records:
        reader = Reader(self._servers, topic)
        reader.end(await self._settled(admin, topic))
        with trio.move_on_after(PATIENCE_SECONDS):
            await reader.run()
        if reader.lag():
            raise RuntimeError(f"a reader of {topic} does not come to the end: {reader.lag()}")
        return reader.seen

    async def _audit(self, admin: Admin, seen: dict[str, Records]) -> None:
        bank = seen["auditor"] = await self._read(admin, BANK)
        copies = await self._read(admin, COPIES)
        with_confluent = partial(read_with_confluent, self._servers)
        seen["confluent-kafka"] = await trio.to_thread.run_sync(with_confluent, BANK)
        books = audit.books_of(self._folder)
        self.counts["committed"] = len(books.committed)
        self.counts["aborted"] = len(books.aborted)
        self.counts["of unknown outcome"] = len(books.unknown)
        self.counts["copies"] = sum(map(len, copies.values()))
        audit.check_readers(seen)
        audit.check_readers(
            {
                "auditor": copies,
                "confluent-kafka": await trio.to_thread.run_sync(with_confluent, COPIES),
            }
        )
        audit.check_bank(books, bank)
        audit.check_copies(bank, copies, await self._committed(admin))
