"""A folder as the pipeline writes it, from single requests; nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trionet.spark.pipeline._partials import PHASES
from trionet.spark.pipeline.histogram import BUCKETS_MAX, bucket
from trionet.spark.pipeline.incidents._incidents import ROWS as INCIDENT_ROWS

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Times = Mapping[str, NDArray[np.int64]]

_TYPES = {
    "window": pa.timestamp("us", tz="UTC"),
    "api_key": pa.int32(),
    "error_code": pa.int32(),
    "rank": pa.int32(),
    "ahead_node_id": pa.int64(),
    "minutes": pa.int32(),
    "phase": pa.string(),
    "api": pa.string(),
    "client_id": pa.string(),
    "listener": pa.string(),
    "reason": pa.string(),
    "alert": pa.string(),
    "cells": pa.list_(pa.int32()),
    "counts": pa.list_(pa.int64()),
    "causes": INCIDENT_ROWS.field("causes").type,
}
#: In other tables, ``end`` is how a request ended.
_TIMES_OF_INCIDENTS = dict.fromkeys(("start", "end", "worst"), pa.timestamp("us", tz="UTC"))


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def requests(
    window: datetime,
    total: Sequence[int] | NDArray[np.int64],
    *,
    api: tuple[int, str] = (0, "Produce"),
    client_id: str = "shop",
    listener: str = "PLAINTEXT",
    phases: Times | None = None,
    weight: int = 1,
    errors: int = 0,
    throttled: int = 0,
    request_bytes: int = 100,
    response_bytes: int = 50,
) -> dict[str, Any]:
    """The row of a minute's requests: their times in microseconds, sizes of each."""
    count = len(total)
    times = {phase: np.zeros(count, np.int64) for phase in PHASES}
    times |= {"total": np.asarray(total, np.int64), **(phases or {})}
    row: dict[str, Any] = {
        "window": window,
        "api_key": api[0],
        "api": api[1],
        "client_id": client_id,
        "listener": listener,
        "records": count,
        "requests": count * weight,
        "errors": errors,
        "throttled": throttled,
        "request_bytes": count * weight * request_bytes,
        "response_bytes": count * weight * response_bytes,
        "cells": [],
        "counts": [],
    }
    for number, phase in enumerate(PHASES):
        row[f"{phase}_mean_us"] = float(times[phase].mean())
        row[f"{phase}_max_us"] = int(times[phase].max())
        buckets, counts = np.unique(bucket(times[phase]), return_counts=True)
        row["cells"] += (buckets + BUCKETS_MAX * number).tolist()
        row["counts"] += (counts * weight).tolist()
    return row


def error(row: Mapping[str, Any], code: int, name: str, count: int, end: str = "answered") -> Any:
    """The row of errors among the requests of a row."""
    return {
        **{key: row[key] for key in ("window", "api_key", "api", "client_id", "listener")},
        "end": end,
        "error_code": code,
        "error": name,
        "records": count,
        "requests": count,
    }


def close(window: datetime, reason: str, connections: int, open_us: float) -> Any:
    return {
        "window": window,
        "listener": "PLAINTEXT",
        "client_id": "shop",
        "reason": reason,
        "connections": connections,
        "requests": 10 * connections,
        "bytes_received": 1000 * connections,
        "bytes_sent": 500 * connections,
        "open_mean_us": open_us,
        "open_max_us": int(open_us),
    }


def quota(window: datetime, throttled: int, throttle_us: int, client_id: str = "shop") -> Any:
    return {
        "window": window,
        "client_id": client_id,
        "principal": "User:shop",
        "listener": "PLAINTEXT",
        "records": 4 * throttled,
        "requests": 4 * throttled,
        "throttled": throttled,
        "throttled_share": 0.25,
        "throttle_us": throttle_us,
        "throttle_max_us": throttle_us // 2,
    }


def anomaly(row: Mapping[str, Any], measure: str, value: float, score: float) -> Any:
    return {
        **{key: row[key] for key in ("window", "api_key", "api", "client_id", "listener")},
        "measure": measure,
        "value": value,
        "expected": 1.0,
        "spread": 0.1,
        "score": score,
        "minutes": 60,
    }


def incident(window: datetime, state: str, start: datetime, **fields: Any) -> Any:
    """An incident as it is at the end of a minute: the errors of the shop, until then."""
    return {
        "window": window,
        "incident": f"{start:%Y-%m-%dT%H:%MZ}",
        "state": state,
        "start": start,
        "end": start + timedelta(minutes=2),
        "worst": start,
        "measure": "error_share",
        "phase": None,
        "api_key": 0,
        "api": "Produce",
        "client_id": "shop",
        "listener": None,
        "reason": None,
        "value": 0.5,
        "expected": 0.0,
        "score": 9.0,
        "anomalies": 3,
        "causes": [cause(start), cause(start, measure="requests_per_s", score=-7.0)],
        **fields,
    }


def cause(start: datetime, **fields: Any) -> Any:
    """A cause of an incident."""
    begin, end = (f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in (start, start + timedelta(minutes=2)))
    names = {"api_key": 0, "api": "Produce", "client_id": "shop", "listener": None, "reason": None}
    numbers = {"value": 0.5, "expected": 0.0, "score": 9.0}
    times = {"start": begin, "end": end, "worst": begin}
    return {**times, "measure": "error_share", "phase": None, **names, **numbers, **fields}


def objective(window: datetime, bad: int, alert: str | None) -> Any:
    """A minute of an objective for the shop."""
    burn = {f"burn_{name}": bad / 100 / 0.01 for name in ("5m", "30m", "1h", "6h", "3d")}
    named = {"objective": "Produce/shop=99%", "api_key": 0, "api": "Produce", "client_id": "shop"}
    counts = {"window": window, "target": 0.99, "requests": 100, "bad": bad}
    return {**counts, **named, **burn, "alert": alert}


def intake(window: datetime, late: int, clock: tuple[int, int] | None = None) -> Any:
    """What was read; with a clock, that of a broker which was so many minutes ahead."""
    counts = {"late": late, "malformed": 0, "newer": 0, "ahead": 0, "old": 0}
    node, minutes = clock or (None, 0)
    ahead = {"ahead_node_id": node, "ahead_minutes": minutes}
    return {"window": window, "records": 1000, **counts, **ahead}


def windows_of(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The table of windows that belongs to one of requests."""
    windows = sorted({row["window"] for row in rows})
    return [
        {"window": each, "records": sum(r["records"] for r in rows if r["window"] == each)}
        for each in windows
    ]


def write_results(folder: Path, **tables: Sequence[Mapping[str, Any]]) -> Path:
    """Write tables: a file for each day, as if a batch had finished all of its minutes."""
    tables.setdefault("windows", windows_of(tables.get("requests", [])))
    for name, rows in tables.items():
        write_table(folder, name, rows, batch=7)
    return folder


def write_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], batch: int) -> None:
    """Write the rows of a micro-batch to a table, as a file for each day."""
    types = {**_TYPES, **(_TIMES_OF_INCIDENTS if name == "incidents" else {})}
    for day in sorted({row["window"].date() for row in rows}):
        found = pa.Table.from_pylist([row for row in rows if row["window"].date() == day])
        for place, field in enumerate(found.schema):
            if kind := types.get(field.name):
                found = found.set_column(place, field.name, found[field.name].cast(kind))
        path = folder / name / f"day={day}" / f"batch={batch}"
        path.mkdir(parents=True, exist_ok=True)
        # As Spark does it: a file gets its name when it is whole.
        pq.write_table(found, path / "_part")
        (path / "_part").rename(path / "part-00000.parquet")
