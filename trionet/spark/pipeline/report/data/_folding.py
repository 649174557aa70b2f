"""From what Spark has added up to a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from ...aggregation._partials import PHASES
from ...histogram import BUCKETS_MAX
from ._bins import Bins
from ._figures import (
    SHARES,
    Anomaly,
    Api,
    Close,
    Error,
    Filters,
    Heat,
    Intake,
    Percentiles,
    Quota,
    Report,
    Talker,
    Timeline,
    Traffic,
)
from ._histograms import Buckets, by_phase, grouped, heat
from ._queries import EPOCH, MICROSECOND, Answers, Row
from ._time_range import TimeRange

_NOTHING: Final = np.empty(0, np.int64)


@attrs.frozen(eq=False)
class Cells:
    """Which cell of the histograms of which API has counted how many requests in which bin."""

    bin: NDArray[np.int64]
    api_key: NDArray[np.int64]
    cell: NDArray[np.int64]
    requests: NDArray[np.int64]

    @classmethod
    def of(cls, table: Any) -> Cells:
        """The columns of a table of Arrow, or nothing of None."""
        if table is None:
            return cls(_NOTHING, _NOTHING, _NOTHING, _NOTHING)
        return cls(*(np.asarray(table[each.name]).astype(np.int64) for each in attrs.fields(cls)))

    def histograms(self, api_key: int | None = None) -> Mapping[str, Buckets]:
        """By phase, of one API or of all."""
        chosen = slice(None) if api_key is None else self.api_key == api_key
        return by_phase(self.cell[chosen], self.requests[chosen])

    def totals(self, api_key: int | None = None) -> Iterator[tuple[int, Buckets]]:
        """The histogram of the total of each bin that has one, of one API or of all."""
        is_chosen = self.cell // BUCKETS_MAX == PHASES.index("total")
        if api_key is not None:
            is_chosen &= self.api_key == api_key
        buckets, counts = self.cell[is_chosen] % BUCKETS_MAX, self.requests[is_chosen]
        for index, rows in grouped(self.bin[is_chosen]):
            yield index, Buckets.of(buckets[rows], counts[rows])


def report(answers: Answers, folder: str, asked: TimeRange, filters: Filters) -> Report:
    """All that there is to say."""
    cells = Cells.of(answers.cells)
    traffic = overall(answers.traffic)
    return Report(
        folder=folder,
        asked=asked,
        filters=filters,
        start=answers.extent.start,
        end=answers.extent.end,
        windows=answers.extent.windows,
        clients=answers.clients,
        traffic=traffic,
        percentiles=_percentiles(cells.histograms(), traffic),
        apis=_apis(answers.traffic, cells),
        talkers=[_talker(row, traffic) for row in answers.talkers],
        errors=_errors(answers.errors),
        closes=sorted(map(_close, answers.closes), key=lambda close: -close.connections),
        quotas=[Quota(**row) for row in answers.quotas],
        anomalies=[_anomaly(row) for row in answers.anomalies],
        anomaly_count=answers.anomaly_count,
        intake=Intake(**answers.intake),
        timeline=_timeline(answers, cells),
    )


def overall(rows: Iterable[Row]) -> Traffic:
    """Sums of bins and APIs, added up."""
    return reduce(add, map(_traffic, rows), Traffic())


def _traffic(row: Row) -> Traffic:
    # Of a talker only the total is known.
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
    made = []
    for key, each in found.items():
        traffic = overall(each)
        percentiles = _percentiles(cells.histograms(key), traffic)
        made.append(Api(each[0]["api"], traffic, percentiles))
    return sorted(made, key=lambda api: (-api.traffic.requests, api.name))


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


def _timeline(answers: Answers, cells: Cells) -> Timeline:
    bins = answers.bins
    percentiles: dict[str, list[float | None]] = {name: [None] * bins.count for name in SHARES}
    largest: dict[int, int] = {}
    for row in answers.traffic:
        largest[row["bin"]] = max(largest.get(row["bin"], 0), row["max_us"])
    warm: list[Heat] = []
    for index, buckets in cells.totals():
        for name, value in buckets.percentiles(largest.get(index)).items():
            percentiles[name][index] = value
        warm.extend(heat(index, buckets))
    requests = _by_bin(bins, ((row["api"], row) for row in answers.traffic))
    return Timeline(
        bins=bins,
        seconds=bins.covered(answers.extent.end),
        requests=requests,
        errors=_by_bin(bins, ((error_name(_error(row)), row) for row in answers.errors)),
        percentiles=percentiles,
        slowest={name: _slowest(answers, cells, name) for name in requests},
        heat=warm,
    )


def _slowest(answers: Answers, cells: Cells, api: str) -> Sequence[float | None]:
    found: list[float | None] = [None] * answers.bins.count
    rows = [row for row in answers.traffic if row["api"] == api]
    largest = {row["bin"]: row["max_us"] for row in rows}
    for index, buckets in cells.totals(rows[0]["api_key"]):
        found[index] = buckets.percentiles(largest.get(index))["p99"]
    return found


def _error(row: Row) -> Error:
    return Error(row["api"], row["end"], row["error"], row["requests"])


def error_name(error: Error) -> str:
    """What went wrong: the name of the code, or that there was no answer."""
    return error.error if error.end in ("answered", "unanswered") else f"connection {error.end}"


def _by_bin(bins: Bins, rows: Iterable[tuple[str, Row]]) -> Mapping[str, Sequence[float]]:
    """How many requests of each name are in each bin; the most frequent name first."""
    found: dict[str, list[float]] = {}
    for name, row in rows:
        found.setdefault(name, [0.0] * bins.count)[row["bin"]] += row["requests"]
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1]), item[0])))
