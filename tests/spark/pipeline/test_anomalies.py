"""What is unusual in a minute, and what is not, at each level of the signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trionet.spark.pipeline import _signals as levels
from trionet.spark.pipeline._anomalies import (
    MINUTES_MIN,
    SCORE_MIN,
    TRAILING_MINUTES,
    AnomalyDetector,
    recurs,
)
from trionet.spark.pipeline._signals import FIGURES, KEYS, SCOPES

SCHEMA = pa.schema(
    [
        ("window", pa.int64()),
        ("level", pa.int32()),
        ("api_key", pa.int32()),
        *((name, pa.string()) for name in KEYS[2:]),
        *((name, pa.int64()) for name in FIGURES),
    ]
)
NAMES = {"api_key": 0, "client_id": "shop", "listener": "PLAINTEXT", "reason": "IDLE"}
#: Two hours, so that what is judged is not in the first hour.
HOURS = range(120)


def signal(level: int, minutes: Mapping[int, Mapping[str, int]], **scope: Any) -> list[Any]:
    """A signal with the figures of each minute; records are as many as requests."""
    named = {name: {**NAMES, **scope}[name] for name in SCOPES[level]}
    keys = {"api_key": levels.ALL_APIS, "level": level, **named}
    usual: dict[str, Any] = {**dict.fromkeys(KEYS[2:]), **dict.fromkeys(FIGURES, 0), **keys}
    return [
        {**usual, "window": window, "records": figures.get("requests", 0), **figures}
        for window, figures in minutes.items()
    ]


def steady(requests: int, **figures: int) -> dict[int, dict[str, int]]:
    """About as many requests in each minute, with the same other figures."""
    return {window: {"requests": requests + window % 2, **figures} for window in HOURS}


def found(
    read: Sequence[Mapping[str, Any]], windows: Sequence[int] = HOURS, first: int = 119
) -> list[dict[str, Any]]:
    return [row for row in judged(read, windows, first) if not row["is_part"]]


def parts(read: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What may explain the deviation of a whole, but is no anomaly."""
    return [row for row in judged(read) if row["is_part"]]


def judged(
    read: Sequence[Mapping[str, Any]], windows: Sequence[int] = HOURS, first: int = 119
) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pylist(list(read), schema=SCHEMA)
    told = AnomalyDetector(windows, first)([batch.slice(0, 3), batch.slice(3)])
    return [row for each in told for row in each.to_pylist()]


def last(usual: dict[int, dict[str, int]], **figures: int) -> dict[int, dict[str, int]]:
    """The same, but for the last minute."""
    return {**usual, 119: {**usual[119], **figures}}


def test_a_rate_far_from_the_median_of_the_hour_before_is_reported() -> None:
    [row] = found(signal(levels.BROKER, last(steady(6000), requests=12_000)))

    assert (119, "requests_per_s", 200.0) == (row["window"], row["measure"], row["value"])
    assert (pytest.approx(6000.5 / 60), 60) == (row["expected"], row["minutes"])
    assert row["score"] == pytest.approx((200 - row["expected"]) / row["spread"])


def test_a_rate_that_is_usual_is_not_reported() -> None:
    assert [] == found(signal(levels.BROKER, steady(6000)))


def test_a_client_that_sends_more_is_no_anomaly_but_one_that_stops_is() -> None:
    assert [] == found(signal(levels.CLIENT, last(steady(600), requests=6000)))
    without = steady(600)
    del without[119]

    [row] = found(signal(levels.CLIENT, without))

    assert ("shop", 0.0) == (row["client_id"], row["value"])
    assert row["score"] <= -SCORE_MIN


def test_a_client_that_sends_now_and_then_may_stop() -> None:
    now_and_then = {window: each for window, each in steady(600).items() if window % 4}

    assert [] == found(signal(levels.CLIENT, {**now_and_then, 119: {"requests": 0}}))


def test_a_client_with_few_requests_has_minutes_without() -> None:
    assert [] == found(signal(levels.CLIENT, last(steady(4), requests=0)))


def test_too_little_of_the_hour_before_is_not_judged() -> None:
    usual = steady(6000)
    few = {window: usual[window] for window in range(MINUTES_MIN - 1)} | {40: {"requests": 90_000}}
    enough = {MINUTES_MIN - 1: usual[9], **few}

    assert [] == found(signal(levels.BROKER, few), sorted(few), 40)
    assert [] != found(signal(levels.BROKER, enough), sorted(enough), 40)


