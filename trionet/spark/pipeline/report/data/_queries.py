"""What is asked of Spark: sums, whose number of rows does not grow with the results.

Times are numbers of microseconds since the epoch, since PySpark gives timestamps in the time zone
of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...aggregation._partials import PHASES
from ._bins import Bins
from ._figures import Filters

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ._reading import Results

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

#: How many anomalies are told at most: a chart can mark no more.
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

Row = Mapping[str, Any]


@attrs.frozen
class Extent:
    """From the beginning of the first minute to the end of the last, and how many there are."""

    start: datetime
    end: datetime
    windows: int


@attrs.frozen(kw_only=True)
class Answers:
    """What Spark has added up.

    Attributes:
        traffic: sums of each bin and API.
        clients: how many client ids there are, one for each listener.
        cells: a table of Arrow: ``bin``, ``api_key``, ``cell`` and ``requests``, of the histograms.
        talkers: sums of the clients with the largest share of anything.
        errors: of each bin, API and error.
        closes: of each listener and reason.
        quotas: of those who waited the longest.
        anomalies: the most unusual ones.
        anomaly_count: how many there are.
        intake: one row, of what is in no window.
    """

    extent: Extent
    bins: Bins
    traffic: Sequence[Row]
    clients: int
    cells: Any
    talkers: Sequence[Row]
    errors: Sequence[Row]
    closes: Sequence[Row]
    quotas: Sequence[Row]
    anomalies: Sequence[Row]
    anomaly_count: int
    intake: Row


def extent_of(results: Results) -> Extent | None:
    """Which minutes there are; None without any."""
    from pyspark.sql import functions as f

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
    """One report's questions.

    Args:
        results: the folder.
        filters: whose requests.
        bins: into which its minutes fall.
    """

    def __init__(self, results: Results, filters: Filters, bins: Bins) -> None:
        self._results = results
        self._filters = filters
        self._bins = bins

    def traffic(self) -> Sequence[Row]:
        from pyspark.sql import functions as f

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
        from pyspark.sql import functions as f

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

    def talkers(self, top: int, whole: Mapping[str, float]) -> Sequence[Row]:
        """Those with the largest share of all requests, bytes or time.

        Args:
            top: how many.
            whole: how many ``requests``, ``bytes`` and microseconds (``time``) there are in all.
        """
        from pyspark.sql import functions as f

        found = self._rows("requests", _KEYS, (*_COUNTS, "total_mean_us", "total_max_us"))
        if found is None:
            return []
        time = f.sum(f.col("total_mean_us") * f.col("requests"))
        sums = found.groupBy("client_id", "listener").agg(
            *_sums(_COUNTS), time.alias("total_us"), f.max("total_max_us").alias("max_us")
        )
        parts = {
            "requests": f.col("requests"),
            "bytes": f.col("request_bytes") + f.col("response_bytes"),
            "time": f.col("total_us"),
        }
        shares = [part / f.lit(whole[name] or 1.0) for name, part in parts.items()]
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
        from pyspark.sql import functions as f

        counts = ("connections", "requests", "bytes_received", "bytes_sent")
        found = self._rows("closes", ("client_id", "listener"), ("reason", *counts, "open_mean_us"))
        if found is None:
            return []
        open_us = f.sum(f.col("open_mean_us") * f.col("connections")).alias("open_us")
        return _collected(found.groupBy("listener", "reason").agg(*_sums(counts), open_us))

    def quotas(self, top: int) -> Sequence[Row]:
        from pyspark.sql import functions as f

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
        """The most unusual ones, and how many there are."""
        from pyspark.sql import functions as f

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
        """The rows of a table that the filters let through, as far as it has their columns."""
        from pyspark.sql import functions as f

        found = self._results.table(table, list(dict.fromkeys((*keys, *columns))))
        wanted = {
            "api_key": list(self._filters.apis),
            "client_id": list(self._filters.clients),
            "listener": list(self._filters.listeners),
        }
        for name, values in wanted.items():
            if found is not None and values and name in keys:
                found = found.where(f.col(name).isin(values))
        return found

    def _bin(self) -> Column:
        from pyspark.sql import functions as f

        start = (self._bins.start - EPOCH) // MICROSECOND
        return f.floor((f.col("at") - f.lit(start)) / f.lit(self._bins.seconds * 1_000_000)).cast(
            "int"
        )


_IS_ERROR: Final = "error_code != 0 OR end IN ('closed', 'gone')"


def _sums(names: Sequence[str]) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.sum(name).alias(name) for name in names]


def _collected(found: DataFrame) -> Sequence[Row]:
    return [row.asDict() for row in found.collect()]
