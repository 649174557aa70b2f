"""Results of the pipeline, from the records of its topic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from operator import attrgetter

import pytest

from trionet.dashboard.model._pipeline import MINUTES_MAX, Pipeline


def put(pipeline: Pipeline, kind: str, window: str, value: object, **names: object) -> None:
    key = {"kind": kind, "window": window, **names}
    pipeline.put(json.dumps(key).encode(), None if value is None else json.dumps(value).encode())


def minute(number: int) -> str:
    return f"2026-11-22T{number // 60:02}:{number % 60:02}:00Z"


def test_rows_have_what_key_and_value_say() -> None:
    pipeline = Pipeline()
    put(pipeline, "windows", minute(5), {"requests": 60.0, "errors": 1, "clients": 3})
    put(
        pipeline,
        "requests",
        minute(5),
        {"requests": 60.0, "total_p99_us": 1500.0},
        api="Fetch",
        client_id="c",
        listener="L",
    )
    names = {"measure": "bytes", "rank": 1}
    put(pipeline, "talkers", minute(5), {"client_id": "c", "share": 0.5}, **names)
    names = {"api": "Fetch", "client_id": "c", "listener": "L", "measure": "errors"}
    put(pipeline, "anomalies", minute(5), {"score": 9.0}, **names)
    pipeline.show(1.0)

    [window] = pipeline.minutes.values()
    assert (minute(5), 60, 1, 3) == attrgetter("window", "requests", "errors", "clients")(window)
    [series] = pipeline.series.values()
    assert ("Fetch", "c", 1500) == (series.api, series.client_id, series.total_p99_us)
    [talker] = pipeline.talkers.values()
    assert ("bytes", 1, 0.5) == (talker.measure, talker.rank, talker.share)
    [anomaly] = pipeline.anomalies.values()
    assert ("errors", 9) == (anomaly.measure, anomaly.score)


def test_the_newest_minute_is_the_first_and_the_oldest_are_forgotten() -> None:
    pipeline = Pipeline()
    for number in range(MINUTES_MAX + 10):
        put(pipeline, "windows", minute(number), {"requests": number})
    pipeline.show(1.0)

    windows = [row.window for row in pipeline.minutes.values()]
    assert [minute(n) for n in range(MINUTES_MAX + 9, 9, -1)] == windows


def test_a_minute_is_shown_when_its_totals_are_there() -> None:
    """A job writes them last; until then a minute has only some of its rows."""
    pipeline = Pipeline()
    put(pipeline, "windows", minute(1), {"requests": 7})
    for number in (1, 2):
        put(pipeline, "requests", minute(number), {"requests": 7}, api=f"{number}")
        put(pipeline, "incidents", minute(number), {"incident": "i"}, incident="i")
    pipeline.show(1.0)
    assert [minute(1)] == [row.window for row in pipeline.series.values()]
    assert [minute(2)] == [row.window for row in pipeline.incidents.values()]

    put(pipeline, "windows", minute(2), {"requests": 7})
    pipeline.show(2.0)
    assert [minute(2), minute(1)] == [row.window for row in pipeline.series.values()]


def test_a_row_that_is_reported_twice_is_there_once() -> None:
    pipeline = Pipeline()
    for _ in range(2):
        put(pipeline, "windows", minute(1), {"requests": 7})
        pipeline.show(1.0)

    assert 1 == len(pipeline.minutes)


def test_rows_of_a_minute_stay_in_their_order() -> None:
    pipeline = Pipeline()
    for rank in (1, 2, 3):
        put(pipeline, "talkers", minute(1), {"client_id": "c"}, measure="time", rank=rank)
    orders = []
    for second in range(3):
        pipeline.show(float(second))
        orders.append([row.rank for row in pipeline.talkers.values()])

    assert [[1, 2, 3]] * 3 == orders


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_incident_is_there_once_in_its_last_state(order: Sequence[int]) -> None:
    """Its records have different keys, so their partitions and their order are not the same."""
    pipeline = Pipeline()
    for number in order:
        state = "over" if number == 2 else "open"
        row = {"incident": "i", "state": state, "anomalies": number}
        put(pipeline, "incidents", minute(number), row, incident="i")
        pipeline.show(1.0)

    [incident] = pipeline.incidents.values()
    assert ("over", 2, None) == (incident.state, incident.anomalies, incident.client_id)


def test_a_row_that_was_deleted_is_gone() -> None:
    pipeline = Pipeline()
    put(pipeline, "windows", minute(1), {"requests": 7})
    put(pipeline, "windows", minute(1), None)
    pipeline.show(1.0)

    assert [] == list(pipeline.minutes)


WINDOWS = {"kind": "windows", "window": "2026-11-22T11:45:00Z"}
WHOLE = {
    "records": 9,
    "requests": 9.0,
    "connections": 1,
    "request_bytes": 900.0,
    "response_bytes": 90.0,
    "errors": 0,
    "throttled": 0,
    "clients": 2,
    "series": 3,
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({**WINDOWS, "window": [1]}, WHOLE),
        ({**WINDOWS, "window": 5}, WHOLE),
        ({**WINDOWS, "window": None}, WHOLE),
        ({**WINDOWS, "window": {}}, None),
        ({**WINDOWS, "window": "\u001b]52;c;eA==\u0007"}, WHOLE),
        ({**WINDOWS, "kind": []}, None),
        ({**WINDOWS, "kind": []}, WHOLE),
        (WINDOWS, {**WHOLE, "requests": "9"}),
        (WINDOWS, {**WHOLE, "requests": True}),
        (WINDOWS, {**WHOLE, "requests": float("nan")}),
        (WINDOWS, {**WHOLE, "requests": 10**4000}),
        (WINDOWS, {**WHOLE, "requests": 1e300}),
        (WINDOWS, {**WHOLE, "clients": 2.5}),
        (WINDOWS, {**WHOLE, "clients": [2]}),
        (WINDOWS, {**WHOLE, "padding": "x" * 100_000}),
        (WINDOWS, [1]),
        ({**WINDOWS, "kind": "incidents", "incident": ["i"]}, {"state": "open"}),
        ({**WINDOWS, "kind": "incidents"}, {"state": "open"}),
        ({**WINDOWS, "kind": "requests", "client_id": {"a": 1}}, {"requests": 1.0}),
    ],
    ids=lambda each: json.dumps(each)[:60],
)
def test_a_row_that_is_not_what_the_views_expect_is_malformed(key: object, value: object) -> None:
    pipeline = Pipeline()
    put(pipeline, "windows", minute(1), WHOLE)
    text = None if value is None else json.dumps(value).encode()

    pipeline.put(json.dumps(key).encode(), text)
    pipeline.show(1.0)

    assert (1, [minute(1)]) == (pipeline.malformed, list(pipeline.minutes))
    assert [1, 0, 0, 0, 0] == [len(section) for section in pipeline.sections]


def test_a_key_in_another_encoding_is_malformed() -> None:
    pipeline = Pipeline()

    pipeline.put(json.dumps({**WINDOWS, "kind": "requests"}).encode("utf-16"), b"{}")

    assert 1 == pipeline.malformed


def test_what_is_no_result_is_counted_and_left_out() -> None:
    pipeline = Pipeline()
    for key, value in (
        (None, b"{}"),
        (b"not json", b"{}"),
        (b"[1]", b"{}"),
        (b'{"kind": "windows"}', b"{}"),
        (b'{"kind": "windows", "window": "x"}', b"not json"),
        (b"[" * 100_000, b"{}"),
    ):
        pipeline.put(key, value)
    pipeline.show(1.0)

    assert (6, 0) == (pipeline.malformed, len(pipeline.minutes))


def test_a_table_that_is_not_shown_here_is_passed_over() -> None:
    pipeline = Pipeline()
    put(pipeline, "closes", minute(1), {"connections": 1})
    pipeline.show(1.0)

    assert 0 == pipeline.malformed
    assert [0, 0, 0, 0, 0] == [len(section) for section in pipeline.sections]


def test_without_results_it_is_said_why() -> None:
    pipeline = Pipeline()
    pipeline.mark_missing("there are none")

    assert {"there are none"} == {section.missing for section in pipeline.sections}