def test_only_the_hour_before_counts() -> None:
    old = {window: {"requests": 54_000} for window in range(TRAILING_MINUTES)}

    assert [] == found(signal(levels.BROKER, {**steady(6000), **old, 119: {"requests": 6000}}))


def test_each_minute_of_many_is_judged_by_those_before_it() -> None:
    usual = steady(6000)
    read = signal(levels.BROKER, {**usual, 80: {"requests": 20_000}, 101: {"requests": 20_000}})

    assert [80, 101] == [row["window"] for row in found(read, first=70)]
    assert [101] == [row["window"] for row in found(read, first=81)]


def test_a_share_of_errors_needs_errors() -> None:
    [row] = found(signal(levels.SERIES, last(steady(100), failed=20)))
    assert ("error_share", pytest.approx(20 / 101)) == (row["measure"], row["value"])

    assert [] == found(signal(levels.SERIES, last(steady(2), failed=2)))
    assert [] == found(signal(levels.SERIES, steady(100, failed=20)))


def test_throttled_requests_are_reported() -> None:
    told = found(signal(levels.CLIENT, last(steady(100), throttled=50)))

    assert ["throttled_share"] == [row["measure"] for row in told]


def test_a_slow_percentile_is_reported_with_the_phase_that_has_grown() -> None:
    usual = steady(1000, p50_us=2000, p97_us=3000, p99_us=5000, local_us=1_500_000)
    slow = last(usual, p50_us=6000, p97_us=9000, p99_us=15_000, request_queue_us=4_000_000)

    told = {row["measure"]: row for row in found(signal(levels.API, slow))}

    assert {"broker_p50_us": 6000.0, "broker_p99_us": 15_000.0} == {
        measure: row["value"] for measure, row in told.items()
    }
    assert "request_queue" == told["broker_p99_us"]["phase"]


def test_a_percentile_of_few_requests_is_not_judged() -> None:
    usual = steady(60, p50_us=2000, p97_us=3000, p99_us=5000)

    assert [] == found(signal(levels.API, last(usual, p97_us=90_000, p99_us=90_000)))


def test_a_pause_makes_a_p99_but_no_anomaly_unless_it_lasts() -> None:
    usual = steady(1000, p50_us=2000, p97_us=3000, p99_us=5000)
    pause = last(usual, p99_us=50_000)

    assert [] == found(signal(levels.API, pause))
    assert [] != found(signal(levels.API, {**pause, 118: pause[119]}))


def test_a_time_that_falls_is_no_anomaly() -> None:
    usual = steady(1000, p50_us=20_000, p97_us=30_000, p99_us=50_000)

    assert [] == found(signal(levels.API, last(usual, p50_us=100, p97_us=200, p99_us=300)))


def test_connections_that_close_are_counted_by_reason() -> None:
    [row] = found(signal(levels.CLOSED, last(steady(2), requests=300), reason="ERROR"))

    assert ("connections_closed", "ERROR", 300.0) == (row["measure"], row["reason"], row["value"])


def test_new_client_ids_are_an_anomaly_of_the_broker() -> None:
    [row] = found(signal(levels.CLIENTS, last(steady(20), requests=320)))

    assert ("clients", None, 320.0) == (row["measure"], row["client_id"], row["value"])


