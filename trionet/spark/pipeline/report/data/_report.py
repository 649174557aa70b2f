"""One report, from a folder and what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from .....errors import ConfigError
from ._bins import Bins
from ._figures import Filters, Report, Traffic
from ._folding import overall, report
from ._queries import Answers, Extent, Queries, extent_of
from ._reading import Results
from ._time_range import TimeRange, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_report(
    session: SparkSession,
    folder: str,
    asked: TimeRange,
    filters: Filters,
    top: int,
    now: datetime,
) -> Report:
    """What the results in a folder say.

    Args:
        session: of Spark, which adds them up.
        folder: what the pipeline was given; anything that Spark can read.
        asked: which minutes.
        filters: whose requests.
        top: how many talkers there are to be, and how many of those who waited for quotas.
        now: until when there may be results.

    Raises:
        ConfigError: it is no folder of the pipeline, or has nothing of what was asked for.
    """
    results = Results(session, folder, asked, now)
    extent = extent_of(results)
    if extent is None:
        there = extent_of(Results(session, folder, TimeRange(), now))
        raise ConfigError(_nothing(there, folder, asked))
    bins = Bins.over(extent.start, extent.end)
    queries = Queries(results, filters, bins)
    answers = _ask(queries, extent, bins, top)
    if filters and not answers.traffic:
        raise ConfigError(
            f"--folder {folder}: nobody that the filters let through has sent a request in the"
            f" minutes from {shown(extent.start)} to {shown(extent.end)}; without filters the"
            " report says who has"
        )
    return report(answers, folder, asked, filters)


def _ask(queries: Queries, extent: Extent, bins: Bins, top: int) -> Answers:
    traffic = queries.traffic()
    anomalies, anomaly_count = queries.anomalies()
    return Answers(
        extent=extent,
        bins=bins,
        traffic=traffic,
        clients=queries.clients(),
        cells=queries.cells(),
        talkers=queries.talkers(top, _whole(overall(traffic))),
        errors=queries.errors(),
        closes=queries.closes(),
        quotas=queries.quotas(top),
        anomalies=anomalies,
        anomaly_count=anomaly_count,
        intake=queries.intake(),
    )


def _whole(traffic: Traffic) -> Mapping[str, float]:
    return {
        "requests": float(traffic.requests),
        "bytes": float(traffic.bytes),
        "time": traffic.phase_us["total"],
    }


def _nothing(there: Extent | None, folder: str, asked: TimeRange) -> str:
    if there is None:
        return f"--folder {folder}: there are no results of a pipeline, or none yet"
    return (
        f"--folder {folder}: there is nothing {asked}; the results reach from"
        f" {shown(there.start)} to {shown(there.end)}"
    )
