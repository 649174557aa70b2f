"""Creates a report on a results directory, by querying the results."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ....errors import ConfigError
from ._figures import Bins, Report
from ._folding import Extent, QueryResults, overall, report
from ._inputs import Filters, TimeRange, format_time
from ._queries import (
    CLOCKS,
    CLOSES,
    ERRORS,
    OBJECTIVES,
    QUOTAS,
    TRAFFIC,
    Queries,
    Results,
    repeated,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_report(
    session: SparkSession | None,
    folder: str,
    requested: TimeRange,
    filters: Filters,
    top: int,
    now: datetime,
) -> Report:
    """Create a report on the results in a directory.

    Args:
        session: the Spark session that runs the queries; None to read a local directory with Arrow.
        folder: the pipeline's results directory, on any file system that Spark can read.
        requested: the time range of the report.
        filters: selects the requests to include.
        top: the maximum number of top talkers, and of throttled clients.
        now: the current time; there are no results after it.

    Raises:
        ConfigError: the directory contains no pipeline results, or none that match.
    """
    return repeated(lambda: _report_of(session, folder, requested, filters, top, now))


def _report_of(
    session: SparkSession | None,
    folder: str,
    requested: TimeRange,
    filters: Filters,
    top: int,
    now: datetime,
) -> Report:
    results = _results(session, folder, requested, now)
    extent = results.extent()
    if extent is None:
        available = _results(session, folder, TimeRange(), now).extent()
        raise ConfigError(_no_results(available, folder, requested))
    bins = Bins.over(extent.start, extent.end)
    found = _query(results.queries(filters, bins), extent, bins, top)
    if filters and not found.traffic:
        raise ConfigError(
            f"--folder {folder}: no request from {format_time(extent.start)} to"
            f" {format_time(extent.end)} matches the filters; run the report without filters to see"
            " all APIs, clients and listeners"
        )
    return report(found, folder, requested, filters)


def _results(
    session: SparkSession | None, folder: str, requested: TimeRange, now: datetime
) -> Results:
    if session is None:
        from ._arrow_queries import ArrowResults

        return ArrowResults(folder, requested)
    from ._spark_queries import SparkResults

    return SparkResults(session, folder, requested, now)


def _query(queries: Queries, extent: Extent, bins: Bins, top: int) -> QueryResults:
    traffic = queries.summed(TRAFFIC)
    anomalies, anomaly_count = queries.anomalies()
    return QueryResults(
        extent=extent,
        bins=bins,
        traffic=traffic,
        clients=queries.clients(),
        cells=queries.cells(),
        talkers=queries.talkers(top, overall(traffic)),
        errors=queries.summed(ERRORS),
        closes=queries.summed(CLOSES),
        quotas=queries.summed(QUOTAS, top),
        anomalies=anomalies,
        anomaly_count=anomaly_count,
        incidents=queries.incidents(),
        objectives=queries.summed(OBJECTIVES),
        intake=queries.intake(),
        clocks=queries.summed(CLOCKS),
    )


def _no_results(available: Extent | None, folder: str, requested: TimeRange) -> str:
    if available is None:
        return (
            f"--folder {folder}: the directory contains no results yet; the job writes a minute"
            " when it has read later records (trionet pipeline run --watermark)"
        )
    return (
        f"--folder {folder}: no results {requested}; results are available from"
        f" {format_time(available.start)} to {format_time(available.end)}"
    )
