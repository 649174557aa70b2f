"""Builds a report from the results of the Spark queries; this does not need Spark.

A percentile over a longer period is computed from the buckets of all its minutes. It cannot be
computed from the percentiles of the individual minutes: their average is meaningless.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from .._partials import PHASES
from ..histogram import BUCKETS_MAX, middle, percentile
from ._figures import (
    SHARES,
    Anomaly,
    Api,
    Bins,
    Cause,
    Close,
    Error,
    Heat,
    Incident,
    Intake,
    Objective,
    Percentiles,
    Quota,
    Report,
    Talker,
    Timeline,
    Traffic,
)
from ._inputs import Filters, TimeRange

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

Row = Mapping[str, Any]


@attrs.frozen
class Extent:
    """The time range that has results, and its number of minutes with results."""

    start: datetime
    end: datetime
    windows: int


@attrs.frozen(kw_only=True)
class QueryResults:
    """The results of all queries for a report.

    Attributes:
        extent: the extent of the minutes with results.
        bins: the bins of the timeline.
        traffic: sums by bin and API.
        clients: the number of distinct pairs of client id and listener.
        cells: histogram cells as an Arrow table: ``bin``, ``api_key``, ``cell``, ``requests``.
        talkers: sums of the clients with the largest share of requests, bytes or time.
        errors: sums by bin, API and error.
        closes: sums by listener and reason.
        quotas: sums of the longest throttled clients.
        anomalies: the anomalies with the highest scores.
        anomaly_count: the total number of anomalies.
        incidents: the last state of each incident, by its start.
        objectives: sums by objective and client.
        intake: the number of records that are not included in any minute, by cause.
        clocks: how far the clocks of brokers have been ahead.
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
    incidents: Sequence[Row]
    objectives: Sequence[Row]
    intake: Row
    clocks: Sequence[Row] = ()


#: The number of rows in a heatmap per doubling of the duration.
_BANDS: Final = 4


@attrs.frozen(eq=False)
class Buckets:
    """A histogram: distinct, sorted bucket numbers, and the count of each bucket."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> Buckets:
        """Merge buckets given in any order, adding up the counts of equal buckets."""
        each, places = np.unique(numbers, return_inverse=True)
        sums = np.zeros(len(each), np.int64)
        np.add.at(sums, places, counts)
        return cls(each, sums)

    def percentiles(self, largest: int | None = None) -> Percentiles:
        """Compute the percentiles of ``SHARES``, capped at ``largest``."""
        if not self.counts.sum():
            return dict.fromkeys(SHARES)
        values = {
            name: float(percentile(self.numbers, self.counts, share))
            for name, share in SHARES.items()
        }
        return {
            name: value if largest is None else min(value, largest)
            for name, value in values.items()
        }


def by_phase(cells: NDArray[np.int64], counts: NDArray[np.int64]) -> Mapping[str, Buckets]:
    """Split the cells of all phases into a histogram per phase."""
    found = dict(grouped(cells // BUCKETS_MAX))
    empty = np.empty(0, np.int64)
    return {
        phase: Buckets.of(cells[rows] % BUCKETS_MAX, counts[rows])
        for number, phase in enumerate(PHASES)
        for rows in [found.get(number, empty)]
    }


def grouped(keys: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct key with the indices of its rows."""
    order = np.argsort(keys, kind="stable")
    each, starts = np.unique(keys[order], return_index=True)
    # Without rows np.split still returns one part, an empty one: hence not strict.
    yield from zip(each.tolist(), np.split(order, starts[1:]), strict=False)


def heat(index: int, buckets: Buckets) -> Iterator[Heat]:
    """Yield the cells of one bin of a heatmap; each cell covers a quarter of a doubling."""
    bands: dict[int, int] = {}
    times = middle(buckets.numbers).tolist()
    for time, count in zip(times, buckets.counts.tolist(), strict=True):
        band = math.floor(_BANDS * math.log2(max(1, time)))
        bands[band] = bands.get(band, 0) + count
    for band, count in sorted(bands.items()):
        yield Heat(index, 2 ** (band / _BANDS), 2 ** ((band + 1) / _BANDS), count)


