"""What is done with each micro-batch: in steps, each of which can be done again.

Spark repeats a micro-batch, with the same records and the same number, until it has noted that it
is done. Nothing here depends on more than its records, its number, and what was remembered before
it; everything that is written has its place by the number, and takes the place of what an earlier
try has left there. In the topic a row may so come twice: with the same key and the same value.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from ..aggregation import _partials as partials
from ..aggregation._fold import folded
from ..aggregation._partials import CLOSES, INTAKE, REQUESTS
from ..aggregation._watermarks import Intake, Remembered, watermark
from ..results._closing import Closing, Places
from ..results._storage import State, Storage


@attrs.frozen
class Told:
    """What became of a micro-batch.

    Attributes:
        batch: its number.
        intake: what was read in it.
        windows: the minutes that are over, and the requests of each.
        closed_before: the first minute that is not over.
    """

    batch: int
    intake: Intake
    windows: Mapping[int, int]
    closed_before: int


class Batches:
    """What ``foreachBatch`` calls.

    Args:
        places: where results go.
        delay_us: how long a minute waits for what is late.
    """

    def __init__(self, places: Places, delay_us: int) -> None:
        self._places = places
        self._delay_us = delay_us
        #: What became of the micro-batches of this run.
        self.told: dict[int, Told] = {}

    def __call__(self, records: DataFrame, number: int) -> None:
        """Do all that is to be done with a micro-batch."""
        for _ in self.steps(records, number):
            pass

    def steps(self, records: DataFrame, number: int) -> Generator[str, None, None]:
        """The same, step by step; each has a name.

        Args:
            records: with the columns ``value``, ``partition`` and ``read_at``.
            number: of the micro-batch.
        """
        spark = records.sparkSession
        # Times of 96 bits, which are Spark's default, have no zone for other readers.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # days and keys are of UTC
        state = State(Storage(spark), self._places.checkpoint)
        before = state.before(number)
        state.forget(before)
        yield "forgotten"

        folder = state.open_folder(number)
        rows = records.mapInArrow(folded, partials.COLUMNS)
        rows.write.mode("overwrite").parquet(folder)
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
            folders = [state.open_folder(each) for each in opened]
            closing = Closing(spark, self._places, folders, before, after)
            yield from closing.steps()
            windows, after = closing.windows, closing.remembered()
        open_batches = {k: last for k, last in opened.items() if last >= after.closed_before}
        after = attrs.evolve(after, open_batches=open_batches)
        state.remember(after)
        self.told[number] = Told(number, intake, windows, after.closed_before)
        yield "remembered"


def _usable(intake: Intake) -> int:
    return intake.requests_read + intake.connections_read - intake.late


def _read(
    spark: SparkSession, folder: str, before: Remembered
) -> tuple[Intake, dict[int, int], int]:
    """What a micro-batch has had: its intake, the latest time of each partition, its last minute.

    Minutes that were over before it do not count for the last one.
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
