"""Queries a local results directory with Arrow, in this process: no Java has to start.

The queries are those of :mod:`._spark_queries`. Starting Spark takes several seconds, and each of
its first queries about one; Arrow computes all of them for some days of results in less than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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

#: The size of the files up to which Arrow reads a directory: all rows are in memory then.
BYTES_MAX: Final = 128 * 1024 * 1024


def is_small(folder: str, requested: TimeRange) -> bool:
    """Return whether a directory is local, and its files of a time range are at most ``BYTES_MAX``.

    Args:
        folder: the results directory.
        requested: the time range.
    """
    if urlsplit(folder).scheme not in ("", "file"):
        return False
    sizes = (
        file.stat().st_size
        for table in _path(folder).iterdir()
        if table.is_dir() and not table.name.startswith("_")
        for file in _files(table, requested)
    )
    return sum(sizes) <= BYTES_MAX


def _path(folder: str) -> Path:
    parts = urlsplit(folder)
    return Path(unquote(parts.path) if parts.scheme else folder)


def _files(table: Path, requested: TimeRange) -> list[Path]:
    """Return the files of the days of a range; a name that begins with _ or . is not data."""
    start, end = requested.start, requested.end
    found = []
    for day in sorted(table.glob("day=*")):
        name = day.name.removeprefix("day=")
        if (start is None or name >= str(start.date())) and (
            end is None or name <= str(end.date())
        ):
            found += [file for file in sorted(day.glob("batch=*/*")) if file.name[0] not in "_."]
    return found


class ArrowResults:
    """The results in a local directory, limited to a time range.

    Args:
        folder: the results directory.
        requested: the time range of the rows to return.
    """

    def __init__(self, folder: str, requested: TimeRange) -> None:
        self._folder = folder
        self._requested = requested

    def extent(self) -> Extent | None:
        """Return the extent of the minutes with results; None if there are no results."""
        windows = self.table("windows", ("records",))
        times = [] if windows is None else sorted(set(windows["at"].to_pylist()))
        if not times:
            return None
        start, last = (EPOCH + at * MICROSECOND for at in (times[0], times[-1]))
        return Extent(start, last + timedelta(minutes=1), len(times))

    def queries(self, filters: Filters, bins: Bins) -> ArrowQueries:
        """Return the queries for a report."""
        return ArrowQueries(self, filters, bins)

    def table(self, name: str, columns: Sequence[str]) -> Any:
        """Return a table; None if it has no files.

        The column ``at`` contains the window, in microseconds since the epoch.

        Args:
            name: the name of the table.
            columns: the columns to select besides ``at``.

        Raises:
            ConfigError: the table lacks a column, so it was not written by this pipeline.
        """
        files = _files(_path(self._folder) / name, self._requested)
        if not files:
            return None
        wanted = list(dict.fromkeys(("window", *columns)))
        missing = sorted(set(wanted) - set(pq.read_schema(files[0]).names))
        if missing:
            raise ConfigError(
                f"--folder {self._folder}: table {name} was not written by this version of the"
                f" pipeline; missing columns: {', '.join(missing)}"
            )
        found = pa.concat_tables([_read(file, wanted) for file in files], promote_options="default")
        at = _microseconds(found["window"])
        found = found.append_column("at", at)
        for time, compare in (
            (self._requested.start, pc.greater_equal),
            (self._requested.end, pc.less),
        ):
            if time is not None:
                found = found.filter(compare(found["at"], (time - EPOCH) // MICROSECOND))
        return found.drop_columns(["window"])


def _read(file: Path, columns: Sequence[str]) -> Any:
    with pq.ParquetFile(file) as opened:
        return opened.read(columns=columns)


def _microseconds(times: Any) -> Any:
    return times.cast(pa.timestamp("us", tz=times.type.tz)).cast(pa.int64())


class ArrowQueries:
    """The queries for one report; see :class:`._queries.Queries`.

    Args:
        results: the result tables.
        filters: selects the requests to include.
        bins: the bins of the timeline.
    """

    def __init__(self, results: ArrowResults, filters: Filters, bins: Bins) -> None:
        self._results = results
        self._filters = filters
        self._bins = bins

    def traffic(self) -> Sequence[Row]:
        times = [f"{phase}_mean_us" for phase in PHASES]
        found = self._rows("requests", (*KEYS, *COUNTS, *times, "total_max_us"))
        if found is None:
            return []
        for phase in PHASES:
            found = _with_sum(found, f"{phase}_us", f"{phase}_mean_us", "requests")
        sums = (*COUNTS, *(f"{phase}_us" for phase in PHASES))
        return _summed(found, ("bin", "api_key", "api"), sums, {"total_max_us": "max_us"})

    def clients(self) -> int:
        found = self._rows("requests", KEYS)
        return 0 if found is None else len(_summed(found, ("client_id", "listener")))

    def cells(self) -> Any:
        found = self._rows("requests", (*KEYS, "cells", "counts"))
        if found is None:
            return None
        of_row = pc.list_parent_indices(found["cells"])
        each = pa.table(
            {
                "bin": found["bin"].take(of_row),
                "api_key": found["api_key"].take(of_row),
                "cell": pc.list_flatten(found["cells"]),
                "requests": pc.list_flatten(found["counts"]),
            }
        )
        summed = each.group_by(["bin", "api_key", "cell"]).aggregate([("requests", "sum")])
        return summed.rename_columns({"requests_sum": "requests"})

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        found = self._rows("requests", (*KEYS, *COUNTS, "total_mean_us", "total_max_us"))
        if found is None:
            return []
        found = _with_sum(found, "total_us", "total_mean_us", "requests")
        rows = _summed(
            found, ("client_id", "listener"), (*COUNTS, "total_us"), {"total_max_us": "max_us"}
        )

        def order(row: Row) -> tuple[Any, ...]:
            shares = (
                row["requests"] / (whole.requests or 1.0),
                (row["request_bytes"] + row["response_bytes"]) / (whole.bytes or 1.0),
                row["total_us"] / (whole.phase_us["total"] or 1.0),
            )
            return (-max(shares), row["client_id"], row["listener"])

        return sorted(rows, key=order)[:top]

    def errors(self) -> Sequence[Row]:
        keys = ("end", "error")
        found = self._rows("errors", (*KEYS, *keys, "error_code", "requests"))
        if found is None:
            return []
        ended = pc.is_in(found["end"], pa.array(["closed", "gone"]))
        found = found.filter(pc.or_(pc.not_equal(found["error_code"], 0), ended))
        return _summed(found, ("bin", "api", *keys), ("requests",))

    def closes(self) -> Sequence[Row]:
        counts = ("connections", "requests", "bytes_received", "bytes_sent")
        found = self._rows("closes", ("client_id", "listener", "reason", *counts, "open_mean_us"))
        if found is None:
            return []
        found = _with_sum(found, "open_us", "open_mean_us", "connections")
        return _summed(found, ("listener", "reason"), (*counts, "open_us"))

    def quotas(self, top: int) -> Sequence[Row]:
        keys, counts = (
            ("client_id", "principal", "listener"),
            ("requests", "throttled", "throttle_us"),
        )
        found = self._rows("quotas", (*keys, *counts, "throttle_max_us"))
        if found is None:
            return []
        rows = _summed(found, keys, counts, {"throttle_max_us": "throttle_max_us"})
        rows.sort(key=lambda row: (-row["throttle_us"], *(row[name] for name in keys)))
        return rows[:top]

    def anomalies(self) -> tuple[Sequence[Row], int]:
        found = self._rows("anomalies", (*KEYS, "measure", "value", "expected", "score"))
        if found is None:
            return [], 0
        rows = found.drop_columns(["bin"]).to_pylist()
        names = (*KEYS, "measure")

        def order(row: Row) -> tuple[Any, ...]:
            return (-abs(row["score"]), row["at"], *((row[n] is not None, row[n]) for n in names))

        return sorted(rows, key=order)[:ANOMALIES_MAX], len(rows)

    def incidents(self) -> Sequence[Row]:
        found = self._rows("incidents", (*SCOPE, *INCIDENT_COLUMNS))
        if found is None:
            return []
        for name in INCIDENT_TIMES:
            place = found.schema.get_field_index(name)
            found = found.set_column(place, name, _microseconds(found[name]))
        rows = sorted(found.drop_columns(["bin"]).to_pylist(), key=lambda row: int(row["at"]))
        latest = {row.pop("incident"): row for row in map(dict, rows)}
        named = [{"incident": name, **row} for name, row in latest.items()]
        return sorted(named, key=lambda row: (row["start"], row["incident"]))

    def objectives(self) -> Sequence[Row]:
        keys = ("objective", "api_key", "api", "client_id", "target")
        found = self._rows("objectives", (*keys, *OBJECTIVE_COLUMNS))
        if found is None:
            return []
        alerts = ("page", "ticket")
        for each in alerts:
            is_on = pc.fill_null(pc.equal(found["alert"], each), fill_value=False)
            found = found.append_column(f"{each}_minutes", is_on.cast(pa.int64()))
        sums = ("requests", "bad", *(f"{each}_minutes" for each in alerts))
        rows = _summed(found, keys, sums, {"burn_1h": "burn_1h_max"})
        return sorted(rows, key=lambda row: (row["objective"], row["client_id"] or ""))

    def intake(self) -> Row:
        counts = ("late", "malformed", "newer", "ahead")
        found = self._results.table("intake", counts)
        if found is None:
            return dict.fromkeys(counts, 0)
        return {name: pc.sum(found[name]).as_py() or 0 for name in counts}

    def _rows(self, table: str, columns: Sequence[str]) -> Any:
        """Return the rows of a table that pass the filters on its columns, with their bins."""
        found = self._results.table(table, columns)
        if found is None:
            return None
        filters = {
            "api_key": (list(self._filters.apis), pa.int32()),
            "client_id": (list(self._filters.clients), pa.string()),
            "listener": (list(self._filters.listeners), pa.string()),
        }
        for name, (values, kind) in filters.items():
            if values and name in columns:
                found = found.filter(pc.is_in(found[name], pa.array(values, kind)))
        start = (self._bins.start - EPOCH) // MICROSECOND
        width = self._bins.seconds * 1_000_000
        return found.append_column("bin", pc.divide(pc.subtract(found["at"], start), width))


def _with_sum(table: Any, name: str, mean: str, count: str) -> Any:
    product = pc.multiply(table[mean], table[count].cast(pa.float64()))
    return table.append_column(name, product)


def _summed(
    table: Any, keys: Sequence[str], sums: Sequence[str] = (), maxima: Mapping[str, str] = {}
) -> list[dict[str, Any]]:
    """Return the sums and maxima of columns by keys; a maximum gets another name."""
    wanted = [(name, "sum") for name in sums] + [(name, "max") for name in maxima]
    found = table.group_by(list(keys)).aggregate(wanted)
    names = {f"{name}_sum": name for name in sums}
    names |= {f"{name}_max": renamed for name, renamed in maxima.items()}
    return [
        {names.get(name, name): value for name, value in row.items()} for row in found.to_pylist()
    ]
