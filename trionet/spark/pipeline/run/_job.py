"""The job: a session, a streaming query, and what is told of it until it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Final

import attrs
import trio
from pyspark.errors import PySparkException

from trionet.errors import TrionetError

from ..._data_source import TrionetDataSource
from ...source._lag import lag
from ..aggregation._watermarks import Intake
from ..results._closing import Places
from ..results._ownership import claim
from ..results._storage import State, Storage
from ._batches import Batches, Told
from ._session import check_master, open_session
from ._settings import JobSettings
from ._topics import prepare_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

#: How often to look whether a micro-batch is done, or whether to stop.
LOOK_SECONDS: Final = 1

#: What Spark times in a trigger only if it has had a micro-batch.
_ADDED: Final = "addBatch"

_SPARK: Final = {
    # Folding is per batch of Arrow: with ten thousand records it is half as fast.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.stopTimeout": "30s",
}


class Stop:
    """Whether somebody has asked for the end, by Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self.is_asked = False

    def listen(self) -> None:
        """Be told from now on; Spark takes Ctrl-C for itself when it starts."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.is_asked = True


@attrs.frozen
class BatchDone:
    """A micro-batch that is done, and noted as done.

    Attributes:
        told: what became of it.
        lag: how many records wait in the topic.
    """

    told: Told
    lag: int


@attrs.frozen
class JobDone:
    """The end of a job.

    Attributes:
        intake: what this run has read.
        windows: how many minutes it has told of.
        open_records: how many records wait for the watermark, in minutes that are not over.
        is_stopped: it was asked to end.
    """

    intake: Intake
    windows: int
    open_records: int
    is_stopped: bool


Event = BatchDone | JobDone | str


class JobError(TrionetError):
    """A query has failed; the message says why."""


def run_job(settings: JobSettings, tell: Callable[[Event], None]) -> None:
    """Run a job until it has read everything, or somebody asks for its end.

    Args:
        settings: what to do.
        tell: told what happens, in this thread.

    Raises:
        ConfigError: there is no such master, the log is not there, or the folder has results of
            another checkpoint.
        SparkError: Spark does not start.
        JobError: the query has failed.
        TrionetError: the cluster could not be asked.
    """
    check_master(settings.master)
    stop = Stop()
    stop.listen()
    if not trio.run(prepare_topics, settings, lambda: stop.is_asked, tell):
        tell(JobDone(Intake(), 0, 0, is_stopped=True))
        return
    with open_session("trionet pipeline", settings.master, {**_SPARK, **settings.spark}) as spark:
        spark.dataSource.register(TrionetDataSource)
        stop.listen()
        places = Places(settings.folder, settings.checkpoint, settings.sink())
        storage = Storage(spark)
        claim(storage, places)
        batches = Batches(places, settings.delay_us)
        query = start(spark, settings, batches)
        teller = _Teller(batches, tell)
        try:
            while not stop.is_asked and not query.awaitTermination(LOOK_SECONDS):
                teller.tell_done(query)
        except PySparkException as error:
            raise JobError(reason(error)) from error
        finally:
            query.stop()
        teller.tell_done(query)
        last = State(storage, settings.checkpoint).before(sys.maxsize)
        tell(teller.end(last.open_records, is_stopped=stop.is_asked))


def start(spark: SparkSession, settings: JobSettings, batches: Batches) -> StreamingQuery:
    """Start the query."""
    # The time of a micro-batch stands in Spark's checkpoint, and is the same if it is repeated.
    records = (
        spark.readStream.format("trionet")
        .options(**settings.source())
        .load()
        .selectExpr("value", "partition", "current_timestamp() as read_at")
    )
    writer = records.writeStream.foreachBatch(batches).option(
        "checkpointLocation", settings.checkpoint
    )
    if settings.available_now:
        return writer.trigger(availableNow=True).start()
    interval = f"{round(settings.interval_seconds * 1000)} milliseconds"
    return writer.trigger(processingTime=interval).start()


class _Teller:
    """Tells of micro-batches once Spark has noted that they are done."""

    def __init__(self, batches: Batches, tell: Callable[[Event], None]) -> None:
        self._batches = batches
        self._tell = tell
        self._intake = Intake()
        self._windows = 0

    def tell_done(self, query: StreamingQuery) -> None:
        progress = query.lastProgress
        if progress is None:
            return
        waiting = sum(each.total_offsets_behind_latest for each in lag(progress))
        last = last_noted(progress)
        for number in sorted(self._batches.told):
            if number <= last:
                told = self._batches.told.pop(number)
                self._intake += told.intake
                self._windows += len(told.windows)
                self._tell(BatchDone(told, waiting))

    def end(self, open_records: int, *, is_stopped: bool) -> JobDone:
        return JobDone(self._intake, self._windows, open_records, is_stopped)


def last_noted(progress: StreamingQueryProgress) -> int:
    """The number of the last micro-batch that Spark has noted as done.

    A trigger that finds nothing to read has the number of the one that is still to come.
    """
    return progress.batchId if _ADDED in progress.durationMs else progress.batchId - 1


def reason(error: PySparkException) -> str:
    """Why a query has failed, in a line: Spark wraps it in its plans and in stacks of Python."""
    lines = [line.strip() for line in str(error).splitlines()]
    ours = [line for line in lines if line.startswith("trionet.") and ": " in line]
    if ours:
        return ours[-1].partition(": ")[2]
    return next((line for line in lines if line), type(error).__name__)
