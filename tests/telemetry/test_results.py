"""What is not as it must be is found: each kind of difference, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
import pyarrow as pa
import pytest

from telemetry.exactness import Exact, compare
from telemetry.results import BrokerCounts, Counted, differences

PAGE = """\
# HELP kafka_network_requestmetrics_totaltimems_count Not a sample.
kafka_network_requestmetrics_totaltimems{request="Fetch",quantile="0.50"} NaN
kafka_network_requestmetrics_totaltimems_count{request="Fetch"} 10
kafka_network_requestmetrics_totaltimems_count{request="FetchConsumer"} 10
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 5
kafka_network_requestmetrics_totaltimems_count{request="Heartbeat"} 0
kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"} 4
kafka_network_requestmetrics_errors_total{request="Produce",error="CORRUPT_MESSAGE"} 1
trionet_connections_closed_total{reason="PEER_CLOSED"} 3
trionet_connections_closed_total{reason="IDLE"} 0
trionet_request_log_logged_total 11
trionet_request_log_left_out_total 4
trionet_request_log_dropped_total 0
trionet_request_log_sampled_out_total 0
trionet_request_log_buffered 0
trionet_request_log_connections_logged_total 3
trionet_request_log_connections_dropped_total 0
"""
BROKER = BrokerCounts.of(PAGE)
RESULTS = Counted({"Fetch": 6, "Produce": 5}, BROKER.errors, BROKER.closes)


def test_a_page_of_metrics_is_read() -> None:
    assert {"Fetch": 10, "Produce": 5} == BROKER.requests
    assert {("Produce", "CORRUPT_MESSAGE"): 1} == BROKER.errors
    assert {"PEER_CLOSED": 3} == BROKER.closes
    assert (11, 4, True) == (BROKER.fate["logged"], BROKER.apart, BROKER.is_settled)


def test_what_is_left_out_may_be_missing() -> None:
    assert [] == differences(BROKER, RESULTS)


def _fate(**changed: int) -> BrokerCounts:
    return attrs.evolve(BROKER, fate={**BROKER.fate, **changed})


@pytest.mark.parametrize(
    ("broker", "results", "says"),
    [
        (BROKER, {"requests": {"Fetch": 7, "Produce": 5}}, "3 are not in the results, 4 are"),
        (BROKER, {"requests": {"Fetch": 7, "Produce": 4}}, "Produce: 5 by the broker, 4 in"),
        (BROKER, {"requests": {"Fetch": 5, "Produce": 6}}, "Produce: 5 by the broker, 6 in"),
        (BROKER, {"requests": {"Fetch": 6, "Produce": 5, "Fetch2": 1}}, "Fetch2: 0 by the broker"),
        (BROKER, {"errors": {}}, "errors, Produce CORRUPT_MESSAGE: 1 by the broker, 0 in"),
        (BROKER, {"closes": {"PEER_CLOSED": 3, "IDLE": 1}}, "IDLE: 0 by the broker, 1 in"),
        (_fate(logged=10), {}, "15 requests are over, its log accounts for 14"),
        (_fate(connections_logged=2), {}, "3 connections closed, its log accounts for 2"),
    ],
)
def test_each_difference_is_found(
    broker: BrokerCounts, results: Mapping[str, Any], says: str
) -> None:
    assert any(says in each for each in differences(broker, attrs.evolve(RESULTS, **results)))


def test_what_came_late_may_be_of_any_api() -> None:
    late = attrs.evolve(RESULTS, requests={"Fetch": 6, "Produce": 4})
    assert [] == differences(BROKER, late, late=1)
    assert differences(BROKER, late, late=2)


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
