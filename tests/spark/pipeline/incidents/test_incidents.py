"""Anomalies of one cause are one incident, minute by minute."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from trionet.dashboard.model._pipeline import VALUE_BYTES_MAX
from trionet.spark.pipeline import _signals as levels
from trionet.spark.pipeline.incidents._causes import ONSET_MINUTES
from trionet.spark.pipeline.incidents._incidents import (
    CAUSES_MAX,
    QUIET_MINUTES,
    Incident,
    IncidentTracker,
    changes,
)

FETCH, PRODUCE = 1, 0


def anomaly(window: int, level: int, measure: str = "requests_per_s", **fields: Any) -> Any:
    usual = {"api_key": levels.ALL_APIS, "client_id": None, "listener": None, "reason": None}
    numbers = {"value": 1.0, "expected": 10.0, "spread": 1.0, "score": -9.0}
    others = {"excess": -540.0, "base": 600.0, "is_part": False, "phase": None, "minutes": 60}
    return {"window": window, "level": level, "measure": measure, **usual, **numbers, **others} | (
        fields
    )


def more(window: int, level: int, measure: str, bad: float, of: float, **fields: Any) -> Any:
    """More of something bad than usual: of requests that fail or are slow, or of connections."""
    numbers = {"value": bad / (of or 1.0), "expected": 0.0, "score": 30.0}
    return anomaly(window, level, measure, excess=bad, base=of, **{**numbers, **fields})


def stopped(window: int, client: str, **fields: Any) -> Any:
    return anomaly(window, levels.CLIENT, **{"client_id": client, "listener": "SSL", **fields})


def slow_client(window: int, client: str = "a", **fields: Any) -> Iterator[Any]:
    """The Produce requests of a client that has half of them take 40 ms longer."""
    place = {"api_key": PRODUCE, "listener": "SSL", "phase": "local", **fields}
    yield more(window, levels.SERIES, "broker_p50_us", 4e6, 100, client_id=client, **place)
    yield more(window, levels.API, "broker_p50_us", 4e6, 200, **place)


def failing_client(window: int, client: str = "b") -> Iterator[Any]:
    """A third of the Produce requests of a client that has half of them fail."""
    of_api = {"api_key": PRODUCE, "listener": "SSL"}
    yield more(window, levels.SERIES, "error_share", 33, 100, client_id=client, **of_api)
    yield more(window, levels.CLIENT, "error_share", 33, 110, client_id=client, listener="SSL")
    yield more(window, levels.API, "error_share", 33, 200, **of_api)
    yield more(window, levels.LISTENER, "error_share", 33, 500, listener="SSL")
    yield more(window, levels.BROKER, "error_share", 33, 900)


def tracked(*anomalies: Any, until: int = 30) -> IncidentTracker:
    tracker = IncidentTracker([])
    tracker.add(range(until), sorted(anomalies, key=lambda each: each["window"]))
    return tracker


def incidents(told: IncidentTracker) -> list[Incident]:
    """The last state of each."""
    return list({row.incident.id: row.incident for row in told.rows}.values())


def described_as(incident: Incident) -> tuple[str, str | None, str | None]:
    return incident.worst.measure, incident.worst.client_id, incident.worst.phase


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


def test_clients_that_stop_with_their_listener_are_one_incident() -> None:
    listener = anomaly(3, levels.LISTENER, listener="SSL", excess=-2700.0, base=3000.0)
    later = 3 + ONSET_MINUTES

    told = tracked(listener, stopped(3, "a"), stopped(3, "b"), stopped(later, "c"))

    assert 1 == len(set(told.incident_of))


def test_clients_that_stop_at_a_time_are_an_incident_each() -> None:
    listener = anomaly(3, levels.LISTENER, listener="SSL", excess=-1080.0, base=3000.0)

    told = tracked(listener, stopped(3, "a"), stopped(3, "b"))

    assert {"a", "b"} == {incident.worst.client_id for incident in incidents(told)}
    assert ["1970-01-01T00:03Z", "1970-01-01T00:03Z/2"] == [each.id for each in incidents(told)]


def test_a_client_that_fails_later_leaves_the_description_of_a_slow_one() -> None:
    slow = [row for n in range(3, 12) for row in slow_client(n)]
    failing = [row for n in range(6, 15) for row in failing_client(n)]

    first, second = incidents(tracked(*slow, *failing))

    assert ("broker_p50_us", "a", "local") == described_as(first)
    assert ("error_share", "b", None) == described_as(second)
    assert [(3, 11), (6, 14)] == [(each.first, each.last) for each in (first, second)]
    assert [18, 45] == [each.anomalies for each in (first, second)]


def test_causes_of_a_client_are_one_incident_and_keep_their_times() -> None:
    slow = [row for n in range(3, 6) for row in slow_client(n, "a")]
    failing = [row for n in range(5, 9) for row in failing_client(n, "a")]

    [incident] = incidents(tracked(*slow, *failing))

    assert [("broker_p50_us", 3, 5), ("error_share", 5, 8)] == [
        (each.worst.measure, each.first, each.last) for each in incident.causes
    ]


def test_a_client_that_fails_while_all_are_slow_is_an_incident_of_its_own() -> None:
    place = {"api_key": PRODUCE, "listener": "SSL", "phase": "remote"}
    slow = [more(n, levels.API, "broker_p50_us", 9e6, 200, **place) for n in range(3, 12)]
    failing = [row for n in range(6, 9) for row in failing_client(n)]

    first, second = incidents(tracked(*slow, *failing))

    assert ("broker_p50_us", None, "remote") == described_as(first)
    assert ("error_share", "b", None) == described_as(second)


def test_apis_that_get_slow_one_after_the_other_are_two_incidents() -> None:
    places = ((PRODUCE, range(3, 9)), (FETCH, range(6, 12)))
    rows = [
        more(n, levels.API, "broker_p50_us", 9e6, 200, api_key=api, phase="local", listener="SSL")
        for api, minutes in places
        for n in minutes
    ]

    told = incidents(tracked(*rows))

    assert [(PRODUCE, 3, 8), (FETCH, 6, 11)] == [
        (each.worst.api_key, each.first, each.last) for each in told
    ]


def test_another_phase_of_the_same_api_is_another_cause() -> None:
    place = {"api_key": PRODUCE, "listener": "SSL"}
    rows = [
        more(n, levels.API, "broker_p50_us", 9e6, 200, phase=phase, **place)
        for n, phase in [(3, "local"), (4, "local"), (8, "remote"), (9, "remote")]
    ]

    causes = [each for incident in incidents(tracked(*rows)) for each in incident.causes]

    assert [("local", 3), ("remote", 8)] == [(each.worst.phase, each.first) for each in causes]


def test_a_client_whose_errors_outlast_those_of_all_clients_is_named() -> None:
    whole = [more(n, levels.BROKER, "error_share", 450, 900) for n in (3, 4)]
    of_all = [
        more(n, levels.API, "error_share", 300, 600, api_key=PRODUCE, listener="SSL")
        for n in (3, 4)
    ]
    client = {"api_key": PRODUCE, "client_id": "b", "listener": "SSL"}
    failing = [more(n, levels.SERIES, "error_share", 55, 100, **client) for n in range(4, 9)]

    told = [
        cause for each in incidents(tracked(*whole, *of_all, *failing)) for cause in each.causes
    ]

    assert [(None, 3), ("b", 6)] == [(each.worst.client_id, each.first) for each in told]


def test_another_client_that_stops_later_is_another_incident() -> None:
    told = tracked(stopped(3, "a"), *(stopped(n, "a") for n in range(4, 12)), stopped(11, "b"))

    assert ["1970-01-01T00:03Z"] * 9 + ["1970-01-01T00:11Z"] == told.incident_of


def test_what_is_a_part_of_an_incident_belongs_to_it() -> None:
    place = {"api_key": PRODUCE, "listener": "SSL", "phase": "local"}
    slow = [more(n, levels.API, "broker_p50_us", 9e6, 300, **place) for n in range(3, 9)]
    of_client = more(8, levels.SERIES, "broker_p50_us", 1e6, 30, client_id="a", **place)
    place["api_key"] = FETCH
    of_other = more(8, levels.API, "broker_p50_us", 9e6, 300, **place)

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


def test_an_incident_that_comes_again_after_it_was_over_is_another() -> None:
    told = tracked(stopped(3, "a"), stopped(3 + QUIET_MINUTES + 1, "a"))

    assert 2 == len(set(told.incident_of))


def culprit(*rows: Any) -> str | None:
    """The client of the only incident."""
    [incident] = incidents(tracked(*rows))
    return incident.worst.client_id


def test_the_client_is_named_that_makes_most_of_the_whole() -> None:
    whole = more(3, levels.API, "error_share", 100, 1000, api_key=PRODUCE)
    part = {"api_key": PRODUCE, "client_id": "a", "is_part": True}

    assert "a" == culprit(whole, more(3, levels.SERIES, "error_share", 63, 200, **part))
    assert None is culprit(whole, more(3, levels.SERIES, "error_share", 30, 200, **part))


def test_a_large_client_is_no_culprit_of_what_all_have() -> None:
    whole = more(3, levels.API, "error_share", 100, 1000, api_key=PRODUCE)
    part = {"api_key": PRODUCE, "client_id": "a"}

    assert None is culprit(whole, more(3, levels.SERIES, "error_share", 63, 600, **part))


def test_the_client_whose_connections_closed_is_named() -> None:
    place: dict[str, Any] = {"listener": "SSL", "reason": "PEER_CLOSED"}
    whole = more(3, levels.CLOSED, "connections_closed", 460, 6, **place)
    of_client = (3, levels.CLOSED_OF_CLIENT, "connections_closed", 454, 0)
    part = more(*of_client, client_id="a", is_part=True, value=454.0, **place)

    told = tracked(whole, part)

    [incident] = incidents(told)
    assert ("a", "PEER_CLOSED", 454.0) == (
        *(incident.worst.client_id, incident.worst.reason, incident.worst.value),
    )
    assert 1 == incident.anomalies == len(told.incident_of)


def test_what_many_apis_have_others_have_too() -> None:
    """The Fetch of all clients is not reported, as a job makes it slow each quarter of an hour."""
    place = {"listener": "SSL", "phase": "request_queue"}
    apis = [more(3, levels.API, "broker_p50_us", 6e6, 999, api_key=n, **place) for n in (0, 2, 3)]
    fetches = [
        more(3, levels.SERIES, "broker_p50_us", 6e5, 99, api_key=FETCH, client_id=client, **place)
        for client in "ab"
    ]
    only_client = [
        more(3, level, "broker_p50_us", 6e4, 9, api_key=12, **place, **client)
        for level, client in [(levels.API, {}), (levels.SERIES, {"client_id": "a"})]
    ]

    assert None is culprit(*apis, *fetches, *only_client)


def test_what_is_affected_is_named_if_it_is_one() -> None:
    of_listener = [
        more(3, levels.API, "broker_p99_us", 1e6, 9, api_key=api, listener="SSL", phase="local")
        for api in (FETCH, PRODUCE)
    ]

    [incident] = incidents(tracked(*of_listener))

    worst = incident.worst
    assert (None, "SSL", "local") == (worst.api_key, worst.listener, worst.phase)


def test_the_cause_is_named_that_says_most() -> None:
    fewer = anomaly(3, levels.BROKER, score=-50.0)
    failed = more(3, levels.BROKER, "error_share", 90, 900, score=6.0)
    closed = more(
        *(3, levels.CLOSED, "connections_closed", 90, 0),
        listener="SSL",
        reason="AUTHENTICATION_FAILED",
    )

    [incident] = incidents(tracked(fewer, failed, closed))

    worst = incident.worst
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


def calls_for(clients: int) -> int:
    """The calls of functions for so many clients that begin to fail, and others after them."""
    found = [
        more(window, levels.CLIENT, "error_share", 33, 110, client_id=f"{number}-{window // 2}")
        for window in range(4)
        for number in range(clients)
    ]
    calls, before = 0, sys.getprofile()

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        tracker = tracked(*found, until=12)
    finally:
        sys.setprofile(before)
    assert 2 * clients == len(incidents(tracker))
    return calls


def test_what_an_incident_costs_does_not_grow_with_the_number_of_others() -> None:
    assert calls_for(400) < 4.5 * calls_for(100)


def test_the_longest_incident_is_one_that_the_dashboard_reads() -> None:
    """In JSON, a control character of a client id has six characters."""
    row = tracked(stopped(3, "\x01" * 255)).rows[0]
    incident = attrs.evolve(row.incident, causes=row.incident.causes * CAUSES_MAX)

    [longest] = changes([attrs.evolve(row, incident=incident)])

    assert 32 * 1024 < len(json.dumps(longest)) < VALUE_BYTES_MAX * 3 / 4
