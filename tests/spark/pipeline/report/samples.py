"""Results whose report is known, and what Spark results about them, added up in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from spark.pipeline.results_folder import (
    START,
    anomaly,
    close,
    error,
    incident,
    intake,
    objective,
    quota,
    requests,
)
from trionet.spark.pipeline._partials import PHASES
from trionet.spark.pipeline.report._figures import Bins, Report
from trionet.spark.pipeline.report._folding import (
    EPOCH,
    MICROSECOND,
    Extent,
    QueryResults,
    report,
)
from trionet.spark.pipeline.report._inputs import Filters, TimeRange

#: What a client may call itself: markup, rich's markup, what terminals obey, and a turned text.
HOSTILE = "<script>alert(1)</script>[bold]x[/nope]\x1b[2J\x07\u202egpj"

COUNTS = ("records", "requests", "errors", "throttled", "request_bytes", "response_bytes")
Rows = Sequence[Mapping[str, Any]]


def minute(number: int) -> Any:
    return START + timedelta(minutes=number)


def sample() -> dict[str, Rows]:
    """Ten minutes: a producer that is fast and then slow, and a consumer with a strange name."""
    produced = [
        requests(minute(n), [1000 if n < 8 else 9000] * 90 + [50_000] * 10, errors=n % 2)
        for n in range(10)
    ]
    fetched = [
        requests(minute(n), [200_000] * 5, api=(1, "Fetch"), client_id=HOSTILE, listener="INTERNAL")
        for n in range(0, 10, 2)
    ]
    errors = [
        error(row, 6, "NOT_LEADER_OR_FOLLOWER", row["errors"]) for row in produced if row["errors"]
    ]
    return {
        "requests": [*produced, *fetched],
        "errors": [*errors, error(fetched[0], 0, "NONE", 2, end="gone")],
        "closes": [
            close(minute(3), "PEER_CLOSED", 3, 2e6),
            close(minute(4), "PEER_CLOSED", 1, 6e6),
        ],
        "quotas": [quota(minute(n), 5, 10_000 * n) for n in (1, 2)],
        "anomalies": [anomaly(row, "total_p99_us", 9000.0, 7.5) for row in produced[8:]],
        "incidents": [
            incident(minute(2), "open", minute(2), anomalies=1),
            incident(minute(8), "open", minute(8)),
            incident(minute(3), "over", minute(2)),
        ],
        "objectives": [
            objective(minute(4), 1, None),
            objective(minute(5), 30, "page"),
            objective(minute(6), 2, "ticket"),
        ],
        "intake": [
            intake(minute(5), late=3, clock=(7, 2)),
            intake(minute(9), late=9, clock=(2, 59)),
        ],
    }


def report_of(tables: Mapping[str, Rows], filters: Filters | None = None) -> Report:
    """The report, without Spark."""
    rows = tables["requests"]
    times = [row["window"] for row in rows]
    extent = Extent(min(times), max(times) + timedelta(minutes=1), len(set(times)))
    bins = Bins.over(extent.start, extent.end)
    results = QueryResults(
        extent=extent,
        bins=bins,
        traffic=traffic_of(rows, bins),
        clients=len({(row["client_id"], row["listener"]) for row in rows}),
        cells=cells_of(rows, bins),
        talkers=[one for _, one in _summed(rows, "client_id", "listener")],
        errors=[{**row, "bin": int(bins.place(row["window"]))} for row in tables.get("errors", ())],
        closes=[_closed(each) for each in _grouped(tables.get("closes", ()), "listener", "reason")],
        quotas=[_waited(each) for each in _grouped(tables.get("quotas", ()), "client_id")],
        anomalies=[
            {**row, "at": (row["window"] - EPOCH) // MICROSECOND}
            for row in tables.get("anomalies", ())
        ],
        anomaly_count=len(tables.get("anomalies", ())),
        incidents=_latest(tables.get("incidents", ())),
        objectives=[_burned(each) for each in _grouped(tables.get("objectives", ()), "client_id")],
        intake={
            name: sum(row[name] for row in tables.get("intake", ()))
            for name in ("late", "malformed", "newer", "ahead", "old")
        },
        clocks=_ahead(tables.get("intake", ())),
    )
    return report(results, "results", TimeRange(), filters or Filters())


def _ahead(intake: Rows) -> Rows:
    most: dict[int | None, int] = {}
    for row in intake:
        node, minutes = row["ahead_node_id"], row["ahead_minutes"]
        most[node] = max(most.get(node, 0), minutes)
    ordered = sorted(most.items(), key=lambda each: -each[1])
    return [{"ahead_node_id": node, "minutes": minutes} for node, minutes in ordered]


def traffic_of(rows: Rows, bins: Bins) -> Rows:
    each = [{**row, "bin": int(bins.place(row["window"]))} for row in rows]
    return [one for _, one in _summed(each, "bin", "api_key", "api")]


def cells_of(rows: Rows, bins: Bins) -> Any:
    return pa.Table.from_pylist(
        [
            {
                "bin": int(bins.place(row["window"])),
                "api_key": row["api_key"],
                "cell": cell,
                "requests": count,
            }
            for row in rows
            for cell, count in zip(row["cells"], row["counts"], strict=True)
        ]
    )


def _summed(rows: Rows, *keys: str) -> Iterable[tuple[Any, Mapping[str, Any]]]:
    for each in _grouped(rows, *keys):
        sums = {name: sum(row[name] for row in each) for name in COUNTS}
        times = {
            f"{phase}_us": sum(row[f"{phase}_mean_us"] * row["requests"] for row in each)
            for phase in PHASES
        }
        largest = max(row["total_max_us"] for row in each)
        yield keys, {**{key: each[0][key] for key in keys}, **sums, **times, "max_us": largest}


def _grouped(rows: Rows, *keys: str) -> Iterable[Rows]:
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found.values()


def _latest(rows: Rows) -> Rows:
    """The last state of each incident, by its start, with times as Spark has them."""
    last = {row["incident"]: row for row in sorted(rows, key=lambda row: row["window"])}
    times = ("start", "end", "worst")
    return [
        {**row, **{name: (row[name] - EPOCH) // MICROSECOND for name in times}}
        for row in sorted(last.values(), key=lambda row: row["start"])
    ]


def _burned(rows: Rows) -> Mapping[str, Any]:
    return {
        **{name: rows[0][name] for name in ("objective", "api", "client_id", "target")},
        **{name: sum(row[name] for row in rows) for name in ("requests", "bad")},
        "burn_1h_max": max(row["burn_1h"] for row in rows),
        **{f"{each}_minutes": sum(r["alert"] == each for r in rows) for each in ("page", "ticket")},
    }


def _closed(rows: Rows) -> Mapping[str, Any]:
    names = ("connections", "requests", "bytes_received", "bytes_sent")
    return {
        "listener": rows[0]["listener"],
        "reason": rows[0]["reason"],
        **{name: sum(row[name] for row in rows) for name in names},
        "open_us": sum(row["open_mean_us"] * row["connections"] for row in rows),
    }


def _waited(rows: Rows) -> Mapping[str, Any]:
    return {
        **{name: rows[0][name] for name in ("client_id", "principal", "listener")},
        **{
            name: sum(row[name] for row in rows)
            for name in ("requests", "throttled", "throttle_us")
        },
        "throttle_max_us": max(row["throttle_max_us"] for row in rows),
    }
