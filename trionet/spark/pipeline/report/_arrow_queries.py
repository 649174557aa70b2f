"""Queries a local results directory with Arrow, in this process: no Java has to start.

The rules are those of :mod:`._queries`, as in :mod:`._spark_queries`. Starting Spark takes several
seconds, and each of its first queries about one; Arrow computes all of them for some days of
results in less than that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
    repeated,
    shares,
)

#: Arrow's types, by Spark's words for them.
_ARROW: Final = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
}

#: The size of the files up to which Arrow reads a directory: all rows are in memory then.
BYTES_MAX: Final = 256 * 1024 * 1024


def is_small(folder: str, requested: TimeRange) -> bool:
    """Return whether a directory is local, and its files of a time range are at most ``BYTES_MAX``.

    Args:
        folder: the results directory.
        requested: the time range.
    """
    if urlsplit(folder).scheme not in ("", "file"):
        return False

    def size() -> int:
        files = _listed(_path(folder), requested).values()
        return sum(file.stat().st_size for each in files for file in each)

    return repeated(size) <= BYTES_MAX


def _path(folder: str) -> Path:
    parts = urlsplit(folder)
    return Path(unquote(parts.path) if parts.scheme else folder)


def _listed(folder: Path, requested: TimeRange) -> Mapping[str, list[Path]]:
    """Return the files of each table that are in the latest cut, of the days of a range."""
    while True:
        cut = _latest_cut(folder)
        whole = cut or unmarked_cut(_paths(folder / WINDOWS, TimeRange()))
        found = {table: _files(folder / table, whole, requested) for table in TABLES}
        if is_listing_whole(cut, _latest_cut(folder)):
            return found


def _latest_cut(folder: Path) -> Cut | None:
    return Cut.latest(each.name for each in (folder / CUTS).glob("*"))


def _files(table: Path, cut: Cut, requested: TimeRange) -> list[Path]:
    files = current_files(whole_files(_paths(table, requested), cut))
    return [table / file.path for file in files]


def _paths(table: Path, requested: TimeRange) -> list[str]:
    return [
        Path(batch, name).relative_to(table).as_posix()
        for day in table.glob("day=*")
        if _may_have_rows(day.name.removeprefix("day="), requested)
        for batch, _, names in os.walk(day)
        for name in names
    ]


def _may_have_rows(day: str, requested: TimeRange) -> bool:
    start, end = requested.start, requested.end
    return (start is None or day >= str(start.date())) and (end is None or day <= str(end.date()))


class ArrowResults:
    """The results in a local directory, limited to a time range.

    Args:
        folder: the results directory.
        requested: the time range of the rows to return.
    """

    def __init__(self, folder: str, requested: TimeRange) -> None:
        self._folder = folder
        self._requested = requested
        self._files = _listed(_path(folder), requested)

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
            ConfigError: the table was not written by the pipeline.
            FileNotFoundError: a file was deleted meanwhile.
        """
        files = self._files[name]
        if not files:
            return None
        wanted = list(dict.fromkeys(("window", *columns)))
        found = pa.concat_tables([_read(file, wanted) for file in files], promote_options="default")
        missing = missing_columns(self._folder, name, wanted, found.column_names)
        for column, kind in missing.items():
            found = found.append_column(column, pa.nulls(len(found), _ARROW[kind]))
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
        names = opened.schema_arrow.names
        return opened.read(columns=[name for name in columns if name in names])


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

    def summed(self, rule: Sums, top: int | None = None) -> Sequence[Row]:
        found = self._rows(rule.table, rule.scope, rule.columns)
        if found is None:
            return []
        if rule.without:
            each = (
                pc.is_in(found[name], _values(found, name, rule.without[name]))
                for name in rule.without
            )
            found = found.filter(pc.invert(reduce(pc.and_, each)))
        for name, (mean, count) in rule.weighted.items():
            product = pc.multiply(found[mean], found[count].cast(pa.float64()))
            found = found.append_column(name, product)
        for name, (column, value) in rule.counted.items():
            is_it = pc.fill_null(pc.equal(found[column], value), fill_value=False)
            found = found.append_column(name, is_it.cast(pa.int64()))
        sums = (*rule.sums, *rule.weighted, *rule.counted)
        wanted = [(name, "sum") for name in sums]
        wanted += [(column, "max") for column in rule.maxima.values()]
        names = {f"{name}_sum": name for name in sums}
        names |= {f"{column}_max": name for name, column in rule.maxima.items()}
        grouped = found.group_by(list(rule.by)).aggregate(wanted)
        rows = grouped.rename_columns([names.get(each, each) for each in grouped.column_names])
        for name in names.values():  # null if another version did not have the column
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, pc.fill_null(rows[name], 0))
        return _ordered(rows.to_pylist(), rule.order)[:top]

    def clients(self) -> int:
        found = self._rows("requests", SCOPE, CLIENT)
        return 0 if found is None else len(found.group_by(list(CLIENT)).aggregate([]))

    def cells(self) -> Any:
        found = self._rows("requests", SCOPE, CELLS)
        if found is None:
            return None
        of_row = pc.list_parent_indices(found["cells"])
        each = pa.table(
            {
                BIN: found[BIN].take(of_row),
                "api_key": found["api_key"].take(of_row),
                "cell": pc.list_flatten(found["cells"]),
                "requests": pc.list_flatten(found["counts"]),
            }
        )
        summed = each.group_by([BIN, "api_key", "cell"]).aggregate([("requests", "sum")])
        return summed.rename_columns({"requests_sum": "requests"})

    def talkers(self, top: int, whole: Traffic) -> Sequence[Row]:
        def largest_share(row: Row) -> float:
            of = (sum(row[name] for name in columns) / total for columns, total in shares(whole))
            return float(max(of))

        return sorted(self.summed(TALKERS), key=largest_share, reverse=True)[:top]

    def anomalies(self) -> tuple[Sequence[Row], int]:
        found = self._rows("anomalies", SCOPE, (*KEYS, *ANOMALY_COLUMNS))
        if found is None:
            return [], 0
        rows = _ordered(found.drop_columns([BIN]).to_pylist(), ANOMALY_ORDER)
        rows.sort(key=lambda row: abs(row["score"]), reverse=True)
        return rows[:ANOMALIES_MAX], len(rows)

    def incidents(self) -> Sequence[Row]:
        found = self._rows("incidents", SCOPE, (*SCOPE, *INCIDENT_COLUMNS))
        if found is None:
            return []
        for name in INCIDENT_TIMES:
            place = found.schema.get_field_index(name)
            found = found.set_column(place, name, _microseconds(found[name]))
        rows = _ordered(found.drop_columns([BIN]).to_pylist(), ("at",))
        latest = {row["incident"]: row for row in rows}
        return _ordered(list(latest.values()), ("start", "incident"))

    def intake(self) -> Row:
        found = self._results.table("intake", INTAKE_COUNTS)
        if found is None:
            return dict.fromkeys(INTAKE_COUNTS, 0)
        return {name: pc.sum(found[name]).as_py() or 0 for name in INTAKE_COUNTS}

    def _rows(self, table: str, scope: Sequence[str], columns: Sequence[str]) -> Any:
        """Return the rows of a table that pass the filters on its scope, with their bins."""
        found = self._results.table(table, (*scope, *columns))
        if found is None:
            return None
        for name, values in self._filters.values(scope).items():
            found = found.filter(pc.is_in(found[name], _values(found, name, values)))
        start = (self._bins.start - EPOCH) // MICROSECOND
        width = self._bins.seconds * 1_000_000
        return found.append_column(BIN, pc.divide(pc.subtract(found["at"], start), width))


def _values(table: Any, column: str, values: Sequence[object]) -> Any:
    return pa.array(values, table.schema.field(column).type)


def _ordered(rows: list[Row], order: Sequence[str]) -> list[Row]:
    """Sort rows as :attr:`.Sums.order` says."""
    for name in reversed(order):
        column = name.removeprefix("-")
        rows.sort(key=lambda row: (row[column] is not None, row[column]), reverse=name != column)
    return rows
