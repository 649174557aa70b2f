"""Runs the pipeline: prepares the topics, starts the streaming query, and reports its progress."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio
from pyspark.errors import PySparkException

from trionet._util._raising import raise_single_error
from trionet.client.admin import Admin, NewTopic, open_admin
from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.net._network import SYSTEM, Network
from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

from .._data_source import TrionetDataSource
from ..source._lag import lag
from ._batches import BatchProcessor, BatchResult
from ._closing import Outputs
from ._session import Stop, check_master, open_session
from ._settings import JobSettings
from ._storage import Intake, StateStore, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery


#: How often to check whether the topic of the request log exists.
TOPIC_CHECK_SECONDS: Final = 1.0
#: How often to check, before Spark is started, whether the job is asked to stop.
STOP_CHECK_SECONDS: Final = 0.1
#: A repeated key always has the same value, so that compaction removes the duplicates.
RESULTS_CONFIGS: Final = {"cleanup.policy": "compact,delete"}


async def prepare_topics(
    settings: JobSettings,
    is_stopped: Callable[[], bool],
    report: Callable[[str], None],
    connect: Callable[[Admin], Awaitable[None]] = Admin.until_connected,
    *,
    network: Network = SYSTEM,
) -> bool:
    """Wait for the topic of the request log, and create the results topic if it is missing.

    Args:
        settings: the settings of the job.
        is_stopped: returns whether to stop waiting; it is asked every :data:`STOP_CHECK_SECONDS`.
        report: called once, with a message, if the topic does not exist yet.
        connect: waits until a broker accepts requests.
        network: the network on which connections are made.

    Returns:
        True if the topics exist; False if waiting was stopped.

    Raises:
        ConfigError: the request log does not exist, and the job only reads available records.
        TrionetError: the cluster cannot be queried.
    """
    are_ready = False
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_once, is_stopped, nursery.cancel_scope)
            await _prepare_topics(settings, report, connect, network)
            are_ready = True
            nursery.cancel_scope.cancel(reason="the topics exist")
    return are_ready


async def _cancel_once(is_stopped: Callable[[], bool], scope: trio.CancelScope) -> None:
    await trio.lowlevel.checkpoint()
    while not is_stopped():  # noqa: ASYNC110 -- a signal's handler can set no event of trio's
        await trio.sleep(STOP_CHECK_SECONDS)
    scope.cancel(reason="the job is asked to stop")


async def _prepare_topics(
    settings: JobSettings,
    report: Callable[[str], None],
    connect: Callable[[Admin], Awaitable[None]],
    network: Network,
) -> None:
    async with open_admin(settings.bootstrap_servers, settings.admin(), network=network) as admin:
        await connect(admin)
        topics = await admin.list_topics(internal=True)
        if settings.topic not in topics:
            if settings.available_now:
                raise ConfigError(
                    f"topic {settings.topic} does not exist at {settings.bootstrap_servers}; start"
                    f" the broker with request.log.topic={settings.topic} to create it"
                )
            report(f"waiting for the topic {settings.topic}")
        while settings.topic not in topics:
            await trio.sleep(TOPIC_CHECK_SECONDS)
            topics = await admin.list_topics(internal=True)
        if settings.results_topic not in topics:
            await _create(admin, settings.results_topic)


async def _create(admin: Admin, name: str) -> None:
    created = await admin.create_topics([NewTopic(name, configs=RESULTS_CONFIGS)])
    error = created.errors.get(name)
    already_exists = isinstance(error, ApiError) and error.error_code == TOPIC_ALREADY_EXISTS
    if error is not None and not already_exists:
        raise error


#: How often to check for completed micro-batches and for a request to stop.
CHECK_SECONDS: Final = 1
#: How long a micro-batch in progress may take until it is abandoned, when the job is asked to stop.
BATCH_END_SECONDS: Final = 10.0
#: How long nothing is reported, at most, before a first minute is finished.
SILENCE_SECONDS: Final = 15.0

#: The duration that Spark reports only for triggers with a micro-batch.
_ADDED: Final = "addBatch"

_SPARK: Final = {
    # Folding works on whole Arrow batches: with ten thousand records each it is half as fast.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.stopTimeout": "30s",
}


@attrs.frozen
class BatchDone:
    """An event: Spark's checkpoint has recorded the completion of a micro-batch.

    Attributes:
        result: the result of the micro-batch.
        lag: the number of unread offsets in the topic.
        records: the number of records read in this run so far.
        windows: the number of minutes closed in this run so far.
    """

    result: BatchResult
    lag: int
    records: int
    windows: int


@attrs.frozen
class JobDone:
    """An event: the job has ended.

    Attributes:
        intake: the counts of the records read in this run.
        windows: the number of minutes closed in this run.
        open_records: the number of records in minutes that are still open.
        is_stopped: whether the job ended because it was asked to stop.
    """

    intake: Intake
    windows: int
    open_records: int
    is_stopped: bool


Event = BatchDone | JobDone | str


class JobError(TrionetError):
    """Raised when the streaming query fails."""


def run_job(
    settings: JobSettings,
    stop: Stop,
    report: Callable[[Event], None],
    connect: Callable[[Admin], Awaitable[None]] = Admin.until_connected,
) -> None:
    """Run a job until it is asked to stop or, with ``available_now``, has read all records.

    Asked to stop, it ends after the current step of its start, or after the micro-batch in progress
    if that ends within :data:`BATCH_END_SECONDS`. Otherwise it abandons the micro-batch, which the
    next run repeats.

    Args:
        settings: the settings of the job.
        stop: the request to stop.
        report: called with each event, in the calling thread.
        connect: waits until a broker accepts requests.

    Raises:
        ConfigError: the master is invalid, the request log does not exist, or the directory
            contains results from another checkpoint.
        SparkError: Spark cannot be started.
        JobError: the query failed.
        TrionetError: the cluster cannot be queried.
    """
    check_master(settings.master)
    if not trio.run(prepare_topics, settings, lambda: stop.is_requested, report, connect):
        report(JobDone(Intake(), 0, 0, is_stopped=True))
        return
    report(f"starting Spark ({settings.master})")
    spark_settings = {**_SPARK, **settings.spark}
    with open_session(
        "trionet pipeline", settings.master, spark_settings, keeps_handlers=True
    ) as spark:
        store = StateStore(Storage(spark), settings.checkpoint)
        store.claim(settings.folder)
        outputs = Outputs(
            settings.folder,
            settings.checkpoint,
            settings.sink(),
            settings.objectives,
            settings.keep_days,
        )
        batches = BatchProcessor(outputs, settings.delay_us, settings.age_max_us)
        reporter = Reporter(batches, report)
        if not stop.is_requested:
            spark.dataSource.register(TrionetDataSource)
            report(
                f"reading {settings.topic}; a minute is finished when records"
                f" {settings.delay_seconds:g} s after its end are read"
            )
            query = start(spark, settings, batches)
            try:
                _run_until(stop, query, reporter)
                end(spark, query, batches)
            except PySparkException as error:
                if not (batches.has_refused or batches.is_abandoned):
                    raise JobError(reason(error)) from error
            finally:
                query.stop()
            reporter.report_done(query)
        last = store.load_before(sys.maxsize)
        report(reporter.end(last.open_records, is_stopped=stop.is_requested))


def _run_until(stop: Stop, query: StreamingQuery, reporter: Reporter) -> None:
    while not stop.is_requested and not query.awaitTermination(CHECK_SECONDS):
        reporter.report_done(query)
        reporter.report_waiting(query)


def end(spark: SparkSession, query: StreamingQuery, batches: BatchProcessor) -> None:
    """Wait until no micro-batch is in progress, and begin no other.

    :meth:`~pyspark.sql.streaming.StreamingQuery.stop` would interrupt it anywhere.

    Raises:
        PySparkException: the query has failed; also if a micro-batch was abandoned.
    """
    batches.is_closed = True
    began = time.monotonic()
    while query.status["isTriggerActive"] and not query.awaitTermination(CHECK_SECONDS):
        seconds = time.monotonic() - began
        if seconds > BATCH_END_SECONDS:
            batches.is_abandoned = True
            spark.sparkContext.cancelAllJobs()
        if seconds > 2 * BATCH_END_SECONDS:
            break


def start(spark: SparkSession, settings: JobSettings, batches: BatchProcessor) -> StreamingQuery:
    """Start the streaming query that processes the request log."""
    # current_timestamp() of a micro-batch is kept in the checkpoint: the same if it is repeated.
    records = (
        spark.readStream.format("trionet")
        .options(**settings.source())
        .load()
        .selectExpr("value", "partition", "offset", "current_timestamp() as read_at")
    )
    writer = records.writeStream.foreachBatch(batches).option(
        "checkpointLocation", settings.checkpoint
    )
    if settings.available_now:
        return writer.trigger(availableNow=True).start()
    interval = f"{round(settings.interval_seconds * 1000)} milliseconds"
    return writer.trigger(processingTime=interval).start()


class Reporter:
    """Reports each micro-batch once Spark's checkpoint has recorded its completion.

    Until a first minute is finished, which takes minutes, it also reports what the job waits for.

    Args:
        batches: processes the micro-batches.
        report: called with each event.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        batches: BatchProcessor,
        report: Callable[[Event], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.report = report
        self._batches = batches
        self._clock = clock
        self._intake = Intake()
        self._windows = 0
        self._reported_at = clock()
        self._silence = SILENCE_SECONDS

    def report_done(self, query: StreamingQuery) -> None:
        """Report the micro-batches that have been completed since the last call."""
        progress = query.lastProgress
        if progress is None:
            return
        waiting = sum(each.total_offsets_behind_latest for each in lag(progress))
        last = last_completed(progress)
        for number in sorted(self._batches.results):
            if number <= last:
                result = self._batches.results.pop(number)
                self._intake += result.intake
                self._windows += len(result.windows)
                self._reported_at = self._clock()
                self.report(BatchDone(result, waiting, self._intake.records, self._windows))

    def report_waiting(self, query: StreamingQuery) -> None:
        """Report what the job waits for, after :data:`SILENCE_SECONDS` without a report.

        Each further time it waits twice as long, so that a topic without records fills no log.
        """
        if self._windows or self._clock() < self._reported_at + self._silence:
            return
        self._reported_at = self._clock()
        self._silence *= 2
        self.report(f"no minute finished yet: {waiting_for(query.status)}")

    def end(self, open_records: int, *, is_stopped: bool) -> JobDone:
        """Return the event of the end of the job."""
        return JobDone(self._intake, self._windows, open_records, is_stopped)


def waiting_for(status: Mapping[str, Any]) -> str:
    """Describe what a job does that has not finished a minute.

    Args:
        status: the status of the streaming query.
    """
    if status["isTriggerActive"] and status["isDataAvailable"]:
        return "a micro-batch is being processed"
    return "waiting for records"


def last_completed(progress: StreamingQueryProgress) -> int:
    """Return the number of the last micro-batch whose completion Spark has recorded.

    A trigger without new records reports the number of the next micro-batch.
    """
    return progress.batchId if _ADDED in progress.durationMs else progress.batchId - 1


#: The end of a traceback of Python. The last one in a message is that of the cause: the others are
#: those of its consequences.
_RAISED: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\S.*)")


def reason(error: PySparkException) -> str:
    """Return the cause of a failed query as one line, without Spark's plan or the traceback."""
    lines = [line.strip() for line in str(error).splitlines()]
    ours = [line for line in lines if line.startswith("trionet.") and ": " in line]
    if ours:
        return ours[-1].partition(": ")[2]
    if raised := _RAISED.findall(str(error)):
        return str(raised[-1])
    return next((line for line in lines if line), type(error).__name__)
