""""""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trionet.spark.pipeline._anomalies import (
    MINUTES_MIN,
    SCORE_MIN,
    AnomalyDetector,
    median_and_spread,
)
from trionet.spark.pipeline._storage import TRAILING_MINUTES

COLUMNS = {
    "window": pa.int64(),
    "api_key": pa.int32(),
    "api": pa.string(),
    "client_id": pa.string(),
    "listener": pa.string(),
    "requests_per_s": pa.float64(),
    "error_share": pa.float64(),
    "total_p99_us": pa.float64(),
}


def rows(client: str, rates: Mapping[int, float], **measures: float) -> list[dict[str, Any]]:
    """What the table of requests has of a client, with a rate for each minute."""
    of_client = {"api_key": 0, "api": "Produce", "client_id": client, "listener": "PLAINTEXT"}
    others = {"error_share": 0.0, "total_p99_us": 5000.0, **measures}
    return [
        {"window": w, "requests_per_s": rate, **of_client, **others} for w, rate in rates.items()
    ]


def found(
    read: Sequence[dict[str, Any]], windows: Sequence[int], first: int
) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pylist(list(read), schema=pa.schema(list(COLUMNS.items())))
    told = AnomalyDetector(windows, first)([batch.slice(0, 3), batch.slice(3)])
    return [row for each in told for row in each.to_pylist()]


def steady(minutes: int, rate: float = 100.0) -> dict[int, float]:
    return {window: rate + window % 2 for window in range(minutes)}


def test_a_rate_far_from_the_median_of_the_hour_before_is_reported() -> None:
    [row] = found(rows("shop", steady(30) | {30: 250.0}), range(31), 30)

    assert (30, "shop", "requests_per_s", 250.0) == (
        row["window"],
        row["client_id"],
        row["measure"],
        row["value"],
    )
    assert (100.5, 30) == (row["expected"], row["minutes"])
    assert row["score"] == pytest.approx((250 - 100.5) / row["spread"])


def test_a_rate_that_is_usual_is_not_reported() -> None:
    assert [] == found(rows("shop", steady(31)), range(31), 30)


def test_a_client_that_has_gone_silent_is_reported() -> None:
    read = rows("gone", steady(30)) + rows("shop", steady(31))

    [row] = found(read, range(31), 30)

    assert ("gone", 0.0) == (row["client_id"], row["value"])
    assert row["score"] <= -SCORE_MIN


def test_too_little_of_the_hour_before_is_not_judged() -> None:
    assert [] == found(rows("shop", steady(MINUTES_MIN - 1) | {40: 900.0}), [*range(9), 40], 40)
    assert [] != found(rows("shop", steady(MINUTES_MIN) | {40: 900.0}), [*range(10), 40], 40)


def test_only_the_hour_before_counts() -> None:
    old = dict.fromkeys(range(TRAILING_MINUTES), 900.0)
    new = dict.fromkeys(range(TRAILING_MINUTES, 2 * TRAILING_MINUTES), 100.0)

    read = rows("shop", old | new | {120: 100.0})

    assert [] == found(read, range(121), 120)


def test_each_minute_of_many_is_judged_by_those_before_it() -> None:
    read = rows("shop", steady(40) | {20: 400.0, 39: 400.0})

    assert [20, 39] == [row["window"] for row in found(read, range(40), 15)]
    assert [39] == [row["window"] for row in found(read, range(40), 21)]


def test_a_share_of_errors_and_a_slow_percentile_are_reported() -> None:
    read = rows("shop", steady(30))
    read += rows("shop", {30: 100.0}, error_share=0.5, total_p99_us=90_000.0)

    told = {row["measure"]: row["value"] for row in found(read, range(31), 30)}

    assert {"error_share": 0.5, "total_p99_us": 90_000.0} == told


def test_a_client_that_sends_now_and_then_has_no_percentile_of_0() -> None:
    read = rows("now-and-then", dict.fromkeys(range(0, 31, 2), 100.0))

    assert not [row for row in found(read, range(31), 30) if row["measure"] == "total_p99_us"]


def test_nothing_was_read() -> None:
    assert [] == list(AnomalyDetector(range(31), 30)([]))


def test_what_hardly_ever_changes_has_a_spread_all_the_same() -> None:
    median, spread = median_and_spread(np.array([[50.0] * 20, [0.0] * 20]), spread_min=1.0)

    assert [50.0, 0.0] == median.tolist()
    assert [5.0, 1.0] == spread.tolist()