_EMPTY: Final = np.empty(0, np.int64)


@attrs.frozen(eq=False)
class Cells:
    """The histogram cells of all bins and APIs, as columns, with the requests per cell."""

    bin: NDArray[np.int64]
    api_key: NDArray[np.int64]
    cell: NDArray[np.int64]
    requests: NDArray[np.int64]

    @classmethod
    def of(cls, table: Any) -> Cells:
        """Convert an Arrow table; None means that there are no rows."""
        if table is None:
            return cls(_EMPTY, _EMPTY, _EMPTY, _EMPTY)
        return cls(*(np.asarray(table[each.name]).astype(np.int64) for each in attrs.fields(cls)))

    def histograms(self, api_key: int | None = None) -> Mapping[str, Buckets]:
        """Return the histograms of one API, or of all APIs, by phase."""
        selected = slice(None) if api_key is None else self.api_key == api_key
        return by_phase(self.cell[selected], self.requests[selected])

    def totals(self, api_key: int | None = None) -> Iterator[tuple[int, Buckets]]:
        """Yield each bin with the total-duration histogram of one API, or of all APIs."""
        selected = self.cell // BUCKETS_MAX == PHASES.index("total")
        if api_key is not None:
            selected &= self.api_key == api_key
        buckets, counts = self.cell[selected] % BUCKETS_MAX, self.requests[selected]
        for index, rows in grouped(self.bin[selected]):
            yield index, Buckets.of(buckets[rows], counts[rows])


def report(results: QueryResults, folder: str, requested: TimeRange, filters: Filters) -> Report:
    """Build a report from the query results."""
    cells = Cells.of(results.cells)
    traffic = overall(results.traffic)
    return Report(
        folder=folder,
        requested=requested,
        filters=filters,
        start=results.extent.start,
        end=results.extent.end,
        windows=results.extent.windows,
        clients=results.clients,
        traffic=traffic,
        percentiles=_percentiles(cells.histograms(), traffic),
        apis=_apis(results.traffic, cells),
        talkers=[_talker(row, traffic) for row in results.talkers],
        errors=_errors(results.errors),
        closes=sorted(map(_close, results.closes), key=lambda close: -close.connections),
        quotas=[Quota(**row) for row in results.quotas],
        anomalies=[_anomaly(row) for row in results.anomalies],
        anomaly_count=results.anomaly_count,
        incidents=[_incident(row) for row in reversed(results.incidents)],
        objectives=[_objective(row) for row in results.objectives],
        intake=Intake(**results.intake),
        clocks_ahead={
            row["ahead_node_id"]: row["minutes"]
            for row in results.clocks
            if row["ahead_node_id"] is not None
        },
        timeline=_timeline(results, cells),
    )


def overall(rows: Iterable[Row]) -> Traffic:
    """Return the total traffic of all bins and APIs."""
    return reduce(add, map(_traffic, rows), Traffic())


def _traffic(row: Row) -> Traffic:
    # Rows of talkers have only the total duration.
    times = {phase: float(row.get(f"{phase}_us") or 0) for phase in PHASES}
    counts = (each.name for each in attrs.fields(Traffic) if each.name != "phase_us")
    return Traffic(phase_us=times, **{name: row[name] or 0 for name in counts})


def _percentiles(histograms: Mapping[str, Buckets], traffic: Traffic) -> Mapping[str, Percentiles]:
    largest = {"total": traffic.max_us}
    return {phase: each.percentiles(largest.get(phase)) for phase, each in histograms.items()}


def _apis(rows: Sequence[Row], cells: Cells) -> Sequence[Api]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["api_key"], []).append(row)
    apis = []
    for key, each in found.items():
        traffic = overall(each)
        percentiles = _percentiles(cells.histograms(key), traffic)
        apis.append(Api(each[0]["api"], traffic, percentiles))
    return sorted(apis, key=lambda api: (-api.traffic.requests, api.name))


