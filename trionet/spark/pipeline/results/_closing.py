"""The results of minutes that are over, written table by table, and to the topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from ..aggregation import _partials as partials
from ..aggregation._partials import CLOSES, ERRORS, INTAKE, REQUESTS, TALKERS
from ..aggregation._watermarks import TRAILING_MINUTES, Intake, Remembered
from . import _anomalies as anomalies
from . import _finished as finished
from ._anomalies import MINUTES_MIN, Anomalies
from ._storage import Storage
from ._tables import (
    ANOMALIES_TABLE,
    CLOSES_TABLE,
    ERRORS_TABLE,
    INTAKE_TABLE,
    QUOTAS_TABLE,
    REQUESTS_TABLE,
    TABLES,
    TALK,
    TALKER_COLUMNS,
    TALKERS_MAX,
    TALKERS_TABLE,
    WINDOW_TOTALS,
    WINDOWS_TABLE,
    Table,
    ranked,
)

_KEYS: Final = [name for name, _ in partials.KEYS if name != "sample_ppm"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Where Spark keeps what the tasks of a job have written until it is done with them all. It takes
#: what it finds there for its own, also that of a job which was killed before.
_UNFINISHED: Final = "_temporary"
_TIME_OF_WINDOW: Final = "timestamp_seconds(window * 60) as window"


@attrs.frozen
class Places:
    """Where results go.

    Attributes:
        folder: the results' folder.
        checkpoint: the query's.
        sink: options of the sink, with the topic among them.
    """

    folder: str
    checkpoint: str
    sink: Mapping[str, str]


class Closing:
    """Closes minutes in one micro-batch.

    Args:
        spark: the session.
        places: where results go.
        folders: where the rows of sums are.
        before: what is known after the micro-batch before this one.
        after: what is known after this one, but for what comes out of this.
    """

    def __init__(
        self,
        spark: SparkSession,
        places: Places,
        folders: Sequence[str],
        before: Remembered,
        after: Remembered,
    ) -> None:
        self._spark = spark
        self._places = places
        self._folders = folders
        self._before = before
        self._after = after
        self._totals: list[Any] = []
        # What goes to the topic, and what to free.
        self._published: list[DataFrame] = []
        self._kept: list[DataFrame] = []

    @property
    def windows(self) -> dict[int, int]:
        """The requests of each minute; after the steps."""
        return {each["window"]: each["requests"] for each in self._totals}

    def remembered(self) -> Remembered:
        """What is known after this micro-batch; after the steps."""
        if not self._totals:
            return self._after
        return attrs.evolve(
            self._after,
            open_records=self._open_records(),
            trailing=tuple(
                each for each in self._trailing() if each[0] > self._last - TRAILING_MINUTES
            ),
            intake=Intake(),
        )

    def steps(self) -> Iterator[str]:
        """Write everything, step by step; each has a name."""
        self._clear()
        yield "cleared"
        try:
            rows = self._finished()
            totals = (F.expr(f"{sql} as {name}") for name, sql in WINDOW_TOTALS.items())
            self._totals = rows.groupBy("window").agg(*totals).orderBy("window").collect()
            if self._totals:
                yield from self._tables(rows)
                self._publish()
                yield "published"
        finally:
            for each in self._kept:
                each.unpersist()

    @property
    def _last(self) -> int:
        return int(self._totals[-1]["window"])

    def _open_records(self) -> int:
        told = sum(each["records"] + each["connections"] for each in self._totals)
        return self._after.open_records - int(told)

    def _trailing(self) -> list[tuple[int, int]]:
        """The minutes with requests of the hour before, and these, and who has told each."""
        own = [(each["window"], self._after.batch) for each in self._totals if each["records"]]
        return [*self._before.trailing, *own]

    def _clear(self) -> None:
        """Delete what an earlier try of this micro-batch has written."""
        storage = Storage(self._spark)
        first = f"day={_day(self._before.closed_before)}"
        for table in TABLES:
            folder = f"{self._places.folder}/{table.name}"
            storage.delete(f"{folder}/{_UNFINISHED}")
            for day in storage.names(folder):
                if day.startswith("day=") and day >= first:
                    storage.delete(f"{folder}/{day}/batch={self._after.batch}")

    def _finished(self) -> DataFrame:
        rows = (
            self._spark.read.schema(partials.COLUMNS)
            .parquet(*self._folders)
            .where(f"kind <> {INTAKE} and window >= {self._before.closed_before}")
            .where(f"window < {self._after.closed_before}")
            .repartition(*_KEYS)
            .mapInArrow(finished.finished, finished.COLUMNS)
        )
        return self._keep(rows)

    def _tables(self, rows: DataFrame) -> Iterator[str]:
        total = {name: sum(each[name] for each in self._totals) for name in WINDOW_TOTALS}
        if total["records"]:
            yield self._write(REQUESTS_TABLE, _of_kind(rows, REQUESTS, REQUESTS_TABLE))
            yield self._write(TALKERS_TABLE, self._keep(_talkers(rows)))
        if total["errors"]:
            yield self._write(ERRORS_TABLE, _of_kind(rows, ERRORS, ERRORS_TABLE))
        if total["connections"]:
            yield self._write(CLOSES_TABLE, _of_kind(rows, CLOSES, CLOSES_TABLE))
        if total["throttled"]:
            throttled = _of_kind(rows, TALKERS, QUOTAS_TABLE).where("throttled > 0")
            yield self._write(QUOTAS_TABLE, throttled)
        unusual = self._unusual()
        if unusual is not None and not unusual.isEmpty():
            yield self._write(ANOMALIES_TABLE, unusual)
        yield self._write(WINDOWS_TABLE, self._windows())
        yield self._write(INTAKE_TABLE, self._intake(), is_published=False)

    def _unusual(self) -> DataFrame | None:
        folder = f"{self._places.folder}/{REQUESTS_TABLE.name}"
        trailing = {
            window: f"{folder}/day={_day(window)}/batch={batch}"
            for window, batch in self._trailing()
        }
        # Days may be deleted by whoever has seen them, also while the job does not run.
        storage = Storage(self._spark)
        folders = [each for each in sorted(set(trailing.values())) if storage.names(each)]
        windows = [window for window, each in trailing.items() if each in folders]
        first = int(self._totals[0]["window"])
        if len(windows) <= MINUTES_MIN or windows[-1] < first:
            return None
        judge = Anomalies(windows, first)

        def judged(batches: Iterator[Any]) -> Iterator[Any]:
            return judge(batches)

        rows = (
            self._spark.read.schema(anomalies.TABLE)
            .option("basePath", folder)
            .parquet(*folders)
            .selectExpr(*anomalies.READ)
            .where(f"window >= {windows[0]}")
            .repartition(*anomalies.KEYS)
            .mapInArrow(judged, anomalies.COLUMNS)
        )
        return self._keep(_table(rows, ANOMALIES_TABLE))

    def _windows(self) -> DataFrame:
        columns = {
            name: [each[name] for each in self._totals] for name in ("window", *WINDOW_TOTALS)
        }
        return self._numbers(columns, WINDOWS_TABLE)

    def _intake(self) -> DataFrame:
        intake = self._after.intake
        mark = self._after.watermark_us
        assert mark is not None, "a minute is over only by the watermark"
        row = {"window": self._last, "watermark_us": mark, "records": intake.records}
        row |= {**attrs.asdict(intake), "open_records": self._open_records()}
        return self._numbers({name: [each] for name, each in row.items()}, INTAKE_TABLE)

    def _numbers(self, columns: Mapping[str, list[int]], table: Table) -> DataFrame:
        arrow = {name: pa.array(each, pa.int64()) for name, each in columns.items()}
        return _table(self._spark.createDataFrame(pa.table(arrow)), table)

    def _write(self, table: Table, rows: DataFrame, *, is_published: bool = True) -> str:
        if is_published:
            key, value = f"{table.key} as key", f"{table.value} as value"
            self._published.append(rows.selectExpr(key, value))
        placed = rows.selectExpr(
            "*", "date_format(window, 'yyyy-MM-dd') as day", f"{self._after.batch} as batch"
        )
        writer = placed.repartition("day").write.mode("append").partitionBy("day", "batch")
        writer.parquet(f"{self._places.folder}/{table.name}")
        return table.name

    def _publish(self) -> None:
        # By one producer: what takes the time is to start one, not the records of some minutes.
        rows = reduce(DataFrame.unionAll, self._published).coalesce(1)
        rows.write.format("trionet").options(**self._places.sink).mode("append").save()

    def _keep(self, rows: DataFrame) -> DataFrame:
        self._kept.append(rows.persist())
        return rows


def _of_kind(rows: DataFrame, kind: int, table: Table) -> DataFrame:
    return _table(rows.where(f"kind = {kind}"), table)


def _table(rows: DataFrame, table: Table) -> DataFrame:
    columns = (f"{sql} as {name}" for name, sql in table.columns.items())
    return rows.selectExpr(_TIME_OF_WINDOW, *columns)


def _talkers(rows: DataFrame) -> DataFrame:
    columns = (f"{sql} as {name}" for name, sql in TALKER_COLUMNS.items())
    talkers = rows.where(f"kind = {TALKERS}").selectExpr(*columns)
    each = (
        talkers.selectExpr("*", *ranked(measure)).where(f"rank <= {TALKERS_MAX}")
        for measure in TALK
    )
    return _table(reduce(DataFrame.unionAll, each), TALKERS_TABLE)


def _day(window: int) -> str:
    return (_EPOCH + timedelta(minutes=window)).strftime("%Y-%m-%d")
