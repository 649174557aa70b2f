"""Queries a results directory with Spark, by the rules of :mod:`._queries`.

The queries return aggregates rather than rows of results. Times are in microseconds since the
epoch, because PySpark returns timestamps in the time zone of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import reduce
from operator import add, and_
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from .._storage import Storage
from ..results._cuts import (
    CUTS,
    Cut,
    current_files,
    is_listing_whole,
    unmarked_cut,
    whole_files,
)
from ._figures import Bins, Traffic
from ._folding import EPOCH, MICROSECOND, Extent, Row
from ._inputs import WINDOWS, Filters, TimeRange
from ._queries import (
    ANOMALIES_MAX,
    ANOMALY_COLUMNS,
    ANOMALY_ORDER,
    BIN,
    CELLS,
    CLIENT,
    INCIDENT_COLUMNS,
    INCIDENT_TIMES,
    INTAKE_COUNTS,
    KEYS,
    SCOPE,
    TABLES,
    TALKERS,
    Sums,
    missing_columns,
    shares,
)

#: The maximum number of days in a path pattern; for more days, Spark lists the whole table.
_DAYS_LISTED_MAX: Final = 400


class SparkResults:
    """The results in a directory, limited to a time range.

    Args:
        session: the Spark session.
        folder: the results directory, on any file system that Spark can read.
        requested: the time range of the rows to return.
        now: the current time; there are no results after it.
    """

    def __init__(
        self, session: SparkSession, folder: str, requested: TimeRange, now: datetime
    ) -> None:
        self._session = session
        self._folder = folder.rstrip("/") or "/"
        self._requested = requested
        self._now = now
        self._files = self._listed()
        self._found: dict[str, DataFrame] = {}

    def extent(self) -> Extent | None:
        """Return the extent of the minutes with results; None if there are no results."""
        windows = self.table("windows", ("records",))
        if windows is None:
            return None
        [row] = _collected(
            windows.agg(
                f.min("at").alias("first"),
                f.max("at").alias("last"),
                f.count_distinct("at").alias("count"),
            )
        )
        if not row["count"]:
            return None
        start, last = (EPOCH + row[name] * MICROSECOND for name in ("first", "last"))
        return Extent(start, last + timedelta(minutes=1), row["count"])

    def queries(self, filters: Filters, bins: Bins) -> SparkQueries:
        """Return the queries for a report."""
        return SparkQueries(self, filters, bins)

    def table(self, name: str, columns: Sequence[str]) -> DataFrame | None:
        """Return a table; None if it has no files.

        The column ``at`` contains the window, in microseconds since the epoch.

        Args:
            name: the name of the table.
            columns: the columns to select besides ``at``.

        Raises:
            ConfigError: the table was not written by the pipeline.
            FileNotFoundError: a file was deleted meanwhile.
        """
        files = self._files[name]
        if not files:
            return None
        if name not in self._found:
            # Reading their schema is much of the work, for small results most.
            self._found[name] = self._read(name, files)
        found = self._found[name]
        wanted = ("window", "day", *columns)
        for column, kind in missing_columns(self._folder, name, wanted, found.columns).items():
            found = found.withColumn(column, f.lit(None).cast(kind))
        start, end = self._requested.start, self._requested.end
        if start is not None:
            # The day is part of the path, so that files of other days are not opened.
            found = found.where(f.col("day") >= f.lit(start.date()))
            found = found.where(f.col("window") >= f.lit(start))
        if end is not None:
            found = found.where(f.col("day") <= f.lit(end.date()))
            found = found.where(f.col("window") < f.lit(end))
        return found.select(f.unix_micros("window").alias("at"), *columns)

    def _read(self, name: str, files: Sequence[str]) -> DataFrame:
        # Not all versions had all columns.
        reader = self._session.read.options(basePath=f"{self._folder}/{name}", mergeSchema="true")
        with errors_of_files():
            return reader.parquet(*files)

    def _listed(self) -> Mapping[str, list[str]]:
        """Return the files of each table that are in the latest cut, of the days of the range."""
        storage = Storage(self._session)
        days = self._days() or "*"
        while True:
            cut = self._latest_cut(storage)
            whole = cut or unmarked_cut(self._paths(storage, WINDOWS, "*"))
            found = {table: self._in_cut(storage, table, days, whole) for table in TABLES}
            if is_listing_whole(cut, self._latest_cut(storage)):
                return found

    def _latest_cut(self, storage: Storage) -> Cut | None:
        return Cut.latest(storage.names(f"{self._folder}/{CUTS}"))

    def _in_cut(self, storage: Storage, table: str, days: str, cut: Cut) -> list[str]:
        files = current_files(whole_files(self._paths(storage, table, days), cut))
        return [f"{self._folder}/{table}/{file.path}" for file in files]

    def _paths(self, storage: Storage, table: str, days: str) -> list[str]:
        matching = storage.matching(f"{self._folder}/{table}/day={days}/batch=*/*")
        return ["/".join(each.rsplit("/", 3)[1:]) for each in matching]

    def _days(self) -> str:
        """Return a Hadoop path pattern for the days of the range; empty if there are too many."""
        if self._requested.start is None:
            return ""
        first = self._requested.start.date()
        # Without an end, include results written since the command was started.
        last = (self._requested.end or self._now + timedelta(days=1)).date()
        count = (last - first).days + 1
        if not 1 <= count <= _DAYS_LISTED_MAX:
            return ""
        return f"{{{','.join(str(first + timedelta(days=n)) for n in range(count))}}}"


class SparkQueries:
    """The queries for one report.

    Args:
        results: the result tables.
        filters: selects the requests to include.
        bins: the bins of the timeline.
    """

    def __init__(self, results: SparkResults, filters: Filters, bins: Bins) -> None:
        self._results = results
        self._filters = filters
        self._bins = bins

    def summed(self, rule: Sums, top: int | None = None) -> Sequence[Row]:
        found = self._summed(rule)
        if found is None:
            return []
        order = [
            f.col(name[1:]).desc() if name.startswith("-") else f.col(name) for name in rule.order
        ]
        found = found.orderBy(*order) if order else found
        return _collected(found if top is None else found.limit(top))

    def _summed(self, rule: Sums) -> DataFrame | None:
        found = self._rows(rule.table, rule.scope, rule.columns)
        if found is None:
            return None
        if rule.without:
            each = (f.col(name).isin(list(values)) for name, values in rule.without.items())
            found = found.where(~reduce(and_, each))
        weighted = (
            _or_zero(f.sum(f.col(mean) * f.col(count)), name)
            for name, (mean, count) in rule.weighted.items()
        )
        counted = (
            f.sum(f.col(column).eqNullSafe(value).cast("int")).alias(name)
            for name, (column, value) in rule.counted.items()
        )
        maxima = (_or_zero(f.max(column), name) for name, column in rule.maxima.items())
        keys = (self._bin().alias(BIN) if name == BIN else f.col(name) for name in rule.by)
        return found.groupBy(*keys).agg(*_sums(rule.sums), *weighted, *counted, *maxima)

    def clients(self) -> int:
        found = self._rows("requests", SCOPE, CLIENT)
        if found is None:
            return 0
        with errors_of_files():
            return found.select(*CLIENT).distinct().count()

    def cells(self) -> Any:
        found = self._rows("requests", SCOPE, CELLS)
        if found is None:
            return None
        pair = f.explode(f.arrays_zip(*CELLS)).alias("pair")
        each = found.select(self._bin().alias(BIN), "api_key", pair)
        cells = each.groupBy(BIN, "api_key", f.col("pair.cells").alias("cell"))
        with errors_of_files():
            return cells.agg(f.sum("pair.counts").alias("requests")).toArrow()

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        found = self._summed(TALKERS)
        if found is None:
            return []
        each = [reduce(add, map(f.col, columns)) / f.lit(total) for columns, total in shares(whole)]
        order: list[Column | str] = [f.greatest(*each).desc(), *TALKERS.order]
        return _collected(found.orderBy(*order).limit(top))

    def anomalies(self) -> tuple[Sequence[Row], int]:
        found = self._rows("anomalies", SCOPE, (*KEYS, *ANOMALY_COLUMNS))
        if found is None:
            return [], 0
        order: list[Column | str] = [f.abs("score").desc(), *ANOMALY_ORDER]
        rows = _collected(found.orderBy(*order).limit(ANOMALIES_MAX))
        with errors_of_files():
            return rows, len(rows) if len(rows) < ANOMALIES_MAX else found.count()

    def incidents(self) -> Sequence[Row]:
        found = self._rows("incidents", SCOPE, INCIDENT_COLUMNS)
        if found is None:
            return []
        times = [f.unix_micros(name).alias(name) for name in INCIDENT_TIMES]
        columns = [name for name in found.columns if name not in INCIDENT_TIMES]
        latest = f.max_by(f.struct(*columns, *times), "at").alias("row")
        rows = found.groupBy("incident").agg(latest).select("row.*")
        return _collected(rows.orderBy("start", "incident"))

    def intake(self) -> Row:
        found = self._results.table("intake", INTAKE_COUNTS)
        if found is None:
            return dict.fromkeys(INTAKE_COUNTS, 0)
        [row] = _collected(found.agg(*_sums(INTAKE_COUNTS)))
        return {name: row[name] or 0 for name in INTAKE_COUNTS}

    def _rows(self, table: str, scope: Sequence[str], columns: Sequence[str]) -> DataFrame | None:
        """Return the rows of a table that pass the filters on its scope."""
        found = self._results.table(table, list(dict.fromkeys((*scope, *columns))))
        if found is not None:
            for name, values in self._filters.values(scope).items():
                found = found.where(f.col(name).isin(list(values)))
        return found

    def _bin(self) -> Column:
        start = (self._bins.start - EPOCH) // MICROSECOND
        return f.floor((f.col("at") - f.lit(start)) / f.lit(self._bins.seconds * 1_000_000)).cast(
            "int"
        )


def _sums(names: Sequence[str]) -> list[Column]:
    return [_or_zero(f.sum(name), name) for name in names]


def _or_zero(column: Column, name: str) -> Column:
    """Return a column that is null if another version did not have the column that it is of."""
    return f.coalesce(column, f.lit(0)).alias(name)


def _collected(found: DataFrame) -> Sequence[Row]:
    with errors_of_files():
        return [row.asDict() for row in found.collect()]


#: Files that were listed, and deleted before Spark has read them.
_GONE: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND")


@contextmanager
def errors_of_files() -> Iterator[None]:
    """Raise a FileNotFoundError where Spark does not find a file any more."""
    try:
        yield
    except PySparkException as error:
        if error.getCondition() not in _GONE:
            raise
        raise FileNotFoundError(str(error)) from error
