"""What a report says of ten minutes whose every request is known."""

from __future__ import annotations

import pytest

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests
from trionet.spark.pipeline.histogram import ERROR_MAX

REPORT = report_of(sample())


def test_sums_are_of_all_minutes() -> None:
    assert (minute(0), minute(10), 10, 2) == (
        REPORT.start,
        REPORT.end,
        REPORT.windows,
        REPORT.clients,
    )
    traffic = REPORT.traffic
    assert (1025, 1025, 5) == (traffic.records, traffic.requests, traffic.errors)
    assert (102_500, 51_250) == (traffic.request_bytes, traffic.response_bytes)
    assert 200_000 == traffic.max_us


def test_apis_come_by_how_often_they_are_asked() -> None:
    produce, fetch = REPORT.apis

    assert ("Produce", 1000) == (produce.name, produce.traffic.requests)
    assert ("Fetch", 25) == (fetch.name, fetch.traffic.requests)


def test_percentiles_of_an_api_are_of_all_its_requests() -> None:
    """720 took 1 ms, 180 took 9 ms, and 100 took 50 ms; the mean of the minutes' p50 is 2.6 ms."""
    produce, fetch = (api.percentiles["total"] for api in REPORT.apis)

    assert produce["p50"] == pytest.approx(1000, rel=ERROR_MAX)
    assert produce["p95"] == pytest.approx(50_000, rel=ERROR_MAX)
    assert 200_000 >= (fetch["p99.9"] or 0) >= 200_000 * (1 - ERROR_MAX)


def test_a_talker_has_its_share_of_requests_bytes_and_time() -> None:
    shop, other = REPORT.talkers

    assert ("shop", HOSTILE) == (shop.client_id, other.client_id)
    assert 1000 / 1025 == shop.request_share == shop.byte_share
    assert other.time_share == pytest.approx(25 * 200_000 / (25 * 200_000 + 7_340_000))


def test_errors_of_all_minutes_are_together() -> None:
    told = [(each.api, each.end, each.error, each.requests) for each in REPORT.errors]

    assert [
        ("Produce", "answered", "NOT_LEADER_OR_FOLLOWER", 5),
        ("Fetch", "gone", "NONE", 2),
    ] == told


def test_connections_are_counted_by_reason() -> None:
    [close] = REPORT.closes

    assert ("PEER_CLOSED", 4, 3e6) == (close.reason, close.connections, close.open_mean_us)


def test_what_happened_when() -> None:
    line = REPORT.timeline

    assert [60.0] * 10 == line.seconds
    assert ["Produce", "Fetch"] == list(line.requests)
    assert [5.0, 0.0] * 5 == line.requests["Fetch"]
    assert [0.0, 1.0] * 5 == line.errors["NOT_LEADER_OR_FOLLOWER"]
    assert 2.0 == line.errors["connection gone"][0]
    assert line.percentiles["p50"] == pytest.approx([1000.0] * 8 + [9000.0] * 2, rel=ERROR_MAX)
    assert line.slowest["Fetch"][1::2] == [None] * 5
    assert 1025 == sum(cell.requests for cell in line.heat)


def test_a_minute_without_requests_has_a_rate_but_no_percentile() -> None:
    line = report_of({"requests": [requests(minute(0), [5]), requests(minute(2), [7])]}).timeline

    assert [1.0, 0.0, 1.0] == line.requests["Produce"]
    assert [5.0, None, 7.0] == line.percentiles["p99"]
