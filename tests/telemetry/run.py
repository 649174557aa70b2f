"""The course of a run: load, a pipeline that is killed beside it, quiet, and what came of it.

When the loads are over the pipeline is ended, too, and when the broker has nothing left to write
its counts are read. From then on nobody asks it anything until that minute is over. So the windows
up to there hold exactly the requests that were counted: a pipeline that is started now finishes
them, as soon as a clock that asks for something has moved the watermark beyond them.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs
import trio

from support.ports import free_ports
from support.processes import SAME_TRIONET, first_line, running
from telemetry.loads import answered, loads
from telemetry.peers import IDLE_SECONDS, be_peers, make_topics, tick
from telemetry.pipeline import Job, Running, running_pipeline
from telemetry.results import BrokerCounts, Results

TOPIC = "requests"
MINUTE = 60.0
#: How long a new pipeline may take until it says where its watermark is.
PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 0.2
_TELL_SECONDS = 10.0
_TESTS = Path(__file__).parents[1]

Say = Callable[[str], None]


@attrs.frozen
class Wanted:
    """What to run.

    Attributes:
        seconds: of load.
        rate: requests a second, all loads together.
        restarts: how often the pipeline is killed and started again.
        seed: of what is drawn.
        master: of Spark.
    """

    seconds: float
    rate: float
    restarts: int
    seed: int
    master: str


@attrs.frozen
class Outcome:
    """What came of a run.

    Attributes:
        answered: requests of the loads, by client.
        counts: of the broker, of all windows that begin before ``end``.
        end: a whole minute.
        results: the folder that the pipeline wrote.
        data: the folder of the broker, which has ended.
    """

    answered: dict[str, int]
    counts: BrokerCounts
    end: datetime
    results: Path
    data: Path


class Rig:
    """The broker of a run, as it is seen from outside.

    Attributes:
        bootstrap: where it listens.
    """

    def __init__(self, bootstrap: str, metrics_port: int) -> None:
        self.bootstrap = bootstrap
        self._page = f"http://127.0.0.1:{metrics_port}/metrics"

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    async def counts(self) -> BrokerCounts:
        def page() -> str:
            with urllib.request.urlopen(self._page, timeout=30) as answer:
                text: str = answer.read().decode()
                return text

        return BrokerCounts.of(await trio.to_thread.run_sync(page))

    async def settled(self) -> BrokerCounts:
        """Its counts, as soon as they stay the same and nothing waits to be written."""
        before = await self.counts()
        while True:
            # As long as a fetch may wait, and a connection say nothing.
            await trio.sleep(IDLE_SECONDS / 2)
            found = await self.counts()
            if found == before and found.is_settled:
                return found
            before = found


@asynccontextmanager
async def _open_rig(data: Path, log: Path) -> AsyncIterator[Rig]:
    [metrics_port] = free_ports(1)
    settings = {
        "log.dirs": str(data),
        "metrics.listener": f"http://127.0.0.1:{metrics_port}",
        "connections.max.idle.ms": int(IDLE_SECONDS * 1000),
        "request.log.topic": TOPIC,
        "request.log.buffer.records": 500_000,
    }
    path = f"{SAME_TRIONET['PYTHONPATH']}:{_TESTS}"
    command = [sys.executable, "-m", "telemetry.broker", json.dumps(settings)]
    with running(command, env={"PYTHONPATH": path}, stderr=log, stop_seconds=60) as process:
        yield Rig(first_line(process), metrics_port)
        assert process.stdin is not None
        process.stdin.close()
        if await trio.to_thread.run_sync(process.wait):
            raise RuntimeError(f"the broker ended with {process.returncode}")


async def run(wanted: Wanted, folder: Path, say: Say) -> Outcome:
    """Run once, in a folder that is empty."""
    results = folder / "results"
    rng = random.Random(wanted.seed)
    async with _open_rig(folder / "data", folder / "broker.log") as rig:
        await make_topics(rig.bootstrap)
        job = Job(
            rig.bootstrap,
            TOPIC,
            results,
            folder / "pipeline.log",
            ("--master", wanted.master),
        )
        requests = await _load(wanted, rig, job, rng, say)
        counts = await rig.settled()
        end = (math.floor(time.time() / MINUTE) + 1) * MINUTE
        say(f"the broker has counted {sum(counts.requests.values()):,} requests; all is written")
        await trio.sleep(end - time.time())
        limit = datetime.fromtimestamp(end, UTC)
        await _finish(rig, job, Results(results, limit), limit, say)
    return Outcome(requests, counts, limit, results, folder / "data")


async def _load(wanted: Wanted, rig: Rig, job: Job, rng: random.Random, say: Say) -> dict[str, int]:
    """Put load on the broker, beside a pipeline that is killed at random; both are over then."""
    began = trio.current_time()
    span = wanted.seconds / (wanted.restarts + 1)
    with loads(rig.port, wanted.rate, wanted.seconds) as generators:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(be_peers, rig.bootstrap, rng)
            nursery.start_soon(_tell, rig, began, say)
            for _ in range(wanted.restarts):
                with running_pipeline(job) as pipeline:
                    await _wait_for_progress(job, pipeline)
                    await trio.sleep(rng.random() * span)
                    pipeline.check()
                    pipeline.kill()
                    say(f"{trio.current_time() - began:.0f} s: killed the pipeline")
            with running_pipeline(job) as pipeline:
                await trio.sleep_until(began + wanted.seconds)
                await _wait_for_progress(job, pipeline)
                await trio.to_thread.run_sync(pipeline.stop)
            found = {
                client: await trio.to_thread.run_sync(answered, generator)
                for client, generator in generators.items()
            }
            nursery.cancel_scope.cancel()
    say(f"the loads had {sum(found.values()):,} answers")
    return found


async def _tell(rig: Rig, began: float, say: Say) -> None:
    """Say where the broker is, until cancelled."""
    while True:
        counts = await rig.counts()
        say(
            f"{trio.current_time() - began:.0f} s: {sum(counts.requests.values()):,} requests,"
            f" {counts.fate['logged']:,} logged, {counts.fate['left_out']:,} left out,"
            f" {counts.fate['dropped']:,} dropped, {sum(counts.closes.values()):,} connections"
            " closed"
        )
        await trio.sleep(_TELL_SECONDS)


async def _wait_for_progress(job: Job, pipeline: Running) -> None:
    """Until it begins or ends a batch: what disturbs it before would disturb Spark's start only."""
    before = job.progress()
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            pipeline.check()
            await trio.sleep(_LOOK_SECONDS)
            if job.progress() != before:
                return


async def _finish(rig: Rig, job: Job, results: Results, end: datetime, say: Say) -> None:
    """Have the pipeline finish all windows up to a time."""
    say(f"the pipeline finishes what is before {end:%H:%M:%S}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick, rig.bootstrap)
        with running_pipeline(job) as pipeline, trio.move_on_after(PATIENCE_SECONDS) as patience:
            while True:
                pipeline.check()
                watermark = await trio.to_thread.run_sync(results.watermark)
                if watermark is not None and watermark >= end:
                    break
                await trio.sleep(_LOOK_SECONDS)
            await trio.to_thread.run_sync(pipeline.stop)
        if patience.cancelled_caught:
            raise RuntimeError(f"the pipeline did not come to {end}:\n{pipeline.tail()}")
        nursery.cancel_scope.cancel()