def test_of_a_sampled_log_chance_counts_for_more() -> None:
    whole = signal(levels.BROKER, last(steady(200), requests=600))
    sampled = [{**row, "records": row["requests"] // 100} for row in whole]

    assert [] != found(whole)
    assert [] == found(sampled)


@pytest.mark.parametrize("every", [5, 15, 30, 60])
def test_a_job_that_comes_again_is_no_anomaly(every: int) -> None:
    usual = steady(6000)
    jobs = {window: {"requests": 15_000} for window in HOURS if (119 - window) % every == 0}

    assert [] == found(signal(levels.BROKER, {**usual, **jobs}))


def test_what_is_beside_a_job_is_reported() -> None:
    jobs = {window: {"requests": 15_000} for window in range(14, 120, 15)}
    beside = {**steady(6000), **jobs, 112: {"requests": 15_000}}

    assert [112] == [row["window"] for row in found(signal(levels.BROKER, beside), first=105)]


def test_an_incident_that_goes_on_is_no_job() -> None:
    values = np.array([1.0] * 100 + [9.0] * 20)

    assert not recurs(values, 119, 5.0)


def test_an_incident_that_went_on_until_a_moment_ago_was_no_job() -> None:
    values = np.array([1.0] * 90 + [9.0] * 25 + [1.0] * 4 + [9.0])

    assert not recurs(values, 119, 5.0)


def test_what_happened_at_the_same_time_of_the_day_before_is_no_surprise() -> None:
    values = np.ones(1500)
    values[40] = 9.0

    assert recurs(values, 1440 + 41, 5.0)
    assert not recurs(values, 1440 + 50, 5.0)


def test_in_the_first_hour_only_a_large_increase_is_reported() -> None:
    def at_40(requests: int) -> list[dict[str, Any]]:
        usual = {window: each for window, each in steady(6000).items() if window <= 40}
        read = signal(levels.BROKER, {**usual, 40: {"requests": requests}})
        return found(read, range(41), 40)

    assert [] == at_40(20_000)
    assert [] != at_40(60_000)


def test_a_minute_long_ago_takes_no_column_for_each_minute_since() -> None:
    """As of a record of 1970: 30 million minutes would be 14 GB for each signal and figure."""
    now = 29_000_000
    usual = last(steady(6000), requests=12_000)
    later = {now + minute: figures for minute, figures in usual.items()}
    read = [
        row
        for level in (levels.BROKER, levels.CLIENT)
        for row in signal(level, {0: {"requests": 1}, **later})
    ]

    [row] = found(read, [0, *later], 0)

    assert (now + 119, "requests_per_s", levels.BROKER) == (
        row["window"],
        row["measure"],
        row["level"],
    )


def test_days_that_are_judged_at_once_are_judged_as_those_that_are_judged_one_by_one() -> None:
    minutes = {n: {"requests": 6000 + n % 7 + 9000 * (n % 1111 == 1000)} for n in range(4000)}
    read = signal(levels.BROKER, minutes)

    at_once = found(read, list(minutes), 100)
    by_parts = [
        row
        for first in range(100, 4000, 500)
        for row in found(
            [each for each in read if each["window"] < first + 500],
            [each for each in minutes if each < first + 500],
            first,
        )
    ]

    assert 3 == len(at_once)
    assert at_once == by_parts


def test_nothing_was_read() -> None:
    assert [] == list(AnomalyDetector(range(31), 30)([]))


def test_the_client_that_sends_most_of_what_an_api_has_more_is_a_part_of_it() -> None:
    shop, small = last(steady(600), requests=6000), last(steady(60), requests=300)
    read = [
        *signal(levels.SERIES, shop),
        *signal(levels.SERIES, small, client_id="small"),
        *signal(levels.SERIES, steady(900), client_id="steady"),
    ]

    [row] = parts(read)

    assert ("requests_per_s", "shop", 0) == (row["measure"], row["client_id"], row["api_key"])
    assert (pytest.approx(5399.5), pytest.approx(600.5)) == (row["excess"], row["base"])


def test_the_client_whose_connections_close_is_a_part_of_those_of_the_listener() -> None:
    [row] = parts(signal(levels.CLOSED_OF_CLIENT, {119: {"requests": 454}}))

    assert ("connections_closed", "shop", "IDLE") == (
        *(row["measure"], row["client_id"], row["reason"]),
    )
    assert (454.0, 0.0) == (row["excess"], row["base"])


def test_a_client_that_closes_connections_is_no_anomaly_by_itself() -> None:
    read = signal(levels.CLOSED_OF_CLIENT, {**last(steady(400), requests=9000)})
    del read[118]

    assert [] == found(read)


def test_a_client_some_of_whose_requests_are_slow_is_a_part_of_what_is_slow() -> None:
    usual = steady(200, local_us=100_000, p50_us=500)

    [row] = judged(signal(levels.SERIES, last(usual, local_us=900_000)))

    assert ("broker_p50_us", True, "local") == (row["measure"], row["is_part"], row["phase"])
    assert row["excess"] == pytest.approx(800_000, rel=0.01)


def test_what_is_unusual_of_a_whole_is_the_sum_of_its_parts() -> None:
    slow = last(steady(200, local_us=100_000, p50_us=500), local_us=9_000_000, p50_us=45_000)
    whole = {
        window: {name: 2 * number for name, number in figures.items()}
        for window, figures in slow.items()
    }
    clients = [*signal(levels.SERIES, slow), *signal(levels.SERIES, slow, client_id="other")]

    first, second = found(clients)
    [of_all] = found(signal(levels.API, whole))

    assert of_all["excess"] == pytest.approx(first["excess"] + second["excess"])
    assert of_all["base"] == first["base"] + second["base"]
