"""Queries a results directory with Spark.

The queries return aggregates rather than rows of results. Times are in microseconds since the
epoch, because PySpark returns timestamps in the time zone of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ....errors import ConfigError
from .._partials import PHASES
from ._figures import Bins, Traffic
from ._folding import EPOCH, MICROSECOND, Extent, Row
from ._inputs import Filters, TimeRange
from ._queries import (
    ANOMALIES_MAX,
    COUNTS,
    INCIDENT_COLUMNS,
    INCIDENT_TIMES,
    KEYS,
    OBJECTIVE_COLUMNS,
    SCOPE,
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
        self._found: dict[str, DataFrame | None] = {}

    def extent(self) -> Extent | None:
        """Return the extent of the minutes with results; None if there are no results."""
        windows = self.table("windows", ("records",))
        if windows is None:
            return None
        [row] = windows.agg(
            f.min("at").alias("first"),
            f.max("at").alias("last"),
            f.count_distinct("at").alias("count"),
        ).collect()
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
            ConfigError: the table lacks a column, so it was not written by this pipeline.
        """
        if name not in self._found:
            # Listing files and reading their schema is much of the work, for small results most.
            self._found[name] = self._read(f"{self._folder}/{name}")
        found = self._found[name]
        if found is None:
            return None
        missing = sorted({"window", "day", *columns} - set(found.columns))
        if missing:
            raise ConfigError(
                f"--folder {self._folder}: table {name} was not written by this version of the"
                f" pipeline; missing columns: {', '.join(missing)}"
            )
        start, end = self._requested.start, self._requested.end
        if start is not None:
            # The day is part of the path, so that files of other days are not opened.
            found = found.where(f.col("day") >= f.lit(start.date()))
            found = found.where(f.col("window") >= f.lit(start))
        if end is not None:
            found = found.where(f.col("day") <= f.lit(end.date()))
            found = found.where(f.col("window") < f.lit(end))
        return found.select(f.unix_micros("window").alias("at"), *columns)

    def _read(self, path: str) -> DataFrame | None:
        days = self._days()
        paths = f"{path}/day={days}" if days else path
        try:
            return self._session.read.option("basePath", path).parquet(paths)
        except AnalysisException as error:
            # No files yet, or none for these days.
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                return None
            raise

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

    def traffic(self) -> Sequence[Row]:
        times = [f"{phase}_mean_us" for phase in PHASES]
        found = self._rows("requests", KEYS, (*COUNTS, *times, "total_max_us"))
        if found is None:
            return []
        return _collected(
            found.groupBy(self._bin().alias("bin"), "api_key", "api").agg(
                *_sums(COUNTS),
                *(
                    f.sum(f.col(f"{phase}_mean_us") * f.col("requests")).alias(f"{phase}_us")
                    for phase in PHASES
                ),
                f.max("total_max_us").alias("max_us"),
            )
        )

    def clients(self) -> int:
        found = self._rows("requests", KEYS, ())
        return 0 if found is None else found.select("client_id", "listener").distinct().count()

    def cells(self) -> Any:
        found = self._rows("requests", KEYS, ("cells", "counts"))
        if found is None:
            return None
        pair = f.explode(f.arrays_zip("cells", "counts")).alias("pair")
        each = found.select(self._bin().alias("bin"), "api_key", pair)
        return (
            each.groupBy("bin", "api_key", f.col("pair.cells").alias("cell"))
            .agg(f.sum("pair.counts").alias("requests"))
            .toArrow()
        )

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        """Return the clients with the largest share of requests, bytes or time.

        Args:
            top: the number of clients.
            whole: the totals of all clients.
        """
        found = self._rows("requests", KEYS, (*COUNTS, "total_mean_us", "total_max_us"))
        if found is None:
            return []
        time = f.sum(f.col("total_mean_us") * f.col("requests"))
        sums = found.groupBy("client_id", "listener").agg(
            *_sums(COUNTS), time.alias("total_us"), f.max("total_max_us").alias("max_us")
        )
        shares = [
            f.col("requests") / f.lit(float(whole.requests) or 1.0),
            (f.col("request_bytes") + f.col("response_bytes")) / f.lit(float(whole.bytes) or 1.0),
            f.col("total_us") / f.lit(whole.phase_us["total"] or 1.0),
        ]
        order: list[Column | str] = [f.greatest(*shares).desc(), "client_id", "listener"]
        return _collected(sums.orderBy(*order).limit(top))

    def errors(self) -> Sequence[Row]:
        keys = ("end", "error")
        found = self._rows("errors", KEYS, (*keys, "error_code", "requests"))
        if found is None:
            return []
        return _collected(
            found.where(_IS_ERROR)
            .groupBy(self._bin().alias("bin"), "api", *keys)
            .agg(*_sums(["requests"]))
        )

    def closes(self) -> Sequence[Row]:
        counts = ("connections", "requests", "bytes_received", "bytes_sent")
        found = self._rows("closes", ("client_id", "listener"), ("reason", *counts, "open_mean_us"))
        if found is None:
            return []
        open_us = f.sum(f.col("open_mean_us") * f.col("connections")).alias("open_us")
        return _collected(found.groupBy("listener", "reason").agg(*_sums(counts), open_us))

    def quotas(self, top: int) -> Sequence[Row]:
        keys, counts = (
            ("client_id", "principal", "listener"),
            ("requests", "throttled", "throttle_us"),
        )
        found = self._rows("quotas", keys, (*counts, "throttle_max_us"))
        if found is None:
            return []
        sums = found.groupBy(*keys).agg(
            *_sums(counts), f.max("throttle_max_us").alias("throttle_max_us")
        )
        return _collected(sums.orderBy(f.col("throttle_us").desc(), *keys).limit(top))

    def anomalies(self) -> tuple[Sequence[Row], int]:
        """Return the anomalies with the highest scores, and the total number of anomalies."""
        found = self._rows("anomalies", KEYS, ("measure", "value", "expected", "score"))
        if found is None:
            return [], 0
        order: list[Column | str] = [f.abs("score").desc(), "at", *KEYS, "measure"]
        rows = _collected(found.orderBy(*order).limit(ANOMALIES_MAX))
        return rows, len(rows) if len(rows) < ANOMALIES_MAX else found.count()

    def incidents(self) -> Sequence[Row]:
        """Return the last state of each incident; an incident of several APIs passes no filter."""
        found = self._rows("incidents", SCOPE, INCIDENT_COLUMNS)
        if found is None:
            return []
        times = [f.unix_micros(name).alias(name) for name in INCIDENT_TIMES]
        columns = [name for name in found.columns if name not in INCIDENT_TIMES]
        latest = f.max_by(f.struct(*columns, *times), "at").alias("row")
        rows = found.groupBy("incident").agg(latest).select("row.*")
        return _collected(rows.orderBy("start", "incident"))

    def objectives(self) -> Sequence[Row]:
        keys = ("objective", "api_key", "api", "client_id", "target")
        found = self._rows("objectives", ("api_key", "client_id"), (*keys, *OBJECTIVE_COLUMNS))
        if found is None:
            return []
        alerts = [
            f.sum(f.expr(f"int(alert <=> '{each}')")).alias(f"{each}_minutes")
            for each in ("page", "ticket")
        ]
        sums = [*_sums(("requests", "bad")), f.max("burn_1h").alias("burn_1h_max"), *alerts]
        return _collected(found.groupBy(*keys).agg(*sums).orderBy("objective", "client_id"))

    def intake(self) -> Row:
        counts = ("late", "malformed", "newer", "ahead")
        found = self._results.table("intake", counts)
        if found is None:
            return dict.fromkeys(counts, 0)
        [row] = _collected(found.agg(*_sums(counts)))
        return {name: row[name] or 0 for name in counts}

    def _rows(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> DataFrame | None:
        """Return the rows of a table that pass the filters on the table's key columns."""
        found = self._results.table(table, list(dict.fromkeys((*keys, *columns))))
        filters = {
            "api_key": list(self._filters.apis),
            "client_id": list(self._filters.clients),
            "listener": list(self._filters.listeners),
        }
        for name, values in filters.items():
            if found is not None and values and name in keys:
                found = found.where(f.col(name).isin(values))
        return found

    def _bin(self) -> Column:
        start = (self._bins.start - EPOCH) // MICROSECOND
        return f.floor((f.col("at") - f.lit(start)) / f.lit(self._bins.seconds * 1_000_000)).cast(
            "int"
        )


_IS_ERROR: Final = "error_code != 0 OR end IN ('closed', 'gone')"


def _sums(names: Sequence[str]) -> list[Column]:
    return [f.sum(name).alias(name) for name in names]


def _collected(found: DataFrame) -> Sequence[Row]:
    return [row.asDict() for row in found.collect()]
