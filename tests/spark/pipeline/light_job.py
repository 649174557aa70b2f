"""A job without Spark that writes a results directory as the pipeline does, step by step.

It writes single files with Arrow where the pipeline has a job of Spark; the cuts, what is merged
and what is deleted are the pipeline's own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark.pipeline.results_folder import (
    START,
    close,
    error,
    intake,
    quota,
    requests,
    write_table,
)
from trionet.spark.pipeline.report._arrow_queries import ArrowResults
from trionet.spark.pipeline.report._folding import EPOCH
from trionet.spark.pipeline.report._inputs import Filters, TimeRange
from trionet.spark.pipeline.report._report import make_report
from trionet.spark.pipeline.results._result_folder import ResultFolder

#: A micro-batch closes so many minutes.
MINUTES: Final = 20


class LocalFiles:
    """The file system of this machine, as :class:`trionet.spark.pipeline._storage.Storage`.

    Args:
        before: called before each change, with what it is and where.
    """

    def __init__(self, before: Callable[[str], None]) -> None:
        self._before = before

    def names(self, folder: str) -> list[str]:
        path = Path(folder)
        return sorted(each.name for each in path.iterdir()) if path.is_dir() else []

    def matching(self, pattern: str) -> list[str]:
        root, _, below = pattern.partition("/day=")
        return [str(each) for each in Path(root).glob(f"day={below}")]

    def create(self, name: str) -> None:
        self._before(f"create {name}")
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    def rename(self, name: str, target: str) -> None:
        self._before(f"rename {target}")
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(name).rename(target)

    def delete(self, folder: str) -> None:
        self._before(f"delete {folder}")
        path = Path(folder)
        if path.is_dir():
            # As Hadoop does it: file by file.
            for each in sorted(path.iterdir()):
                self.delete(str(each))
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


class LightJob:
    """A job that was started just now.

    Args:
        folder: the results directory.
        before: called before each change of it, with what it is and where.
        keep_days: how many days of results are kept.
    """

    def __init__(self, folder: Path, before: Callable[[str], None], keep_days: int = 1) -> None:
        self._folder = folder
        self._before = before
        self._keep_days = keep_days
        self._files = LocalFiles(before)
        self._tidied_hour: datetime | None = None

    def write(self, batch: int) -> None:
        """Write the results of a micro-batch, which may have been written in part."""
        results = ResultFolder(self._files, str(self._folder))
        if results.has(batch):
            return
        results.begin(batch)
        for left in self._folder.glob(f"*/day=*/batch={batch}"):
            shutil.rmtree(left)
        for name, rows in tables_of(batch).items():
            self._before(f"write {name}")
            write_table(self._folder, name, rows, batch)
        results.complete(batch)
        now = end_of(batch)
        hour = now.replace(minute=0)
        if hour != self._tidied_hour:
            self._tidied_hour = hour
            results.tidy(str(now.date()), self._keep_days, self._merge)

    def _merge(self, paths: Sequence[str], folder: str) -> None:
        self._before(f"merge {folder}")
        Path(folder).mkdir(parents=True, exist_ok=True)
        merged = pa.concat_tables([pq.ParquetFile(each).read() for each in paths])
        pq.write_table(merged, f"{folder}/part-00000.parquet")


def end_of(batch: int) -> datetime:
    """The first minute that a micro-batch does not close."""
    return START + timedelta(minutes=MINUTES * (batch + 1))


def tables_of(batch: int) -> Mapping[str, Sequence[Any]]:
    """The rows that a micro-batch writes, in the order in which the pipeline writes its tables."""
    first = MINUTES * batch
    windows = [START + timedelta(minutes=first + n) for n in range(MINUTES)]
    counts = [_counts_of(_minute_of(each)) for each in windows]
    asked = [
        requests(window, [1000] * count["requests"], errors=count["errors"])
        for window, count in zip(windows, counts, strict=True)
    ]
    failed = [error(row, 6, "NOT_LEADER_OR_FOLLOWER", row["errors"]) for row in asked]
    closed = [
        close(window, "PEER_CLOSED", count["connections"], 1e6)
        for window, count in zip(windows, counts, strict=True)
    ]
    throttled = [
        quota(window, count["throttled"], 10) for window, count in zip(windows, counts, strict=True)
    ]
    totals = [
        {"window": window, "records": count["requests"], **count}
        for window, count in zip(windows, counts, strict=True)
    ]
    return {
        "requests": asked,
        "errors": failed,
        "closes": closed,
        "quotas": throttled,
        "windows": totals,
        "intake": [intake(windows[-1], sum(each["late"] for each in counts))],
    }


def _counts_of(minute: Any) -> dict[str, Any]:
    """Numbers that tell minutes apart, of one or of an array of them."""
    return {
        "requests": 2 + minute % 7,
        "errors": 1 + minute % 2,
        "connections": 1 + minute % 3,
        "throttled": 1 + minute % 5,
        "late": minute % 4,
    }


def _minute_of(window: datetime) -> int:
    return (window - EPOCH) // timedelta(minutes=1)


def expected(start: datetime, end: datetime) -> dict[str, int]:
    """What the tables have of the minutes of a range, added up."""
    minutes = np.arange(_minute_of(start), _minute_of(end))
    sums = {name: int(counts.sum()) for name, counts in _counts_of(minutes).items()}
    return {"windows": len(minutes), **sums}


def differences(folder: Path, now: datetime) -> list[str]:
    """What in a report does not belong to its minutes, in words; a report is made of one cut."""
    report = make_report(None, str(folder), TimeRange(), Filters(), 10, now)
    found = {
        "windows": report.windows,
        "requests": report.traffic.requests,
        "errors": sum(each.requests for each in report.errors),
        "connections": sum(each.connections for each in report.closes),
        "throttled": sum(each.throttled for each in report.quotas),
        "late": report.intake.late,
    }
    return _unequal(report.start, report.end, found)


def differences_of_tables(folder: Path) -> list[str]:
    """The same for some of the tables that a report reads, which is much faster than a report."""
    results = ArrowResults(str(folder), TimeRange())
    extent = results.extent()
    if extent is None:
        return []
    found = {"windows": int(extent.windows)}
    for table, (column, name) in _SUMS.items():
        found[name] = sum(results.table(table, (column,))[column].to_pylist())
    return _unequal(extent.start, extent.end, found)


_SUMS: Final = {
    "requests": ("requests", "requests"),
    "closes": ("connections", "connections"),
    "intake": ("late", "late"),
}


def _unequal(start: datetime, end: datetime, found: Mapping[str, int]) -> list[str]:
    wanted = expected(start, end)
    return [
        f"{start} to {end}: {count} {name}, not {wanted[name]}"
        for name, count in found.items()
        if count != wanted[name]
    ]
