"""The exactly-once sink: a topic is copied on a cluster whose every part is killed.

What a reader sees that reads committed records is each record once.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import trio

from spark_kills.analysis import Checkpoint
from spark_kills.clients import create_topics, feed, open_transactions, read, until_committed
from spark_kills.copying import copied_row
from spark_kills.ledger import Row, repeated, wrong_in_exact_copy, wrong_in_source
from spark_kills.run import Kill, Outcome, Run, StandstillError
from spark_kills.victims import Durable, DurableBroker, DurableKafka, Job
from support.spark_cluster import SparkCluster, spark_cluster
from trionet._util._raising import raise_single_error
from trionet.errors import TrionetError

#: The longest that a transaction may take before the broker aborts it: longer than a micro-batch
#: takes on a busy machine right after the driver's start, with all its Python processes to start.
TRANSACTION_SECONDS: Final = 30
_JOB: Final = Path(__file__).with_name("exactly_once_job.py")
_SOURCE: Final = "source"
_COPY: Final = "copy"
_SOURCE_PARTITIONS: Final = 3
_COPY_PARTITIONS: Final = 2
_SHUFFLE_PARTITIONS: Final = 3
#: Micro-batches are smaller, but for the first one after a stop: what waits is caught up with.
_BATCH_MAX: Final = 5_000
_WORKERS: Final = 2
PAUSE_SECONDS_MAX: Final = 1.5
_LOOK_SECONDS: Final = 0.2


class ExactlyOnce:
    """One such run. Of three successive seeds one has a shuffle, and one speculates.

    Args:
        folder: for everything of it.
        broker: that is written to.
        guarantee: of the sink.
        is_adaptive: whether each run has a shuffle, whose partitions Spark joins as it likes.
    """

    def __init__(
        self,
        folder: Path,
        broker: Durable,
        guarantee: str = "exactly-once",
        *,
        is_adaptive: bool = False,
    ) -> None:
        self._folder = folder
        self._broker = broker
        self._guarantee = guarantee
        self._is_adaptive = is_adaptive
        self._copied = Checkpoint(folder / "copied", _SOURCE)
        self._is_over = False
        self._acknowledged: dict[str, tuple[int, int]] = {}

    @classmethod
    def on_ours(cls, folder: Path) -> ExactlyOnce:
        """On trionet's broker."""
        return cls(folder, DurableBroker(folder))

    @classmethod
    def adaptive(cls, folder: Path) -> ExactlyOnce:
        """On trionet's broker, by queries with adaptive execution."""
        return cls(folder, DurableBroker(folder), is_adaptive=True)

    @classmethod
    def on_kafka(cls, folder: Path) -> ExactlyOnce:
        """On Apache Kafka; raises `Unavailable` where there is none."""
        return cls(folder, DurableKafka(folder))

    async def run(self, seed: int, kills: list[Kill]) -> Outcome:
        """All of it."""
        servers = self._broker.bootstrap_servers
        cluster_folder = self._folder / "cluster"
        cluster_folder.mkdir()
        with self._broker.running(), spark_cluster(cluster_folder, _WORKERS) as cluster:
            await create_topics(servers, {_SOURCE: _SOURCE_PARTITIONS, _COPY: _COPY_PARTITIONS})
            job = Job(self._command(seed, cluster), self._folder, cluster)
            commits = lambda: until_committed(servers, _COPY, _COPY_PARTITIONS)  # noqa: E731
            run = Run(seed, job, self._broker, lambda: self._copied.done, commits)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(job.run)
                try:
                    await self._disturb(run, kills)
                    await self._all_end(run.outcome)
                except (StandstillError, TrionetError) as error:
                    run.outcome.wrong.append(str(error))
                nursery.cancel_scope.cancel()
            if not run.outcome.wrong:
                await self._check(seed, run.outcome)
            return run.end()

    def _command(self, seed: int, cluster: SparkCluster) -> list[str]:
        client = {"kafka.bootstrap.servers": self._broker.bootstrap_servers}
        sink = {**client, "topic": _COPY}
        if self._guarantee == "exactly-once":
            sink["delivery.guarantee"] = self._guarantee
            sink["kafka.transaction.timeout.ms"] = str(TRANSACTION_SECONDS * 1000)
        job = {
            "master": cluster.master,
            "source": {
                **client,
                "subscribe": _SOURCE,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(_BATCH_MAX),
            },
            "sink": sink,
            "checkpoint": str(self._copied.folder),
            "shuffle": _SHUFFLE_PARTITIONS if self._has_shuffle(seed) else 0,
            "adaptive": self._is_adaptive,
            "speculation": _speculates(seed),
            "settings": cluster.settings(self._folder / "temporary"),
        }
        return [sys.executable, str(_JOB), json.dumps(job)]

    async def _disturb(self, run: Run, kills: list[Kill]) -> None:
        with raise_single_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._feed)
                try:
                    await run.kill_all(kills)
                finally:
                    self._is_over = True
        ends = dict.fromkeys(range(_SOURCE_PARTITIONS), 0)
        for partition, offset in self._acknowledged.values():
            ends[partition] = max(ends[partition], offset + 1)
        await run.until(lambda: self._copied.is_through(ends), "end of the query")

    async def _feed(self) -> None:
        servers = self._broker.bootstrap_servers
        self._acknowledged = await feed(servers, _SOURCE, lambda: self._is_over)

    async def _all_end(self, outcome: Outcome) -> None:
        """No transaction stays open: at the latest its timeout ends it, and nothing is lost."""
        left = await open_transactions(self._broker.bootstrap_servers)
        if left:
            outcome.told.append(f"{len(left)} transactions left to their timeout")
        with trio.move_on_after(2 * TRANSACTION_SECONDS):
            while left:
                await trio.sleep(_LOOK_SECONDS)
                left = await open_transactions(self._broker.bootstrap_servers)
        outcome.wrong += [f"is still open: {each}" for each in left]

    async def _check(self, seed: int, outcome: Outcome) -> None:
        servers = self._broker.bootstrap_servers
        in_source = await read(servers, _SOURCE, _SOURCE_PARTITIONS)
        source = [
            Row(partition, each.offset, each.key.decode(), each.value.decode())
            for partition, records in in_source.items()
            for each in records
        ]
        readable = await read(servers, _COPY, _COPY_PARTITIONS, read_committed=True)
        everything = await read(servers, _COPY, _COPY_PARTITIONS)
        copies = {at: [*map(copied_row, found)] for at, found in readable.items()}
        outcome.wrong += wrong_in_source(self._acknowledged, source)
        wrong = wrong_in_exact_copy(source, copies, in_order=not self._has_shuffle(seed))
        if self._guarantee == "exactly-once":
            outcome.wrong += wrong
        else:
            outcome.wrong += [each for each in wrong if each.startswith("was lost")]
        aborted = sum(map(len, everything.values())) - sum(map(len, readable.values()))
        counts = Counter(row.key for rows in copies.values() for row in rows)
        outcome.told += [
            f"{len(source):,} records of {len(counts)} keys in {self._copied.done} micro-batches",
            f"{repeated(source, copies):,} doubled",
            f"{aborted:,} aborted",
            *(["shuffle"] if self._has_shuffle(seed) else []),
            *(["speculation"] if _speculates(seed) else []),
        ]

    def _has_shuffle(self, seed: int) -> bool:
        return self._is_adaptive or seed % 3 == 1


def _speculates(seed: int) -> bool:
    return seed % 3 == 2
