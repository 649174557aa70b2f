"""Rows of results that are not what the records say are found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from telemetry.exactness import compare
from telemetry.truth import Exact

WINDOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
KEY = (WINDOW, "Fetch", "me", "PLAINTEXT")
EXACT = Exact(2, 30, 40, {"total_p99_us": 1000})
ROW = {
    **dict(zip(("window", "api", "client_id", "listener"), KEY, strict=True)),
    "records": 2,
    "request_bytes": 30,
    "response_bytes": 40,
    "total_p99_us": 1009,
}


def test_a_percentile_may_be_a_hundredth_wrong() -> None:
    compared = compare({KEY: EXACT}, pa.Table.from_pylist([ROW]))
    assert (1, 1, 0.009, []) == (
        compared.rows,
        compared.percentiles,
        compared.worst,
        compared.wrong,
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (lambda row: [{**row, "total_p99_us": 1011}], "total_p99_us is 1011, exactly 1000"),
        (lambda row: [{**row, "records": 3}], "records is 3, not 2"),
        (lambda row: [row, row], "stands twice"),
        (lambda row: [{**row, "api": "Produce"}, row], "Produce of 'me' by PLAINTEXT: never was"),
        (lambda row: [row][:0], "is missing"),
    ],
)
def test_a_row_that_is_not_exact_is_found(rows: Callable[[Any], list[Any]], says: str) -> None:
    compared = compare({KEY: EXACT}, pa.Table.from_pylist(rows(ROW)))
    assert any(says in each for each in compared.told())
