"""Processes each micro-batch in steps that can be repeated.

Spark repeats a micro-batch, with the same records and the same number, until its checkpoint has
recorded its completion. The process may be killed between any two steps, but each result must be
written exactly once. Spark's own file sink guarantees this with a log of the files written, but it
supports only a single output table. Here, each micro-batch writes eight tables, a topic and the
state of the job. So each step is idempotent instead:

* Its input is only the records of the micro-batch, its number, and the state saved before it.
* Its output is stored under the number of the micro-batch, and replaces the output of earlier
  attempts.
* The input of the micro-batch is kept until the next micro-batch.

When all of it is written, readers may see the results (:mod:`.results._cuts`), so that from then on
they are not written again.

Only the topic may contain a row twice, with the same key and the same value, so that compaction
removes the duplicate. There would be none if foreachBatch could write exactly once; see
:mod:`..sink._exactly_once`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame, SparkSession

from trionet._util._logging import get_logger

from . import _partials as partials
from . import _watermark as clocks
from ._closing import Outputs, WindowCloser, day_of
from ._fold import AGE_SECONDS_MAX, folded
from ._partials import INTAKE
from ._storage import Intake, JobState, StateStore, Storage
from .results._result_folder import ResultFolder

logger = get_logger(__name__)

_MINUTES_PER_HOUR: Final = 60


class StoppedError(Exception):
    """Raised in the streaming query, to end it, when the job is asked to stop."""


@attrs.frozen
class BatchResult:
    """The result of a micro-batch.

    Attributes:
        batch: the number of the micro-batch.
        intake: the counts of the records read.
        windows: the number of requests in each minute that was closed, keyed by minute.
        closed_before: the first minute that is still open.
        ahead: by how many minutes the clocks of brokers are ahead, by their node ids.
    """

    batch: int
    intake: Intake
    windows: Mapping[int, int]
    closed_before: int
    ahead: Mapping[int, int] = attrs.field(factory=dict)


class BatchProcessor:
    """Processes micro-batches; an instance is passed to ``foreachBatch``.

    Args:
        outputs: the destinations of the results.
        delay_us: how long a minute stays open for late records.
        age_max_us: how old a record may be when it is read.

    Attributes:
        results: the results of the micro-batches of this run, keyed by their number.
        is_closed: set this so that no further micro-batch is begun.
        is_abandoned: set this so that the micro-batch in progress ends after its current step.
        has_refused: whether a micro-batch was not begun for that.
    """

    def __init__(
        self, outputs: Outputs, delay_us: int, age_max_us: int = AGE_SECONDS_MAX * 1_000_000
    ) -> None:
        self._outputs = outputs
        self._delay_us = delay_us
        self._age_max_us = age_max_us
        self._tidied_hour: int | None = None
        # The clocks that a warning of this run has named.
        self._named: Mapping[int, int] = {}
        self.results: dict[int, BatchResult] = {}
        self.is_closed = self.is_abandoned = self.has_refused = False

    def __call__(self, records: DataFrame, number: int) -> None:
        """Process a micro-batch.

        Raises:
            StoppedError: the job is asked to stop.
        """
        if self.is_closed:
            self.has_refused = True
            raise StoppedError
        for _ in self.steps(records, number):
            if self.is_abandoned and number not in self.results:
                raise StoppedError

    def steps(self, records: DataFrame, number: int) -> Generator[str, None, None]:
        """Process a micro-batch step by step, yielding the name of each completed step.

        Args:
            records: the records, with the columns ``value``, ``partition``, ``offset`` and
                ``read_at``.
            number: the number of the micro-batch.
        """
        spark = records.sparkSession
        # Spark's default, INT96, has no time zone for other readers.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # days and keys are in UTC
        # Sums of forged records may overflow, which is an error in ANSI mode, Spark 4's default.
        spark.conf.set("spark.sql.ansi.enabled", "false")
        store = StateStore(Storage(spark), self._outputs.checkpoint)
        results = ResultFolder(Storage(spark), self._outputs.folder)
        before = store.load_before(number)
        store.prune(before)
        # Killed here: pruning again deletes the same, files of batches before the previous one.
        yield "pruned"

        folder = store.open_folder(number)
        age_max_us = self._age_max_us

        def fold(batches: Iterator[Any]) -> Iterator[Any]:
            return folded(batches, age_max_us)

        rows = records.mapInArrow(fold, partials.COLUMNS)
        rows.write.mode("overwrite").parquet(folder)
        # Killed here: the folder of this number is overwritten.
        yield "folded"

        summary = _summary(spark, folder, before)
        intake, after = after_reading(before, number, summary, self._delay_us)
        ahead = clocks.clocks_ahead(summary)
        opened = dict(after.open_batches)
        if results.has(number) and (saved := store.load_before(number + 1)).batch == number:
            # Killed when readers could see the results already: they stay as they are.
            after = saved
        else:
            if after.closed_before > before.closed_before and opened:
                results.begin(number)
                folders = [store.open_folder(each) for each in opened]
                closer = WindowCloser(spark, self._outputs, folders, before, after)
                yield from closer.steps()
                after = closer.state()
            # Killed while minutes are closed: WindowCloser deletes what this number has written.
            open_batches = {k: last for k, last in opened.items() if last >= after.closed_before}
            after = attrs.evolve(after, open_batches=open_batches)
            store.save(after)
        self._warn_of(ahead)
        self.results[number] = BatchResult(number, intake, after.closed, after.closed_before, ahead)
        # Killed here: the saved state has this number, so that a repetition loads the one before.
        yield "saved"
        if after.closed:
            results.complete(number)
            # Killed here: the results stay, and files are merged the next time.
            yield "completed"
            self._tidy(spark, results, after.closed_before)
            yield "tidied"

    def _warn_of(self, ahead: Mapping[int, int]) -> None:
        """Name clocks that are ahead, each once in a run: reports name it for every minute."""
        for node_id in sorted(ahead.keys() - self._named.keys()):
            logger.warning("the clock of broker %d is %d minutes ahead", node_id, ahead[node_id])
        self._named = clocks.furthest(self._named, ahead)

    def _tidy(self, spark: SparkSession, results: ResultFolder, closed_before: int) -> None:
        """Merge and delete files of the results, once an hour and after the job was started."""
        hour = closed_before // _MINUTES_PER_HOUR
        if hour == self._tidied_hour:
            return
        self._tidied_hour = hour

        def merge(paths: Sequence[str], folder: str) -> None:
            # Columns that older files lack are kept, and no file is passed over.
            every_file = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
            read = spark.read.options(mergeSchema="true", **every_file).parquet(*paths)
            merged = read.coalesce(1).sortWithinPartitions("window")
            # A setting of Spark's may divide files.
            merged.write.option("maxRecordsPerFile", 0).mode("overwrite").parquet(folder)

        results.tidy(day_of(closed_before), self._outputs.keep_days, merge)


def after_reading(
    before: JobState, number: int, summary: Sequence[Mapping[str, int]], delay_us: int
) -> tuple[Intake, JobState]:
    """Return the counts of what a micro-batch has read, and the state with that.

    Args:
        before: the state before the micro-batch.
        number: the number of the micro-batch.
        summary: the rows of :class:`._watermark.IntakeSummary`.
        delay_us: how long a minute stays open for late records.
    """
    names = [field.name for field in attrs.fields(Intake)]
    intake = sum((Intake(**{name: each[name] for name in names}) for each in summary), Intake())
    brokers = clocks.brokers_after(before.brokers, summary)
    read_at_us = max((each["read_at_us"] for each in summary), default=0)
    opened = dict(before.open_batches)
    last_window = max((each["minute"] for each in summary), default=-1)
    if last_window >= before.closed_before:
        opened[number] = last_window
    after = attrs.evolve(
        before,
        batch=number,
        watermark_us=clocks.watermark(before.watermark_us, brokers, read_at_us, delay_us),
        brokers=brokers,
        open_batches=opened,
        open_records=before.open_records + _usable(intake),
        intake=before.intake + intake,
        closed={},
        ahead=clocks.furthest(before.ahead, clocks.clocks_ahead(summary)),
    )
    return intake, after


def _usable(intake: Intake) -> int:
    return intake.requests_read + intake.connections_read - intake.late


def _summary(spark: SparkSession, folder: str, before: JobState) -> list[dict[str, int]]:
    """Return what a micro-batch has read of each broker."""
    minutes = {node: broker.minute for node, broker in before.brokers.items()}
    summarize = clocks.IntakeSummary(minutes, before.closed_before)

    def summary(batches: Iterator[Any]) -> Iterator[Any]:
        return summarize(batches)

    rows = (
        spark.read.schema(partials.COLUMNS)
        .parquet(folder)
        .where(f"kind = {INTAKE}")
        .select(*clocks.ROW_COLUMNS)
        .repartition(1)
        .mapInArrow(summary, clocks.COLUMNS)
    )
    return [row.asDict() for row in rows.collect()]
