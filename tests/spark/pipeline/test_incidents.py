"""Anomalies of one cause are one incident, minute by minute."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from trionet.spark.pipeline import _signals as levels
from trionet.spark.pipeline._incidents import (
    ONSET_MINUTES,
    QUIET_MINUTES,
    Incident,
    IncidentTracker,
    changes,
    described,
)

FETCH, PRODUCE = 1, 0


def anomaly(window: int, level: int, measure: str = "requests_per_s", **fields: Any) -> Any:
    usual = {"api_key": levels.ALL_APIS, "client_id": None, "listener": None, "reason": None}
    numbers = {"value": 1.0, "expected": 10.0, "spread": 1.0, "score": -9.0, "requests": 60}
    others = {"phase": None, "minutes": 60}
    return {"window": window, "level": level, "measure": measure, **usual, **numbers, **others} | (
        fields
    )


def stopped(window: int, client: str) -> Any:
    return anomaly(window, levels.CLIENT, client_id=client, listener="SSL")


def tracked(*anomalies: Any, until: int = 30) -> IncidentTracker:
    tracker = IncidentTracker([])
    tracker.add(range(until), sorted(anomalies, key=lambda each: each["window"]))
    return tracker


def test_an_incident_has_a_start_an_end_and_a_worst_minute() -> None:
    rows = list(
        changes(tracked(stopped(3, "a"), {**stopped(4, "a"), "score": -30.0}, stopped(5, "a")).rows)
    )

    assert ["open", "open", "open", "over"] == [row["state"] for row in rows]
    assert (3, 6, 4, -30.0, 3) == tuple(
        rows[-1][name] for name in ("start", "end", "worst", "score", "anomalies")
    )
    assert 5 + QUIET_MINUTES == rows[-1]["window"]
    assert {"1970-01-01T00:03Z"} == {row["incident"] for row in rows}


def test_what_begins_together_is_one_incident() -> None:
    told = tracked(stopped(3, "a"), stopped(3, "b"), stopped(3 + ONSET_MINUTES, "c"))

    assert 1 == len(set(told.incident_of))


def test_another_client_that_stops_later_is_another_incident() -> None:
    told = tracked(stopped(3, "a"), *(stopped(n, "a") for n in range(4, 12)), stopped(11, "b"))

    assert ["1970-01-01T00:03Z"] * 9 + ["1970-01-01T00:11Z"] == told.incident_of


def test_what_is_a_part_of_an_incident_belongs_to_it() -> None:
    slow = [
        anomaly(n, levels.API, "broker_p50_us", api_key=PRODUCE, listener="SSL", phase="local")
        for n in range(3, 9)
    ]
    of_client = anomaly(
        8, levels.SERIES, "broker_p50_us", api_key=PRODUCE, listener="SSL", client_id="a"
    )
    of_other = anomaly(8, levels.API, "broker_p50_us", api_key=FETCH, listener="SSL")

    told = tracked(*slow, of_client, of_other).incident_of

    assert ["1970-01-01T00:03Z"] * 7 + ["1970-01-01T00:08Z"] == told


def test_a_fault_of_a_client_is_another_incident_than_that_of_the_whole_broker() -> None:
    busy = [anomaly(n, levels.BROKER) for n in range(3, 9)]
    failed = {"client_id": "a", "listener": "SSL"}
    errors = [anomaly(n, levels.CLIENT, "error_share", **failed) for n in range(7, 16)]

    rows = tracked(*busy, *errors).rows

    states = {(row.window, row.incident.id, row.is_over) for row in rows}
    assert (8 + QUIET_MINUTES, "1970-01-01T00:03Z", True) in states
    assert (7, "1970-01-01T00:07Z", False) in states


def test_a_fault_of_the_whole_broker_is_another_incident_than_that_of_a_client() -> None:
    stops = [stopped(n, "a") for n in range(3, 9)]
    new_clients = anomaly(8, levels.CLIENTS, "clients")
    fewer = anomaly(8, levels.BROKER)  # of which the requests of the client are a part

    told = tracked(*stops, new_clients, fewer).incident_of

    assert ["1970-01-01T00:03Z"] * 6 + ["1970-01-01T00:08Z", "1970-01-01T00:03Z"] == told


def test_an_api_belongs_to_the_incident_of_its_client_whatever_its_measure() -> None:
    of_client = {"api_key": PRODUCE, "listener": "SSL", "client_id": "a"}
    errors = [anomaly(n, levels.SERIES, "error_share", **of_client) for n in range(3, 8)]
    slow = anomaly(8, levels.API, "broker_p50_us", api_key=PRODUCE, listener="SSL")

    assert 1 == len(set(tracked(*errors, slow).incident_of))


def test_an_incident_that_comes_again_after_it_was_over_is_another() -> None:
    told = tracked(stopped(3, "a"), stopped(3 + QUIET_MINUTES + 1, "a"))

    assert 2 == len(set(told.incident_of))


def test_the_client_is_named_that_explains_the_whole() -> None:
    whole = anomaly(3, levels.API, "error_share", api_key=PRODUCE, value=0.3, expected=0.0)
    part = {"client_id": "a", "value": 0.9, "expected": 0.0, "requests": 19}
    of_a = anomaly(3, levels.SERIES, "error_share", api_key=PRODUCE, **part)

    assert ("a", PRODUCE) == attrs.astuple(described([whole, of_a]))[4:2:-1]
    assert None is described([whole, {**of_a, "requests": 9}]).client_id


def test_what_is_affected_is_named_if_it_is_one() -> None:
    of_listener = [
        anomaly(3, levels.API, "broker_p99_us", api_key=api, listener="SSL", phase="response_send")
        for api in (FETCH, PRODUCE)
    ]

    worst = described(of_listener)

    assert (None, "SSL", "response_send") == (worst.api_key, worst.listener, worst.phase)


def test_the_measure_is_named_that_says_most_of_the_cause() -> None:
    fewer = anomaly(3, levels.BROKER, score=-50.0)
    failed = anomaly(3, levels.BROKER, "error_share", value=0.1, expected=0.0, score=6.0)
    closed = anomaly(
        3, levels.CLOSED, "connections_closed", listener="SSL", reason="AUTHENTICATION_FAILED"
    )

    worst = described([fewer, failed, closed])

    assert ("error_share", "AUTHENTICATION_FAILED") == (worst.measure, worst.reason)


@pytest.mark.parametrize("cut", range(1, 29))
def test_it_makes_no_difference_where_micro_batches_end(cut: int) -> None:
    anomalies = [stopped(3, "a"), *(stopped(n, "b") for n in (12, 13, 18)), stopped(20, "c")]
    once = tracked(*anomalies)
    first = IncidentTracker([])
    first.add(range(cut), [each for each in anomalies if each["window"] < cut])
    state = json.loads(json.dumps([attrs.asdict(each) for each in first.open]))
    second = IncidentTracker(list(map(Incident.from_values, state)))
    second.add(range(cut, 30), [each for each in anomalies if each["window"] >= cut])

    assert once.rows == [*first.rows, *second.rows]
    assert once.incident_of == [*first.incident_of, *second.incident_of]
    assert once.open == second.open
