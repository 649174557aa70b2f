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

Only the topic may contain a row twice, with the same key and the same value, so that compaction
removes the duplicate. There would be none if foreachBatch could write exactly once; see
:mod:`..sink._exactly_once`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- PySpark's own convention

from . import _partials as partials
from ._closing import Outputs, WindowCloser
from ._fold import folded
from ._partials import CLOSES, INTAKE, REQUESTS
from ._storage import Intake, JobState, StateStore, Storage, watermark


@attrs.frozen
class BatchResult:
    """The result of a micro-batch.

    Attributes:
        batch: the number of the micro-batch.
        intake: the counts of the records read.
        windows: the number of requests in each minute that was closed, keyed by minute.
        closed_before: the first minute that is still open.
    """

    batch: int
    intake: Intake
    windows: Mapping[int, int]
    closed_before: int


class BatchProcessor:
    """Processes micro-batches; an instance is passed to ``foreachBatch``.

    Args:
        outputs: the destinations of the results.
        delay_us: how long a minute stays open for late records.

    Attributes:
        results: the results of the micro-batches of this run, keyed by their number.
    """

    def __init__(self, outputs: Outputs, delay_us: int) -> None:
        self._outputs = outputs
        self._delay_us = delay_us
        self.results: dict[int, BatchResult] = {}

    def __call__(self, records: DataFrame, number: int) -> None:
        """Process a micro-batch."""
        for _ in self.steps(records, number):
            pass

    def steps(self, records: DataFrame, number: int) -> Generator[str, None, None]:
        """Process a micro-batch step by step, yielding the name of each completed step.

        Args:
            records: the records, with the columns ``value``, ``partition`` and ``read_at``.
            number: the number of the micro-batch.
        """
        spark = records.sparkSession
        # Spark's default, INT96, has no time zone for other readers.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # days and keys are in UTC
        # Sums of forged records may overflow, which is an error in ANSI mode, Spark 4's default.
        spark.conf.set("spark.sql.ansi.enabled", "false")
        store = StateStore(Storage(spark), self._outputs.checkpoint)
        before = store.load_before(number)
        store.prune(before)
        # Killed here: pruning again deletes the same, files of batches before the previous one.
        yield "pruned"

        folder = store.open_folder(number)
        rows = records.mapInArrow(folded, partials.COLUMNS)
        rows.write.mode("overwrite").parquet(folder)
        # Killed here: the folder of this number is overwritten.
        yield "folded"

        intake, latest, last_window = _read(spark, folder, before)
        mark = watermark(before.watermark_us, latest, self._delay_us)
        opened = dict(before.open_batches)
        if last_window >= before.closed_before:
            opened[number] = last_window
        after = attrs.evolve(
            before,
            batch=number,
            watermark_us=mark,
            open_batches=opened,
            open_records=before.open_records + _usable(intake),
            intake=before.intake + intake,
        )
        windows: dict[int, int] = {}
        if after.closed_before > before.closed_before and opened:
            folders = [store.open_folder(each) for each in opened]
            closer = WindowCloser(spark, self._outputs, folders, before, after)
            yield from closer.steps()
            windows, after = closer.windows, closer.state()
        # Killed while minutes are closed: WindowCloser first deletes what this number has written.
        open_batches = {k: last for k, last in opened.items() if last >= after.closed_before}
        after = attrs.evolve(after, open_batches=open_batches)
        store.save(after)
        self.results[number] = BatchResult(number, intake, windows, after.closed_before)
        # Killed here: the saved state has this number, so that a repetition loads the one before.
        yield "saved"


def _usable(intake: Intake) -> int:
    return intake.requests_read + intake.connections_read - intake.late


def _read(spark: SparkSession, folder: str, before: JobState) -> tuple[Intake, dict[int, int], int]:
    """Return the intake of a micro-batch, the latest time per partition, and the last minute.

    The last minute is -1 if there are no records. Records of closed minutes count as late.
    """
    is_intake, is_record = f"kind = {INTAKE}", f"kind in ({REQUESTS}, {CLOSES})"
    sums = [
        F.expr(f"coalesce(sum(get(sums, {n})) filter (where {is_intake}), 0) as {name}")
        for n, name in enumerate(partials.SUMS[INTAKE])
    ]
    found = (
        spark.read.schema(partials.COLUMNS)
        .parquet(folder)
        .groupBy(F.expr(f"if({is_intake}, partition, -1) as partition"))
        .agg(
            F.expr(f"coalesce(max(get(maxima, 0)) filter (where {is_intake}), -1) as latest"),
            F.expr(f"coalesce(max(window) filter (where {is_record}), -1) as last"),
            F.expr(
                "coalesce(sum(get(sums, 0)) filter"
                f" (where {is_record} and window < {before.closed_before}), 0) as late"
            ),
            *sums,
        )
        .collect()
    )
    names = [field.name for field in attrs.fields(Intake)]
    intake = sum((Intake(**{name: each[name] for name in names}) for each in found), Intake())
    latest = {each.partition: each.latest for each in found if each.latest >= 0}
    return intake, latest, max((each["last"] for each in found), default=-1)
