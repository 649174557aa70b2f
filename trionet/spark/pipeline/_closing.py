"""Closes minutes: computes their results, and writes them to the tables and to the topic.

A minute is closed by the micro-batch in which the watermark passes the end of the minute. The
results are computed from the rows of sums of all micro-batches that had records of that minute, and
are written only once. Updating the results with every micro-batch, as Spark's ``update``
output mode does, would write each result many times, and Parquet files cannot be changed in place.

A killed job may leave files of unfinished writes; :meth:`WindowCloser.steps` deletes them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- PySpark's own convention

from . import _anomalies as anomalies
from . import _estimates as finished
from . import _objectives as objectives
from . import _partials as partials
from . import _signals as signals
from ._anomalies import AnomalyDetector
from ._estimates import api_name
from ._objectives import BurnRates, Objective, ObjectiveCounter
from ._partials import CLOSES, ERRORS, INTAKE, NO_BROKER, REQUESTS, TALKERS
from ._signals import ALL_APIS
from ._storage import (
    Intake,
    JobState,
    StateStore,
    Storage,
    is_kept,
    minute_ranges,
    minutes_of,
)
from ._tables import (
    ANOMALIES_TABLE,
    CLOSES_TABLE,
    ERRORS_TABLE,
    INCIDENTS_TABLE,
    INTAKE_TABLE,
    OBJECTIVES_TABLE,
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
from .incidents import _incidents as incidents
from .incidents._incidents import IncidentTracker, changes

_KEYS: Final = [name for name, _ in partials.KEYS if name != "sample_ppm"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: The directory to which Spark's tasks write until their job is committed. The commit moves all
#: files in it, including those of a job that was killed earlier.
_UNCOMMITTED: Final = "_temporary"
_TIME_OF_WINDOW: Final = "timestamp_seconds(window * 60) as window"


@attrs.frozen
class Outputs:
    """The destinations of the results.

    Attributes:
        folder: the directory of the result tables.
        checkpoint: the checkpoint directory of the query.
        sink: the options of the sink, including the topic.
        objectives: the service level objectives.
        keep_days: how many days of results are kept before the current one; None for all.
    """

    folder: str
    checkpoint: str
    sink: Mapping[str, str]
    objectives: Sequence[Objective] = ()
    keep_days: int | None = None


class WindowCloser:
    """Writes the results of the minutes that a micro-batch closes.

    Args:
        spark: the Spark session.
        outputs: the destinations of the results.
        folders: the directories that contain the rows of sums of these minutes.
        before: the state after the previous micro-batch.
        after: the state after this micro-batch, without the changes made by :meth:`state`.
    """

    def __init__(
        self,
        spark: SparkSession,
        outputs: Outputs,
        folders: Sequence[str],
        before: JobState,
        after: JobState,
    ) -> None:
        self._spark = spark
        self._outputs = outputs
        self._folders = folders
        self._before = before
        self._after = after
        self._totals: list[Any] = []
        self._tracker = IncidentTracker(list(before.incidents))
        # Rows for the topic, and persisted rows to release at the end.
        self._published: list[DataFrame] = []
        self._persisted: list[DataFrame] = []

    def state(self) -> JobState:
        """Return the state after this micro-batch; valid after the last step."""
        if not self._totals:
            return self._after
        return attrs.evolve(
            self._after,
            open_records=self._open_records(),
            minutes=minute_ranges(self._minutes(), self._last),
            history=self._after.batch,
            incidents=tuple(self._tracker.open),
            intake=Intake(),
            ahead={},
            closed={each["window"]: each["requests"] for each in self._totals},
        )

    def steps(self) -> Iterator[str]:
        """Write all results, yielding the name of each completed step."""
        self._clear()
        yield "cleared"
        try:
            rows = self._estimates()
            totals = (F.expr(f"{sql} as {name}") for name, sql in WINDOW_TOTALS.items())
            self._totals = rows.groupBy("window").agg(*totals).orderBy("window").collect()
            if self._totals:
                yield from self._tables(rows)
                self._publish()
                yield "published"
        finally:
            for each in self._persisted:
                each.unpersist()

    @property
    def _last(self) -> int:
        return int(self._totals[-1]["window"])

    def _open_records(self) -> int:
        closed = sum(each["records"] + each["connections"] for each in self._totals)
        return self._after.open_records - int(closed)

    def _minutes(self) -> list[int]:
        """Return the minutes with requests: those remembered, and those being closed now."""
        own = [each["window"] for each in self._totals if each["records"]]
        return [*minutes_of(self._before.minutes), *own]

    def _clear(self) -> None:
        """Delete the files written by earlier attempts of this micro-batch."""
        storage = Storage(self._spark)
        first = f"day={day_of(self._before.closed_before)}"
        for table in TABLES:
            folder = f"{self._outputs.folder}/{table.name}"
            storage.delete(f"{folder}/{_UNCOMMITTED}")
            for day in storage.names(folder):
                if day.startswith("day=") and day >= first:
                    storage.delete(f"{folder}/{day}/batch={self._after.batch}")

    def _estimates(self) -> DataFrame:
        rows = (
            self._spark.read.schema(partials.COLUMNS)
            .parquet(*self._folders)
            .where(f"kind <> {INTAKE} and window >= {self._before.closed_before}")
            .where(f"window < {self._after.closed_before}")
            # Rows that an earlier version has left in the checkpoint have no node id.
            .fillna(0, ["node_id"])
            .repartition(*_KEYS)
            .mapInArrow(finished.estimate, finished.COLUMNS)
        )
        return self._persist(rows)

    def _tables(self, rows: DataFrame) -> Iterator[str]:
        total = {name: sum(each[name] for each in self._totals) for name in WINDOW_TOTALS}
        if total["records"]:
            yield self._write(REQUESTS_TABLE, _of_kind(rows, REQUESTS, REQUESTS_TABLE))
            yield self._write(TALKERS_TABLE, self._persist(_talkers(rows)))
        if total["errors"]:
            yield self._write(ERRORS_TABLE, _of_kind(rows, ERRORS, ERRORS_TABLE))
        if total["connections"]:
            yield self._write(CLOSES_TABLE, _of_kind(rows, CLOSES, CLOSES_TABLE))
        if total["throttled"]:
            throttled = _of_kind(rows, TALKERS, QUOTAS_TABLE).where("throttled > 0")
            yield self._write(QUOTAS_TABLE, throttled)
        known = self._remember(rows)
        yield "remembered"
        found = self._anomalies(known)
        if found:
            yield self._write(ANOMALIES_TABLE, self._rows(found, anomalies.ROWS, ANOMALIES_TABLE))
        if changed := list(changes(self._tracker.rows)):
            yield self._write(INCIDENTS_TABLE, self._rows(changed, incidents.ROWS, INCIDENTS_TABLE))
        if self._outputs.objectives:
            yield self._write(OBJECTIVES_TABLE, self._burn_rates(known))
        yield self._write(WINDOWS_TABLE, self._windows())
        yield self._write(INTAKE_TABLE, self._intake(), is_published=False)

    def _remember(self, rows: DataFrame) -> DataFrame:
        """Return the signals of these minutes and those remembered, and remember what is needed."""
        known = rows.repartition("window").mapInArrow(signals.signals, signals.COLUMNS)
        if self._outputs.objectives:
            counter = ObjectiveCounter(self._outputs.objectives)

            def count(batches: Iterator[Any]) -> Iterator[Any]:
                return counter(batches)

            known = known.unionAll(
                rows.repartition("window")
                .mapInArrow(count, signals.COLUMNS)
                .groupBy("window", *signals.KEYS)
                .agg(*(F.sum(name).alias(name) for name in signals.FIGURES))
            )
        store = StateStore(Storage(self._spark), self._outputs.checkpoint)
        if self._before.history >= 0:
            earlier = self._spark.read.schema(signals.COLUMNS)
            known = earlier.parquet(store.history_folder(self._before.history)).unionAll(known)
        known = self._persist(known)
        kept = known.where(is_kept(self._last)).coalesce(1)
        kept.write.mode("overwrite").parquet(store.history_folder(self._after.batch))
        return known

    def _anomalies(self, known: DataFrame) -> list[dict[str, Any]]:
        """Return the anomalies of these minutes, and track their incidents."""
        windows = [each["window"] for each in self._totals if each["records"]]
        if not windows:
            return []
        detector = AnomalyDetector(self._minutes(), windows[0])

        def detect(batches: Iterator[Any]) -> Iterator[Any]:
            return detector(batches)

        rows = known.repartition(*signals.KEYS).mapInArrow(detect, anomalies.COLUMNS).collect()
        # In an order that does not depend on which task has found what.
        found = sorted((each.asDict() for each in rows), key=anomalies.order)
        self._tracker.add(windows, found)
        reported = (each for each in found if not each["is_part"])
        return [
            {**each, "api": _api(each["api_key"]), "incident": incident}
            for each, incident in zip(reported, self._tracker.incident_of, strict=True)
        ]

    def _burn_rates(self, known: DataFrame) -> DataFrame:
        windows = [each["window"] for each in self._totals]
        rates = BurnRates(self._outputs.objectives, windows)

        def compute(batches: Iterator[Any]) -> Iterator[Any]:
            return rates(batches)

        rows = known.where(f"level = {signals.OBJECTIVE}").repartition("client_id", "reason")
        burn = rows.mapInArrow(compute, objectives.BURN_COLUMNS)
        return self._persist(_table(burn, OBJECTIVES_TABLE))

    def _windows(self) -> DataFrame:
        columns = {
            name: [each[name] for each in self._totals] for name in ("window", *WINDOW_TOTALS)
        }
        return self._numbers(columns, WINDOWS_TABLE)

    def _intake(self) -> DataFrame:
        intake = self._after.intake
        mark = self._after.watermark_us
        assert mark is not None, "a minute is closed only by the watermark"
        row = {"window": self._last, "watermark_us": mark, "records": intake.records}
        row |= {**attrs.asdict(intake), "open_records": self._open_records()}
        ahead = self._after.ahead
        row["ahead_node_id"] = next(iter(ahead), NO_BROKER)  # the one furthest ahead
        row["ahead_minutes"] = ahead.get(row["ahead_node_id"], 0)
        return self._numbers({name: [each] for name, each in row.items()}, INTAKE_TABLE)

    def _numbers(self, columns: Mapping[str, list[int]], table: Table) -> DataFrame:
        arrow = {name: pa.array(each, pa.int64()) for name, each in columns.items()}
        return _table(self._spark.createDataFrame(pa.table(arrow)), table)

    def _rows(self, values: Sequence[Mapping[str, Any]], schema: Any, table: Table) -> DataFrame:
        found = pa.Table.from_pylist([_without_all_apis(each) for each in values], schema)
        return _table(self._spark.createDataFrame(found), table)

    def _write(self, table: Table, rows: DataFrame, *, is_published: bool = True) -> str:
        if is_published:
            key, value = f"{table.key} as key", f"{table.value} as value"
            self._published.append(rows.selectExpr(key, value))
        placed = rows.selectExpr(
            "*", "date_format(window, 'yyyy-MM-dd') as day", f"{self._after.batch} as batch"
        )
        writer = placed.repartition("day").write.mode("append").partitionBy("day", "batch")
        writer.parquet(f"{self._outputs.folder}/{table.name}")
        return table.name

    def _publish(self) -> None:
        # In one task: starting a producer takes longer than sending the results of a few minutes.
        rows = reduce(DataFrame.unionAll, self._published).coalesce(1)
        rows.write.format("trionet").options(**self._outputs.sink).mode("append").save()

    def _persist(self, rows: DataFrame) -> DataFrame:
        self._persisted.append(rows.persist())
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


def _api(api_key: int | None) -> str | None:
    return None if api_key in (None, ALL_APIS) else api_name(api_key)


def _without_all_apis(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**values, "api_key": None} if values["api_key"] == ALL_APIS else values


def day_of(window: int) -> str:
    """Return the day of a minute, in UTC, as in the directories of results."""
    return (_EPOCH + timedelta(minutes=window)).strftime("%Y-%m-%d")
