"""Runs the pipeline: prepares the topics, starts the streaming query, and reports its progress."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, Final

import attrs
import trio
from pyspark.errors import PySparkException

from trionet.client.admin import Admin, NewTopic, open_admin
from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.net._network import SYSTEM, Network
from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

from .._data_source import TrionetDataSource
from ..source._lag import lag
from ._batches import BatchProcessor, BatchResult
from ._closing import Outputs
from ._session import check_master, open_session
from ._settings import JobSettings
from ._storage import Intake, StateStore, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery


#: How often to check whether the topic of the request log exists.
TOPIC_CHECK_SECONDS: Final = 1.0
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
        is_stopped: returns whether to stop waiting.
        report: called once, with a message, if the topic does not exist yet.
        connect: waits until a broker accepts requests.
        network: the network on which connections are made.

    Returns:
        True if the topics exist; False if waiting was stopped.

    Raises:
        ConfigError: the request log does not exist, and the job only reads available records.
        TrionetError: the cluster cannot be queried.
    """
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
            if is_stopped():
                return False
            await trio.sleep(TOPIC_CHECK_SECONDS)
            topics = await admin.list_topics(internal=True)
        if settings.results_topic not in topics:
            await _create(admin, settings.results_topic)
    return True


async def _create(admin: Admin, name: str) -> None:
    created = await admin.create_topics([NewTopic(name, configs=RESULTS_CONFIGS)])
    error = created.errors.get(name)
    already_exists = isinstance(error, ApiError) and error.error_code == TOPIC_ALREADY_EXISTS
    if error is not None and not already_exists:
        raise error


#: How often to check for completed micro-batches and for a request to stop.
CHECK_SECONDS: Final = 1

#: The duration that Spark reports only for triggers with a micro-batch.
_ADDED: Final = "addBatch"

_SPARK: Final = {
    # Folding works on whole Arrow batches: with ten thousand records each it is half as fast.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.stopTimeout": "30s",
}


class Stop:
    """A request to stop, made with Ctrl-C or SIGTERM."""

    def __init__(self) -> None:
        self.is_requested = False

    def listen(self) -> None:
        """Install the signal handlers. Call this again after starting Spark, which replaces one."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._request)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.is_requested = True


@attrs.frozen
class BatchDone:
    """An event: Spark's checkpoint has recorded the completion of a micro-batch.

    Attributes:
        result: the result of the micro-batch.
        lag: the number of unread offsets in the topic.
    """

    result: BatchResult
    lag: int


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
    report: Callable[[Event], None],
    connect: Callable[[Admin], Awaitable[None]] = Admin.until_connected,
) -> None:
    """Run a job until it is asked to stop or, with ``available_now``, has read all records.

    Args:
        settings: the settings of the job.
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
    stop = Stop()
    stop.listen()
    if not trio.run(prepare_topics, settings, lambda: stop.is_requested, report, connect):
        report(JobDone(Intake(), 0, 0, is_stopped=True))
        return
    with open_session("trionet pipeline", settings.master, {**_SPARK, **settings.spark}) as spark:
        spark.dataSource.register(TrionetDataSource)
        stop.listen()
        outputs = Outputs(
            settings.folder,
            settings.checkpoint,
            settings.sink(),
            settings.objectives,
            settings.keep_days,
        )
        store = StateStore(Storage(spark), settings.checkpoint)
        store.claim(settings.folder)
        batches = BatchProcessor(outputs, settings.delay_us, settings.age_max_us)
        query = start(spark, settings, batches)
        reporter = _Reporter(batches, report)
        try:
            while not stop.is_requested and not query.awaitTermination(CHECK_SECONDS):
                reporter.report_done(query)
        except PySparkException as error:
            raise JobError(reason(error)) from error
        finally:
            query.stop()
        reporter.report_done(query)
        last = store.load_before(sys.maxsize)
        report(reporter.end(last.open_records, is_stopped=stop.is_requested))


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


class _Reporter:
    """Reports each micro-batch once Spark's checkpoint has recorded its completion."""

    def __init__(self, batches: BatchProcessor, report: Callable[[Event], None]) -> None:
        self._batches = batches
        self._report = report
        self._intake = Intake()
        self._windows = 0

    def report_done(self, query: StreamingQuery) -> None:
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
                self._report(BatchDone(result, waiting))

    def end(self, open_records: int, *, is_stopped: bool) -> JobDone:
        return JobDone(self._intake, self._windows, open_records, is_stopped)


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
