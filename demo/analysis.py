"""The delays beside the replay: Spark in a child, and its results read back from their topic.

Whatever becomes of it, the replay goes on: without Java or PySpark, or when the child has ended
early, a line says so.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.util import find_spec

import attrs
import trio

import trionet
from demo.board import Board
from demo.child import Child, ChildFailed, early_end, open_child
from demo.java import no_java
from demo.scratch import scratch_folder
from demo.windows import as_factor, windows_for

#: What the source and the sink need.
PYSPARK_MIN = (4, 2)
#: With this begins the line on the child's stderr that says why it has failed. The JVM writes
#: there, too.
FAILED = "pipeline: "
#: The topic of the results; it has one partition.
RESULTS = "flight-delays"


def no_spark() -> str:
    """What has to be installed before Spark can run; empty if nothing has to."""
    # First: PySpark is large, and of no use without.
    if obstacle := no_java():
        return obstacle
    if any(find_spec(name) is None for name in ("pyspark", "pyarrow", "numpy", "pandas")):
        return "PySpark is not installed; `python3 demo --spark` installs it"
    if tuple(map(int, re.findall(r"\d+", version("pyspark"))[:2])) < PYSPARK_MIN:
        return f"PySpark {version('pyspark')} is too old; `python3 demo --spark` installs another"
    return ""


@attrs.define
class Analysis:
    """The delays as far as they are known.

    Attributes:
        is_shown: whether anything is said of it.
        windows: the length of a window, in words.
        board: the results that have come.
        obstacle: why there is no Spark, or none any more; else empty.
        has_failed: whether that is an error.
    """

    is_shown: bool = True
    windows: str = ""
    board: Board = attrs.field(factory=Board)
    obstacle: str = ""
    has_failed: bool = False
    _child: Child | None = None
    _consumer: trionet.Consumer | None = None
    _news: trio.Event = attrs.field(factory=trio.Event)
    _position: int = 0
    _over: trio.Event = attrs.field(factory=trio.Event)

    def status(self) -> str:
        """How far Spark is, in a line."""
        latest = self._child.latest if self._child else {}
        if "read" not in latest:
            return "is starting, which takes ten seconds and more"
        return (
            f"{latest['read']:,} read, {latest['waiting']:,} waiting,"
            f" {latest['late']:,} groups too late, a micro-batch takes {latest['batch_ms']:,} ms"
        )

    def lines(self) -> list[str]:
        """All there is to say now."""
        if self.obstacle or not self.is_shown:
            return self.news()
        return [f"Spark: {self.status()}", *self.news()]

    def news(self) -> list[str]:
        """What changes no more than once a window."""
        if not self.is_shown:
            return []
        if self.obstacle:
            return [f"no delays by Spark: {self.obstacle}"]
        headline = self.board.headline()
        return [headline, *self.board.worst()] if headline else []

    def summary(self) -> list[str]:
        """What is said of it at the end."""
        if self.obstacle or not self.is_shown:
            return self.news()
        board = self.board
        count = f"{board.results:,} results of {board.windows} windows of {self.windows}"
        # The last ones may have come too late to be shown before.
        latest = [f"  {line}" for line in self.news()]
        return [f"Delays by Spark: {self.status()}; {count} in the topic {RESULTS}.", *latest]

    async def run(
        self,
        bootstrap_servers: str,
        topic: str,
        speed: float,
        begun: Callable[[], Awaitable[None]],
    ) -> None:
        """Run Spark, and read its results, until cancelled or until Spark has ended."""
        await begun()
        arguments = [bootstrap_servers, topic, RESULTS, as_factor(speed)]
        try:
            with scratch_folder() as folder:
                async with open_child("pipeline", *arguments, folder, folder=folder) as child:
                    self._child = child
                    await self._read(bootstrap_servers)
        except* ChildFailed as group:
            self.has_failed = True
            self.obstacle = early_end(group, FAILED)
        finally:
            self._over.set()

    async def finish(self) -> None:
        """Wait until Spark has taken all that was produced and its results are here.

        If it cannot run, or ends early, there is nothing to wait for.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._take_the_rest, nursery.cancel_scope)
            await self._over.wait()
            nursery.cancel_scope.cancel(reason="Spark has ended")

    async def _take_the_rest(self, scope: trio.CancelScope) -> None:
        if self._child is not None and self._consumer is not None:
            await self._child.stop()
            [partition] = self._consumer.assignment
            end = (await self._consumer.end_offsets([partition]))[partition]
            while self._position < end:
                await self._news.wait()
        scope.cancel(reason="all results are here")

    async def _read(self, bootstrap_servers: str) -> None:
        async with trionet.open_consumer(
            bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            self._consumer = consumer
            consumer.assign([trionet.TopicPartition(RESULTS, 0)])
            async for batch in consumer.batches():
                for key, value in zip(batch.keys, batch.values, strict=True):
                    self.board.add(key or b"", value or b"")
                self._position = batch.offsets[-1] + 1
                self._news.set()
                self._news = trio.Event()


@asynccontextmanager
async def open_analysis(
    bootstrap_servers: str,
    topic: str,
    speed: float,
    begun: Callable[[], Awaitable[None]],
    *,
    is_wanted: bool,
    obstacle: str,
) -> AsyncIterator[Analysis]:
    """Spark beside the block, if it can run here; it ends with the block.

    Args:
        bootstrap_servers: of the broker.
        topic: of the flights.
        speed: of the replay.
        begun: returns when there are flights: Spark's start takes what processors there are.
        is_wanted: whether Spark is to run.
        obstacle: why it cannot; else empty.
    """
    if obstacle or not is_wanted:
        yield Analysis(is_wanted, obstacle=obstacle)
        return
    # Takes a moment, which the rest of the demo does without.
    from trionet.client.admin import NewTopic

    async with trionet.open_admin(bootstrap_servers) as admin:
        (await admin.create_topics([NewTopic(RESULTS, 1)])).checked()
    analysis = Analysis(windows=windows_for(speed).name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(analysis.run, bootstrap_servers, topic, speed, begun)
        yield analysis
        nursery.cancel_scope.cancel(reason="the demo is over")
