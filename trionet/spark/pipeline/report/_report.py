"""Creates a report on a results directory, by querying the results with Spark.

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
from ._figures import Bins, Report, Traffic
from ._folding import EPOCH, MICROSECOND, Extent, QueryResults, Row, overall, report
from ._inputs import Filters, TimeRange, format_time

#: The maximum number of days in a path pattern; for more days, Spark lists the whole table.
_DAYS_LISTED_MAX: Final = 400


class Results:
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


#: The maximum number of anomalies; a chart cannot show more.
ANOMALIES_MAX: Final = 1000

_KEYS: Final = ("api_key", "api", "client_id", "listener")
_COUNTS: Final = (
    "records",
    "requests",
    "errors",
    "throttled",
    "request_bytes",
    "response_bytes",
)


def extent_of(results: Results) -> Extent | None:
    """Return the extent of the minutes with results; None if there are no results."""
    windows = results.table("windows", ("records",))
    if windows is None:
        return None
    [row] = windows.agg(
        f.min("at").alias("first"), f.max("at").alias("last"), f.count_distinct("at").alias("count")
    ).collect()
    if not row["count"]:
        return None
    start, last = (EPOCH + row[name] * MICROSECOND for name in ("first", "last"))
    return Extent(start, last + timedelta(minutes=1), row["count"])


class Queries:
    """The queries for one report.

    Args:
        results: the result tables.
        filters: selects the requests to include.
        bins: the bins of the timeline.
    """

    def __init__(self, results: Results, filters: Filters, bins: Bins) -> None:
        self._results = results
        self._filters = filters
        self._bins = bins

    def traffic(self) -> Sequence[Row]:
        times = [f"{phase}_mean_us" for phase in PHASES]
        found = self._rows("requests", _KEYS, (*_COUNTS, *times, "total_max_us"))
        if found is None:
            return []
        return _collected(
            found.groupBy(self._bin().alias("bin"), "api_key", "api").agg(
                *_sums(_COUNTS),
                *(
                    f.sum(f.col(f"{phase}_mean_us") * f.col("requests")).alias(f"{phase}_us")
                    for phase in PHASES
                ),
                f.max("total_max_us").alias("max_us"),
            )
        )

    def clients(self) -> int:
        found = self._rows("requests", _KEYS, ())
        return 0 if found is None else found.select("client_id", "listener").distinct().count()

    def cells(self) -> Any:
        found = self._rows("requests", _KEYS, ("cells", "counts"))
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
        found = self._rows("requests", _KEYS, (*_COUNTS, "total_mean_us", "total_max_us"))
        if found is None:
            return []
        time = f.sum(f.col("total_mean_us") * f.col("requests"))
        sums = found.groupBy("client_id", "listener").agg(
            *_sums(_COUNTS), time.alias("total_us"), f.max("total_max_us").alias("max_us")
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
        found = self._rows("errors", _KEYS, (*keys, "error_code", "requests"))
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
        found = self._rows("anomalies", _KEYS, ("measure", "value", "expected", "score"))
        if found is None:
            return [], 0
        order: list[Column | str] = [f.abs("score").desc(), "at", *_KEYS, "measure"]
        rows = _collected(found.orderBy(*order).limit(ANOMALIES_MAX))
        return rows, len(rows) if len(rows) < ANOMALIES_MAX else found.count()

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


def make_report(
    session: SparkSession,
    folder: str,
    requested: TimeRange,
    filters: Filters,
    top: int,
    now: datetime,
) -> Report:
    """Create a report on the results in a directory.

    Args:
        session: the Spark session that runs the queries.
        folder: the pipeline's results directory, on any file system that Spark can read.
        requested: the time range of the report.
        filters: selects the requests to include.
        top: the maximum number of top talkers, and of throttled clients.
        now: the current time; there are no results after it.

    Raises:
        ConfigError: the directory contains no pipeline results, or none that match.
    """
    results = Results(session, folder, requested, now)
    extent = extent_of(results)
    if extent is None:
        available = extent_of(Results(session, folder, TimeRange(), now))
        raise ConfigError(_no_results(available, folder, requested))
    bins = Bins.over(extent.start, extent.end)
    queries = Queries(results, filters, bins)
    found = _query(queries, extent, bins, top)
    if filters and not found.traffic:
        raise ConfigError(
            f"--folder {folder}: no request from {format_time(extent.start)} to"
            f" {format_time(extent.end)} matches the filters; run the report without filters to see"
            " all APIs, clients and listeners"
        )
    return report(found, folder, requested, filters)


def _query(queries: Queries, extent: Extent, bins: Bins, top: int) -> QueryResults:
    traffic = queries.traffic()
    anomalies, anomaly_count = queries.anomalies()
    return QueryResults(
        extent=extent,
        bins=bins,
        traffic=traffic,
        clients=queries.clients(),
        cells=queries.cells(),
        talkers=queries.talkers(top, overall(traffic)),
        errors=queries.errors(),
        closes=queries.closes(),
        quotas=queries.quotas(top),
        anomalies=anomalies,
        anomaly_count=anomaly_count,
        intake=queries.intake(),
    )


def _no_results(available: Extent | None, folder: str, requested: TimeRange) -> str:
    if available is None:
        return f"--folder {folder}: the directory contains no results yet"
    return (
        f"--folder {folder}: no results {requested}; results are available from"
        f" {format_time(available.start)} to {format_time(available.end)}"
    )
