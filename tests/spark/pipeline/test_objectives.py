"""Service level objectives: how they are given, counted, and how fast their budget is used."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark.pipeline.logged import MINUTE, request, table
from trionet.errors import ConfigError
from trionet.spark.pipeline._estimates import estimate
from trionet.spark.pipeline._fold import folded
from trionet.spark.pipeline._objectives import BAD_MIN, BurnRates, Objective, ObjectiveCounter
from trionet.spark.pipeline._partials import INTAKE


def test_an_objective_is_a_line() -> None:
    assert Objective("Produce=75%", 0, None, 0.75, None) == Objective.parse("Produce=75%")
    assert Objective("*/*=99%", None, "*", 0.99, None) == Objective.parse(" */*=99% ")
    name = "Fetch/shop=95% within 20ms"
    within = Objective(name, 1, "shop", 0.95, 20_000)
    assert within == Objective.parse("fetch/shop = 95 % within 20 ms")
    assert within == Objective.parse(name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Produce", "must have the form"),
        ("Produce=99", "must have the form"),
        ("Produce=99% in 5 ms", "must have the form"),
        ("Produce=100%", "would leave no error budget"),
        ("Prodoose=99%", "Prodoose is no API"),
    ],
)
def test_what_is_no_objective_is_said(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Objective.parse(text)


def counted(records: list[Any], *texts: str) -> dict[Any, tuple[int, int]]:
    """Requests and bad requests, by objective, client and minute."""
    rows = estimate([_requests(each) for each in folded([table(records)])])
    told: Counter[Any] = Counter()
    bad: Counter[Any] = Counter()
    for each in ObjectiveCounter(Objective.parse_all(texts))(rows):
        for row in each.to_pylist():
            key = row["reason"], row["client_id"], row["window"] - MINUTE
            told[key] += row["requests"]  # as the job adds them up
            bad[key] += row["failed"]
    return {key: (count, bad[key]) for key, count in told.items()}


def _requests(rows: Any) -> Any:
    return rows.filter(pc.not_equal(rows["kind"], INTAKE))


def test_bad_requests_are_those_that_fail_or_take_too_long() -> None:
    records = [
        *(request(1, client_id="a", total_us=1000) for _ in range(8)),
        request(2, client_id="a", total_us=900_000, error_code=7),
        request(3, client_id="b", total_us=90_000),
        request(61, client_id="b", api_key=1, total_us=900_000, remote_us=899_000),
    ]

    assert {
        ("Produce=99%", None, 0): (10, 1),
        ("Produce/b=99%", "b", 0): (1, 0),
        ("*/*=99% within 50ms", "a", 0): (9, 1),
        ("*/*=99% within 50ms", "b", 0): (1, 1),
        # A fetch that waited for records has not taken long.
        ("*/*=99% within 50ms", "b", 1): (1, 0),
    } == counted(records, "Produce=99%", "Produce/b=99%", "*/*=99% within 50ms")


def test_a_promise_that_is_given_twice_is_counted_once() -> None:
    records = [request(1, client_id="a", total_us=1000)]

    expected = {("Produce=99%", None, 0): (1, 0)}
    assert expected == counted(records, "Produce=99%", " produce = 99 %", "Produce=99%")


def burned(counts: dict[int, tuple[int, int]], windows: range, text: str) -> list[dict[str, Any]]:
    rows = [
        {"window": window, "client_id": None, "reason": text, "requests": n, "failed": bad}
        for window, (n, bad) in counts.items()
    ]
    schema = pa.schema(
        [
            ("window", pa.int64()),
            ("client_id", pa.string()),
            ("reason", pa.string()),
            ("requests", pa.int64()),
            ("failed", pa.int64()),
        ]
    )
    batch = pa.RecordBatch.from_pylist(rows, schema)
    return [
        row
        for each in BurnRates([Objective.parse(text)], windows)([batch])
        for row in each.to_pylist()
    ]


def test_a_burn_rate_is_the_share_of_bad_requests_over_the_share_that_may_be_bad() -> None:
    counts = {window: (1000, 2 if window >= 55 else 0) for window in range(60)}

    [row] = burned(counts, range(59, 60), "Produce=99.9%")

    assert (1000, 2) == (row["requests"], row["bad"])
    assert pytest.approx(2.0) == row["burn_5m"]
    assert pytest.approx(10 / 60_000 / 0.001) == row["burn_1h"] == row["burn_3d"]
    assert None is row["alert"]


def test_an_alert_needs_a_long_and_a_short_time_of_fast_burning() -> None:
    fast = {window: (1000, 20 if window >= 5 else 0) for window in range(60)}
    over = {window: (1000, 20 if window < 29 else 0) for window in range(60)}
    slow = dict.fromkeys(range(60), (1000, 2))

    assert "page" == burned(fast, range(59, 60), "Produce=99.9%")[0]["alert"]
    assert "page" == burned(over, range(28, 29), "Produce=99.9%")[0]["alert"]
    # Half an hour later it is still 9.7 over six hours, but goes on no longer.
    assert "ticket" == burned(over, range(59, 60), "Produce=99.9%")[0]["alert"]
    assert "ticket" == burned(slow, range(59, 60), "Produce=99.9%")[0]["alert"]


def test_a_minute_without_requests_has_a_row_while_a_burn_rate_is_above_0() -> None:
    good = {3: (5, 0), 7: (5, 0)}
    bad = {3: (5, 1)}

    assert [3, 7] == [row["window"] for row in burned(good, range(4320), "Produce=99%")]
    assert [*range(3, 4323)] == [row["window"] for row in burned(bad, range(9000), "Produce=99%")]


def test_a_few_bad_requests_are_no_alert() -> None:
    counts = dict.fromkeys(range(BAD_MIN - 1), (1, 1))

    assert None is burned(counts, range(BAD_MIN - 2, BAD_MIN - 1), "Produce=99%")[0]["alert"]


def test_an_objective_that_is_given_no_longer_is_left_out() -> None:
    assert [] == list(BurnRates([], range(3))([]))
