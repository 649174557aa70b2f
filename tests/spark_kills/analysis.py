"""The telemetry pipeline: killed again and again, its results are those of an undisturbed run.

How far a query is, its checkpoint says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from spark.pipeline.logged import Logged, traffic
from spark.pipeline.written_results import tables
from spark_kills.clients import create_topics, read, write
from spark_kills.ledger import Ends
from spark_kills.run import Kill, Outcome, Run, StandstillError
from spark_kills.victims import DurableBroker, Job
from trionet.errors import TrionetError
from trionet.protocol.request_log import LoggedRequest, encode


@attrs.frozen
class Checkpoint:
    """The checkpoint of a query that reads one topic.

    Attributes:
        folder: where it is; it may not be there yet.
        topic: which topic.
    """

    folder: Path
    topic: str

    @property
    def done(self) -> int:
        """How many micro-batches are noted as done."""
        return len(_numbers(self.folder / "commits"))

    def cuts(self) -> list[Ends]:
        """Where each micro-batch ends, in order; the last one may be under way."""
        log = self.folder / "offsets"
        return [self._ends(log / str(number)) for number in sorted(_numbers(log))]

    def is_through(self, ends: Ends) -> bool:
        """Whether all before these offsets is done."""
        done = _numbers(self.folder / "commits")
        return bool(done) and self._ends(self.folder / "offsets" / str(max(done))) == ends

    def _ends(self, log: Path) -> Ends:
        offsets = json.loads(log.read_text("utf-8").splitlines()[2])[self.topic]
        return {int(partition): offset for partition, offset in offsets.items()}


def _numbers(log: Path) -> list[int]:
    # Other names are those of checksums, and of what is not written wholly.
    if not log.exists():
        return []
    return [int(each.name) for each in log.iterdir() if each.name.isdecimal()]


_LOG: Final = "requests"
_RESULTS: Final = "results"
_PARTITIONS: Final = 2
_RECORDS: Final = 12_000
_BATCH_MAX: Final = 1_500
_SECONDS: Final = 15 * 60
#: Records of tests are of a day that may not be over yet, and no log has records of tomorrow.
_EARLIER_US: Final = 30 * 24 * 3600 * 1_000_000


@attrs.frozen
class Results:
    """What a job has written.

    Attributes:
        tables: the rows of each table in the folder.
        published: by key, the values in the topic; a repeated one is there once.
        repeats: how many records of the topic were there before.
    """

    tables: Mapping[str, list[dict[str, Any]]]
    published: Mapping[bytes, set[bytes]]
    repeats: int = attrs.field(eq=False)


class Analysis:
    """One such run.

    Args:
        folder: for everything of it.
    """

    _undisturbed: Results | None = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker = DurableBroker(folder)
        self._checkpoint = Checkpoint(folder / "results" / "_checkpoint", _LOG)

    async def run(self, seed: int, kills: list[Kill]) -> Outcome:
        """All of it; the first run in a process is preceded by an undisturbed one."""
        wanted = Analysis._undisturbed
        if wanted is None and kills:
            undisturbed = self._folder / "undisturbed"
            undisturbed.mkdir()
            outcome = await Analysis(undisturbed).run(seed, [])
            if outcome.wrong:
                return outcome
            wanted = Analysis._undisturbed
        with self._broker.running():
            servers = self._broker.bootstrap_servers
            await create_topics(servers, {_LOG: _PARTITIONS, _RESULTS: _PARTITIONS})
            await write(servers, _LOG, _PARTITIONS, _log())
            job = Job(self._command(), self._folder)
            run = Run(seed, job, self._broker, lambda: self._checkpoint.done)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(job.run)
                try:
                    await run.kill_all(kills)
                    await run.until(lambda: False, "end of the job")
                except (StandstillError, TrionetError) as error:
                    run.outcome.wrong.append(str(error))
                nursery.cancel_scope.cancel()
            if not run.outcome.wrong:
                found = await self._results()
                if wanted is None:
                    Analysis._undisturbed = found
                else:
                    run.outcome.wrong += differences(wanted, found)
                rows = sum(map(len, found.tables.values()))
                run.outcome.told.append(
                    f"{rows:,} rows of {_RECORDS:,} records in {self._checkpoint.done} "
                    f"micro-batches, {found.repeats:,} published again"
                )
            return run.end()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "trionet", "pipeline", "run", "--available-now"]
        command += ["--bootstrap-server", self._broker.bootstrap_servers, "--master", "local[2,3]"]
        command += ["--topic", _LOG, "--results-topic", _RESULTS, "--max-records", str(_BATCH_MAX)]
        command += ["--folder", str(self._folder / "results")]
        command += ["--max-age", "36500d"]  # the records are of one day
        command += ["--set", "spark.driver.memory=1g"]
        java = f"-XX:+UseSerialGC -Djava.io.tmpdir={self._folder / 'temporary'}"
        command += ["--set", f"spark.driver.extraJavaOptions={java}"]
        return command

    async def _results(self) -> Results:
        in_topic = await read(self._broker.bootstrap_servers, _RESULTS, _PARTITIONS)
        published: dict[bytes, set[bytes]] = {}
        count = 0
        for records in in_topic.values():
            for each in records:
                published.setdefault(each.key, set()).add(each.value)
                count += 1
        # Which micro-batch a row is of is different where a job that was started merges files.
        rows = {
            name: [{k: v for k, v in row.items() if k != "batch"} for row in found]
            for name, found in tables(self._folder / "results").items()
        }
        return Results(rows, published, count - len(published))


def differences(wanted: Results, found: Results) -> list[str]:
    """What of the results of a run is other than in the undisturbed one."""
    wrong = [
        f"table {name}: {len(_less(wanted, found, name))} rows are missing,"
        f" {len(_less(found, wanted, name))} are other or there too often"
        for name in sorted(wanted.tables.keys() | found.tables.keys())
        if wanted.tables.get(name) != found.tables.get(name)
    ]
    if missing := wanted.published.keys() - found.published.keys():
        wrong.append(f"topic: {len(missing)} keys are missing, such as {min(missing)!r}")
    wrong += [
        f"topic: {key!r} has {values}, not {wanted.published.get(key)}"
        for key, values in sorted(found.published.items())
        if values != wanted.published.get(key)
    ][:5]
    return wrong


def _less(some: Results, others: Results, name: str) -> list[dict[str, Any]]:
    left = list(others.tables.get(name, []))
    missing = []
    for row in some.tables.get(name, []):
        if row in left:
            left.remove(row)
        else:
            missing.append(row)
    return missing


@cache
def _log() -> list[bytes]:
    """The records of the log, the same in all runs."""
    return [encode(_earlier(each)) for each in traffic(seed=1, count=_RECORDS, seconds=_SECONDS)]


def _earlier(logged: Logged) -> Logged:
    if isinstance(logged, LoggedRequest):
        return attrs.evolve(logged, completed_at_us=logged.completed_at_us - _EARLIER_US)
    return attrs.evolve(logged, closed_at_us=logged.closed_at_us - _EARLIER_US)