def _talker(row: Row, whole: Traffic) -> Talker:
    traffic = _traffic(row)
    return Talker(
        row["client_id"],
        row["listener"],
        traffic,
        _share(traffic.requests, whole.requests),
        _share(traffic.bytes, whole.bytes),
        _share(traffic.phase_us["total"], whole.phase_us["total"]),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _errors(rows: Iterable[Row]) -> Sequence[Error]:
    sums: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = row["api"], row["end"], row["error"]
        sums[key] = sums.get(key, 0) + row["requests"]
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return [Error(api, end, error, count) for (api, end, error), count in ordered]


def _close(row: Row) -> Close:
    open_us = (row["open_us"] or 0) / row["connections"] if row["connections"] else 0.0
    names = ("listener", "reason", "connections", "requests", "bytes_received", "bytes_sent")
    return Close(**{name: row[name] for name in names}, open_mean_us=open_us)


def _anomaly(row: Row) -> Anomaly:
    names = ("api", "client_id", "listener", "measure", "value", "expected", "score")
    time = EPOCH + row["at"] * MICROSECOND
    return Anomaly(window=time, **{name: row[name] for name in names})


def _incident(row: Row) -> Incident:
    times = {name: EPOCH + row[name] * MICROSECOND for name in ("start", "end", "worst")}
    causes = [_cause(each) for each in row["causes"] or ()]  # none of an earlier version
    names = (each.name for each in attrs.fields(Incident) if each.name not in (*times, "causes"))
    return Incident(**times, **{name: row[name] for name in names}, causes=causes)


def _cause(row: Any) -> Cause:
    values = {each.name: row[each.name] for each in attrs.fields(Cause)}
    times = {name: datetime.fromisoformat(values[name]) for name in ("start", "end", "worst")}
    return Cause(**{**values, **times})


def _objective(row: Row) -> Objective:
    return Objective(**{each.name: row[each.name] for each in attrs.fields(Objective)})


def _timeline(results: QueryResults, cells: Cells) -> Timeline:
    bins = results.bins
    percentiles: dict[str, list[float | None]] = {name: [None] * bins.count for name in SHARES}
    largest: dict[int, int] = {}
    for row in results.traffic:
        largest[row["bin"]] = max(largest.get(row["bin"], 0), row["max_us"])
    heat_cells: list[Heat] = []
    for index, buckets in cells.totals():
        for name, value in buckets.percentiles(largest.get(index)).items():
            percentiles[name][index] = value
        heat_cells.extend(heat(index, buckets))
    requests = _by_bin(bins, ((row["api"], row) for row in results.traffic))
    return Timeline(
        bins=bins,
        seconds=bins.covered(results.extent.end),
        requests=requests,
        errors=_by_bin(bins, ((error_name(_error(row)), row) for row in results.errors)),
        percentiles=percentiles,
        slowest={name: _slowest(results, cells, name) for name in requests},
        heat=heat_cells,
    )


def _slowest(results: QueryResults, cells: Cells, api: str) -> Sequence[float | None]:
    found: list[float | None] = [None] * results.bins.count
    rows = [row for row in results.traffic if row["api"] == api]
    largest = {row["bin"]: row["max_us"] for row in rows}
    for index, buckets in cells.totals(rows[0]["api_key"]):
        found[index] = buckets.percentiles(largest.get(index))["p99"]
    return found


def _error(row: Row) -> Error:
    return Error(row["api"], row["end"], row["error"], row["requests"])


def error_name(error: Error) -> str:
    """Return the name of the error code, or how the connection ended."""
    return error.error if error.end in ("answered", "unanswered") else f"connection {error.end}"


def _by_bin(bins: Bins, rows: Iterable[tuple[str, Row]]) -> Mapping[str, Sequence[float]]:
    """Return the requests per bin for each name, most frequent name first."""
    found: dict[str, list[float]] = {}
    for name, row in rows:
        found.setdefault(name, [0.0] * bins.count)[row["bin"]] += row["requests"]
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1]), item[0])))
