"""Source and sink: a topic that grows is copied to another one, and into files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import trio

from spark_kills.analysis import Checkpoint
from spark_kills.clients import Found, create_topics, feed, read
from spark_kills.ledger import Row, repeated, wrong_in_copy, wrong_in_files, wrong_in_source
from spark_kills.run import Kill, Outcome, Run, StandstillError
from spark_kills.victims import DurableBroker, Job
from trionet._util._raising import raise_single_error
from trionet.errors import TrionetError

_JOB: Final = Path(__file__).with_name("copying_job.py")
_SOURCE: Final = "source"
_COPY: Final = "copy"
_SOURCE_PARTITIONS: Final = 3
_COPY_PARTITIONS: Final = 2
_BATCH_MAX: Final = 300


class Copying:
    """One such run.

    Args:
        folder: for everything of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker = DurableBroker(folder)
        self._copied = Checkpoint(folder / "copied", _SOURCE)
        self._filed = Checkpoint(folder / "filed", _SOURCE)
        self._is_over = False
        self._acknowledged: dict[str, tuple[int, int]] = {}

    async def run(self, seed: int, kills: list[Kill]) -> Outcome:
        """All of it."""
        with self._broker.running():
            servers = self._broker.bootstrap_servers
            await create_topics(servers, {_SOURCE: _SOURCE_PARTITIONS, _COPY: _COPY_PARTITIONS})
            job = Job(self._command(), self._folder)
            run = Run(seed, job, self._broker, lambda: self._copied.done + self._filed.done)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(job.run)
                try:
                    await self._disturb(run, kills)
                except (StandstillError, TrionetError) as error:
                    run.outcome.wrong.append(str(error))
                nursery.cancel_scope.cancel()
            if not run.outcome.wrong:
                await self._check(run.outcome)
            return run.end()

    def _command(self) -> list[str]:
        client = {"kafka.bootstrap.servers": self._broker.bootstrap_servers}
        job = {
            "source": {
                **client,
                "subscribe": _SOURCE,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(_BATCH_MAX),
            },
            "sink": {**client, "topic": _COPY},
            "copied": str(self._copied.folder),
            "filed": str(self._filed.folder),
            "files": str(self._folder / "files"),
            "temporary": str(self._folder / "temporary"),
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
        both = (self._copied, self._filed)
        await run.until(lambda: all(each.is_through(ends) for each in both), "end of both queries")

    async def _feed(self) -> None:
        servers = self._broker.bootstrap_servers
        self._acknowledged = await feed(servers, _SOURCE, lambda: self._is_over)

    async def _check(self, outcome: Outcome) -> None:
        servers = self._broker.bootstrap_servers
        in_source = await read(servers, _SOURCE, _SOURCE_PARTITIONS)
        source = [
            Row(partition, each.offset, each.key.decode(), each.value.decode())
            for partition, records in in_source.items()
            for each in records
        ]
        copies = {
            partition: list(map(copied_row, records))
            for partition, records in (await read(servers, _COPY, _COPY_PARTITIONS)).items()
        }
        cuts = self._filed.cuts()
        outcome.wrong += wrong_in_source(self._acknowledged, source)
        outcome.wrong += wrong_in_files(source, cuts, _files(self._folder / "files"))
        outcome.wrong += wrong_in_copy(source, self._copied.cuts(), copies)
        outcome.told.append(
            f"{len(source):,} records in {len(cuts)} micro-batches,"
            f" {repeated(source, copies):,} copied again"
        )


def copied_row(record: Found) -> Row:
    """The record of the topic that is read which this is a copy of."""
    row = _row(record.value.decode())
    return row._replace(key=row.key if row.key == record.key.decode() else repr(record))


def _row(text: str) -> Row:
    partition, offset, key, number = text.split()
    return Row(int(partition), int(offset), key, number)


def _files(folder: Path) -> dict[int, list[Row]]:
    """What each micro-batch has read; nothing, if its last attempt did not come to its end."""
    read_by = {}
    for each in folder.glob("batch=*"):
        if (each / "_SUCCESS").exists():
            lines = [line for part in each.glob("part-*") for line in _lines(part)]
            read_by[int(each.name.partition("=")[2])] = list(map(_row, lines))
    return read_by


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()
